/** The list of sessions: live, by directory and time, with those that wait first; search, archive, read and unread. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ROOT, type SessionSummary, type Uri } from "../ahp/index.ts";
import { mayWrite } from "../local/me.ts";
import { inbox, sessionUrl } from "../mirror/inbox.ts";
import { activity, age, groups, isArchived, isRead, nameOf, opening, pathOf, placeOf, titleOf, WORDS } from "../mirror/selectors.ts";
import { agentName, askAgents, link, request, sessions, sessionsLoaded } from "../mirror/store.ts";
import { Counts } from "../parts/edit.tsx";
import { route } from "../routes.ts";
import { act, memo, confirmed, Icon, Mark, Menu, type MenuEntry, tellRefused, toast, useNow } from "../ui/bits.tsx";
import { LinkState } from "./link.tsx";
import { palette } from "./palette.tsx";

const query = signal("");
const archived = signal(false);
const FIRST = 12;

export const markRead = (session: Uri, isRead: boolean): Promise<boolean> => act(session, { type: "session/isReadChanged", isRead }, "session");

const setArchived = (session: Uri, isArchived: boolean): Promise<boolean> => act(session, { type: "session/isArchivedChanged", isArchived }, "session");

export async function archive(summary: SessionSummary, on: boolean): Promise<void> {
  if (await setArchived(summary.resource, on)) toast(on ? "Archived" : "Back from the archive", { label: "Undo", run: () => void setArchived(summary.resource, !on) });
}

export async function dispose(summary: SessionSummary): Promise<void> {
  if (!(await confirmed(`Delete “${titleOf(summary)}” for good? Archive it instead to keep it.`, "Delete"))) return;
  await request("disposeSession", { channel: summary.resource }).catch((error: Error) => tellRefused(error.message));
}

export const menuFor = (summary: SessionSummary): MenuEntry[] => [
  { apart: true, label: isRead(summary.status) ? "Mark unread" : "Mark read", run: () => void markRead(summary.resource, !isRead(summary.status)) },
  { label: isArchived(summary.status) ? "Take out of the archive" : "Archive", run: () => void archive(summary, !isArchived(summary.status)) },
  { label: "Delete…", danger: true, run: () => void dispose(summary) },
];

/** The newest turn of a session in which the words of a search occur. */
interface Hit {
  session: Uri;
  chat: Uri;
  turnId: string;
  text: string;
}

/** The text around the words of a search, with the words in bold. */
function Found({ text, words }: { text: string; words: string }): JSX.Element {
  const any = words.split(/\s+/).map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|");
  return <span class="found" dir="auto">{text.split(new RegExp(`(${any})`, "iu")).map((part, index) => (index % 2 ? <b key={index}>{part}</b> : part))}</span>;
}

const Row = memo(function Row({ summary, hit, words, current, at }: { summary: SessionSummary; hit: Hit | undefined; words: string; current: boolean; at: number }): JSX.Element {
  const state = activity(summary.status);
  const [near, come] = useState(false);
  const leave = (event: Event): void => {
    const row = event.currentTarget as HTMLElement;
    if (!row.matches(":hover, :focus-within") && !row.querySelector(":popover-open")) come(false);
  };
  return (
    <li class="listed" onPointerEnter={() => come(true)} onFocusIn={() => come(true)} onPointerLeave={leave} onFocusOut={leave}>
      <a class={`session${isRead(summary.status) ? "" : " unread"}`} href={hit ? `${sessionUrl(summary.resource, hit.chat)}?turn=${encodeURIComponent(hit.turnId)}` : sessionUrl(summary.resource)} aria-current={current ? "page" : undefined}>
        <Mark of={state} />
        <span class={`title${opening(summary) ? " muted" : ""}`} dir="auto" title={titleOf(summary)}>{titleOf(summary)}</span>
        <span class="age" title={new Date(summary.modifiedAt).toLocaleString()}>{age(summary.modifiedAt, at)}</span>
        <span class="meta">
          <span class="cut" title={summary.activity}>{state === "running" && summary.activity ? summary.activity : state === "needs" || state === "failed" ? WORDS[state] : agentName(summary.provider)}</span>
          {summary.changes && <Counts added={summary.changes.additions} removed={summary.changes.deletions} />}
          {!isRead(summary.status) && <span class="sr">Unread</span>}
        </span>
        {hit && <Found text={hit.text} words={words} />}
      </a>
      {near && mayWrite() && <Menu label={`What to do with ${titleOf(summary)}`} class="btn quiet icon row-menu" entries={menuFor(summary)} />}
    </li>
  );
});

interface GroupProps {
  directory: string;
  place: string;
  list: SessionSummary[];
  hits: ReadonlyMap<Uri, Hit>;
  words: string;
  current: Uri | undefined;
  at: number;
  all: boolean;
}

