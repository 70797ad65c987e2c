/** Approvals: the whole question and its answers. A card never takes the focus, and ignores presses that come too early. */

import { signal } from "@preact/signals";
import type { JSX, Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ChatState, ConfirmationOption, InputNeeded, SessionState, StringOrMarkdown, ToolCall, Uri } from "../ahp/index.ts";
import { mayAnswer, mayWrite, onlyWords } from "../local/me.ts";
import { pointed } from "../mirror/inbox.ts";
import { fields, keyOf, inputText, nameOf, ownerOf, pathOf, plain, pretty, waitsForPerson, inShort } from "../mirror/selectors.ts";
import { agentName, dispatch, known, readText } from "../mirror/store.ts";
import { EditView } from "../parts/edit.tsx";
import { Markdown, size } from "../parts/markdown.tsx";
import { ends, Output } from "../parts/output.tsx";
import { act, Exact, focusNow, Lengthy, Mark, Menu, type MenuEntry, tellRefused, toast, usePointed } from "../ui/bits.tsx";
import { SignIn, type SignInServer } from "./signin.tsx";

type Approval = Extract<InputNeeded, { kind: "toolConfirmation" }>;

/** Characters of an input that are drawn at once. */
const LONG = 200_000;

/** Milliseconds after a button appeared or moved in which a press is ignored, because it was probably meant for something else. */
const HASTY = 400;

/** True once the element has stood still for long enough. Read when a press happens; tests see it as `data-still`. */
function useStill(key: string): { ref: { current: HTMLDivElement | null }; still(): boolean } {
  const ref = useRef<HTMLDivElement>(null);
  const since = useRef(performance.now());
  useEffect(() => {
    since.current = performance.now();
    let at = ref.current?.getBoundingClientRect();
    const timer = setInterval(() => {
      const now = ref.current?.getBoundingClientRect();
      if (!at || !now || Math.abs(now.top - at.top) > 3 || Math.abs(now.left - at.left) > 3) since.current = performance.now();
      at = now;
      ref.current?.toggleAttribute("data-still", still());
    }, 80);
    return () => clearInterval(timer);
  }, [key]);
  const still = (): boolean => performance.now() - since.current >= HASTY;
  return { ref, still };
}

async function answer(request: Approval, action: Record<string, unknown>): Promise<boolean> {
  const { chat, turnId, toolCall } = request;
  const type = toolCall.status === "pending-result-confirmation" ? "chat/toolCallResultConfirmed" : "chat/toolCallConfirmed";
  const outcome = await dispatch(chat, { type, turnId, toolCallId: toolCall.toolCallId, ...action }, "chat");
  if (!outcome.accepted && isAnswered(request)) toast("It was answered already, in another window.");
  else if (!outcome.accepted) tellRefused(outcome.reason);
  return outcome.accepted;
}

/** Whether the call does not wait for an answer any more, according to the chat. */
function isAnswered({ chat, turnId, toolCall }: Approval): boolean {
  const state = known<ChatState>(chat);
  const turn = state && [...state.turns, ...(state.activeTurn ? [state.activeTurn] : [])].find((each) => each.id === turnId);
  const part = turn?.responseParts.find((each) => each.kind === "toolCall" && each.toolCall.toolCallId === toolCall.toolCallId);
  return part?.kind === "toolCall" && !waitsForPerson(part.toolCall);
}

export const allow = (request: Approval, option?: ConfirmationOption, edited?: string): Promise<boolean> =>
  request.toolCall.status === "pending-result-confirmation"
    ? answer(request, { approved: true })
    : answer(request, {
        approved: true, confirmed: "user-action",
        ...(option ? { selectedOptionId: option.id } : {}), ...(edited === undefined ? {} : { editedToolInput: edited }),
      });

