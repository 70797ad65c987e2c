/** The view that is open, written in the hash of the address: the back button works, and the server never sees it. */

import { signal } from "@preact/signals";

export type Panel = "changes" | "canvases" | "terminals" | "setup" | "timeline" | "usage";

export type Route =
  | { name: "inbox" | "sessions" | "new" | "usage" | "rules" | "devices" | "settings" }
  /** `turn` is the turn that the panel shows; without a panel, the chat scrolls to it. */
  | { name: "session"; session: string; chat: string | undefined; panel: Panel | undefined; turn: string | undefined };

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
    const asked = new URLSearchParams(query);
    const panel = asked.get("panel") ?? "";
    return { name: "session", session, chat: chat || undefined, panel: PANELS.has(panel) ? (panel as Panel) : undefined, turn: asked.get("turn") ?? undefined };
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

/** The address of a panel beside the chat; with `turn`, the panel shows that turn. */
export function panelUrl(at: Route & { name: "session" }, panel: Panel | undefined, turn?: string): string {
  const base = `#/s/${encodeURIComponent(at.session)}${at.chat ? `/${encodeURIComponent(at.chat)}` : ""}`;
  return panel ? `${base}?panel=${panel}${turn === undefined ? "" : `&turn=${encodeURIComponent(turn)}`}` : base;
}
