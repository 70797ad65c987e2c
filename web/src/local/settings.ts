/** Settings that this browser stores: theme, keys, folds, widths, drafts. Nothing secret is stored here. */

import { effect, signal, type Signal } from "@preact/signals";

export function kept<T>(key: string, fallback: T): T {
  try {
    const text = localStorage.getItem(`ahpkit:${key}`);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

/** Store a value; false if that failed. Storage may be full or forbidden, and the page works without it. */
export function keep(key: string, value: unknown): boolean {
  try {
    if (value === undefined) localStorage.removeItem(`ahpkit:${key}`);
    else localStorage.setItem(`ahpkit:${key}`, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** The stored names that begin with a prefix. */
export function keysBelow(start: string): string[] {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(`ahpkit:${start}`)).map((key) => key.slice("ahpkit:".length));
  } catch {
    return [];
  }
}

function setting<T>(key: string, fallback: T): Signal<T> {
  const value = signal(kept(key, fallback));
  let first = true;
  effect(() => {
    const now = value.value;
    if (!first) keep(key, now);
    first = false;
  });
  return value;
}

export const theme = setting<"system" | "light" | "dark">("theme", "system");
export const sendWith = setting<"enter" | "ctrl-enter">("send", "enter");
export const sideWidth = setting("side", 420);
export const notifyMe = setting("notify", false);
export const splitDiff = setting("split", false);
export const lastAgent = setting<{ provider?: string; directory?: string }>("last", {});

effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});

// Drafts: one per chat, saved as it is typed, gone when the message was accepted.

export interface Draft {
  text: string;
  attachments: { type: string; label: string; [field: string]: unknown }[];
  at: number;
}

export const loadDraft = (chat: string): Draft | undefined => kept<Draft | undefined>(`draft:${chat}`, undefined);

export function saveDraft(chat: string, draft: Draft | undefined): void {
  const empty = !draft || (!draft.text && draft.attachments.length === 0);
  if (keep(`draft:${chat}`, empty ? undefined : draft) || empty) return;
  keep(`draft:${chat}`, { ...draft, attachments: [] }); // Pictures may be too large to be kept; typed text is not.
}
