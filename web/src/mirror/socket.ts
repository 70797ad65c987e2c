/** A socket that is read in a worker. If workers are not available, it is a plain WebSocket. */

import type { Socket } from "../ahp/index.ts";

/** Messages from the page to the worker. */
export type Wanted = { id: number } & (
  | { kind: "dial"; url: string; protocol: string }
  | { kind: "send"; text: string }
  | { kind: "close"; code?: number; reason?: string }
);

/** Messages from the worker to the page. */
export type Told = { id: number } & (
  | { kind: "open" }
  | { kind: "texts"; texts: string[] }
  | { kind: "close"; code: number; reason: string }
);

const LOST = 1006;

let worker: Worker | undefined;
/** The worker could not be loaded, for instance because the page was opened without a network. */
let unusable = typeof Worker === "undefined";
let next = 1;
const open = new Map<number, BesideSocket>();

function started(): Worker {
  const made = new Worker(new URL("./socket.worker.ts", import.meta.url), { type: "module" });
  made.onmessage = (event: MessageEvent<Told>) => open.get(event.data.id)?.told(event.data);
  made.onerror = () => {
    unusable = true;
    for (const [id, socket] of open) socket.told({ id, kind: "close", code: LOST, reason: "" });
  };
  return made;
}

class BesideSocket implements Socket {
  onopen: Socket["onopen"] = null;
  onmessage: Socket["onmessage"] = null;
  onclose: Socket["onclose"] = null;
  onerror: Socket["onerror"] = null;
  #id = next++;

  constructor(private readonly worker: Worker, url: string, protocol: string) {
    open.set(this.#id, this);
    this.#want({ id: this.#id, kind: "dial", url, protocol });
  }

  #want(wanted: Wanted): void {
    this.worker.postMessage(wanted);
  }

  send(text: string): void {
    this.#want({ id: this.#id, kind: "send", text });
  }

  close(code?: number, reason?: string): void {
    this.#want({ id: this.#id, kind: "close", ...(code === undefined ? {} : { code }), ...(reason === undefined ? {} : { reason }) });
  }

  told(told: Told): void {
    if (told.kind === "open") this.onopen?.();
    else if (told.kind === "texts") for (const data of told.texts) this.onmessage?.({ data });
    else {
      open.delete(this.#id);
      this.onclose?.({ code: told.code, reason: told.reason });
    }
  }
}

export function dialBeside(url: string, protocol: string): Socket | WebSocket {
  if (unusable) return new WebSocket(url, [protocol]);
  worker ??= started();
  return new BesideSocket(worker, url, protocol);
}
