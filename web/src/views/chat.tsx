/** The conversation: a window of turns, the open requests above the composer, and the composer. */

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ActiveTurn, Attachment, ChatState, Message, ResponsePart, SessionState, ToolCall, Turn, Uri } from "../ahp/index.ts";
import { sendMessage, userMessage } from "../local/outbox.ts";
import { mayWrite } from "../local/me.ts";
import { comesFrom, customizationsOf, failed, keyOf, duration, elapsed, isOpen, planOf, plain, price, summaryOf, tokens, total } from "../mirror/selectors.ts";
import { dispatch, link, request, root, type Seen, useChannel } from "../mirror/store.ts";
import { Counts } from "../parts/edit.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { Referred } from "../parts/referred.tsx";
import { type Around, Finished, oneLine, Shown, showsMore, ToolCallView } from "../parts/toolcall.tsx";
import { act, announce, Boundary, confirmed, CopyButton, focusNow, Lengthy, Mark, MarkIcon, memo, Menu, type MenuEntry, tellRefused, toast, useNow } from "../ui/bits.tsx";
import { ApprovalDock, InlineApproval, Payload } from "./approvals.tsx";
import { Composer } from "./composer.tsx";
import { QuestionForm } from "./questions.tsx";
import { sentReview, reviewAttachment, reviewCount } from "./review.ts";
import { sessionUrl, waitingIn } from "../mirror/inbox.ts";
import { go, panelUrl, route } from "../routes.ts";
import { Queue, Unsent } from "./queue.tsx";
import { hold, showWhole, useFollowing, useNamedTurn } from "./scrolling.ts";

const MOUNTED = 60;
const MORE = 40;

// Parts of an answer.

type Run = { kind: "run"; calls: ToolCall[] } | { kind: "part"; part: ResponsePart; index: number };

/** Several finished calls in a row become one line. Running, failed and pending calls stay visible. */
export function runs(parts: ResponsePart[]): Run[] {
  const out: Run[] = [];
  for (const [index, part] of parts.entries()) {
    const folds = part.kind === "toolCall" && !isOpen(part.toolCall) && !failed(part.toolCall) && part.toolCall.status === "completed";
    const last = out.at(-1);
    if (folds && last?.kind === "run") last.calls.push(part.toolCall);
    else if (folds) out.push({ kind: "run", calls: [part.toolCall] });
    else out.push({ kind: "part", part, index });
  }
  return out;
}

function FinishedRun({ calls, around }: { calls: ToolCall[]; around: Around }): JSX.Element {
  const [open, set] = useState(false);
  if (calls.length === 1) return <Finished call={calls[0] as ToolCall} around={around} />;
  const shown = calls.filter((call) => showsMore(call, around));
  return (
    <>
      <details class="fold tool" open={open} onToggle={(event) => set(event.currentTarget.open)}>
        <summary><Mark of="done" /><span class="name cut grow" title={summaryOf(calls)}>{summaryOf(calls)}</span></summary>
        {open && <div class="folded">{calls.map((call) => <Finished key={call.toolCallId} call={call} around={around} />)}</div>}
      </details>
      {!open && shown.map((call) => <Shown key={call.toolCallId} call={call} around={around} />)}
    </>
  );
}

const Part = memo(function Part({ part, live, around, onMessage }: { part: ResponsePart; live: boolean; around: Around; onMessage(text: string): void }): JSX.Element | null {
  switch (part.kind) {
    case "markdown":
      return <Markdown content={String(part.content ?? "")} live={live} />;
    case "reasoning":
      return <Reasoning text={String(part.content ?? "")} live={live} />;
    case "toolCall":
      return <ToolCallView call={part.toolCall} around={around} />;
    case "inputRequest":
      return <QuestionForm chat={around.chat} request={part.request} response={part.response} expired={!live && part.response === undefined} onSendAsMessage={onMessage} />;
    case "error":
      return <div class="note danger break" role="alert"><strong>Failed.</strong> <Lengthy text={part.error.message} /></div>;
    case "systemNotification":
      return <div class="note break"><Markdown content={typeof part.content === "string" ? part.content : String(part.content?.markdown ?? "")} /></div>;
    case "contentRef":
      return <Referred content={part} />;
    default:
      return <p class="small muted">A part of a kind this page does not know.</p>;
  }
});

