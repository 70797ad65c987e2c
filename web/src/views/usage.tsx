/** Usage and cost of everything: by day, by agent, by session. Read from the newest sessions, one after the other. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ChatState, SessionSummary, Turn } from "../ahp/index.ts";
import { sessionUrl } from "../mirror/inbox.ts";
import { price, titleOf, tokens, total } from "../mirror/selectors.ts";
import { agentName, firstSeen, link, sessions, sessionsLoaded } from "../mirror/store.ts";
import { Away } from "./link.tsx";
import { Bars } from "./plots.tsx";
import { Sum } from "./session-usage.tsx";

const SESSIONS = 100;
/** Milliseconds to wait for one chat; a chat that takes longer is left out. */
const PATIENCE = 2_000;

interface Used {
  summary: SessionSummary;
  turns: Turn[];
}

async function turnsOf(summary: SessionSummary): Promise<Turn[]> {
  const chats = summary.chats?.map((chat) => chat.resource) ?? (summary.defaultChat ? [summary.defaultChat] : []);
  const found: Turn[] = [];
  for (const uri of chats.slice(0, 10)) {
    found.push(...((await firstSeen(uri, "chat", (state: ChatState) => state.turns, PATIENCE)) ?? []).filter((turn) => turn.usage));
  }
  return found;
}

function grouped(used: Used[], key: (turn: Turn, summary: SessionSummary) => string): [string, Turn[]][] {
  const found = new Map<string, Turn[]>();
  for (const { summary, turns } of used) for (const turn of turns) found.set(key(turn, summary), [...(found.get(key(turn, summary)) ?? []), turn]);
  return [...found];
}

const bar = ([label, turns]: [string, Turn[]]): { label: string; input: number; output: number; title: string } => {
  const sum = total(turns);
  return { label, input: sum.input, output: sum.output, title: `${label}: ${tokens(sum.input)} in, ${tokens(sum.output)} out${price(sum) ? `, ${price(sum)}` : ""}` };
};

/** The day on which a turn began, in the reader's time zone: "2026-11-16". */
const dayOf = (turn: Turn): string => (Number.isNaN(Date.parse(turn.startedAt ?? "")) ? "earlier" : new Date(turn.startedAt as string).toLocaleDateString("sv"));

/** "16 Nov", in the reader's language. */
const dayWords = (day: string): string => (Number.isNaN(Date.parse(day)) ? day : new Date(`${day}T12:00`).toLocaleDateString(undefined, { day: "numeric", month: "short" }));

export default function UsageView(): JSX.Element {
  const [used, set] = useState<Used[]>([]);
  const [done, finish] = useState(false);
  const loaded = sessionsLoaded.value;
  useEffect(() => {
    if (!loaded) return undefined;
    let here = true;
    const collect = async (): Promise<void> => {
      const newest = [...sessions.peek().values()].sort((a, b) => (a.modifiedAt < b.modifiedAt ? 1 : -1)).slice(0, SESSIONS);
      for (const summary of newest) {
        const turns = await turnsOf(summary);
        if (!here) return;
        if (turns.length) set((before) => [...before, { summary, turns }]);
      }
      finish(true);
    };
    void collect();
    return () => {
      here = false;
    };
  }, [loaded]);
  const days = grouped(used, dayOf).sort(([a], [b]) => (a < b ? -1 : 1)).slice(-30);
  const agents = grouped(used, (_, summary) => agentName(summary.provider));
  const bySession = used.map(({ summary, turns }) => ({ summary, sum: total(turns) })).sort((a, b) => b.sum.input + b.sum.output - a.sum.input - a.sum.output).slice(0, 20);
  return (
    <div class="pane-body">
      <div class="page">
        <h1>Usage</h1>
        {!loaded && link.value === "offline" ? <Away /> : !used.length ? <p class="empty">{done ? "No agent has reported any usage yet." : "Adding up…"}</p> : (
          <>
            <Sum sum={total(used.flatMap((each) => each.turns))} />
            <h2>By day</h2><Bars label="Tokens by day" bars={days.map(([day, turns]) => bar([dayWords(day), turns]))} />
            <h2>By agent</h2><Bars label="Tokens by agent" bars={agents.map(bar)} />
            <h2>By session</h2>
            <table class="table-wide"><thead><tr><th>Session</th><th class="num">Input</th><th class="num">Output</th><th class="num">Cost</th></tr></thead>
              <tbody>{bySession.map(({ summary, sum }) => <tr key={summary.resource}><td><a href={sessionUrl(summary.resource)}>{titleOf(summary)}</a></td><td class="num">{tokens(sum.input)}</td><td class="num">{tokens(sum.output)}</td><td class="num">{price(sum) || "–"}</td></tr>)}</tbody>
            </table>
            <p class="small muted">Counted from the newest {Math.min(SESSIONS, sessions.value.size)} sessions and the last turns of each{done ? "" : "; still counting"}.</p>
          </>
        )}
      </div>
    </div>
  );
}
