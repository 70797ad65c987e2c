/** Everything that waits for a person, in any session: approvals, questions, sign-ins, failures. */

import { computed, effect, signal } from "@preact/signals";
import type { InputNeeded, SessionState, SessionSummary, Uri } from "../ahp/index.ts";
import { activity, isArchived, isRead, keyOf, plain, waiting } from "./selectors.ts";
import { type Seen, sessions, signIns, watch } from "./store.ts";
import type { ReadonlySignal } from "@preact/signals";

export interface InboxItem {
  key: string;
  session: Uri;
  title: string;
  /** What is wanted, in words without code. */
  what: string;
  url: string;
  summary: SessionSummary | undefined;
  request: InputNeeded | undefined;
  kind: "approval" | "question" | "sign-in" | "failure";
  resource?: string;
}

/** More sessions than this at once are counted and shown by their summary only. */
const FOLLOWED = 40;

const watched = signal<ReadonlyMap<Uri, { seen: ReadonlySignal<Seen<SessionState>>; stop(): void }>>(new Map());

/** Follow exactly the sessions that need somebody. */
export function startInbox(): void {
  effect(() => {
    const wanted = [...sessions.value.values()]
      .filter((summary) => activity(summary.status) === "needs" && !isArchived(summary.status))
      .slice(0, FOLLOWED);
    const uris = new Set(wanted.map((summary) => summary.resource));
    const before = watched.peek();
    const same = uris.size === before.size && [...uris].every((uri) => before.has(uri));
    if (same) return;
    const next = new Map(before);
    for (const [uri, entry] of before)
      if (!uris.has(uri)) {
        entry.stop();
        next.delete(uri);
      }
    for (const uri of uris) if (!next.has(uri)) next.set(uri, watch<SessionState>(uri, "session"));
    watched.value = next;
  });
}

export const sessionUrl = (session: Uri, chat?: Uri): string =>
  `#/s/${encodeURIComponent(session)}${chat ? `/${encodeURIComponent(chat)}` : ""}`;

function wantedBy(request: InputNeeded): Pick<InboxItem, "kind" | "what"> {
  if (request.kind === "chatInput") return { kind: "question", what: "Asks a question" };
  const call = plain(request.toolCall.displayName) || request.toolCall.toolName;
  if (request.kind === "toolAuthentication") return { kind: "sign-in", what: `Needs a sign-in for ${call}` };
  const result = request.toolCall.status === "pending-result-confirmation";
  return { kind: "approval", what: result ? `Asks you to check the result of ${call}` : `Asks to use ${call}` };
}

function* ofSession(summary: SessionSummary, state: SessionState | undefined): Generator<InboxItem> {
  const shared = { session: summary.resource, title: summary.title || "Untitled", summary };
  const requests = waiting(state);
  for (const request of requests)
    yield { ...shared, ...wantedBy(request), key: keyOf(request), url: sessionUrl(summary.resource, request.chat), request };
  if (state && requests.length === 0) return;
  if (!state)
    yield { ...shared, key: summary.resource, kind: "approval", what: "Needs you", url: sessionUrl(summary.resource), request: undefined };
}

export const inbox = computed<InboxItem[]>(() => {
  const items: InboxItem[] = [];
  const following = watched.value;
  for (const summary of sessions.value.values()) {
    if (isArchived(summary.status)) continue;
    const state = activity(summary.status);
    if (state === "needs") items.push(...ofSession(summary, following.get(summary.resource)?.seen.value.state));
    else if (state === "failed" && !isRead(summary.status))
      items.push({
        key: `${summary.resource} failed ${summary.modifiedAt}`, session: summary.resource, title: summary.title || "Untitled",
        what: "Failed", url: sessionUrl(summary.resource), summary, request: undefined, kind: "failure",
      });
  }
  for (const signIn of signIns.value)
    items.push({
      key: `sign-in ${signIn.resource}`, session: signIn.channel, title: signIn.name, what: "Needs a sign-in",
      url: "#/", summary: undefined, request: undefined, kind: "sign-in", resource: signIn.resource,
    });
  return items.sort((a, b) => ((a.summary?.modifiedAt ?? "") < (b.summary?.modifiedAt ?? "") ? 1 : -1));
});