const deny = (request: Approval, option?: ConfirmationOption, note?: string): Promise<boolean> =>
  request.toolCall.status === "pending-result-confirmation"
    ? answer(request, { approved: false })
    : answer(request, {
        approved: false, reason: "denied",
        ...(option ? { selectedOptionId: option.id } : {}), ...(note ? { reasonMessage: note } : {}),
      });

/** The narrowest option of a kind: the first one that is not "always". */
export function narrowest(options: ConfirmationOption[] | undefined, kind: string): ConfirmationOption | undefined {
  const fitting = (options ?? []).filter((option) => option.kind === kind);
  // Options of the first group decide only about this call.
  const once = fitting.filter((option) => option.group === 0);
  if (once.length === 1) return once[0];
  return fitting.find((option) => !/always|session|remember|forever|global|workspace/i.test(`${option.id} ${option.label}`)) ?? fitting[0];
}

/** What a rule of this host covers, taken from the second word of the option's id. */
const COVERS: Record<string, string> = {
  tool: "Every call of this tool, whatever its input", server: "Every call of every tool of this server",
  command: "Commands that begin like this, whatever follows", path: "Calls that touch only these paths",
};

const about = (option: ConfirmationOption): string | undefined => {
  const kind = /^(?:allow|deny):(\w+):\w+$/.exec(option.id)?.[1];
  return option.description ?? (kind && COVERS[kind]);
};

/** The whole text of an input that is kept outside of the state. */
function useReference(call: ToolCall): string | undefined {
  const [text, set] = useState<string | undefined>(undefined);
  const reference = typeof call.toolInput === "object" ? call.toolInput : undefined;
  useEffect(() => {
    if (reference) void readText(reference.uri, true).then((read) => set(read ?? "(binary)"), (error: Error) => set(`(cannot be read: ${error.message})`));
  }, [reference?.uri, reference?.nonce]);
  return text;
}

/** A plain text. Of a very long text the beginning and the end are shown, and all of it on request. */
function Long({ text }: { text: string }): JSX.Element {
  const [all, set] = useState(text.length <= LONG);
  const { head, tail, left } = all ? { head: text, tail: "", left: 0 } : ends(text);
  return (
    <>
      <pre class="payload" tabIndex={0} role="region" aria-label="Input"><Exact text={head} input />{left > 0 && <span class="gap">… {size(left)} not shown …</span>}<Exact text={tail} input /></pre>
      {left > 0 && <div><button type="button" class="btn quiet" onClick={() => set(true)}>Show all</button></div>}
    </>
  );
}

/** The whole input, wrapped and never shortened by us; if it was shortened before it came here, that is shown. */
export function Payload({ call }: { call: ToolCall }): JSX.Element | null {
  const referred = useReference(call);
  const text = inputText(call) ?? referred;
  if (text === undefined || /^\s*(\{\s*\}\s*)?$/.test(text)) return null;
  const shown = pretty(text);
  const members = call.status === "streaming" ? undefined : fields(text);
  return (
    <>
      {members
        ? <div class="payload" tabIndex={0} role="region" aria-label="Input"><dl class="fields">{members.map(([name, value], index) => <div key={index}><dt><Exact text={name} input /></dt><dd><Exact text={value} input /></dd></div>)}</dl></div>
        : <Long text={shown} />}
      {call._meta?.["ahpkit/truncated"] === true && <p class="note needs small">This input is too long to be shown whole: its middle is left out.</p>}
    </>
  );
}

export const Words = ({ text }: { text: StringOrMarkdown | undefined }): JSX.Element | null =>
  text === undefined || text === "" ? null : typeof text === "string" ? <p class="break"><Lengthy text={text} /></p> : <Markdown content={String(text.markdown)} />;

function Risk({ call }: { call: ToolCall }): JSX.Element | null {
  const risk = call.riskAssessment;
  if (!risk) return null;
  if (risk.status !== "complete") return <p class="note small">Somebody is looking at the risk… <Lengthy text={plain(risk.reason)} /></p>;
  const unsafe = (risk.safety ?? 1) < 0.5;
  return (
    <div class={`note small break ${unsafe ? "needs" : ""}`}>
      <strong>{unsafe ? "Judged risky. " : "Judged safe. "}</strong>
      <Lengthy text={plain(risk.reason)} />
    </div>
  );
}