function Reasoning({ text, live }: { text: string; live: boolean }): JSX.Element {
  const [open, set] = useState(false);
  return (
    <details class="fold" open={open} onToggle={(event) => set(event.currentTarget.open)}>
      <summary>{live ? "Thinking" : "Thought"}{!open && <span class="cut grow">{text.slice(0, 160)}</span>}</summary>
      {open && <div class="folded muted"><Markdown content={text} live={live} /></div>}
    </details>
  );
}

const PARTS = 150; // This many parts of a turn are drawn at first, and as many again on each request.

/** Where drawing a long turn begins: with its last parts, and with everything that is still open. */
export function firstShown(all: Run[], count: number): number {
  const open = all.findIndex((run) => run.kind === "part" && (run.part.kind === "inputRequest" ? run.part.response === undefined : run.part.kind === "toolCall" && isOpen(run.part.toolCall)));
  const start = Math.max(0, all.length - count);
  return open < 0 ? start : Math.min(start, open);
}

function Parts({ parts, live, around, onMessage }: { parts: ResponsePart[]; live: boolean; around: Around; onMessage(text: string): void }): JSX.Element {
  const [count, show] = useState(PARTS);
  const last = parts.length - 1;
  const all = runs(parts);
  const start = firstShown(all, count);
  return (
    <>
      {start > 0 && <button type="button" class="btn quiet" onClick={() => show(count + PARTS)}>Earlier in this turn ({start})</button>}
      {all.slice(start).map((run, at) =>
        run.kind === "run"
          ? <Boundary key={`run ${run.calls[0]?.toolCallId ?? start + at}`} of={run.calls.at(-1)}><FinishedRun calls={run.calls} around={around} /></Boundary>
          : <Boundary key={run.part.kind === "toolCall" ? `call ${run.part.toolCall.toolCallId}` : `part ${run.index}`} of={run.part}>
              <Part part={run.part} live={live && (run.index === last || run.part.kind === "inputRequest")} around={around} onMessage={onMessage} />
            </Boundary>,
      )}
    </>
  );
}

/** A helper's conversation, inside the call that started it. */
function Helper({ uri, around }: { uri: Uri; around: Around }): JSX.Element {
  const seen = useChannel<ChatState>(uri, "chat");
  const chat = seen.value.state;
  if (seen.value.error) return <p class="small muted">This helper's conversation is gone.</p>;
  if (!chat) return <p class="small muted">Loading…</p>;
  const turns: (Turn | ActiveTurn)[] = chat.activeTurn ? [...chat.turns, chat.activeTurn] : chat.turns;
  return (
    <>
      {turns.slice(-5).map((turn) => (
        <Parts key={turn.id} parts={turn.responseParts} live={turn === chat.activeTurn} around={{ ...around, turnId: turn.id }} onMessage={() => undefined} />
      ))}
    </>
  );
}

// Turns.

function Said({ turn, state }: { turn: Turn | ActiveTurn; state: "sent" | "sending" | "waiting" }): JSX.Element {
  const [all, set] = useState(false);
  const { text } = turn.message;
  const long = text.length > 6_000 && !all;
  const who = turn.message.origin.kind;
  return (
    <div class="said">
      {who !== "user" && <p class="small muted">From {who === "systemNotification" ? "the system" : who}</p>}
      <div class="text" dir="auto">{long ? `${text.slice(0, 6_000)}…` : text}</div>
      {long && <button type="button" class="btn quiet" onClick={() => set(true)}>Show all</button>}
      <Attachments of={turn.message} />
      {state !== "sent" && <p class="small muted">{state === "sending" ? "Sending…" : "Waiting for the connection…"}</p>}
    </div>
  );
}

function Attachments({ of: { attachments } }: { of: Message }): JSX.Element | null {
  if (!attachments?.length) return null;
  return <div class="attachments">{attachments.map((each, index) => <AttachmentChip key={index} attachment={each} />)}</div>;
}

function AttachmentChip({ attachment }: { attachment: Attachment }): JSX.Element {
  const image = attachment.type === "embeddedResource" && /^image\/(png|jpeg|gif|webp|avif)$/.test(attachment.contentType ?? "");
  return <span class="chip">{image ? <img alt={attachment.label} src={`data:${attachment.contentType};base64,${attachment.data}`} /> : attachment.label}</span>;
}

