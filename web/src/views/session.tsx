/** One session: its title, its chats, who else is here, and the way to the side panels. */

import { signal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ChatState, ChatSummary, SessionState, SessionSummary } from "../ahp/index.ts";
import { mayAnswer, mayWrite } from "../local/me.ts";
import { tellFinished } from "../local/notifications.ts";
import { sideWidth } from "../local/settings.ts";
import { sessionUrl, waitingIn } from "../mirror/inbox.ts";
import { activity, comesFrom, inShort, isArchived, isRead, nameOf, opening, pathOf, price, signInsOf, tokens, total, WORDS } from "../mirror/selectors.ts";
import { agentName, clientId, creating, dispatch, link, presence, request, sessions, useChannel } from "../mirror/store.ts";
import { Counts } from "../parts/edit.tsx";
import { go, type Panel, panelUrl, type Route } from "../routes.ts";
import { act, Boundary, confirmed, focusNow, Icon, Mark, Menu, tellRefused } from "../ui/bits.tsx";
import { ChatView } from "./chat.tsx";
import { Away } from "./link.tsx";
import { markRead, menuFor } from "./sessions.tsx";

type Here = Route & { name: "session" };

/** Show other clients that a page has this session open. */
function usePresence(uri: string, state: SessionState | undefined): void {
  const ready = state?.lifecycle === "ready";
  useEffect(() => {
    if (!ready || !mayWrite()) return undefined;
    void dispatch(uri, { type: "session/activeClientSet", activeClient: presence() }, "session");
    return () => void dispatch(uri, { type: "session/activeClientRemoved", clientId }, "session");
  }, [uri, ready]);
}

/** Whether this window is visible. A turn that ends while it is hidden is marked as read when the person comes back. */
const visible = signal(!document.hidden);
document.addEventListener("visibilitychange", () => (visible.value = !document.hidden));

/**
 * Mark the visible session as read. The list's entry has the present status: the session's own status is not sent when a turn
 * ends. A session that becomes unread without another change was marked so by a person, and stays unread until something happens.
 */
function useReading(uri: string, summary: SessionSummary | undefined): void {
  const before = useRef({ what: "", read: false, kept: false });
  const { status, modifiedAt } = summary ?? {};
  useEffect(() => {
    if (status === undefined) return;
    const what = `${uri} ${activity(status)} ${modifiedAt}`;
    const same = before.current.what === what;
    const kept = same && !isRead(status) && (before.current.read || before.current.kept);
    before.current = { what, read: isRead(status), kept };
    if (!isRead(status) && !kept && visible.value && mayAnswer() && activity(status) !== "running") void markRead(uri, true);
  }, [uri, status, modifiedAt, visible.value]);
}

/** If a session has several chats, each has its own mark. */
function useChatReading(chat: ChatState | undefined): void {
  const unread = chat !== undefined && !isRead(chat.status) && activity(chat.status) !== "running";
  useEffect(() => {
    if (unread && visible.value && mayAnswer()) void dispatch(chat.resource, { type: "chat/isReadChanged", isRead: true }, "chat");
  }, [unread, chat?.resource, chat?.modifiedAt, visible.value]);
}

function useFinished(uri: string, title: string, chat: ChatState | undefined): void {
  const started = useRef<number | undefined>(undefined);
  const running = chat?.activeTurn?.startedAt;
  useEffect(() => {
    if (running) started.current = Date.parse(running);
    else if (started.current !== undefined) {
      tellFinished(uri, title, Date.now() - started.current, sessionUrl(uri));
      started.current = undefined;
    }
  }, [running]);
}

function Rename({ uri, title, onEnd }: { uri: string; title: string; onEnd(): void }): JSX.Element {
  const [text, write] = useState(title);
  const over = useRef(false); // The field also loses the focus when it is removed.
  const end = (keep: boolean): void => {
    if (over.current) return;
    over.current = true;
    if (keep && text.trim() && text !== title) void act(uri, { type: "session/titleChanged", title: text.trim() }, "session");
    onEnd();
  };
  return (
    <form class="grow" onSubmit={(event) => {
      event.preventDefault();
      end(true);
    }}>
      <input ref={focusNow} aria-label="Title" value={text} onInput={(event) => write(event.currentTarget.value)} onBlur={() => end(true)} onKeyDown={(event) => event.key === "Escape" && end(false)} />
    </form>
  );
}