/**
 * Who asks, for what, where and why. The risk comes before the input, and a diff before the words that describe it. However long the
 * words are, they leave room for the input: an agent must not be able to push it out of sight with words.
 */
function Question({ request, session }: { request: Approval; session: SessionState | undefined }): JSX.Element {
  const call = request.toolCall;
  const chat = session?.chats.find((each) => each.resource === request.chat);
  const helper = chat?.origin?.kind === "tool" || (session && request.chat !== session.defaultChat && session.chats.length > 1);
  const folder = chat?.workingDirectories?.[0] ?? session?.workingDirectories?.[0];
  const result = call.status === "pending-result-confirmation";
  const name = inShort(call.displayName || call.toolName);
  const owner = ownerOf(call, session);
  const asked = plain(call.invocationMessage);
  const title = plain(call.confirmationTitle) || (result ? `Check the result of ${name}` : asked.includes("\n") || !asked ? name : asked);
  const agent = agentName(session?.provider) || "The agent";
  const edits = call.edits?.items ?? [];
  return (
    <>
      <div class="asked">
        <div class="small muted break">
          {agent}{helper && <> › <Exact text={chat?.title || "helper"} /></>}{title === name && !owner ? "" : <> · <Exact text={name} />{owner && <> of <Exact text={owner} /></>}</>}
          {folder && <> · in <span title={pathOf(folder)}><Exact text={nameOf(folder)} /></span></>}
        </div>
        <h3 class="break"><Lengthy text={title} /></h3>
        {asked !== title && <Words text={call.invocationMessage} />}
        {call.intention && <p class="small muted break">Why: <Lengthy text={call.intention} /></p>}
        <Risk call={call} />
      </div>
      {edits.map((edit, index) => <EditView key={index} edit={edit} roots={session?.workingDirectories} />)}
      {edits.length
        ? <details class="fold"><summary>Input of the call</summary><div class="folded"><Payload call={call} /></div></details>
        : <Payload call={call} />}
      {result && call.content?.map((part, index) => (part.type === "text" ? <Output key={index} text={part.text} /> : null))}
    </>
  );
}

const PLACE = / (in this chat|in this session|in this workspace|everywhere)$/;

/** Options that differ only in their scope become one entry with a choice of scopes. */
export function grouped(options: ConfirmationOption[], run: (option: ConfirmationOption) => void): MenuEntry[] {
  const out: MenuEntry[] = [];
  const byWords = new Map<string, ConfirmationOption[]>();
  for (const option of options) {
    const words = `${option.kind} ${option.label.replace(PLACE, "")}`;
    byWords.set(words, [...(byWords.get(words) ?? []), option]);
  }
  for (const same of byWords.values()) {
    const first = same[0] as ConfirmationOption;
    const sub = about(first);
    if (same.length === 1) out.push({ label: first.label, ...(sub ? { sub } : {}), run: () => run(first) });
    else
      out.push({
        label: first.label.replace(PLACE, ""), ...(sub ? { sub } : {}), run: () => undefined,
        choices: same.map((option) => ({ label: PLACE.exec(option.label)?.[1]?.replace("in this", "this") ?? option.label, full: option.label, run: () => run(option) })),
      });
  }
  return out;
}

/** The text that a person wrote beside an open question. It is kept while another question is shown. */
const begun = new Map<string, { editing?: string | undefined; note?: string | undefined }>();

