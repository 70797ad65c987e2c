/** What one session used: per turn as bars, and the sum. */

import type { JSX } from "preact";
import { price, tokens, total, type Totals } from "../mirror/selectors.ts";
import { Bars } from "./plots.tsx";
import type { PanelProps } from "./session.tsx";

export function Sum({ sum }: { sum: Totals }): JSX.Element {
  return (
    <>
      <dl class="stats">
        <div class="stat"><dt>Tokens in</dt><dd>{tokens(sum.input)} {sum.cached > 0 && <span class="small">{tokens(sum.cached)} cached</span>}</dd></div>
        <div class="stat"><dt>Tokens out</dt><dd>{tokens(sum.output)}</dd></div>
        <div class="stat"><dt>Cost</dt><dd>{price(sum) || <span class="small">not known</span>}</dd></div>
        <div class="stat"><dt>Turns</dt><dd>{sum.turns}</dd></div>
      </dl>
      {sum.unpriced > 0 && sum.costs.size > 0 && <p class="small muted">{sum.unpriced} of {sum.turns} {sum.turns === 1 ? "turn" : "turns"} {sum.unpriced === 1 ? "has" : "have"} no known price, so the sum is at least this.</p>}
    </>
  );
}

export default function SessionUsage({ chat }: PanelProps): JSX.Element {
  const turns = [...(chat?.turns ?? []), ...(chat?.activeTurn ? [chat.activeTurn] : [])].filter((turn) => turn.usage);
  const bars = turns.slice(-40).map((turn, index) => {
    const sum = total([turn]);
    return { label: String(index + 1), input: sum.input, output: sum.output, title: `${turn.message.text.slice(0, 40)}: ${tokens(sum.input)} in, ${tokens(sum.output)} out${price(sum) ? `, ${price(sum)}` : ""}` };
  });
  return (
    <div class="pane-body" tabIndex={0} role="region" aria-label="Usage">
      <div class="side-body">
        {turns.length ? <><h2>This chat</h2><Sum sum={total(turns)} /><h2>Per turn</h2><Bars bars={bars} label="Tokens per turn" />{chat?.turnsNextCursor && <p class="small muted">Earlier turns are not loaded and not counted.</p>}</> : <p class="empty">This agent has not reported any usage.</p>}
      </div>
    </div>
  );
}