function Head({ at, state, summary, chat }: { at: Here; state: SessionState | undefined; summary: SessionSummary | undefined; chat: ChatState | undefined }): JSX.Element {
  const [renaming, rename] = useState(false);
  const sum = total(chat ? (chat.activeTurn ? [...chat.turns, chat.activeTurn] : chat.turns) : []);
  const cost = price(sum) || (sum.turns ? `${tokens(sum.input + sum.output)} tokens` : "");
  const others = (state?.activeClients ?? []).filter((each) => each.clientId !== clientId);
  const doing = chat && waitingIn(state, chat).some((each) => comesFrom(each, chat.resource, state)) ? "needs" : activity(chat?.status ?? summary?.status ?? 1);
  const toggle = (panel: Panel): string => panelUrl(at, at.panel === panel ? undefined : panel);
  const canvases = state?.openCanvases?.length ?? 0;
  const signIns = signInsOf(state);
  const unsigned = signIns === 1 ? "An MCP server needs a sign-in" : `${signIns} MCP servers need a sign-in`;
  const title = state?.title ?? summary?.title ?? "";
  const command = opening(summary);
  const company = others.map((each) => each.displayName ?? each.clientId).join(", ");
  const fresh = chat !== undefined && doing === "done" && !chat.turns.length;
  return (
    <header class="pane-head">
      <a class="btn quiet icon phone-only" href="#/sessions" aria-label="Back to sessions"><Icon name="back" /></a>
      <Mark of={doing} />
      <div class="grow" style={{ lineHeight: 1.25 }}>
        {renaming
          ? <Rename uri={at.session} title={title} onEnd={() => rename(false)} />
          : <h1 class={`cut${command ? " muted" : ""}`} style={{ fontSize: "1rem" }} dir="auto" title={inShort(title)} onDblClick={() => rename(mayWrite())}>{command ?? (inShort(title) || "Untitled")}</h1>}
        <div class="small muted cut" style={{ fontSize: ".75rem" }}>
          {fresh ? "Ready" : WORDS[doing]} · {agentName(state?.provider ?? summary?.provider)}<Places directories={chat?.workingDirectories ?? state?.workingDirectories} worktree={state?.config?.values.isolation === "worktree"} />{cost ? ` · ${cost}` : ""}
        </div>
      </div>
      {others.length > 0 && <span class="chip wide-only others" title={`Also here: ${company}`}><Icon name="person" /><span class="long">Also here: {others.length === 1 ? (others[0]?.displayName ?? "somebody") : `${others.length} others`}</span><span class="short" aria-hidden="true">{others.length}</span></span>}
      <a class="btn quiet wide-only" href={toggle("changes")} aria-current={at.panel === "changes" ? "true" : undefined}>Changes <Counts added={summary?.changes?.additions} removed={summary?.changes?.deletions} /></a>
      {canvases > 0 && <a class="btn quiet wide-only" href={toggle("canvases")} aria-current={at.panel === "canvases" ? "true" : undefined}>Canvases {canvases}</a>}
      <a class="btn quiet wide-only roomy" href={toggle("setup")} aria-current={at.panel === "setup" ? "true" : undefined} title={signIns ? unsigned : undefined}>Setup{signIns > 0 && <Mark of="needs" />}</a>
      <Menu label="This session" entries={[
        ...(company ? [{ label: `Also here: ${company}`, disabled: true, run: () => undefined }] : []),
        { label: "Changes", run: () => go(panelUrl(at, "changes")) },
        ...(canvases > 0 ? [{ label: "Canvases", run: () => go(panelUrl(at, "canvases")) }] : []),
        { label: "Terminals", run: () => go(panelUrl(at, "terminals")) },
        { label: "Setup", sub: signIns ? unsigned : "Directories, MCP servers, plugins", run: () => go(panelUrl(at, "setup")) },
        { label: "Timeline of the last turn", run: () => go(panelUrl(at, "timeline")) },
        { label: "Usage", run: () => go(panelUrl(at, "usage")) },
        ...(mayWrite() ? [
          { label: "Rename", apart: true, run: () => rename(true) },
          { label: "New chat in this session", run: () => void newChat(at.session) },
          ...(chat && (state?.chats.length ?? 0) > 1 ? chatMenu(at.session, chat, state) : []),
          ...(summary ? menuFor(summary) : []),
        ] : []),
      ]} />
    </header>
  );
}