interface TurnProps {
  turn: Turn | ActiveTurn;
  previous: string | undefined;
  live: boolean;
  /** Whether the turn waits for an answer: it asks a question itself, or one of its helpers does. */
  waits: boolean;
  /** The agent's description of its activity. */
  activity: string | undefined;
  last: boolean;
  /** The page's address names this turn, for instance after a search. */
  named: boolean;
  sending: "sent" | "sending" | "waiting";
  around: Around;
  canFork: boolean;
  canAside: boolean;
  canWrite: boolean;
}

const TurnView = memo(function TurnView(props: TurnProps): JSX.Element {
  const { turn, live, around } = props;
  const [editing, edit] = useState(false);
  const mine = useMemo(() => ({ ...around, turnId: turn.id }), [around, turn.id]);
  const send = (text: string): void => void sendMessage(around.chat, userMessage(text), live ? "queued" : "turn");
  return (
    <article class={`turn${props.named ? " named" : ""}`} data-turn={turn.id} aria-label={`Turn: ${turn.message.text.slice(0, 60)}`}>
      {!editing ? <Said turn={turn} state={props.sending} /> : <EditAndResend {...props} onEnd={() => edit(false)} />}
      <Parts parts={turn.responseParts} live={live} around={mine} onMessage={send} />
      {live ? <Working turn={turn as ActiveTurn} waits={props.waits} activity={props.activity} /> : <Foot {...props} turn={turn as Turn} onEdit={() => edit(true)} />}
    </article>
  );
});

function Working({ turn, waits, activity }: { turn: ActiveTurn; waits: boolean; activity: string | undefined }): JSX.Element {
  const at = useNow(1000);
  const open = turn.responseParts.findLast((part) => part.kind === "toolCall" && isOpen(part.toolCall));
  return (
    <p class="activity"><Mark of={waits ? "needs" : "running"} />
      <span class="break">{waits ? "Waiting for you" : open?.kind === "toolCall" ? oneLine(open.toolCall) : activity || "Working"}</span>
      <span>{elapsed(at - Date.parse(turn.startedAt))}</span>
    </p>
  );
}

const clock = (at: string): string => new Date(at).toLocaleTimeString([], { hour: "numeric", minute: "2-digit" }).replace(/\s/g, "\u00a0");

/** The name of a model for people. */
const modelName = (id: string | undefined): string => root.value?.agents.flatMap((agent) => agent.models).find((model) => model.id === id)?.name ?? id ?? "";

/** How many files the calls of a turn edited, and by how many lines. */
export function editsOf(turn: Turn): { files: number; added: number; removed: number } {
  const sum = { files: 0, added: 0, removed: 0 };
  for (const part of turn.responseParts) {
    if (part.kind !== "toolCall" || part.toolCall.status !== "completed") continue;
    for (const content of part.toolCall.content ?? []) {
      if (content.type !== "fileEdit") continue;
      sum.files += 1;
      sum.added += content.diff?.added ?? 0;
      sum.removed += content.diff?.removed ?? 0;
    }
  }
  return sum;
}

const ENDS = { complete: "", cancelled: "Stopped", error: "Failed" };

function Foot({ turn, around, last, previous, canFork, canAside, canWrite, onEdit }: TurnProps & { turn: Turn; onEdit(): void }): JSX.Element {
  const sum = total([turn]);
  const failure = turn.responseParts.at(-1);
  const resumable = last && turn.state === "error" && failure?.kind === "error" && failure.resumable;
  const facts = [ENDS[turn.state], turn.duration === undefined ? "" : duration(turn.duration), turn.usage ? `${tokens(sum.input)} in, ${tokens(sum.output)} out` : "", price(sum), turn.startedAt ? clock(turn.startedAt) : "", modelName(turn.usage?.model ?? turn.message.model?.id)].filter(Boolean);
  const at = route.value.name === "session" ? route.value : undefined;
  const edited = editsOf(turn);
  const entries: MenuEntry[] = [
    ...(canFork ? [{ label: "Fork from here", run: () => void branch(around, turn.id, "fork") }] : []),
    ...(canAside ? [{ label: "Ask aside", sub: "A chat beside this one that knows it up to here", run: () => void branch(around, turn.id, "sideChat") }] : []),
    ...(at ? [{ label: "Timeline", run: () => go(panelUrl(at, "timeline", turn.id)) }] : []),
  ];
  const answer = (): string => turn.responseParts.map((part) => (part.kind === "markdown" ? part.content : "")).filter(Boolean).join("\n\n");
  return (
    <div class="turn-tools">
      <span>{facts.join(" · ")}</span>
      {resumable && canWrite && <button type="button" class="btn primary" title="The agent goes on where it failed" onClick={() => void act(around.chat, { type: "chat/turnResume", turnId: turn.id }, "chat")}>Go on</button>}
      {!resumable && last && turn.state === "error" && canWrite && <button type="button" class="btn" onClick={() => void resend(around.chat, previous, turn.message)}>Send again</button>}
      <CopyButton text={answer} />
      {canWrite && <button type="button" class="btn quiet" aria-label="Edit and resend" title="Change the message and send it again" onClick={onEdit}>Edit</button>}
      {at && edited.files > 0 && <a class="btn quiet" title="What this turn changed, and how to undo it" href={panelUrl(at, "changes", turn.id)}>Changes <Counts added={edited.added} removed={edited.removed} /></a>}
      {entries.length > 0 && <Menu label="More about this turn" entries={entries} />}
    </div>
  );
}

