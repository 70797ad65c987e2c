/** The host's state as signals: one per channel, updated every second frame, however many messages arrive. Uses no DOM elements. */

import { batch, computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import {
  type Action, type Channel, type ChannelKind, Client, type InitializeResult, type LinkStatus, type Outcome, ROOT,
  type RootState, type SessionSummary, type Socket, type Uri,
} from "../ahp/index.ts";
import { dialBeside } from "./socket.ts";

/** What a view sees of a channel. */
export interface Seen<T> {
  state: T | undefined;
  /** This client's actions that the host has not answered yet. */
  pending: Action[];
  error: Error | undefined;
}

const NOTHING: Seen<never> = { state: undefined, pending: [], error: undefined };

export const link = signal<LinkStatus>("connecting");
export const offlineSince = signal<number | undefined>(undefined);
export const hostInfo = signal<InitializeResult | undefined>(undefined);
export const sessions = signal<ReadonlyMap<Uri, SessionSummary>>(new Map());
export const sessionsLoaded = signal(false);
/** Sign-ins that the host asked for outside of any session's queue. */
export const signIns = signal<{ resource: string; name: string; channel: Uri }[]>([]);
/** Progress of the sessions that this window is creating. */
export const creating = signal<ReadonlyMap<Uri, { progress: number; total?: number; message?: string }>>(new Map());
/** How often the link was lost, was refused or could not be made. */
export const losses = signal(0);
/** A notice that is shown once: after a reconnect the page found another host than before. */
export const notice = signal<string | undefined>(undefined);

/**
 * The client id of this tab. A reload keeps the id, so that the tab still holds its terminals. It is in the tab's storage only
 * while a page is unloaded: a duplicated tab finds no id there, and becomes another client.
 */
export const clientId = sessionStorage.getItem("client") ?? crypto.randomUUID();
sessionStorage.removeItem("client");
window.addEventListener("pagehide", () => sessionStorage.setItem("client", clientId));
window.addEventListener("pageshow", () => sessionStorage.removeItem("client"));

/** This tab's entry in the list of active clients of a session. */
export const presence = (): { clientId: string; displayName: string; tools: never[]; canRenderCanvases: true } =>
  ({ clientId, displayName: `Page on ${/Android|iPhone|iPad/.test(navigator.userAgent) ? "a phone" : "a computer"}`, tools: [], canRenderCanvases: true });

let client: Client;
export const now = (): number => Date.now();

// Painting: states are applied at once, but signals are written at most every second frame, and less often if drawing would otherwise take
// more than half of the time.

const dirty = new Set<() => void>();
let scheduled = false;
/** Milliseconds between two paintings: more than one frame of 60 a second, less than two. Nobody reads faster. */
const PAUSE = 24;
const LONGEST_PAUSE = 1_000;
let notBefore = 0;

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  // A hidden page has no frames, but its title and notifications still have to be updated.
  if (document.hidden) setTimeout(flush, 200);
  else requestAnimationFrame(flush);
}

export function paint(write: () => void): void {
  dirty.add(write);
  schedule();
}

function flush(): void {
  scheduled = false;
  const begun = performance.now();
  if (begun < notBefore && !document.hidden) return schedule();
  const writes = [...dirty];
  dirty.clear();
  batch(() => {
    for (const write of writes) write();
  });
  notBefore = begun + PAUSE;
  // The next task runs when the views and the browser have finished drawing.
  setTimeout(() => {
    notBefore = begun + Math.min(Math.max(PAUSE, 2 * (performance.now() - begun)), LONGEST_PAUSE);
  });
}

// Channels.

interface Held {
  channel: Channel;
  seen: ReturnType<typeof signal<Seen<unknown>>>;
  write: () => void;
  users: number;
  timer: ReturnType<typeof setTimeout> | undefined;
}

const held = new Map<Uri, Held>();
/** A channel that is no longer shown is kept for a moment, so that going back is instant. */
const KEEP = 20_000;
const WINDOW = 60;

function hold(uri: Uri, kind?: ChannelKind): Held {
  let entry = held.get(uri);
  if (entry?.channel.error) {
    held.delete(uri);
    entry = undefined;
  }
  if (!entry) {
    const channel = client.follow(uri, kind, kind === "chat" ? { turns: WINDOW } : undefined);
    const seen = signal<Seen<unknown>>(NOTHING);
    const write = (): void => {
      seen.value = {
        state: channel.state,
        pending: [...channel.mirror.pending.values()].map((each) => each.action),
        error: channel.error,
      };
    };
    channel.listeners.add(() => paint(write));
    if (channel.mirror.joined) write();
    entry = { channel, seen, write, users: 0, timer: undefined };
    held.set(uri, entry);
  }
  clearTimeout(entry.timer);
  entry.users += 1;
  return entry;
}

