/** This browser's identity at the host: its right, pairing and signing out. The secret is in a cookie that scripts cannot read. */

import { signal } from "@preact/signals";

export type Right = "watch" | "answer" | "everything";

export interface Me {
  right: Right;
  device: string | undefined;
  /** Whether a phone can reach this host with its present settings. */
  pairing: { possible: boolean; reason?: string };
}

export interface Device {
  id: string;
  name: string;
  right: Right;
  createdAt: string;
  lastSeenAt: string;
  current: boolean;
}

export type Entry = "checking" | "in" | "out" | "wrong-code";

export const me = signal<Me | undefined>(undefined);
export const entry = signal<Entry>("checking");

export const RIGHTS: Record<Right, string> = {
  watch: "Watch: see everything, change nothing",
  answer: "Answer: approve, deny, answer questions",
  everything: "Everything: start sessions, send messages, change settings",
};

async function call<T>(path: string, body?: unknown): Promise<T> {
  const asked = fetch(path, body === undefined
    ? { headers: { Accept: "application/json" } }
    : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const answer = await asked.catch(() => Promise.reject<Response>(new Error("The host cannot be reached.")));
  if (!answer.ok) throw new Error((await answer.text()).trim() || `The host answered ${answer.status}.`);
  return (await answer.json()) as T;
}

/** Ask the host who this browser is. Without an answer (offline) the page starts anyway. */
export async function arrive(): Promise<void> {
  if (location.pathname === "/in") entry.value = "wrong-code";
  try {
    const answer = await fetch("/page/me", { headers: { Accept: "application/json" } });
    if (answer.status === 401) return void (entry.value = entry.value === "wrong-code" ? "wrong-code" : "out");
    if (answer.ok) me.value = (await answer.json()) as Me;
  } catch {
    // Offline: the page shows the loaded data until the host is back.
  }
  entry.value = "in";
}

/** After a lost connection: check whether this browser was revoked, instead of reconnecting for ever. */
export async function stillKnown(): Promise<void> {
  try {
    if ((await fetch("/page/me", { headers: { Accept: "application/json" } })).status === 401) entry.value = "out";
  } catch {
    // The host cannot be reached, so the answer is not known.
  }
}

export const signIn = (code: string): Promise<unknown> => call("/in", { code });
export const devices = (): Promise<{ devices: Device[] }> => call("/page/devices");
export const revoke = (id: string): Promise<unknown> => call("/page/devices/revoke", { id });
export const pair = (right: Right, name: string): Promise<{ url: string; code: string; expiresAt: string }> => call("/page/pair", { right, name });
/** Begin to sign in to an MCP server of a session. Returns the address to open. */
export const beginSignIn = (session: string, server: string): Promise<{ url: string }> => call("/page/sign-in", { session, server });
/** The address at which the host serves a `data:` canvas. */
export const frameFor = (data: string): Promise<{ path: string }> => call("/page/frame", { data });
export const leave = (): Promise<unknown> => call("/page/out", {});

export const mayWrite = (): boolean => (me.value?.right ?? "everything") === "everything";
/** The text that replaces a control which this device may not use. */
export const onlyWords = (): string => `This device may ${me.value?.right} only.`;
export const mayAnswer = (): boolean => (me.value?.right ?? "everything") !== "watch";