/** Remove the turns from here on, and send the message again, with its attachments and to the same model. */
async function resend(chat: Uri, previous: string | undefined, { text, attachments, model }: Message): Promise<void> {
  const message = userMessage(text, { ...(attachments ? { attachments } : {}), ...(model ? { model } : {}) });
  if (await act(chat, { type: "chat/truncated", ...(previous ? { turnId: previous } : {}) }, "chat")) await sendMessage(chat, message, "turn");
}

/** The text that is selected inside a turn: a side chat can be about it. */
function selected(): string {
  const words = getSelection()?.toString().trim() ?? "";
  return document.activeElement?.closest("textarea, input") ? "" : words.slice(0, 4_000);
}

/** A new chat of the session: with this chat's turns so far (fork), or beside it: its agent knows the turns, but the chat does not show them (side chat). */
async function branch(around: Around, turnId: string, kind: "fork" | "sideChat"): Promise<void> {
  const chat = `ahp-chat:/${crypto.randomUUID()}`;
  const text = kind === "sideChat" ? selected() : "";
  try {
    await request("createChat", { channel: around.sessionUri, chat, source: { kind, chat: around.chat, turnId, ...(text ? { selection: { text } } : {}) } });
    go(sessionUrl(around.sessionUri, chat));
    toast(kind === "fork" ? "Forked into a new chat" : "A chat beside the other one. It knows what was said up to there.");
  } catch (error) {
    tellRefused((error as Error).message);
  }
}

function EditAndResend({ turn, onEnd, around, previous, last }: TurnProps & { onEnd(): void }): JSX.Element {
  const { message } = turn;
  const [value, set] = useState(message.text);
  const go = async (): Promise<void> => {
    if (!last && !(await confirmed("The turns after this one are removed. Fork the chat instead to keep them.", "Remove and send"))) return;
    onEnd();
    await resend(around.chat, previous, { ...message, text: value });
  };
  return (
    <form class="said stack" onSubmit={(event) => {
      event.preventDefault();
      void go();
    }}>
      <label class="field"><span>Edit the message</span><textarea ref={focusNow} rows={4} value={value} onInput={(event) => set(event.currentTarget.value)} /></label>
      <Attachments of={message} />
      <div class="row"><button type="submit" class="btn primary" disabled={!value.trim()}>Send</button><button type="button" class="btn" onClick={onEnd}>Cancel</button></div>
    </form>
  );
}

function Plan({ session, chat }: { session: SessionState | undefined; chat: Uri }): JSX.Element | null {
  const entries = planOf(session, chat);
  if (!entries.length) return null;
  const done = entries.filter((entry) => entry.status === "completed").length;
  const now = entries.find((entry) => entry.status === "in_progress");
  return (
    <details class="fold edits-bar">
      <summary><span class="grow cut">Plan: {done} of {entries.length} done{now ? ` · ${now.content}` : ""}</span></summary>
      <ul class="plan folded">{entries.map((entry, index) => (
        <li key={index} class={entry.status}><Mark of={entry.status === "completed" ? "done" : entry.status === "in_progress" ? "running" : "todo"} /><span class="break">{entry.content}</span></li>
      ))}</ul>
    </details>
  );
}

const QuietComposer = memo(Composer);

