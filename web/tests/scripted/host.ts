/** A small AHP 1.0 host for tests: states, reducers, a log, replay, and hooks for what an agent would do. */

import { kindOf, REDUCERS, type ChannelKind } from "../../src/ahp/index.ts";
import type { Action, ActionEnvelope, Message } from "../../src/ahp/types.ts";

type Obj = Record<string, any>;
type Send = (text: string) => void;

export class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

export interface Connection {
  clientId: string;
  send: Send;
  close(code?: number, reason?: string): void;
  subscriptions: Set<string>;
}

/** A minute and a half ago, so that ages and durations look like a person's day. */
export const NOW = new Date(Date.now() - 90_000).toISOString();

export class ScriptedHost {
  seq = 0;
  log: ActionEnvelope[] = [];
  states = new Map<string, Obj>();
  kinds = new Map<string, ChannelKind>();
  summaries = new Map<string, Obj>();
  resources = new Map<string, { data: string; contentType?: string; encoding?: string }>();
  connections = new Set<Connection>();
  clients = new Set<string>();
  /** Every action a client dispatched, in order. */
  dispatched: { channel: string; action: Action; clientId: string; clientSeq: number }[] = [];
  requests: { method: string; params: Obj }[] = [];
  /** Looks at an action before it is applied: a text refuses it, false keeps it unanswered. */
  judge: (channel: string, action: Action) => string | false | undefined = () => undefined;
  /** Does what an agent would after an action was applied. */
  react: (channel: string, action: Action) => void = () => undefined;
  methods: Record<string, (params: Obj, connection: Connection) => unknown> = {};
  /** How far back a replay reaches. */
  replayFrom = 0;
  silent = false;
  meta: Obj = { "ahpkit/host": { version: "test" } };
  #seen = new Map<string, Set<number>>();

  constructor() {
    this.put("ahp-root://", {
      agents: [
        {
          provider: "demo",
          displayName: "Demo",
          description: "Needs no key",
          models: [
            { id: "small", provider: "demo", name: "Small" },
            { id: "large", provider: "demo", name: "Large" },
          ],
          capabilities: { multipleChats: { fork: true, sideChat: true } },
        },
      ],
    });
  }

  put(uri: string, state: Obj, kind: ChannelKind = kindOf(uri)): void {
    this.states.set(uri, state);
    this.kinds.set(uri, kind);
  }

  /** A session with one chat. */
  addSession(id: string, changes: Obj = {}, chat: Obj = {}): { session: string; chat: string } {
    const session = `ahp-session:/${id}`;
    const uri = `ahp-chat:/${id}`;
    const summary = {
      resource: session, provider: "demo", title: id, status: 33, createdAt: NOW, modifiedAt: NOW,
      workingDirectories: ["file:///home/ada/project"], defaultChat: uri, ...changes,
    };
    const chatState = { resource: uri, title: "", status: 33, modifiedAt: NOW, turns: [], ...chat };
    this.put(uri, chatState, "chat");
    const { resource: _r, createdAt: _c, modifiedAt: _m, changes: _x, ...shared } = summary as Obj;
    this.put(session, {
      ...shared, lifecycle: "ready", activeClients: [],
      chats: [{ resource: uri, title: "", status: 33, modifiedAt: NOW }],
      ...(changes.state ?? {}),
    }, "session");
    this.summaries.set(session, summary);
    this.notify("root/sessionAdded", { channel: "ahp-root://", summary });
    return { session, chat: uri };
  }

  summarize(session: string, changes: Obj): void {
    const summary = this.summaries.get(session);
    if (!summary) return; // It is just being created.
    Object.assign(summary, changes);
    this.notify("root/sessionSummaryChanged", { channel: "ahp-root://", session, changes });
  }

  /** Apply an action of the host's own and tell everyone. */
  act(channel: string, action: Action, origin?: ActionEnvelope["origin"]): void {
    const state = this.states.get(channel);
    if (!state) throw new Error(`no channel ${channel}`);
    const reduce = REDUCERS[this.kinds.get(channel) ?? kindOf(channel)];
    this.states.set(channel, reduce(state, action));
    const envelope: ActionEnvelope = { channel, action, serverSeq: ++this.seq, ...(origin ? { origin } : {}) };
    this.log.push(envelope);
    for (const connection of this.connections)
      if (connection.subscriptions.has(channel)) this.#tell(connection, "action", envelope);
  }

  /** What waits for a person, on the session, as a real host mirrors it. */
  need(session: string, request: Obj): void {
    this.act(session, { type: "session/inputNeededSet", request });
    this.summarize(session, { status: 24 });
  }

  unneed(session: string, id: string): void {
    this.act(session, { type: "session/inputNeededRemoved", id });
    this.summarize(session, { status: 8 });
  }

  startTurn(chat: string, turnId: string, text: string): void {
    const message: Message = { text, origin: { kind: "user" } };
    this.act(chat, { type: "chat/turnStarted", turnId, startedAt: NOW, message });
  }

  notify(method: string, params: Obj): void {
    for (const connection of this.connections) this.#tell(connection, method, params);
  }

  #tell(connection: Connection, method: string, params: unknown): void {
    if (!this.silent) connection.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  // Connections.

  connect(send: Send, close: Connection["close"]): Connection {
    const connection = { clientId: "", send, close, subscriptions: new Set<string>() };
    this.connections.add(connection);
    return connection;
  }

  dropAll(code = 1006): void {
    for (const connection of [...this.connections]) {
      this.connections.delete(connection);
      connection.close(code, "");
    }
  }

