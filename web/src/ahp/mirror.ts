/**
 * One channel's copy of the host's state. Pure: it uses neither a connection nor a clock.
 *
 * - `confirmed` is the host's state: a snapshot, with every action after it applied once.
 * - `pending` are this client's actions that are not answered yet.
 * - `optimistic` is `confirmed` with the pending actions applied. Without pending actions it is the same object.
 *
 * This client's actions are recognised by their clientSeq, not by their order, because a rejection can overtake an acceptance. Actions that
 * arrive before a requested snapshot or replay wait for it, so that no action is lost or applied to the wrong state.
 */

import type { Obj, Reducer } from "./reducers/common.ts";
import type { Action, ActionEnvelope } from "./types.ts";

export interface Pending {
  clientSeq: number;
  action: Action;
}

export type Outcome = { accepted: true; serverSeq: number } | { accepted: false; reason: string };

/** The effect of an envelope: it changed the confirmed state, answered one of this client's actions, or both. */
export interface Taken {
  applied: boolean;
  settled?: { clientSeq: number; outcome: Outcome };
}

export class Mirror {
  confirmed: Obj | undefined;
  /** serverSeq of the last action that `confirmed` contains. */
  seq = 0;
  /** Whether there is a state. While there is no connection it may be old. */
  joined = false;
  readonly pending = new Map<number, Pending>();
  #waiting: ActionEnvelope[] | undefined = [];
  #optimistic: Obj | undefined;

  constructor(
    private readonly reduce: Reducer,
    private readonly clientId: string,
  ) {}

  get live(): boolean {
    return this.#waiting === undefined;
  }

  get optimistic(): Obj | undefined {
    if (this.confirmed === undefined || this.pending.size === 0) return this.confirmed;
    if (this.#optimistic === undefined) {
      let state = this.confirmed;
      for (const { action } of this.pending.values()) state = this.reduce(state, action);
      this.#optimistic = state;
    }
    return this.#optimistic;
  }

  /** A snapshot or replay was requested. Actions that arrive before it are applied after it. */
  expect(): void {
    this.#waiting = [];
  }

  /** Replace the whole state with the host's. */
  snapshot(state: Obj | undefined, fromSeq: number): void {
    this.confirmed = state;
    this.seq = fromSeq;
    this.joined = true;
    this.#optimistic = undefined;
  }

  /** The channel is complete up to here: apply the actions that waited. */
  resume(): Taken[] {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    return waiting.map((envelope) => this.take(envelope));
  }

  /** One live action. It waits if the state before it has not arrived yet. */
  envelope(envelope: ActionEnvelope): Taken {
    if (this.#waiting === undefined) return this.take(envelope);
    this.#waiting.push(envelope);
    return { applied: false };
  }

  /** One action in order, live or from a replay. An action that is already applied is dropped. */
  take(envelope: ActionEnvelope): Taken {
    if (envelope.rejectionReason !== undefined)
      return { applied: false, ...this.#settle(envelope, { accepted: false, reason: envelope.rejectionReason }) };
    const applied = envelope.serverSeq > this.seq;
    if (applied) {
      if (this.confirmed !== undefined) this.confirmed = this.reduce(this.confirmed, envelope.action);
      this.seq = envelope.serverSeq;
      this.#optimistic = undefined;
    }
    return { applied, ...this.#settle(envelope, { accepted: true, serverSeq: envelope.serverSeq }) };
  }

  /** Show the effect of this client's action until the host answers. */
  dispatch(pending: Pending): void {
    const state = this.optimistic;
    this.pending.set(pending.clientSeq, pending);
    this.#optimistic = state === undefined ? undefined : this.reduce(state, pending.action);
  }

  drop(clientSeq: number): boolean {
    if (!this.pending.delete(clientSeq)) return false;
    this.#optimistic = undefined;
    return true;
  }

  #settle(envelope: ActionEnvelope, outcome: Outcome): Pick<Taken, "settled"> {
    const origin = envelope.origin;
    if (!origin || origin.clientId !== this.clientId || !this.drop(origin.clientSeq)) return {};
    return { settled: { clientSeq: origin.clientSeq, outcome } };
  }
}