function letGo(uri: Uri, entry: Held): void {
  entry.users -= 1;
  if (entry.users > 0) return;
  entry.timer = setTimeout(() => {
    if (entry.users > 0) return;
    if (held.get(uri) === entry) held.delete(uri);
    client.release(entry.channel);
  }, KEEP);
}

const NEVER = signal<Seen<unknown>>(NOTHING);

/** Follow a channel while the component is mounted. */
export function useChannel<T>(uri: Uri | undefined, kind?: ChannelKind): ReadonlySignal<Seen<T>> {
  const entry = useMemo(() => (uri ? hold(uri, kind) : undefined), [uri]);
  useEffect(() => {
    if (uri && entry) return () => letGo(uri, entry);
    return undefined;
  }, [uri]);
  return (entry?.seen ?? NEVER) as unknown as ReadonlySignal<Seen<T>>;
}

/** Follow a channel until the returned function is called; for code outside of components. */
export function watch<T>(uri: Uri, kind?: ChannelKind): { seen: ReadonlySignal<Seen<T>>; stop(): void } {
  const entry = hold(uri, kind);
  return { seen: entry.seen as unknown as ReadonlySignal<Seen<T>>, stop: () => letGo(uri, entry) };
}

/** The present state of a channel, if something else follows it. This does not follow the channel itself. */
export const known = <T>(uri: Uri): T | undefined => held.get(uri)?.channel.state as T | undefined;

/** Wait until `find` returns a value for a channel; undefined if the channel is gone, or after `patience` milliseconds. */
export async function firstSeen<T, Found>(uri: Uri, kind: ChannelKind, find: (state: T) => Found | undefined, patience?: number): Promise<Found | undefined> {
  const { seen, stop } = watch<T>(uri, kind);
  let end = stop;
  try {
    return await new Promise((resolve) => {
      const timer = patience === undefined ? undefined : setTimeout(resolve, patience);
      const unfollow = effect(() => {
        const { state, error } = seen.value;
        const found = state && find(state);
        if (found !== undefined || error) resolve(found);
      });
      end = () => {
        clearTimeout(timer);
        unfollow();
        stop();
      };
    });
  } finally {
    end();
  }
}

// The root and the list of sessions.

let rootEntry: Held;
export const root: ReadonlySignal<RootState | undefined> = computed(() =>
  hostInfo.value ? (rootEntry.seen.value?.state as RootState | undefined) : undefined,
);

/** The name of an agent for people. */
export const agentName = (provider: string | undefined): string =>
  root.value?.agents.find((each) => each.provider === provider)?.displayName ?? provider ?? "";

const summaries = new Map<Uri, SessionSummary>();
const writeSessions = (): void => {
  sessions.value = new Map(summaries);
};

function merge(uri: Uri, changes: Record<string, unknown>): void {
  const before = summaries.get(uri);
  if (!before) return;
  const after: Record<string, unknown> = { ...before, ...changes };
  for (const [key, value] of Object.entries(changes)) if (value === null) delete after[key];
  summaries.set(uri, after as unknown as SessionSummary);
}

const PAGE = 200;

/** Have the host start agents that do not run, so that they list the conversations that they keep. */
export const askAgents = (): Promise<void> => listSessions({ "ahpkit/ask-agents": true });

/** Notifications about sessions since the list was requested. They are newer than the list, so they are applied after it. */
const listings = new Set<(() => void)[]>();

async function listSessions(meta?: Record<string, unknown>): Promise<void> {
  const here = new Set<Uri>();
  const since: (() => void)[] = [];
  listings.add(since);
  try {
    let cursor: string | undefined;
    do {
      const params: Record<string, unknown> = { channel: ROOT, limit: PAGE, ...(cursor ? { cursor } : {}), ...(meta ? { _meta: meta } : {}) };
      const page = await client.request<{ items: SessionSummary[]; nextCursor?: string }>("listSessions", params);
      cursor = page.nextCursor;
      for (const item of page.items) {
        here.add(item.resource);
        summaries.set(item.resource, item);
      }
      if (!cursor) for (const uri of summaries.keys()) if (!here.has(uri)) summaries.delete(uri);
      for (const again of since) again();
      paint(writeSessions);
    } while (cursor);
  } finally {
    listings.delete(since);
  }
  paint(() => {
    writeSessions();
    sessionsLoaded.value = true;
  });
}