export function ChatView({ uri, session, seen }: { uri: Uri; session: SessionState | undefined; seen: Seen<ChatState> }): JSX.Element {
  const chat = seen.state as ChatState;
  const mounted = useSignal(MOUNTED);
  const anchor = useRef<{ turn: Element | null | undefined; top: number; first: string | undefined } | undefined>(undefined);
  const requests = waitingIn(session, chat);
  const approvals = requests.filter((each) => each.kind !== "chatInput");
  const questions = requests.filter((each) => each.kind === "chatInput");
  const following = useFollowing(chat.activeTurn?.id ?? chat.turns.length, questions[0] && keyOf(questions[0]));
  const { ref, detached, toEnd, letGo, onScroll, onInput } = following;
  const at = route.value;
  const named = at.name === "session" && !at.panel ? at.turn : undefined;
  const agent = root.value?.agents.find((each) => each.provider === session?.provider);
  const canWrite = mayWrite() && chat.interactivity !== "read-only" && chat.interactivity !== "hidden";
  const around = useMemo<Around>(
    () => ({ session, sessionUri: uri, chat: chat.resource, turnId: "", depth: 0, Payload, Approval: InlineApproval, Helper }),
    [uri, chat.resource, session?.provider, session?.chats, session?.workingDirectories],
  );
  useAnnouncements(chat, requests.map(keyOf).join(), requests[0]?.kind === "toolConfirmation" ? plain(requests[0].toolCall.displayName) : undefined);

  const older = async (stay: boolean): Promise<void> => {
    letGo(); // A person who loads older turns wants to read them, so do not jump to the end meanwhile.
    const turn = ref.current?.querySelector(".turn");
    anchor.current = stay ? { turn, top: turn?.getBoundingClientRect().top ?? 0, first: turns[0]?.id } : undefined;
    mounted.value += MORE;
    if (chat.turns.length < mounted.value && chat.turnsNextCursor)
      await request("fetchTurns", { channel: chat.resource, cursor: chat.turnsNextCursor }).catch((error: Error) => tellRefused(error.message));
  };

  // The composer's properties do not change with every word of the answer.
  const still = useMemo(() => chat, [chat.draft, chat.activeTurn?.id, chat.interactivity, chat.resource, chat.turns.length]);
  const comments = reviewCount(uri);
  const review = useMemo(() => ({ count: comments, attachment: () => reviewAttachment(uri, session), sent: () => sentReview(uri) }), [comments, uri, session]);
  const onSent = useRef(toEnd);
  const first = Math.max(0, chat.turns.length - mounted.value);
  const turns = chat.turns.slice(first);
  // The anchor: the visible turns stay in place when older turns are added above them.
  useLayoutEffect(() => {
    const { turn, top, first: before } = anchor.current ?? {};
    if (!anchor.current || before === turns[0]?.id || !ref.current) return;
    anchor.current = undefined;
    if (turn && top !== undefined) hold(ref.current, turn, top);
  }, [turns[0]?.id]);
  const hidden = first > 0 || chat.turnsNextCursor !== undefined;
  useNamedTurn(named, turns[0]?.id, following, hidden ? () => void older(false) : undefined);
  const waits = requests.some((each) => comesFrom(each, chat.resource, session));
  const starting = new Set(seen.pending.filter((action) => action.type === "chat/turnStarted").map((action) => action.turnId));
  const sendingOf = (id: string): TurnProps["sending"] => (!starting.has(id) ? "sent" : link.value === "live" ? "sending" : "waiting");
  const shared = { around, canFork: mayWrite() && Boolean(agent?.capabilities?.multipleChats?.fork), canAside: mayWrite() && Boolean(agent?.capabilities?.multipleChats?.sideChat) };
  const allTurns = chat.activeTurn ? [...turns, chat.activeTurn] : turns;
  return (
    <div class="chat">
      <div class={`transcript${detached ? " detached" : ""}`} ref={ref} onScroll={onScroll} onWheel={onInput} onTouchMove={onInput} onKeyDown={onInput} onPointerDown={onInput} tabIndex={0} role="log" aria-live="off" aria-label="Conversation">
        <div class="turns">
          {hidden && <button type="button" class="btn" onClick={() => void older(true)}>Earlier turns</button>}
          {allTurns.length === 0 && <Empty session={session} />}
          {allTurns.map((turn, index) => (
            <Boundary key={turn.id} of={turn}>
              <TurnView {...shared} turn={turn} live={turn === chat.activeTurn} waits={waits && turn === chat.activeTurn} activity={turn === chat.activeTurn ? chat.activity : undefined} last={index === allTurns.length - 1} named={turn.id === named} sending={sendingOf(turn.id)}
                canWrite={canWrite && !chat.activeTurn} previous={index > 0 ? allTurns[index - 1]?.id : chat.turns[first - 1]?.id} />
            </Boundary>
          ))}
          <Unsent state={chat} />
        </div>
      </div>
      <div class="dock" role="region" aria-label="Answer and write">
        {detached && <button type="button" class="btn newer" onClick={toEnd}>{chat.activeTurn && !waits ? "New output" : "To the end"} ↓</button>}
        <Boundary of={approvals[0]}><ApprovalDock requests={approvals} session={session} uri={uri} /></Boundary>
        {questions.length > 0 && (
          <div class="row edits-bar"><span class="chip needs"><MarkIcon of="needs" />{questions.length === 1 ? "A question waits" : `${questions.length} questions wait`}</span>
            <button type="button" class="btn quiet" onClick={() => showWhole(document.querySelector("form.card.needs"), ref.current)}>Show it</button>
          </div>
        )}
        <Boundary of={session}>
          <Blocking uri={uri} session={session} />
          <Plan session={session} chat={chat.resource} />
        </Boundary>
        <Boundary of={chat}>
          <Background chat={chat} />
          <EditsBar chat={chat} />
          <Queue chat={chat} />
        </Boundary>
        <QuietComposer key={chat.resource} uri={uri} session={session} chat={still} onSent={onSent.current} review={review} />
      </div>
    </div>
  );
}