function Answers({ request }: { request: Approval }): JSX.Element {
  const call = request.toolCall;
  const key = keyOf(request);
  const { ref, still } = useStill(key);
  const [{ editing, note }, write] = useState(begun.get(key) ?? {});
  const change = (more: { editing?: string; note?: string }): void => {
    const next = { editing, note, ...more };
    begun.set(key, next);
    write(next);
  };
  const [busy, setBusy] = useState(false);
  const result = call.status === "pending-result-confirmation";
  const yes = result ? undefined : narrowest(call.options, "approve");
  const no = result ? undefined : narrowest(call.options, "deny");
  const wider = result ? [] : (call.options ?? []).filter((option) => option !== yes && option !== no);
  const answering = (run: () => Promise<boolean>) => () => {
    if (!still() || busy) return;
    setBusy(true);
    void run().then((taken) => {
      if (taken) begun.delete(key);
      setBusy(false);
    });
  };
  if (!mayAnswer()) return <div ref={ref} class="answers"><p class="small muted">{onlyWords()}</p></div>;
  return (
    <div ref={ref}>
      {editing !== undefined && (
        <label class="field"><span>Edited input</span>
          <textarea ref={focusNow} class="mono" rows={6} value={editing} onInput={(event) => change({ editing: event.currentTarget.value })} />
        </label>
      )}
      {note !== undefined && (
        <label class="field"><span>Why not? The agent reads this.</span>
          <textarea ref={focusNow} rows={2} value={note} onInput={(event) => change({ note: event.currentTarget.value })} />
        </label>
      )}
      <div class="answers">
        <button type="button" class="btn equal primary" disabled={busy} onClick={answering(() => allow(request, yes, editing))}>
          {result ? "Use the result" : editing === undefined ? "Allow once" : "Allow as edited"}
        </button>
        <button type="button" class="btn equal" disabled={busy} onClick={answering(() => deny(request, no, note))}>{result ? "Discard it" : "Deny"}</button>
        {wider.length > 0 && (
          <Menu label="Always… and more answers" class="btn" disabled={busy}
            entries={grouped(wider, (option) => answering(() => (option.kind === "deny" ? deny(request, option, note) : allow(request, option, editing)))())}>Always…</Menu>
        )}
        {!result && note === undefined && <button type="button" class="btn quiet" onClick={() => change({ note: "" })}>Add a note</button>}
        {!result && call.editable && mayWrite() && editing === undefined && typeof call.toolInput === "string" && (
          <button type="button" class="btn quiet" onClick={() => change({ editing: pretty(call.toolInput as string) })}>Edit input</button>
        )}
      </div>
    </div>
  );
}

export function ApprovalCard(props: { request: Approval; session: SessionState | undefined; card?: Ref<HTMLElement>; children?: preact.ComponentChildren }): JSX.Element {
  return (
    <section class="card needs approval" tabIndex={-1} {...(props.card ? { ref: props.card } : {})} aria-label={`Needs approval: ${inShort(plain(props.request.toolCall.displayName))}`}>
      {props.children}
      <div class="scroll"><Question request={props.request} session={props.session} /></div>
      <Answers key={keyOf(props.request)} request={props.request} />
    </section>
  );
}

/** The call whose question stands above the composer. */
const docked = signal<string | undefined>(undefined);

/** A note at the call that it waits, with a button that leads to its question, where the whole input is visible. */
export function InlineApproval({ request }: { request: Approval; session: SessionState | undefined }): JSX.Element {
  const call = request.toolCall;
  const key = keyOf(request);
  return (
    <div class="tool open waiting row small"><Mark of="needs" /><span class="name break grow">{inShort(plain(call.invocationMessage) || call.displayName)}</span>
      {docked.value === key ? <span class="muted">Asked below</span> : <button type="button" class="btn tiny" onClick={() => (pointed.value = key)}>Show</button>}
    </div>
  );
}

