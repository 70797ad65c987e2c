/**
 * Messages that the host does not have yet: shown as sending, waiting or failed, and sent again under the same id. Each is kept in this browser until
 * the host has it, so that a page that is closed meanwhile loses nothing.
 */

import { signal } from "@preact/signals";
import type { ChatState, Message, Uri } from "../ahp/index.ts";
import { clientId, dispatch } from "../mirror/store.ts";
import { keep, kept, keysBelow } from "./settings.ts";

export interface Failed {
  id: string;
  chat: Uri;
  message: Message;
  how: "turn" | "queued" | "steering";
  reason: string;
}

export const failedMessages = signal<Failed[]>([]);

export type How = Failed["how"];

function actionOf(how: How, id: string, message: Message): { type: string; [field: string]: unknown } {
  if (how === "turn") return { type: "chat/turnStarted", turnId: id, startedAt: new Date().toISOString(), message };
  return { type: "chat/pendingMessageSet", kind: how, id, message };
}

/** Send, and keep the text until the host has it: if the host refuses, the text is shown again. */
export async function sendMessage(chat: Uri, message: Message, how: How, id: string = crypto.randomUUID()): Promise<boolean> {
  failedMessages.value = failedMessages.value.filter((each) => each.id !== id);
  const unsent = { id, chat, message, how, reason: LEFT };
  remember(unsent);
  const outcome = await dispatch(chat, actionOf(how, id, message), "chat");
  if (outcome.accepted) {
    keep(PLACE + id, undefined);
    return true;
  }
  fail({ ...unsent, reason: outcome.reason });
  return false;
}

export function discard(id: string): void {
  keep(PLACE + id, undefined);
  failedMessages.value = failedMessages.value.filter((each) => each.id !== id);
}

function fail(message: Failed): void {
  remember(message);
  failedMessages.value = [...failedMessages.value, message];
}

/** Whether a chat has a message already: the page may have been closed after the host had accepted it and before the answer came. */
export const arrived = ({ id }: Failed, chat: ChatState): boolean =>
  chat.activeTurn?.id === id || chat.steeringMessage?.id === id || chat.turns.some((turn) => turn.id === id) || Boolean(chat.queuedMessages?.some((each) => each.id === id));

export const userMessage = (text: string, extra: Partial<Message> = {}): Message => ({ text, origin: { kind: "user" }, ...extra });

// Messages that a closed page has left.

const PLACE = "unsent:";
const LEFT = "the page was closed before the host had it";

interface Kept extends Failed {
  /** The window that sends this message. */
  window: string;
  /** When it was kept, in ms, later than that of every other message of this window: a browser lists stored entries in any order. */
  at: number;
}

let latest = 0;

function remember(message: Failed): void {
  latest = Math.max(Date.now(), latest + 1);
  const entry: Kept = { ...message, window: clientId, at: latest };
  if (keep(PLACE + message.id, entry)) return;
  const { attachments: _, ...words } = message.message; // Pictures may be too large to be kept; typed text is not.
  keep(PLACE + message.id, { ...entry, message: words });
}

const lockOf = (window: string): string => `ahpkit:window:${window}`;

/** Show the messages that a closed page has left. They are not sent automatically, because they may be old. Messages of another open window are not shown. */
export async function startOutbox(): Promise<void> {
  const left = keysBelow(PLACE).map((key) => kept<Kept | undefined>(key, undefined)).filter((each) => each !== undefined).sort((one, other) => (one.at ?? 0) - (other.at ?? 0));
  void navigator.locks?.request(lockOf(clientId), () => new Promise(() => undefined)); // Held as long as this window is open.
  const open = (await navigator.locks?.query())?.held?.map((lock) => lock.name);
  for (const { window, at: _, ...message } of left) if (window === clientId || (open && !open.includes(lockOf(window)))) fail(message);
}
