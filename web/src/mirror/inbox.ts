/** Everything that waits for a person, in any session: approvals, questions, sign-ins, failures. */

import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { ChannelKind, ChatState, InputNeeded, SessionState, SessionSummary, Uri } from "../ahp/index.ts";
import { activity, asksPerson, inShort, isArchived, isRead, keyOf, plain, titleOf, waiting } from "./selectors.ts";
import { type Seen, sessions, signIns, watch } from "./store.ts";

export interface InboxItem {
  key: string;
  session: Uri;
  title: string;
  /** What the person is asked for, in words. */
  what: string;
  url: string;
  summary: SessionSummary | undefined;
  request: InputNeeded | undefined;
  kind: "approval" | "question" | "sign-in" | "failure";
  resource?: string;
  /** A placeholder for a session whose requests are still being read. */
  reading?: boolean;
}

/** If more sessions than this wait, the others are only counted and shown by their summaries. */
const FOLLOWED = 40;

interface Watched<T> {
  seen: ReadonlySignal<Seen<T>>;
  stop(): void;
}

const watched = signal<ReadonlyMap<Uri, Watched<SessionState>>>(new Map());
/** The waiting chats of these sessions, for a host that does not keep a queue in the session. */
const chats = signal<ReadonlyMap<Uri, Watched<ChatState>>>(new Map());

/** Follow exactly `uris`; nothing changes when they are the same as before. */
function follow<T>(held: Signal<ReadonlyMap<Uri, Watched<T>>>, uris: ReadonlySet<Uri>, kind: ChannelKind): void {
  const before = held.peek();
  if (uris.size === before.size && [...uris].every((uri) => before.has(uri))) return;
  const next = new Map(before);
  for (const [uri, entry] of before)
    if (!uris.has(uri)) {
      entry.stop();
      next.delete(uri);
    }
  for (const uri of uris) if (!next.has(uri)) next.set(uri, watch<T>(uri, kind));
  held.value = next;
}

/** Chats of a session that wait but are missing in the session's queue. */
const silent = (state: SessionState): Uri[] =>
  (state.inputNeeded ?? []).some(asksPerson) ? [] : state.chats.filter((chat) => activity(chat.status) === "needs").map((chat) => chat.resource);

/** Everything that waits in a session, its helpers included. `open` is the chat on the screen. */
export function waitingIn(state: SessionState | undefined, open?: ChatState): InputNeeded[] {
  const found = waiting(state, open);
  for (const uri of state ? silent(state) : []) {
    const chat = uri === open?.resource ? undefined : chats.value.get(uri)?.seen.value.state;
    if (chat) found.push(...waiting(undefined, chat));
  }
  return found;
}

/** The request that the person wants to see; it stays set until the request's card has the keyboard focus. */
export const pointed = signal<string | undefined>(undefined);

/** Follow exactly the sessions that wait for a person. */
export function startInbox(): void {
  effect(() => {
    const wanted = [...sessions.value.values()]
      .filter((summary) => activity(summary.status) === "needs" && !isArchived(summary.status))
      .slice(0, FOLLOWED);
    follow(watched, new Set(wanted.map((summary) => summary.resource)), "session");
  });
  effect(() => {
    const states = [...watched.value.values()].map((entry) => entry.seen.value.state);
    const uris = states.flatMap((state) => (state ? silent(state) : []));
    follow(chats, new Set(uris.slice(0, FOLLOWED)), "chat");
  });
}

export const sessionUrl = (session: Uri, chat?: Uri): string =>
  `#/s/${encodeURIComponent(session)}${chat ? `/${encodeURIComponent(chat)}` : ""}`;

function wantedBy(request: InputNeeded): Pick<InboxItem, "kind" | "what"> {
  if (request.kind === "chatInput") return { kind: "question", what: "Asks a question" };
  const call = inShort(plain(request.toolCall.displayName) || request.toolCall.toolName);
  if (request.kind === "toolAuthentication") return { kind: "sign-in", what: `Needs a sign-in for ${call}` };
  const result = request.toolCall.status === "pending-result-confirmation";
  return { kind: "approval", what: result ? `Asks you to check the result of ${call}` : `Asks to use ${call}` };
}

function* ofSession(summary: SessionSummary, followed: Watched<SessionState> | undefined): Generator<InboxItem> {
  const state = followed?.seen.value.state;
  const shared = { session: summary.resource, title: titleOf(summary), summary };
  const requests = waitingIn(state);
  for (const request of requests)
    yield { ...shared, ...wantedBy(request), key: keyOf(request), url: sessionUrl(summary.resource, request.chat), request };
  if (state && requests.length === 0) return;
  if (!state)
    yield { ...shared, key: summary.resource, kind: "approval", what: "Needs you", url: sessionUrl(summary.resource), request: undefined, reading: followed !== undefined };
}

/** The requests of one session keep the order in which they were asked. */
function newestFirst(a: InboxItem, b: InboxItem): number {
  const [one, other] = [a.summary?.modifiedAt ?? "", b.summary?.modifiedAt ?? ""];
  return one < other ? 1 : one > other ? -1 : 0;
}

export const inbox = computed<InboxItem[]>(() => {
  const items: InboxItem[] = [];
  const following = watched.value;
  for (const summary of sessions.value.values()) {
    if (isArchived(summary.status)) continue;
    const state = activity(summary.status);
    if (state === "needs") items.push(...ofSession(summary, following.get(summary.resource)));
    else if (state === "failed" && !isRead(summary.status))
      items.push({
        key: `${summary.resource} failed ${summary.modifiedAt}`, session: summary.resource, title: titleOf(summary),
        what: "Failed", url: sessionUrl(summary.resource), summary, request: undefined, kind: "failure",
      });
  }
  for (const signIn of signIns.value)
    items.push({
      key: `sign-in ${signIn.resource}`, session: signIn.channel, title: signIn.name, what: "Needs a sign-in",
      url: "#/", summary: undefined, request: undefined, kind: "sign-in", resource: signIn.resource,
    });
  return items.sort(newestFirst);
});