/** The questions above the composer: one at a time. All are listed before they can be allowed together. */
export function ApprovalDock({ requests, session, uri }: { requests: InputNeeded[]; session: SessionState | undefined; uri: Uri }): JSX.Element | null {
  const [index, set] = useState(0);
  const [listed, list] = useState(false);
  const approvals = requests.filter((each): each is Approval => each.kind === "toolConfirmation");
  const authentications = requests.filter((each) => each.kind === "toolAuthentication");
  const card = usePointed<HTMLElement>(requests.map(keyOf), (key) => {
    list(false);
    set(Math.max(0, approvals.findIndex((each) => keyOf(each) === key)));
  });
  const at = Math.min(index, approvals.length - 1);
  const current = approvals[at];
  const shown = current && !(listed && approvals.length > 1) ? keyOf(current) : undefined;
  useEffect(() => {
    docked.value = shown;
    return () => void (docked.value = undefined);
  }, [shown]);
  if (!current) return authentications.length ? <SignInDock requests={authentications} uri={uri} card={card} /> : null;
  const first = approvals.every((each) => each.toolCall.status === "pending-confirmation");
  const allowAll = (): void => {
    void Promise.all(approvals.map((each) => allow(each, narrowest(each.toolCall.options, "approve")))).then((taken) => {
      const count = taken.filter(Boolean).length; // Each of the others has shown why it was refused.
      if (count) toast(count === 1 ? "1 call allowed once" : `${count} calls allowed once`);
    });
    list(false);
  };
  if (listed && approvals.length > 1)
    return (
      <section class="card needs approval" aria-label={`${approvals.length} approvals`}>
        <div class="row"><strong class="grow">{approvals.length} calls wait</strong><button type="button" class="btn quiet" onClick={() => list(false)}>One by one</button></div>
        <div class="scroll">{approvals.map((each) => (
          <div key={keyOf(each)} class="stack" style={{ gap: "4px" }}><strong class="small break"><Lengthy text={plain(each.toolCall.invocationMessage) || each.toolCall.displayName} /></strong><Payload call={each.toolCall} /></div>
        ))}</div>
        {first && mayAnswer() && <AllowAll count={approvals.length} run={allowAll} />}
      </section>
    );
  return (
    <ApprovalCard request={current} session={session} card={card}>
      {approvals.length > 1 && (
        <div class="row small muted">
          <span class="grow">{at + 1} of {approvals.length}</span>
          <button type="button" class="btn quiet" disabled={at === 0} onClick={() => set(at - 1)}>Previous</button>
          <button type="button" class="btn quiet" disabled={at === approvals.length - 1} onClick={() => set(at + 1)}>Next</button>
          <button type="button" class="btn quiet" onClick={() => list(true)}>List all</button>
        </div>
      )}
    </ApprovalCard>
  );
}

function AllowAll({ count, run }: { count: number; run(): void }): JSX.Element {
  const { ref, still } = useStill("all");
  return <div ref={ref} class="answers"><button type="button" class="btn primary" onClick={() => still() && run()}>Allow all {count} once</button></div>;
}

/** The server that a call waits for. */
export const serverOf = (call: ToolCall, session: Uri): SignInServer | undefined =>
  call.contributor?.kind === "mcp" && call.contributor.customizationId ? { session, id: call.contributor.customizationId } : undefined;

function SignInDock({ requests, uri, card }: { requests: InputNeeded[]; uri: Uri; card: Ref<HTMLElement> }): JSX.Element {
  const first = requests[0] as Extract<InputNeeded, { kind: "toolAuthentication" }>;
  return (
    <section class="card needs approval" tabIndex={-1} ref={card} aria-label="Needs a sign-in">
      <h3>{inShort(first.toolCall.displayName)} needs a sign-in</h3>
      <SignIn auth={first.toolCall.auth} server={serverOf(first.toolCall, uri)} onCancel={() => cancelCall(first.chat, first.turnId, first.toolCall)} />
    </section>
  );
}

async function cancelCall(chat: Uri, turnId: string, call: ToolCall): Promise<void> {
  const result = { success: false, pastTenseMessage: "Not signed in", error: { message: "The user did not sign in", code: "cancelled" } };
  await act(chat, { type: "chat/toolCallComplete", turnId, toolCallId: call.toolCallId, result }, "chat");
}
