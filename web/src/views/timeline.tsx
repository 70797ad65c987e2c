/** A turn on a line of time: what ran when, for how long, and when it waited for whom. Helpers included. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ActiveTurn, ChatState, ToolCall, Turn, Uri } from "../ahp/index.ts";
import { duration, failed, isOpen } from "../mirror/selectors.ts";
import { useChannel } from "../mirror/store.ts";
import { oneLine } from "../parts/toolcall.tsx";
import { useNow } from "../ui/bits.tsx";
import type { PanelProps } from "./session.tsx";

interface Times {
  startedAt?: number;
  endedAt?: number;
  /** Stretches in which the call waited for a person. */
  waits?: [number, number][];
}

/** Times the host wrote down; else those this page saw itself. */
function timesOf(call: ToolCall, seen: Map<string, Times>): Times {
  const told = call._meta?.["ahpkit/times"] as { startedAt?: string; endedAt?: string; waited?: [string, string][] } | undefined;
  if (told?.startedAt)
    return {
      startedAt: Date.parse(told.startedAt),
      ...(told.endedAt ? { endedAt: Date.parse(told.endedAt) } : {}),
      waits: (told.waited ?? []).map(([from, to]) => [Date.parse(from), Date.parse(to)]),
    };
  return seen.get(call.toolCallId) ?? {};
}

const memory = new Map<string, Times>();

/** Remember when calls were first seen, began to wait, and ended. */
export function observe(turn: ActiveTurn | undefined, at: number): void {
  for (const part of turn?.responseParts ?? []) {
    if (part.kind !== "toolCall") continue;
    const call = part.toolCall;
    const times = memory.get(call.toolCallId) ?? { startedAt: at, waits: [] };
    const waiting = call.status.startsWith("pending") || call.status === "auth-required";
    const last = times.waits?.at(-1);
    if (waiting && (!last || last[1] !== Number.POSITIVE_INFINITY)) times.waits?.push([at, Number.POSITIVE_INFINITY]);
    if (!waiting && last?.[1] === Number.POSITIVE_INFINITY) last[1] = at;
    if (!isOpen(call)) times.endedAt ??= at;
    memory.set(call.toolCallId, times);
  }
  if (memory.size > 2_000) memory.delete(memory.keys().next().value as string);
}

function Bar({ from, to, start, span, kind }: { from: number; to: number; start: number; span: number; kind: string }): JSX.Element {
  const left = Math.max(0, Math.min(100, ((from - start) / span) * 100));
  const width = Math.max(0.5, Math.min(100 - left, ((to - from) / span) * 100));
  return <span class={`tl-bar ${kind}`} style={{ left: `${left}%`, width: `${width}%` }} />;
}

function Rows({ turn, start, span, end, depth }: { turn: Turn | ActiveTurn; start: number; span: number; end: number; depth: number }): JSX.Element {
  return (
    <>
      {turn.responseParts.map((part, index) => {
        if (part.kind !== "toolCall") return null;
        const call = part.toolCall;
        const times = timesOf(call, memory);
        const from = times.startedAt ?? start;
        const to = times.endedAt ?? (isOpen(call) ? end : undefined);
        const waited = (times.waits ?? []).reduce((sum, [a, b]) => sum + (Math.min(b, end) - a), 0);
        const helper = call.content?.find((content) => content.type === "subagent");
        return (
          <div key={call.toolCallId || index}>
            <div class="tl-row" style={{ paddingInlineStart: `${depth * 12}px` }}>
              <span class="cut" title={oneLine(call)}>{oneLine(call)}</span>
              <span class="tl-track" role="img" aria-label={to === undefined ? "Time not known" : `${duration(to - from)}${waited > 500 ? `, ${duration(waited)} of it waiting for you` : ""}`}>
                {to !== undefined && <Bar from={from} to={to} start={start} span={span} kind={failed(call) || call.status === "cancelled" ? "bad" : ""} />}
                {(times.waits ?? []).map(([a, b]) => <Bar key={a} from={a} to={Math.min(b, end)} start={start} span={span} kind="waiting" />)}
              </span>
              <span class="muted">{to === undefined ? "–" : duration(to - from)}</span>
            </div>
            {helper?.type === "subagent" && depth < 3 && <HelperRows uri={helper.resource} start={start} span={span} end={end} depth={depth + 1} />}
          </div>
        );
      })}
    </>
  );
}

function HelperRows({ uri, ...rest }: { uri: Uri; start: number; span: number; end: number; depth: number }): JSX.Element | null {
  const chat = useChannel<ChatState>(uri, "chat").value.state;
  if (!chat) return null;
  observe(chat.activeTurn, Date.now());
  return <>{[...chat.turns, ...(chat.activeTurn ? [chat.activeTurn] : [])].map((turn) => <Rows key={turn.id} turn={turn} {...rest} />)}</>;
}

export default function Timeline({ chat }: PanelProps): JSX.Element {
  const running = chat?.activeTurn;
  const now = useNow(500, running !== undefined);
  const wanted = useRef(new URLSearchParams(location.hash.split("?")[1]).get("turn"));
  const [chosen, choose] = useState<string | undefined>(wanted.current ?? undefined);
  useEffect(() => observe(running, Date.now()), [running]);
  const turns: (Turn | ActiveTurn)[] = [...(chat?.turns ?? []).slice(-40), ...(running ? [running] : [])].reverse();
  const turn = turns.find((each) => each.id === chosen) ?? turns[0];
  if (!turn) return <p class="empty">Nothing has run yet.</p>;
  const start = Date.parse(turn.startedAt ?? "") || now;
  const end = "duration" in turn && turn.duration !== undefined ? start + turn.duration : now;
  const span = Math.max(1, end - start);
  const calls = turn.responseParts.filter((part) => part.kind === "toolCall");
  return (
    <div class="pane-body" tabIndex={0} role="region" aria-label="Timeline">
      <div class="side-body">
        <select aria-label="Which turn" value={turn.id} onChange={(event) => choose(event.currentTarget.value)}>
          {turns.map((each) => <option key={each.id} value={each.id}>{each.message.text.slice(0, 60) || "Turn"}</option>)}
        </select>
        <p class="small muted">{turn.startedAt ? `Began ${new Date(start).toLocaleTimeString()}` : ""} · took {duration(span)} · {calls.length} tool {calls.length === 1 ? "call" : "calls"}</p>
        <div class="timeline">
          <div class="tl-row"><span>Whole turn</span><span class="tl-track"><Bar from={start} to={end} start={start} span={span} kind="text" /></span><span class="muted">{duration(span)}</span></div>
          <Rows turn={turn} start={start} span={span} end={end} depth={0} />
        </div>
        <p class="legend"><span><i class="key-in" />running</span><span><i class="key-wait" />waiting for you</span><span><i class="key-bad" />failed or denied</span></p>
        <p class="small muted">A dash means that neither the host nor this page saw when the call began.</p>
      </div>
    </div>
  );
}