/** Where it works: the first directory by name, all of them on hover; and whether it is the session's own work tree. */
function Places({ directories = [], worktree }: { directories: string[] | undefined; worktree: boolean }): JSX.Element | null {
  const [first, ...more] = directories;
  if (!first) return null;
  return <> · <span title={directories.map(pathOf).join("\n")}>{nameOf(first)}{more.length ? ` and ${more.length} more` : ""}{worktree ? " (work tree)" : ""}</span></>;
}

async function newChat(session: string): Promise<void> {
  const chat = `ahp-chat:/${crypto.randomUUID()}`;
  try {
    await request("createChat", { channel: session, chat });
    go(sessionUrl(session, chat));
  } catch (error) {
    tellRefused((error as Error).message);
  }
}

/** The menu of one of several chats. */
function chatMenu(session: string, chat: ChatState, state: SessionState | undefined): { label: string; danger?: boolean; run(): void }[] {
  const archived = isArchived(chat.status);
  const entries = [{ label: archived ? "Take this chat out of the archive" : "Archive this chat", run: () => void act(chat.resource, { type: "chat/isArchivedChanged", isArchived: !archived }, "chat") }];
  if (chat.resource === state?.defaultChat) return archived ? entries : []; // The session's own chat is archived with the session.
  return [...entries, { label: "Delete this chat…", danger: true, run: () => void disposeChat(session, chat) }];
}

async function disposeChat(session: string, chat: ChatState): Promise<void> {
  if (!(await confirmed(`Delete the chat “${chat.title}” for good? Archive it instead to keep it.`, "Delete"))) return;
  await request("disposeChat", { channel: chat.resource }).then(() => go(sessionUrl(session)), (error: Error) => tellRefused(error.message));
}

/** Chats by their titles. A fork has the title of its origin until it gets its own, and chats with the same title are numbered. */
export function chatNames(chats: Pick<ChatSummary, "title" | "origin">[]): string[] {
  const first = chats.map((chat, index) => chat.title || `Chat ${index + 1}`);
  const named = first.map((title, index) => (chats[index]?.origin?.kind === "fork" && first.indexOf(title) < index ? `Fork of ${title}` : title));
  return named.map((name, index) => {
    const before = named.slice(0, index).filter((each) => each === name).length;
    return before ? `${name} (${before + 1})` : name;
  });
}

function Chats({ at, state, current }: { at: Here; state: SessionState; current: string | undefined }): JSX.Element | null {
  const shown = state.chats.filter((chat) => chat.interactivity !== "hidden" && (chat.resource === current || (chat.origin?.kind !== "tool" && !isArchived(chat.status))));
  if (shown.length < 2) return null;
  const names = chatNames(shown);
  return (
    <nav class="row" aria-label="Chats" style={{ padding: "4px 12px", borderBottom: "1px solid var(--line)" }}>
      <div class="tabs">
        {shown.map((chat, index) => (
          <a key={chat.resource} class={`btn quiet${isRead(chat.status) || chat.resource === current ? "" : " unread"}`} href={sessionUrl(at.session, chat.resource)} aria-current={chat.resource === current ? "true" : undefined}>
            {activity(chat.status) !== "done" && <Mark of={activity(chat.status)} />}{chat.origin?.kind === "sideChat" ? "↳ " : ""}{names[index]}
          </a>
        ))}
      </div>
    </nav>
  );
}

export function SessionView({ at }: { at: Here }): JSX.Element {
  const seen = useChannel<SessionState>(at.session, "session").value;
  const summary = sessions.value.get(at.session);
  const state = seen.state;
  const away = link.value === "offline";
  const chatUri = at.chat ?? state?.defaultChat ?? state?.chats[0]?.resource ?? summary?.defaultChat;
  const chat = useChannel<ChatState>(chatUri, "chat").value;
  usePresence(at.session, state);
  useReading(at.session, summary);
  useChatReading(chat.state);
  useFinished(at.session, state?.title ?? "", chat.state);
  return (
    <>
      {!summary && !state
        ? <header class="pane-head"><a class="btn quiet icon phone-only" href="#/sessions" aria-label="Back to sessions"><Icon name="back" /></a><h1 style={{ fontSize: "1rem" }}>{seen.error ? "No such session" : away ? "Not connected" : "Loading…"}</h1></header>
        : <Head at={at} state={state} summary={summary} chat={chat.state} />}
      {state && <Chats at={at} state={state} current={chatUri} />}
      {seen.error ? <div class="empty"><p>This session is not here, or not any more: {seen.error.message}</p><a class="btn" href="#/">Inbox</a></div>
        : chat.error ? <div class="empty"><p>This chat is gone: {chat.error.message}</p></div>
        : chat.state ? <ChatView key={chatUri} uri={at.session} session={state} seen={chat} />
        : state?.lifecycle === "failed" ? <div class="empty"><p class="note danger">The session could not be created: {state.creationError?.message}</p></div>
        : away ? <Away />
        : <Creating uri={at.session} />}
    </>
  );
}

