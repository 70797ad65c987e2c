/** Starts the page: asks who this browser is, connects, shows the views, and installs the worker for offline use. */

import { effect } from "@preact/signals";
import { render } from "preact";
import { App } from "./app.tsx";
import { arrive, entry, stillKnown } from "./local/me.ts";
import { startOutbox } from "./local/outbox.ts";
import { startNotifications } from "./local/notifications.ts";
import { startInbox } from "./mirror/inbox.ts";
import { losses, notice, start } from "./mirror/store.ts";
import { keepKeyboard } from "./ui/bits.tsx";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/chat.css";

render(<App />, document.getElementById("app") as HTMLElement);
void arrive();
keepKeyboard();

let started = false;
effect(() => {
  if (entry.value !== "in" || started) return;
  started = true;
  start("ahpkit page");
  startInbox();
  void startOutbox();
  startNotifications();
});

// Ask after each failed attempt, because a host that was down can answer only when it is back.
effect(() => {
  if (losses.value > 0) void stillKnown();
});

// A host with a new version no longer has the files that a page opened before still loads.
addEventListener("vite:preloadError", () => {
  notice.value = "A part of the page could not be loaded. The host may be away, or have a new version: reload.";
});

if ("serviceWorker" in navigator && window.isSecureContext) void navigator.serviceWorker.register("/sw.js").catch(() => undefined);

// Pressing a notification shows its card, and never answers anything.
navigator.serviceWorker?.addEventListener("message", (event: MessageEvent<{ go?: string }>) => {
  if (typeof event.data?.go === "string" && event.data.go.startsWith("#/")) location.hash = event.data.go;
});
