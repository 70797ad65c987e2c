/** A turn as a timeline: its calls with their times, and when they waited for a person. Helpers are included. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ActiveTurn, ChatState, SessionState, ToolCall, Turn, Uri } from "../ahp/index.ts";
import { duration, failed, helpersOf, isOpen, toChoose } from "../mirror/selectors.ts";
import { request, useChannel } from "../mirror/store.ts";
import { oneLine } from "../parts/toolcall.tsx";
import { useNow } from "../ui/bits.tsx";
import type { PanelProps } from "./session.tsx";

/** Milliseconds; `waited` are the periods in which the call waited for a person; the last one may not have ended. */
export interface Times {
  startedAt: number;
  endedAt?: number;
  waited?: [number, number | null][];
}

type AnyTurn = Turn | ActiveTurn;

const callsOf = (turn: AnyTurn): ToolCall[] => turn.responseParts.flatMap((part) => (part.kind === "toolCall" ? [part.toolCall] : []));

/** The times that the host recorded. They are requested again whenever a call changes its state. */
function useTimes(chat: Uri, turn: AnyTurn): Record<string, Times> {
  const [times, set] = useState<Record<string, Times>>({});
  const states = callsOf(turn).map((call) => `${call.toolCallId} ${call.status}`).join();
  useEffect(() => {
    let here = true;
    request<{ calls: Record<string, Times> }>("_ahpkit/turns/times", { channel: chat, turnId: turn.id }).then((answer) => here && set(answer.calls), () => undefined);
    return () => {
      here = false;
    };
  }, [chat, turn.id, states]);
  return times;
}

function Bar({ from, to, start, span, kind }: { from: number; to: number; start: number; span: number; kind: string }): JSX.Element {
  const left = Math.max(0, Math.min(100, ((from - start) / span) * 100));
  const width = Math.max(0.5, Math.min(100 - left, ((to - from) / span) * 100));
  return <span class={`tl-bar ${kind}`} style={{ left: `${left}%`, width: `${width}%` }} />;
}

interface Scale {
  start: number;
  span: number;
  end: number;
  depth: number;
}

/** How long a call waited for a person until `end`. */
export const waitedFor = (times: Times, end: number): number => (times.waited ?? []).reduce((sum, [from, to]) => sum + ((to ?? end) - from), 0);

function Row({ call, times, start, span, end, depth }: { call: ToolCall; times: Times | undefined } & Scale): JSX.Element {
  const to = times && (times.endedAt ?? (isOpen(call) ? end : times.startedAt));
  const waited = times ? waitedFor(times, end) : 0;
  const bad = failed(call) || call.status === "cancelled";
  return (
    <div class="tl-row" style={{ paddingInlineStart: `${depth * 12}px` }}>
      <span class="cut" title={oneLine(call)}>{oneLine(call)}</span>
      <span class="tl-track" role="img" aria-label={!times || to === undefined ? "Time not known" : `${duration(to - times.startedAt)}${waited > 500 ? `, ${duration(waited)} of it waiting for you` : ""}`}>
        {times && to !== undefined && <Bar from={times.startedAt} to={to} start={start} span={span} kind={bad ? "bad" : ""} />}
        {(times?.waited ?? []).map(([from, until]) => <Bar key={from} from={from} to={until ?? end} start={start} span={span} kind="waiting" />)}
      </span>
      <span class="muted">{!times || to === undefined ? "–" : duration(to - times.startedAt)}</span>
    </div>
  );
}

function Rows({ chat, turn, session, ...scale }: { chat: Uri; turn: AnyTurn; session: SessionState } & Scale): JSX.Element {
  const times = useTimes(chat, turn);
  return (
    <>
      {callsOf(turn).map((call) => {
        const helpers = scale.depth < 3 ? helpersOf(call, chat, session) : [];
        return (
          <div key={call.toolCallId}>
            <Row call={call} times={times[call.toolCallId]} {...scale} />
            {helpers.map(({ resource }) => <HelperRows key={resource} uri={resource} session={session} {...scale} depth={scale.depth + 1} />)}
          </div>
        );
      })}
    </>
  );
}

function HelperRows({ uri, session, ...scale }: { uri: Uri; session: SessionState } & Scale): JSX.Element | null {
  const chat = useChannel<ChatState>(uri, "chat").value.state;
  if (!chat) return null;
  return <>{[...chat.turns, ...(chat.activeTurn ? [chat.activeTurn] : [])].map((turn) => <Rows key={turn.id} chat={uri} turn={turn} session={session} {...scale} />)}</>;
}

export default function Timeline({ session, chat, at }: PanelProps): JSX.Element {
  const running = chat?.activeTurn;
  const now = useNow(500, running !== undefined);
  const [chosen, choose] = useState<string | undefined>(at.turn);
  useEffect(() => choose(at.turn), [at.turn]);
  const turns: AnyTurn[] = [...(running ? [running] : []), ...toChoose(chat?.turns, at.turn)];
  const turn = turns.find((each) => each.id === chosen) ?? turns[0];
  if (!chat || !turn) return <p class="empty">Nothing has run yet.</p>;
  const start = Date.parse(turn.startedAt ?? "") || now;
  const end = "duration" in turn && turn.duration !== undefined ? start + turn.duration : now;
  const span = Math.max(1, end - start);
  const calls = callsOf(turn);
  return (
    <div class="pane-body" tabIndex={0} role="region" aria-label="Timeline">
      <div class="side-body">
        <select aria-label="Which turn" value={turn.id} onChange={(event) => choose(event.currentTarget.value)}>
          {turns.map((each) => <option key={each.id} value={each.id}>{each.message.text.slice(0, 60) || "Turn"}</option>)}
        </select>
        <p class="small muted">{turn.startedAt ? `Began ${new Date(start).toLocaleTimeString()} · ` : ""}{turn === running ? "runs for" : "took"} {duration(span)} · {calls.length} tool {calls.length === 1 ? "call" : "calls"}</p>
        <div class="timeline">
          <div class="tl-row"><span>Whole turn</span><span class="tl-track"><Bar from={start} to={end} start={start} span={span} kind="text" /></span><span class="muted">{duration(span)}</span></div>
          <Rows key={turn.id} chat={chat.resource} turn={turn} session={session} start={start} span={span} end={end} depth={0} />
        </div>
        <p class="legend"><span><i class="key-in" />running</span><span><i class="key-wait" />waiting for you</span><span><i class="key-bad" />failed or denied</span></p>
      </div>
    </div>
  );
}
