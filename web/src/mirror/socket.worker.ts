/** Holds the connections to the host outside of the page's thread, so that a flood of messages costs the page one task per frame. */

import type { Told, Wanted } from "./socket.ts";

const FRAME = 16;
/** Up to this many messages of one frame are passed on at once, one by one, so that answers do not wait. */
const FEW = 4;

const sockets = new Map<number, WebSocket>();
const tell = (told: Told): void => self.postMessage(told);

function dial(id: number, url: string, protocol: string): void {
  const socket = new WebSocket(url, [protocol]);
  let texts: string[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let begun = 0;
  let handed = 0;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (texts.length) tell({ id, kind: "texts", texts });
    texts = [];
  };
  socket.onopen = () => tell({ id, kind: "open" });
  socket.onmessage = (event: MessageEvent<unknown>) => {
    if (typeof event.data !== "string") return;
    texts.push(event.data);
    if (timer !== undefined) return;
    const now = performance.now();
    if (now - begun >= FRAME) [begun, handed] = [now, 0];
    handed += 1;
    if (handed <= FEW) flush();
    else timer = setTimeout(flush, begun + FRAME - now);
  };
  socket.onclose = (event) => {
    flush();
    sockets.delete(id);
    tell({ id, kind: "close", code: event.code, reason: event.reason });
  };
  sockets.set(id, socket);
}

self.onmessage = (event: MessageEvent<Wanted>) => {
  const wanted = event.data;
  if (wanted.kind === "dial") return dial(wanted.id, wanted.url, wanted.protocol);
  const socket = sockets.get(wanted.id);
  if (wanted.kind === "send") socket?.send(wanted.text);
  else socket?.close(wanted.code, wanted.reason);
};
