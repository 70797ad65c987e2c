/** The state of the connection in one word, always visible. */

import type { JSX } from "preact";
import { lastHeard, link, offlineSince, refusal, retry } from "../mirror/store.ts";
import { useNow } from "../ui/bits.tsx";

const clock = (at: number): string => new Date(at).toLocaleTimeString([], { hour: "numeric", minute: "2-digit" });

export function LinkState(): JSX.Element {
  const status = link.value;
  const away = status === "offline" || status === "refused";
  const text = status === "live" ? "Live" : status === "catching-up" ? "Catching up" : status === "connecting" ? "Connecting" : status === "refused" ? "Refused" : !lastHeard() ? "Offline" : `Offline · last update ${clock(offlineSince.value ?? lastHeard())}`;
  return (
    <button type="button" class="link" data-status={status} title={refusal() ?? (away ? "Try again now" : "Connected to the host")} onClick={() => away && retry()}>
      <span class="dot" aria-hidden="true" /><span role="status" aria-live="polite">{text}</span>
    </button>
  );
}

/** Shown in place of data that is missing without the host. */
export const Away = (): JSX.Element => (
  <div class="empty">
    <p>The host cannot be reached. This page connects by itself as soon as it can.</p>
    <button type="button" class="btn" onClick={retry}>Try now</button>
  </div>
);

/** The page is dimmed after ten seconds without the host, because what it shows may be out of date. */
export function useStale(): boolean {
  const since = offlineSince.value;
  const at = useNow(1000, since !== undefined);
  return since !== undefined && link.value !== "live" && at - since > 10_000;
}
