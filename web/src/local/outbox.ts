/** Messages on their way: shown as sending, waiting or failed, and sent again under the same id. */

import { signal } from "@preact/signals";
import type { Message, Uri } from "../ahp/index.ts";
import { dispatch } from "../mirror/store.ts";

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

/** Send, and keep the text until the host has it: a refusal puts it back, in sight. */
export async function sendMessage(chat: Uri, message: Message, how: How, id: string = crypto.randomUUID()): Promise<boolean> {
  failedMessages.value = failedMessages.value.filter((each) => each.id !== id);
  const outcome = await dispatch(chat, actionOf(how, id, message), "chat");
  if (outcome.accepted) return true;
  failedMessages.value = [...failedMessages.value, { id, chat, message, how, reason: outcome.reason }];
  return false;
}

export function discard(id: string): void {
  failedMessages.value = failedMessages.value.filter((each) => each.id !== id);
}

export const userMessage = (text: string, extra: Partial<Message> = {}): Message => ({ text, origin: { kind: "user" }, ...extra });
