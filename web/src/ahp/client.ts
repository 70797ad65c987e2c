/**
 * A lasting connection to a host: connects, initializes, follows channels, dispatches, and reconnects when the connection is lost.
 * It also works outside of a page, because sockets, clock and random numbers are passed in.
 */

import { backoff } from "./backoff.ts";
import { Mirror, type Outcome } from "./mirror.ts";
import { type ChannelKind, kindOf, REDUCERS } from "./reducers/index.ts";
import { ConnectionLost, RpcError, RpcPeer } from "./rpc.ts";
import type { Action, ActionEnvelope, InitializeResult, Snapshot, Uri } from "./types.ts";

export const ROOT: Uri = "ahp-root://";
export const VERSIONS = ["1.0.0"];

/** Milliseconds between pings. */
const INTERVAL = 10_000;
/** A connection that brought no message for this many intervals counts as dead, even if the socket is open. */
const SILENT_INTERVALS = 3;
/** Milliseconds without a message after `check()` until the connection counts as dead. It is short, for a phone that wakes up. */
const CHECK_TIMEOUT = 4_000;
const GREETING_TIMEOUT = 30_000;

/** Close codes after which the host would refuse another connection, too. */
const FINAL = new Set([1007, 1008, 1009, 4401, 4403]);

export type LinkStatus = "connecting" | "catching-up" | "live" | "offline" | "refused";

export interface Socket {
  send(text: string): void;
  close(code?: number, reason?: string): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  onerror: (() => void) | null;
}

export interface ClientOptions {
  /** Makes a new connection: a browser's WebSocket, or an object with the same interface. */
  dial(): Socket | WebSocket;
  clientId: string;
  clientInfo?: { name: string; version?: string; title?: string };
  capabilities?: Record<string, unknown>;
  locale?: string;
  now?(): number;
  random?(): number;
  /** Called each time the link is lost, was refused or could not be made. */
  onLost?(): void;
  onNotification?(method: string, params: Record<string, unknown>): void;
  onRequest?(method: string, params: Record<string, unknown>): unknown;
}

export interface Dispatch {
  clientSeq: number;
  /** Settles once the host has answered, however many connections that takes. */
  outcome: Promise<Outcome>;
}

export class Channel {
  holders = 0;
  error: Error | undefined;
  readonly listeners = new Set<() => void>();
  joining = false;

  constructor(
    readonly uri: Uri,
    readonly mirror: Mirror,
    readonly view: { turns?: number } | undefined,
  ) {}

  get state(): unknown {
    return this.mirror.optimistic;
  }

  changed(): void {
    for (const listener of this.listeners) listener();
  }
}

export class Client {
  status: LinkStatus = "connecting";
  /** When the host's last message came, in ms. From this the page shows how old its data is. */
  lastHeard = 0;
  /** Why the host refused this client for good. */
  refusal: string | undefined;
  host: InitializeResult | undefined;
  readonly statusListeners = new Set<(status: LinkStatus) => void>();
  /** Called after each `initialize`: the first one, and those after which all states are new. */
  readonly freshListeners = new Set<(result: InitializeResult, again: boolean) => void>();

  #channels = new Map<Uri, Channel>();
  #settle = new Map<number, { channel: Channel; resolve(outcome: Outcome): void }>();
  #sent = new Set<number>();
  #peer: RpcPeer | undefined;
  #socket: Socket | undefined;
  #nextSeq = 1;
  #attempt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watchdog: ReturnType<typeof setInterval> | undefined;
  #waiters: { resolve(peer: RpcPeer): void; reject(error: Error): void }[] = [];
  #closed = false;
  #frames = 0;

  constructor(private readonly options: ClientOptions) {}

  // The link.