/** Shown before there is a chat: the progress of the session's creation. */
export function Creating({ uri }: { uri: string }): JSX.Element {
  const told = creating.value.get(uri);
  return (
    <div class="empty" role="status">
      <p>{told?.message ?? "Loading…"}</p>
      {told?.total ? <progress max={told.total} value={told.progress} aria-label="Creating the session" /> : null}
    </div>
  );
}

// The side panel: its code is loaded when the first one is opened.

const PANELS: { panel: Panel; label: string; load(): Promise<{ default: ComponentType<PanelProps> }> }[] = [
  { panel: "changes", label: "Changes", load: () => import("./changes.tsx") },
  { panel: "canvases", label: "Canvases", load: () => import("./canvases.tsx") },
  { panel: "terminals", label: "Terminals", load: () => import("./terminals.tsx") },
  { panel: "setup", label: "Setup", load: () => import("./setup.tsx") },
  { panel: "timeline", label: "Timeline", load: () => import("./timeline.tsx") },
  { panel: "usage", label: "Usage", load: () => import("./session-usage.tsx") },
];

export interface PanelProps {
  uri: string;
  session: SessionState;
  chat: ChatState | undefined;
  at: Here;
}

/** A width that leaves room for the chat; the stylesheet keeps that room when the window gets smaller. */
const fitting = (width: number): number => Math.round(Math.max(300, Math.min(innerWidth - 640, width)));

export function SidePane({ at }: { at: Here }): JSX.Element {
  const session = useChannel<SessionState>(at.session, "session").value.state;
  const chatUri = at.chat ?? session?.defaultChat ?? session?.chats[0]?.resource;
  const chat = useChannel<ChatState>(chatUri, "chat").value.state;
  const [View, set] = useState<ComponentType<PanelProps> | undefined>(undefined);
  const entry = PANELS.find((each) => each.panel === at.panel);
  useEffect(() => {
    let here = true;
    void entry?.load().then((module) => here && set(() => module.default));
    return () => {
      here = false;
    };
  }, [at.panel]);
  // On a phone the tabs are wider than the screen.
  const tabs = useRef<HTMLElement>(null);
  useEffect(() => tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [at.panel, session !== undefined]);
  const drag = (event: PointerEvent): void => {
    const handle = event.currentTarget as HTMLElement;
    handle.setPointerCapture(event.pointerId);
    const move = (moved: PointerEvent): void => {
      sideWidth.value = fitting(innerWidth - moved.clientX);
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", () => handle.removeEventListener("pointermove", move), { once: true });
  };
  const step = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowLeft" ? 24 : event.key === "ArrowRight" ? -24 : 0;
    if (by) sideWidth.value = fitting(sideWidth.value + by);
  };
  return (
    <aside class="pane side" aria-label={entry?.label ?? "Panel"} id="region-side" tabIndex={-1}>
      <button type="button" class="resizer" role="separator" aria-orientation="vertical" aria-label="Width of the panel" aria-valuenow={sideWidth.value} aria-valuemin={300} aria-valuemax={1600} onPointerDown={drag} onKeyDown={step} />
      <div class="pane-head">
        <a class="btn quiet icon phone-only" href={panelUrl(at, undefined)} aria-label="Back to the chat"><Icon name="back" /></a>
        <nav class="tabs" aria-label="Panels" ref={tabs} onWheel={(event) => (event.currentTarget.scrollLeft += event.deltaY)}>
          {PANELS.filter(({ panel }) => panel !== "canvases" || panel === at.panel || session?.openCanvases?.length).map(({ panel, label }) => <a key={panel} class="btn quiet" href={panelUrl(at, panel)} aria-current={panel === at.panel ? "true" : undefined}>{label}</a>)}
        </nav>
        <a class="btn quiet icon wide-only" href={panelUrl(at, undefined)} aria-label="Close the panel"><Icon name="close" /></a>
      </div>
      {View && session ? <Boundary key={at.panel} of={session}><View uri={at.session} session={session} chat={chat} at={at} /></Boundary> : <p class="empty">Loading…</p>}
    </aside>
  );
}