  async receive(connection: Connection, text: string): Promise<void> {
    const { id, method, params } = JSON.parse(text) as { id?: number; method: string; params: Obj };
    if (this.silent || method === undefined) return;
    if (id === undefined) {
      if (method === "dispatchAction") this.#dispatched(connection, params);
      if (method === "unsubscribe") connection.subscriptions.delete(params.channel);
      return;
    }
    this.requests.push({ method, params });
    let answer: Obj;
    try {
      answer = { result: (await this.#serve(connection, method, params)) ?? null };
    } catch (error) {
      const refusal = error instanceof Refusal ? error : new Refusal(-32603, String(error));
      answer = { error: { code: refusal.code, message: refusal.message, data: refusal.data } };
    }
    if (!this.silent) connection.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  }

  #dispatched(connection: Connection, params: Obj): void {
    const { channel, action, clientSeq } = params as { channel: string; action: Action; clientSeq: number };
    const seen = this.#seen.get(connection.clientId) ?? new Set();
    this.#seen.set(connection.clientId, seen);
    if (seen.has(clientSeq)) return;
    const origin = { clientId: connection.clientId, clientSeq };
    const verdict = this.states.has(channel) ? this.judge(channel, action) : "there is no such channel";
    if (verdict === false) return;
    seen.add(clientSeq);
    this.dispatched.push({ channel, action, ...origin });
    if (typeof verdict === "string") {
      const envelope = { channel, action, serverSeq: this.seq, origin, rejectionReason: verdict };
      return this.#tell(connection, "action", envelope);
    }
    this.act(channel, action, origin);
    if (action.type === "session/isReadChanged" || action.type === "session/isArchivedChanged")
      this.summarize(channel, { status: this.states.get(channel)?.status });
    if (action.type === "session/titleChanged") this.summarize(channel, { title: action.title });
    this.react(channel, action);
  }

  #snapshot(uri: string, view?: { turns?: number }): Obj {
    let state = this.states.get(uri);
    if (!state) throw new Refusal(-32008, `there is no ${uri}`);
    if (view?.turns !== undefined && state.turns?.length > view.turns)
      state = { ...state, turns: state.turns.slice(-view.turns), turnsNextCursor: String(state.turns.length - view.turns) };
    return { resource: uri, state, fromSeq: this.seq };
  }

  async #serve(connection: Connection, method: string, params: Obj): Promise<unknown> {
    const own = this.methods[method];
    if (own) return own(params, connection);
    switch (method) {
      case "initialize": {
        connection.clientId = params.clientId;
        this.clients.add(params.clientId);
        this.#seen.delete(params.clientId); // It counts its actions anew.
        for (const uri of params.initialSubscriptions ?? []) connection.subscriptions.add(uri);
        return {
          protocolVersion: "1.0.0", serverSeq: this.seq, serverInfo: { name: "scripted", version: "1" },
          snapshots: (params.initialSubscriptions ?? []).map((uri: string) => this.#snapshot(uri)),
          defaultDirectory: "file:///home/ada/project", completionTriggerCharacters: ["/", "@", "#"], _meta: this.meta,
        };
      }
      case "reconnect":
        return this.#reconnect(connection, params);
      case "ping":
        return {};
      case "subscribe":
        connection.subscriptions.add(params.channel);
        return { snapshot: this.#snapshot(params.channel, params.view) };
      case "listSessions":
        return { items: [...this.summaries.values()] };
      case "fetchTurns": {
        const all: Obj[] = this.states.get(params.channel)?.turns ?? [];
        const end = Number(params.cursor);
        const start = Math.max(0, end - 40);
        const action = { type: "chat/turnsLoaded", turns: all.slice(start, end), ...(start ? { turnsNextCursor: String(start) } : {}) };
        this.#tell(connection, "action", { channel: params.channel, action, serverSeq: ++this.seq });
        return {};
      }
      case "createSession": {
        const id = String(params.channel).split("/").pop() as string;
        this.addSession(id, { provider: params.provider ?? "demo", workingDirectories: params.workingDirectories });
        return null;
      }
      case "disposeSession":
        this.summaries.delete(params.channel);
        this.notify("root/sessionRemoved", { channel: "ahp-root://", session: params.channel });
        return null;
      case "resourceRead": {
        const found = this.resources.get(params.uri);
        if (!found) throw new Refusal(-32008, `there is no ${params.uri}`);
        return { encoding: "utf-8", ...found };
      }
      case "resolveSessionConfig":
        return { schema: { type: "object", properties: {} }, values: {} };
      case "completions":
        return { items: [] };
      default:
        throw new Refusal(-32601, `unknown method ${method}`);
    }
  }

  #reconnect(connection: Connection, params: Obj): Obj {
    if (!this.clients.has(params.clientId)) throw new Refusal(-32600, "unknown client");
    connection.clientId = params.clientId;
    const uris: string[] = params.subscriptions;
    const here = uris.filter((uri) => this.states.has(uri));
    for (const uri of here) connection.subscriptions.add(uri);
    if (params.lastSeenServerSeq < this.replayFrom)
      return { type: "snapshot", snapshots: here.map((uri) => this.#snapshot(uri)) };
    const actions = this.log.filter(
      (envelope) => envelope.serverSeq > params.lastSeenServerSeq && uris.includes(envelope.channel),
    );
    return { type: "replay", actions, missing: uris.filter((uri) => !this.states.has(uri)) };
  }
}