  start(): void {
    this.#dial();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#drop();
    this.#set("offline");
    for (const waiter of this.#waiters.splice(0)) waiter.reject(new ConnectionLost("The client is closed."));
  }

  /** Check the connection now: reconnect at once if it is lost, otherwise send a ping. */
  check(): void {
    if (this.#closed || this.status === "refused") return;
    if (this.status === "offline") {
      clearTimeout(this.#timer);
      this.#attempt = 0;
      this.#dial();
    } else if (this.status === "live") {
      const frames = this.#frames;
      const peer = this.#peer;
      peer?.request("ping", { channel: ROOT }).catch(() => undefined);
      setTimeout(() => peer === this.#peer && this.#frames === frames && this.#lost(), CHECK_TIMEOUT);
    }
  }

  /** Connect again although the host refused, because the person has signed in or wants to try again. */
  retry(): void {
    if (this.status === "live" || this.#closed) return;
    clearTimeout(this.#timer);
    this.refusal = undefined;
    this.#attempt = 0;
    this.#dial();
  }

  #now(): number {
    return this.options.now?.() ?? Date.now();
  }

  #set(status: LinkStatus): void {
    if (this.status === status) return;
    this.status = status;
    for (const listener of this.statusListeners) listener(status);
  }

  #dial(): void {
    this.#drop();
    let socket: Socket;
    try {
      socket = this.options.dial() as Socket;
    } catch {
      return this.#lost();
    }
    this.#socket = socket;
    const peer = new RpcPeer((text) => socket.send(text), {
      onNotification: (method, params) => this.#notified(method, params),
      onRequest: (method, params) => this.#requested(method, params),
    });
    const greeting = setTimeout(() => this.#socket === socket && this.#lost(), GREETING_TIMEOUT);
    socket.onopen = () => {
      this.#heard();
      this.#set(this.host ? "catching-up" : "connecting");
      void this.#greet(peer, socket).finally(() => clearTimeout(greeting));
    };
    socket.onmessage = (event) => {
      if (this.#socket !== socket || typeof event.data !== "string") return;
      this.#heard();
      peer.receive(event.data);
    };
    socket.onerror = () => undefined;
    socket.onclose = (event) => {
      clearTimeout(greeting);
      peer.close();
      if (this.#socket === socket) this.#ended(event.code, event.reason);
    };
  }

  #heard(): void {
    this.#frames += 1;
    this.lastHeard = this.#now();
  }

  #ended(code: number, reason: string): void {
    if (FINAL.has(code)) {
      this.refusal = reason || `The host closed the connection (${code}).`;
      this.#drop();
      this.#set("refused");
      this.options.onLost?.();
    } else this.#lost();
  }

  /** The connection is lost; try again after a while. */
  #lost(): void {
    this.#drop();
    if (this.#closed) return;
    this.#set("offline");
    this.options.onLost?.();
    this.#attempt += 1;
    const delay = backoff(this.#attempt, this.options.random?.() ?? Math.random());
    this.#timer = setTimeout(() => this.#dial(), delay);
  }

  #drop(): void {
    clearInterval(this.#watchdog);
    const socket = this.#socket;
    this.#socket = undefined;
    this.#peer?.close();
    this.#peer = undefined;
    if (socket) {
      socket.onopen = socket.onmessage = null;
      try {
        socket.close(1000);
      } catch {
        // A socket that never opened has nothing to close.
      }
    }
  }

  /** Send a ping in every interval. Three intervals without a message end the connection. */
  #watch(): void {
    clearInterval(this.#watchdog);
    this.#watchdog = setInterval(() => {
      const silent = this.#now() - this.lastHeard;
      if (silent > SILENT_INTERVALS * INTERVAL) this.#lost();
      else if (silent >= INTERVAL * 0.9) this.#peer?.request("ping", { channel: ROOT }).catch(() => undefined);
    }, INTERVAL);
  }

  // The greeting.

  async #greet(peer: RpcPeer, socket: Socket): Promise<void> {
    for (const channel of this.#channels.values()) channel.mirror.expect();
    this.#sent.clear();
    try {
      if (!this.host || !(await this.#reconnect(peer))) await this.#initialize(peer);
    } catch (error) {
      if (this.#socket !== socket) return;
      if (error instanceof RpcError && error.code === -32005) {
        const versions = (error.data as { supportedVersions?: string[] } | undefined)?.supportedVersions ?? [];
        this.refusal = `This host speaks AHP ${versions.join(", ") || "of another version"}; the page speaks ${VERSIONS.join(", ")}.`;
        this.#drop();
        this.#set("refused");
      } else this.#lost();
      return;
    }
    if (this.#socket !== socket) return;
    this.#peer = peer;
    this.#attempt = 0;
    this.#watch();
    this.#set("live");
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(peer);
    for (const channel of this.#channels.values())
      if (channel.mirror.live) this.#send(channel);
      else void this.#join(channel);
  }

  async #initialize(peer: RpcPeer): Promise<void> {
    const again = this.host !== undefined;
    const followsRoot = this.#channels.has(ROOT);
    const result = await peer.request<InitializeResult>("initialize", {
      channel: ROOT,
      protocolVersions: VERSIONS,
      clientId: this.options.clientId,
      clientInfo: this.options.clientInfo,
      locale: this.options.locale,
      capabilities: this.options.capabilities,
      initialSubscriptions: followsRoot ? [ROOT] : [],
    });
    this.host = result;
    for (const snapshot of result.snapshots) this.#take(snapshot);
    for (const listener of this.freshListeners) listener(result, again);
  }

  /** False if the host cannot resume: it does not know this client any more, or lost its log. */
  async #reconnect(peer: RpcPeer): Promise<boolean> {
    const known = [...this.#channels.values()].filter((channel) => channel.mirror.joined);
    const seen = known.map((channel) => channel.mirror.seq);
    type Answer =
      | { type: "replay"; actions: ActionEnvelope[]; missing: Uri[] }
      | { type: "snapshot"; snapshots: Snapshot[] };
    let answer: Answer;
    try {
      answer = await peer.request<Answer>("reconnect", {
        channel: ROOT,
        clientId: this.options.clientId,
        lastSeenServerSeq: known.length ? Math.min(...seen) : 0,
        subscriptions: known.map((channel) => channel.uri),
        _meta: {
          "ahpkit/capabilities": this.options.capabilities ?? {},
          // A host that has forgotten this client would treat it as a client of 0.4.
          "ahpkit/spoken": this.host?.protocolVersion,
          // From this number, a host whose log lost its end sees that this client knows actions that the log lacks.
          "ahpkit/highest": Math.max(0, ...seen),
        },
      });
    } catch (error) {
      if (error instanceof RpcError) return false;
      throw error;
    }
    if (answer.type === "snapshot") for (const snapshot of answer.snapshots) this.#take(snapshot);
    else this.#replay(answer.actions, answer.missing, known);
    return true;
  }

  #replay(actions: ActionEnvelope[], missing: Uri[], known: Channel[]): void {
    for (const envelope of actions) {
      const channel = this.#channels.get(envelope.channel);
      if (channel?.mirror.joined) this.#taken(channel, [channel.mirror.take(envelope)]);
    }
    for (const channel of known) {
      if (missing.includes(channel.uri)) this.#gone(channel, new Error("It was removed while the page was away."));
      else if (this.#channels.get(channel.uri) === channel) this.#resume(channel);
    }
  }

  // Channels.

  /** Follow a channel. Every call needs a `release`. `kind` is the kind of channel, for a URI that does not show it. */
  follow(uri: Uri, kind?: ChannelKind, view?: { turns?: number }): Channel {
    let channel = this.#channels.get(uri);
    if (!channel) {
      channel = new Channel(uri, new Mirror(REDUCERS[kind ?? kindOf(uri)], this.options.clientId), view);
      this.#channels.set(uri, channel);
      if (this.status === "live") void this.#join(channel);
    }
    channel.holders += 1;
    return channel;
  }

  release(channel: Channel): void {
    channel.holders -= 1;
    if (channel.holders > 0 || this.#channels.get(channel.uri) !== channel) return;
    this.#channels.delete(channel.uri);
    this.#peer?.notify("unsubscribe", { channel: channel.uri });
  }

  async #join(channel: Channel): Promise<void> {
    const peer = this.#peer;
    if (!peer || channel.joining) return;
    channel.joining = true;
    channel.mirror.expect();
    try {
      const params = { channel: channel.uri, ...(channel.view ? { view: channel.view } : {}) };
      const result = await peer.request<{ snapshot?: Snapshot }>("subscribe", params);
      channel.joining = false;
      if (this.#channels.get(channel.uri) !== channel || peer !== this.#peer) return;
      if (result?.snapshot) this.#take(result.snapshot, channel);
      else {
        channel.mirror.snapshot(undefined, channel.mirror.seq);
        this.#resume(channel);
      }
      this.#send(channel);
    } catch (error) {
      channel.joining = false;
      if (error instanceof RpcError) this.#gone(channel, error);
    }
  }

  #take(snapshot: Snapshot, channel = this.#channels.get(snapshot.resource)): void {
    if (!channel) return;
    channel.error = undefined;
    channel.mirror.snapshot(snapshot.state as Record<string, unknown>, snapshot.fromSeq);
    this.#resume(channel);
  }

  #resume(channel: Channel): void {
    this.#taken(channel, channel.mirror.resume());
    channel.changed();
  }

  /** The host does not have this channel: notify its followers, and refuse its actions. */
  #gone(channel: Channel, error: Error): void {
    channel.error = error;
    for (const clientSeq of [...channel.mirror.pending.keys()]) {
      channel.mirror.drop(clientSeq);
      this.#answered(clientSeq, { accepted: false, reason: error.message });
    }
    if (this.#channels.get(channel.uri) === channel) this.#channels.delete(channel.uri);
    channel.changed();
  }

  #taken(channel: Channel, all: ReturnType<Mirror["take"]>[]): void {
    let changed = false;
    for (const taken of all) {
      changed ||= taken.applied || taken.settled !== undefined;
      if (taken.settled) this.#answered(taken.settled.clientSeq, taken.settled.outcome);
    }
    if (changed) channel.changed();
  }

  // Actions.

  /** Show an action's effect at once and send it, now or after the reconnect; a repeated send keeps its number. */
  dispatch(uri: Uri, action: Action, kind?: ChannelKind): Dispatch {
    const channel = this.follow(uri, kind);
    const clientSeq = this.#nextSeq++;
    const outcome = new Promise<Outcome>((resolve) => this.#settle.set(clientSeq, { channel, resolve }));
    channel.mirror.dispatch({ clientSeq, action });
    channel.changed();
    if (this.status === "live" && channel.mirror.live) this.#send(channel);
    return { clientSeq, outcome };
  }

  #send(channel: Channel): void {
    for (const { clientSeq, action } of channel.mirror.pending.values()) {
      if (this.#sent.has(clientSeq)) continue;
      this.#sent.add(clientSeq);
      this.#peer?.notify("dispatchAction", { channel: channel.uri, clientSeq, action });
    }
  }

  #answered(clientSeq: number, outcome: Outcome): void {
    const entry = this.#settle.get(clientSeq);
    if (!entry) return;
    this.#settle.delete(clientSeq);
    this.#sent.delete(clientSeq);
    entry.resolve(outcome);
    this.release(entry.channel);
  }

  // Requests and notifications.

  /** Send a request to the host. Waits for the connection first. */
  async request<T = unknown>(method: string, params: Record<string, unknown>): Promise<T> {
    const peer =
      this.status === "live" && this.#peer
        ? this.#peer
        : await new Promise<RpcPeer>((resolve, reject) => this.#waiters.push({ resolve, reject }));
    return peer.request<T>(method, params);
  }

  #notified(method: string, params: Record<string, unknown>): void {
    if (method === "action") {
      const envelope = params as unknown as ActionEnvelope;
      const channel = this.#channels.get(envelope.channel);
      if (channel) this.#taken(channel, [channel.mirror.envelope(envelope)]);
    } else this.options.onNotification?.(method, params);
  }

  #requested(method: string, params: Record<string, unknown>): unknown {
    if (!this.options.onRequest) throw new RpcError(-32601, `This client does not serve ${method}.`);
    return this.options.onRequest(method, params);
  }
}
