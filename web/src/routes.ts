/** Where the person is, as a hash: real history entries, and nothing of it reaches the server. */

import { signal } from "@preact/signals";

export type Panel = "changes" | "canvases" | "terminals" | "setup" | "timeline" | "usage";

export type Route =
  | { name: "inbox" | "sessions" | "new" | "usage" | "rules" | "devices" | "settings" }
  | { name: "session"; session: string; chat: string | undefined; panel: Panel | undefined };

const PLAIN = new Set(["sessions", "new", "usage", "rules", "devices", "settings"]);
const PANELS = new Set(["changes", "canvases", "terminals", "setup", "timeline", "usage"]);

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [first = "", session, chat] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  if (first === "s" && session) {
    const panel = new URLSearchParams(query).get("panel") ?? "";
    return { name: "session", session, chat: chat || undefined, panel: PANELS.has(panel) ? (panel as Panel) : undefined };
  }
  return { name: PLAIN.has(first) ? (first as "new") : "inbox" };
}

export const route = signal<Route>(parse(location.hash));
window.addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

export function go(hash: string): void {
  location.hash = hash;
}

export function panelUrl(at: Route & { name: "session" }, panel: Panel | undefined): string {
  const base = `#/s/${encodeURIComponent(at.session)}${at.chat ? `/${encodeURIComponent(at.chat)}` : ""}`;
  return panel ? `${base}?panel=${panel}` : base;
}
