/** The page: three panes, the layers above them, and the keys that work everywhere. */

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { entry, mayWrite } from "./local/me.ts";
import { sideWidth } from "./local/settings.ts";
import { inbox } from "./mirror/inbox.ts";
import { link, notice, refusal, retry } from "./mirror/store.ts";
import { type Route, route } from "./routes.ts";
import { Announcer, Boundary, Confirm, Icon, Toasts } from "./ui/bits.tsx";
import { InboxView } from "./views/inbox.tsx";
import { LinkState, useStale } from "./views/link.tsx";
import { Help, help, nextPending, Palette, palette } from "./views/palette.tsx";
import { SessionsPane } from "./views/sessions.tsx";

const LATER: Record<string, () => Promise<{ default: ComponentType }>> = {
  new: () => import("./views/new.tsx"),
  usage: () => import("./views/usage.tsx"),
  rules: () => import("./views/rules.tsx"),
  devices: () => import("./views/devices.tsx"),
  settings: () => import("./views/settings.tsx"),
  entry: () => import("./views/entry.tsx"),
};

/** A view whose code is loaded when it is first shown. */
function Later({ name }: { name: string }): JSX.Element {
  const [View, set] = useState<ComponentType | undefined>(undefined);
  useEffect(() => {
    let here = true;
    set(undefined);
    void LATER[name]?.().then((module) => here && set(() => module.default), () => undefined);
    return () => {
      here = false;
    };
  }, [name]);
  return View ? <View /> : <p class="empty">Loading…</p>;
}

type SessionModule = typeof import("./views/session.tsx");
let sessionModule: SessionModule | undefined;

function InSession({ view, at }: { view: "SessionView" | "SidePane"; at: Route & { name: "session" } }): JSX.Element {
  const [module, set] = useState(sessionModule);
  useEffect(() => {
    if (!module)
      void import("./views/session.tsx").then((loaded) => {
        sessionModule = loaded;
        set(loaded);
      });
  }, []);
  const View = module?.[view];
  return View ? <View at={at} /> : <p class="empty">Loading…</p>;
}

const REGIONS = ["region-sessions", "region-main", "region-side"];

function nextRegion(back: boolean): void {
  const here = REGIONS.map((id) => document.getElementById(id)).filter((each): each is HTMLElement => each !== null && each.offsetParent !== null);
  const at = here.findIndex((each) => each.contains(document.activeElement));
  const next = here[(at + (back ? -1 : 1) + here.length) % here.length];
  next?.classList.add("reached"); // Only a person who uses the keyboard needs to see the focus.
  next?.addEventListener("blur", () => next.classList.remove("reached"), { once: true });
  next?.focus();
}

function useKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.isComposing) return;
      const control = (event.ctrlKey || event.metaKey) && !event.altKey;
      if (control && event.key.toLowerCase() === "k") {
        event.preventDefault();
        palette.value = !palette.value;
      } else if (control && event.key === "/") {
        event.preventDefault();
        help.value = !help.value;
      } else if (event.key === "F8") {
        event.preventDefault();
        nextPending();
      } else if (event.key === "F6") {
        event.preventDefault();
        nextRegion(event.shiftKey);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

/** The keyboard of a phone must not cover the composer. */
function useViewport(): void {
  useEffect(() => {
    const view = visualViewport;
    if (!view) return undefined;
    const fit = (): void => {
      const covered = view.scale === 1 && innerHeight - view.height > 120;
      if (covered) document.documentElement.style.setProperty("--viewport", `${view.height}px`);
      else document.documentElement.style.removeProperty("--viewport");
    };
    view.addEventListener("resize", fit);
    return () => view.removeEventListener("resize", fit);
  }, []);
}

function Main(): JSX.Element {
  const at = route.value;
  if (at.name === "session") return <InSession key={at.session} view="SessionView" at={at} />;
  if (at.name === "inbox" || at.name === "sessions") return <InboxView />;
  return <Later name={at.name} />;
}

function Notices(): JSX.Element | null {
  if (link.value === "refused")
    return <div class="note danger row wrap" role="alert"><span class="grow break">{refusal()}</span><button type="button" class="btn" onClick={retry}>Try again</button></div>;
  if (!notice.value) return link.value === "live" ? null : <div class="note phone-only"><LinkState /></div>;
  return (
    <div class="note row wrap" role="status"><span class="grow">{notice.value}</span>
      <button type="button" class="btn" onClick={() => location.reload()}>Reload</button>
      <button type="button" class="btn quiet" onClick={() => (notice.value = undefined)}>Dismiss</button>
    </div>
  );
}

export function App(): JSX.Element | null {
  useKeys();
  useViewport();
  const stale = useStale();
  const at = route.value;
  if (entry.value === "checking") return null;
  if (entry.value !== "in") return <Later name="entry" />;
  const side = at.name === "session" && at.panel ? at : undefined;
  const count = inbox.value.length;
  return (
    <div class={`app${stale ? " stale" : ""}`} data-route={at.name} data-pane={at.name === "sessions" ? "sessions" : "main"} data-side={side ? "open" : "closed"} style={{ "--side": `${sideWidth.value}px` }}>
      <SessionsPane />
      <main class="pane" id="region-main" tabIndex={-1}>
        <Notices />
        <Boundary of={at}><Main /></Boundary>
      </main>
      {side && <InSession view="SidePane" at={side} />}
      <nav class="tabbar" aria-label="Pages">
        <a href="#/" aria-current={at.name === "inbox" ? "page" : undefined}><Icon name="inbox" />Inbox{count ? ` (${count})` : ""}</a>
        <a href="#/sessions" aria-current={at.name === "sessions" ? "page" : undefined}><Icon name="list" />Sessions</a>
        {mayWrite() && <a href="#/new" aria-current={at.name === "new" ? "page" : undefined}><Icon name="plus" />New</a>}
      </nav>
      <Palette />
      <Help />
      <Confirm />
      <Toasts />
      <Announcer />
    </div>
  );
}