function GroupView({ directory, place, list, hits, words, current, at, all }: GroupProps): JSX.Element {
  const [more, set] = useState(0);
  const shown = list.slice(0, all ? 60 + more : FIRST + more);
  return (
    <section class="group">
      <h3><span class="cut grow" title={directory ? pathOf(directory) : undefined}>{directory ? nameOf(directory) : "No directory"}{place && <span class="place"> in {place}</span>}</span><span>{list.length}</span></h3>
      <ul class="session-list" style={{ padding: 0 }}>
        {shown.map((summary) => <Row key={summary.resource} summary={summary} hit={hits.get(summary.resource)} words={words} current={summary.resource === current} at={at} />)}
      </ul>
      {list.length > shown.length && <button type="button" class="btn quiet" onClick={() => set(more + 40)}>{list.length - shown.length} more</button>}
    </section>
  );
}

/** A search of at least this many characters also looks into the text: two are a word in some languages. */
const SHORTEST = 2;

/** Search in the text of all sessions: the host searches a few at a time, until the query changes. */
function useTextHits(words: string): { hits: ReadonlyMap<Uri, Hit>; looking: boolean } {
  const [hits, set] = useState<ReadonlyMap<Uri, Hit>>(new Map());
  const [looking, setLooking] = useState(false);
  useEffect(() => {
    set(new Map());
    setLooking(words.length >= SHORTEST);
    if (words.length < SHORTEST) return undefined;
    let here = true;
    const look = async (): Promise<void> => {
      for (let before: number | undefined; here; ) {
        const { found, next } = await request<{ found: Hit[]; next?: number }>("_ahpkit/sessions/search", { channel: ROOT, words, ...(before === undefined ? {} : { before }) });
        if (here && found.length) set((known) => new Map([...known, ...found.map((each) => [each.session, each] as const)]));
        if (next === undefined) return;
        before = next;
      }
    };
    const timer = setTimeout(() => void look().catch(() => undefined).then(() => here && setLooking(false)), 300);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [words]);
  return { hits, looking };
}

export function SessionsPane(): JSX.Element {
  const at = useNow(30_000);
  const words = query.value.trim();
  const { hits, looking } = useTextHits(words);
  const list = useMemo(() => groups(sessions.value.values(), words, archived.value, hits), [sessions.value, words, archived.value, hits]);
  const here = route.value;
  const current = here.name === "session" ? here.session : undefined;
  const count = inbox.value.length;
  return (
    <nav class="pane sessions" aria-label="Sessions" id="region-sessions" tabIndex={-1}>
      <div class="pane-head">
        <span class="brand grow row"><img src="/icon.svg" alt="" width="20" height="20" />ahpkit</span>
        <LinkState />
        {mayWrite() && <a class="btn icon" href="#/new" aria-label="New session" title="New session"><Icon name="plus" /></a>}
      </div>
      <a class="nav-link" href="#/" aria-current={here.name === "inbox" ? "page" : undefined}>
        <Icon name="inbox" /> Inbox
        {count > 0 && <span class="chip needs count">{count}<span class="sr"> waiting</span></span>}
      </a>
      <div class="search">
        <Icon name="search" />
        <input type="search" aria-label="Search sessions" placeholder="Search titles and text" maxLength={1000} value={query.value} onInput={(event) => {
          query.value = event.currentTarget.value;
        }} />
      </div>
      <div class="pane-body" tabIndex={0} role="region" aria-label="List of sessions">
        <div class="session-list">
          {list.map((group) => <GroupView key={group.directory} directory={group.directory} place={placeOf(group.directory, list.map((each) => each.directory))} list={group.sessions} hits={hits} words={words} current={current} at={at} all={list.length === 1} />)}
          {!list.length && (
            <p class="small muted" style={{ padding: "16px 8px" }}>
              {!sessionsLoaded.value ? (link.value === "offline" ? "Not connected." : "Loading…") : words ? (looking ? "Searching…" : "Nothing found.") : archived.value ? "Nothing is archived." : (mayWrite() ? "No sessions yet. Start one with +." : "No sessions yet.")}
            </p>
          )}
        </div>
      </div>
      <div class="sidefoot">
        <button type="button" class="btn quiet" aria-pressed={archived.value} onClick={() => {
          archived.value = !archived.value;
        }}>Archive</button>
        <a class="btn quiet" href="#/usage" aria-current={here.name === "usage" ? "true" : undefined}>Usage</a>
        <span class="grow" />
        <button type="button" class="btn quiet icon" aria-label="Commands (Ctrl+K)" title="Commands (Ctrl+K)" onClick={() => {
          palette.value = true;
        }}><Icon name="search" /></button>
        <Menu label="More" entries={[
          ...(mayWrite() ? [{ label: "Look for agents' own conversations", sub: "Starts agents that do not run", run: () => void askAgents().then(() => toast("The agents were asked"), (error: Error) => tellRefused(error.message)) }] : []),
          { label: "Settings", run: () => (location.hash = "#/settings") },
          { label: "Approval rules", run: () => (location.hash = "#/rules") },
          { label: "Devices", run: () => (location.hash = "#/devices") },
        ]}><Icon name="gear" /></Menu>
      </div>
    </nav>
  );
}
