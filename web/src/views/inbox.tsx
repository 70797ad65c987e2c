/** The inbox, the first view: everything that waits for a person, answerable there. */

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { mayWrite } from "../local/me.ts";
import { ask, possible } from "../local/notifications.ts";
import { notifyMe } from "../local/settings.ts";
import { inbox, type InboxItem } from "../mirror/inbox.ts";
import { activity, isArchived } from "../mirror/selectors.ts";
import { link, sessions, sessionsLoaded } from "../mirror/store.ts";
import { Boundary, Icon, useNow } from "../ui/bits.tsx";
import { Away, LinkState } from "./link.tsx";

type ItemView = ComponentType<{ item: InboxItem; at: number; alone: boolean }>;

export function InboxView(): JSX.Element {
  const at = useNow(30_000);
  const items = inbox.value;
  const [Item, set] = useState<ItemView | undefined>(undefined);
  const some = items.length > 0;
  useEffect(() => {
    if (some) void import("./inbox-item.tsx").then((module) => set(() => module.default));
  }, [some]);
  const running = [...sessions.value.values()].filter((summary) => activity(summary.status) === "running" && !isArchived(summary.status)).length;
  return (
    <div class="pane-body">
      <div class="page">
        <div class="row"><h1 class="grow">{items.length ? `${items.length} ${items.length === 1 ? "thing waits" : "things wait"} for you` : "Inbox"}</h1>{link.value === "live" && <span class="phone-only"><LinkState /></span>}</div>
        {possible.value === "ask" && !notifyMe.value && sessions.value.size > 0 && (
          <div class="note row wrap"><span class="grow">Know at once when an agent needs you.</span><button type="button" class="btn" onClick={() => void ask()}>Turn on notifications</button></div>
        )}
        {Item && items.map((item) => <Boundary key={item.key} of={item.request}><Item item={item} at={at} alone={items.length === 1} /></Boundary>)}
        {!sessionsLoaded.value && link.value === "offline" && <Away />}
        {!items.length && sessionsLoaded.value && (
          <div class="empty">
            <Icon name="inbox" />
            <p class="big">Nothing waits for you.{running ? ` ${running} ${running === 1 ? "session is" : "sessions are"} running.` : ""}</p>
            {!sessions.value.size && <p class="small" style={{ maxWidth: "28rem" }}>An agent works in a session. Whatever it asks you, an approval or a question, appears here, whichever session it comes from.</p>}
            {mayWrite() && <a class="btn primary" href="#/new">New session</a>}
          </div>
        )}
      </div>
    </div>
  );
}
