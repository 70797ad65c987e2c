/** A socket between a client and a scripted host in one process. Frames arrive in order, each in a task of its own. */

import type { Socket } from "../../src/ahp/index.ts";
import type { Connection, ScriptedHost } from "./host.ts";

export class MemorySocket implements Socket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  onerror: (() => void) | null = null;
  #connection: Connection | undefined;
  #closed = false;

  constructor(
    private readonly host: ScriptedHost,
    up: boolean,
  ) {
    queueMicrotask(() => {
      if (!up) return this.#end(1006);
      this.#connection = host.connect(
        (text) => queueMicrotask(() => !this.#closed && this.onmessage?.({ data: text })),
        (code = 1006) => this.#end(code),
      );
      this.onopen?.();
    });
  }

  send(text: string): void {
    const connection = this.#connection;
    if (connection && !this.#closed) queueMicrotask(() => void this.host.receive(connection, text));
  }

  close(): void {
    this.#end(1000);
  }

  #end(code: number): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#connection) this.host.connections.delete(this.#connection);
    queueMicrotask(() => this.onclose?.({ code, reason: "" }));
  }
}