/** MCP servers that the agent waits for before it begins. */
function Blocking({ uri, session }: { uri: Uri; session: SessionState | undefined }): JSX.Element | null {
  const starting = [...customizationsOf(session)].map(({ item }) => item).filter((item) => item.state?.kind === "starting" && item.state.blocking);
  if (!starting.length) return null;
  const goOn = (): void => {
    for (const item of starting) void dispatch(uri, { type: "session/mcpServerBackgroundRequested", id: item.id }, "session");
  };
  return (
    <div class="row wrap edits-bar"><Mark of="running" /><span class="grow break">Waiting for {starting.length === 1 ? "the MCP server" : "the MCP servers"} {starting.map((item) => item.name).join(", ")} to start.</span>
      {mayWrite() && <button type="button" class="btn quiet tiny" onClick={goOn}>Do not wait</button>}
    </div>
  );
}

function Background({ chat }: { chat: ChatState }): JSX.Element | null {
  if (!chat.backgroundWork?.length) return null;
  return <div class="row wrap edits-bar">{chat.backgroundWork.map((work) => <span key={work.id} class="chip" title={work.command}><MarkIcon of="running" />{work.label}</span>)}</div>;
}

function EditsBar({ chat }: { chat: ChatState }): JSX.Element | null {
  const at = route.value;
  const changes = chat.changes;
  if (at.name !== "session" || !changes?.files) return null;
  return <a class="row edits-bar calm muted" href={panelUrl(at, "changes")}>{changes.files} {changes.files === 1 ? "file" : "files"} changed <Counts added={changes.additions} removed={changes.deletions} /></a>;
}

function Empty({ session }: { session: SessionState | undefined }): JSX.Element {
  const failure = session?.lifecycle === "failed" ? session.creationError?.message : undefined;
  return (
    <div class="empty">
      {failure ? <p class="note danger" role="alert">The session could not be created: {failure}</p>
        : session?.lifecycle === "creating" ? <p>The agent is starting…</p>
        : <><h2>What shall we do?</h2><p>Write below. <span class="kbd">/</span> lists commands and skills, <span class="kbd">@</span> agents, files and resources, <span class="kbd">#</span> rules and files.</p></>}
    </div>
  );
}

/** Announces events to screen readers, but not every word. */
function useAnnouncements(chat: ChatState, waitingFor: string, tool: string | undefined): void {
  const running = chat.activeTurn?.id;
  const before = useRef<string | undefined>(running);
  useEffect(() => {
    if (running && before.current !== running) announce("Working");
    if (!running && before.current) announce(chat.turns.at(-1)?.state === "error" ? "Failed" : "Answer complete");
    before.current = running;
  }, [running]);
  useEffect(() => {
    if (waitingFor) announce(tool ? `Needs approval: ${tool}` : "Needs an answer");
  }, [waitingFor]);
}