/** Apply a notification to the list of sessions, now and again after each list that was already requested. */
function listed(change: () => void): void {
  change();
  for (const since of listings) since.push(change);
  paint(writeSessions);
}

function notified(method: string, params: Record<string, unknown>): void {
  if (method === "root/sessionAdded") {
    const summary = params.summary as SessionSummary;
    listed(() => summaries.set(summary.resource, summary));
  } else if (method === "root/sessionRemoved") {
    listed(() => summaries.delete(params.session as Uri));
  } else if (method === "root/sessionSummaryChanged") {
    listed(() => merge(params.session as Uri, params.changes as Record<string, unknown>));
  } else if (method === "root/progress") {
    const { progressToken, ...told } = params as { progressToken: string; progress: number; total?: number; message?: string };
    // Only the last few are kept: a session that is ready needs no progress.
    creating.value = new Map([...[...creating.value].slice(-8), [progressToken, told]]);
  } else if (method === "auth/required") {
    const resource = params.resource as { resource: string; resource_name?: string };
    const entry = {
      resource: resource.resource,
      name: resource.resource_name ?? resource.resource,
      channel: params.channel as Uri,
    };
    signIns.value = [...signIns.value.filter((each) => each.resource !== entry.resource), entry];
  }
}

// Starting.

function dial(): Socket | WebSocket {
  const url = new URL("/", location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.hash = "";
  return dialBeside(url.href, "ahp");
}

function onStatus(status: LinkStatus): void {
  link.value = status;
  if (status === "live") {
    offlineSince.value = undefined;
    void listSessions().catch(() => undefined);
  } else if (status !== "catching-up") offlineSince.value ??= client.lastHeard || now();
}

export function start(title: string): Client {
  client = new Client({
    dial,
    clientId,
    clientInfo: { name: "ahpkit-page", title },
    // `mcpApps` allows the side channel of MCP servers, so that their tools can be listed.
    capabilities: { mcpApps: {}, _meta: { "ahpkit/canvases": true } },
    locale: navigator.language,
    onNotification: notified,
    onLost: () => {
      losses.value += 1;
    },
  });
  rootEntry = hold(ROOT, "root");
  client.statusListeners.add(onStatus);
  client.freshListeners.add((result, again) => {
    const before = hostInfo.value?._meta?.["ahpkit/host"] as { version?: string } | undefined;
    const after = result._meta?.["ahpkit/host"] as { version?: string } | undefined;
    hostInfo.value = result;
    if (again) notice.value = before?.version === after?.version ? "The host was restarted." : "The host has a new version. Reload for its page.";
  });
  document.addEventListener("visibilitychange", () => document.hidden || client.check());
  window.addEventListener("online", () => client.check());
  window.addEventListener("pageshow", () => client.check());
  client.start();
  return client;
}

export const retry = (): void => client.retry();
export const lastHeard = (): number => client.lastHeard;
export const refusal = (): string | undefined => client.refusal;

export function dispatch(uri: Uri, action: Action, kind?: ChannelKind): Promise<Outcome> {
  const { outcome } = client.dispatch(uri, action, kind);
  held.get(uri)?.write(); // This client's actions are shown at once, because otherwise a control would jump back until the next frame.
  return outcome;
}

export function request<T>(method: string, params: Record<string, unknown>): Promise<T> {
  return client.request<T>(method, params);
}

const contents = new Map<string, Promise<{ data: string; encoding: string; contentType?: string }>>();

/** Read a resource. A large one is read as a whole, up to the host's limit. */
export function read(uri: Uri, fresh = false): Promise<{ data: string; encoding: string; contentType?: string }> {
  let answer = contents.get(uri);
  if (!answer || fresh) {
    answer = request("resourceRead", { channel: ROOT, uri });
    contents.set(uri, answer);
    answer.catch(() => contents.delete(uri));
    if (contents.size > 64) contents.delete(contents.keys().next().value as string);
  }
  return answer;
}

export async function readText(uri: Uri, fresh = false): Promise<string | undefined> {
  const { data, encoding } = await read(uri, fresh);
  if (encoding !== "base64") return data;
  const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
  if (bytes.subarray(0, 8_000).includes(0)) return undefined;
  return new TextDecoder().decode(bytes);
}
