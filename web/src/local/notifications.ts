/** Browser notifications and the count in the title. They are held back only while the page is visible, and none of them approves anything. */

import { computed, effect, signal } from "@preact/signals";
import { inbox, type InboxItem } from "../mirror/inbox.ts";
import { notifyMe } from "./settings.ts";

export type Possible = "ask" | "allowed" | "blocked" | "insecure" | "unsupported";

const permission = signal(typeof Notification === "undefined" ? "unsupported" : Notification.permission);

/** Whether notifications can work here, and if not, why. */
export const possible = computed<Possible>(() => {
  if (permission.value === "unsupported") return window.isSecureContext ? "unsupported" : "insecure";
  if (!window.isSecureContext) return "insecure";
  if (permission.value === "denied") return "blocked";
  return permission.value === "granted" ? "allowed" : "ask";
});

export const WHY: Record<Possible, string> = {
  ask: "The browser has not been asked yet.",
  allowed: "Notifications are allowed in this browser.",
  blocked: "This browser blocks notifications from this page. Allow them in the site's settings, then come back.",
  insecure: "Browsers show notifications only on localhost or over HTTPS.",
  unsupported: "This browser has no notifications. On an iPhone, add the page to the home screen first.",
};

/** Ask for permission. Call it from a button: browsers ignore it elsewhere. */
export async function ask(): Promise<void> {
  permission.value = await Notification.requestPermission();
  notifyMe.value = permission.value === "granted";
}

async function show(title: string, body: string, tag: string, url: string): Promise<void> {
  const options = { body, tag, icon: "/icon.svg", data: { url } };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker) await worker.showNotification(title, options);
  else new Notification(title, options).onclick = () => {
    window.focus();
    location.hash = url;
  };
}

export const test = (): Promise<void> => show("ahpkit", "Notifications work.", "test", "#/");

async function closeTag(tag: string): Promise<void> {
  const worker = await navigator.serviceWorker?.getRegistration();
  for (const each of (await worker?.getNotifications({ tag })) ?? []) each.close();
}

/** The requests that are known already, each with whether the page was hidden when it came. */
const told = new Map<string, boolean>();
let primed = false;

/** Announce each new request once, in words. Requests that were there when the page was opened are not announced. */
function tell(items: InboxItem[]): void {
  const here = new Set(items.map((item) => item.key));
  for (const item of items) {
    if (told.has(item.key)) continue;
    // The details of a session's request may become known a moment later. What counts is when the request first appeared.
    const unseen = told.get(item.session) ?? document.hidden;
    told.set(item.key, unseen);
    if (primed && notifyMe.value && possible.value === "allowed" && unseen && document.hidden && !item.reading)
      void show(item.title, item.what, item.session, item.url);
  }
  for (const key of told.keys()) if (!here.has(key)) told.delete(key);
  primed = true;
}

export function startNotifications(): void {
  effect(() => {
    const items = inbox.value;
    const count = items.length;
    document.title = count ? `(${count}) ◆ ahpkit` : "ahpkit";
    const badge = navigator as Navigator & { setAppBadge?(count: number): Promise<void>; clearAppBadge?(): Promise<void> };
    void (count ? badge.setAppBadge?.(count) : badge.clearAppBadge?.())?.catch(() => undefined);
    tell(items);
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) for (const item of inbox.value) void closeTag(item.session);
  });
}

/** A long turn has ended: notify if the page is hidden. */
export function tellFinished(session: string, title: string, took: number, url: string): void {
  if (took > 30_000 && notifyMe.value && possible.value === "allowed" && document.hidden)
    void show(title, "The answer is complete.", session, url);
}
