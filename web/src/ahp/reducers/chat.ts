/** The chat channel's reducer: turns, streamed text, tool calls, pending messages, questions. Reads no clock. */

import {
  allRemoved, amend, assign, directoryRemoved, directorySet, ERROR, firstIndex, flagHandler, type Handler, IDLE,
  IN_PROGRESS, INPUT_NEEDED, IS_ARCHIVED, IS_READ, lastIndex, type Obj, put, reducer, replaced, upserted, withActivity, withFlag, without,
} from "./common.ts";
import { CHANGES, skipped, started, WAITING } from "./toolCalls.ts";

const activeTurn = (state: Obj, action: Obj): Obj | undefined =>
  state.activeTurn && state.activeTurn.id === action.turnId ? state.activeTurn : undefined;

const withParts = (state: Obj, responseParts: Obj[]): Obj => ({
  ...state,
  activeTurn: { ...state.activeTurn, responseParts },
});

const isWaiting = (part: Obj): boolean =>
  (part.kind === "toolCall" && WAITING.has(part.toolCall.status)) ||
  (part.kind === "inputRequest" && part.response == null);

/** The activity that follows from the active turn: waiting for someone, in progress, or idle. */
function withStatus(state: Obj): Obj {
  const parts: Obj[] | undefined = state.activeTurn?.responseParts;
  const activity = !parts ? IDLE : parts.some(isWaiting) ? INPUT_NEEDED : IN_PROGRESS;
  const status = withActivity(state.status, activity);
  return status === state.status ? state : { ...state, status };
}

const unread = (state: Obj): Obj => ({ ...state, status: withFlag(state.status, IS_READ, false) });

// Turns

const turnStarted: Handler = (state, action) => {
  const turn = { id: action.turnId, startedAt: action.startedAt, message: action.message, responseParts: [] };
  const before = action.queuedMessageId == null ? state : withoutPending(state, action.queuedMessageId);
  return unread(withStatus({ ...before, activeTurn: turn, modifiedAt: action.startedAt }));
};

/** The moment `duration` ms after `startedAt`, in UTC with milliseconds. */
function after(startedAt: string, duration: number): string {
  const start = Date.parse(startedAt);
  if (Number.isNaN(start) || !Number.isFinite(duration)) throw new TypeError("no time");
  return new Date(start + Math.trunc(duration)).toISOString();
}

const turnEnded =
  (outcome: string): Handler =>
  (state, action) => {
    const turn = activeTurn(state, action);
    if (!turn) return state;
    const duration = Math.max(0, action.duration);
    const parts = turn.responseParts.map((part: Obj) =>
      part.kind === "toolCall" ? { ...part, toolCall: skipped(part.toolCall) } : part,
    );
    if (outcome === "error" && action.part) parts.push(action.part);
    const ended = { ...turn, duration, responseParts: parts, state: outcome };
    const next = without({ ...state, turns: [...state.turns, ended] }, "activeTurn");
    const status = withActivity(state.status, outcome === "error" ? ERROR : IDLE);
    return { ...next, status, modifiedAt: after(turn.startedAt, duration) };
  };

const turnResume: Handler = (state, action) => {
  const turn: Obj | undefined = state.turns.at(-1);
  const last: Obj | undefined = turn?.responseParts.at(-1);
  const can = !state.activeTurn && turn?.id === action.turnId && turn?.state === "error";
  if (!can || last?.kind !== "error" || last.resumable !== true || !turn) return state;
  const active = { ...without(turn, "state", "duration"), startedAt: turn.startedAt ?? state.modifiedAt };
  return unread(withStatus({ ...state, turns: state.turns.slice(0, -1), activeTurn: active }));
};

const truncated: Handler = (state, action) => {
  let turns: Obj[] = [];
  if (action.turnId != null) {
    const index = firstIndex(state.turns, "id", action.turnId);
    if (index < 0) return state;
    turns = state.turns.slice(0, index + 1);
  }
  const gone = action.turnId == null ? ["activeTurn", "turnsNextCursor"] : ["activeTurn"];
  const next = without({ ...state, turns }, ...gone);
  return { ...next, status: withActivity(state.status, IDLE) };
};

const turnsLoaded: Handler = (state, action) => {
  const known = new Set(state.turns.map((turn: Obj) => turn.id));
  const older = action.turns.filter((turn: Obj) => !known.has(turn.id));
  return put({ ...state, turns: [...older, ...state.turns] }, "turnsNextCursor", action.turnsNextCursor);
};

const usage: Handler = (state, action) =>
  activeTurn(state, action) ? { ...state, activeTurn: { ...state.activeTurn, usage: action.usage } } : state;

// Response parts

const partAdded = (state: Obj, action: Obj, part: Obj): Obj => {
  const turn = activeTurn(state, action);
  return turn ? withParts(state, [...turn.responseParts, part]) : state;
};

/** Error parts come with the end of a turn, questions with `chat/inputRequested`. */
const responsePart: Handler = (state, action) =>
  action.part.kind === "error" ? state : partAdded(state, action, action.part);

const toolCallStart: Handler = (state, action) =>
  partAdded(state, action, { kind: "toolCall", toolCall: started(action) });

const textAppended =
  (kind: string): Handler =>
  (state, action) => {
    const turn = activeTurn(state, action);
    if (!turn || !action.content) return state;
    const index = lastIndex(turn.responseParts, "id", action.partId);
    const part = turn.responseParts[index];
    if (index < 0 || part.kind !== kind) return state;
    return withParts(state, replaced(turn.responseParts, index, { ...part, content: part.content + action.content }));
  };

const callChanged = (state: Obj, action: Obj): Obj => {
  const parts: Obj[] = activeTurn(state, action)?.responseParts ?? [];
  let index = parts.length - 1;
  while (index >= 0 && parts[index]?.toolCall?.toolCallId !== action.toolCallId) index -= 1;
  const part = parts[index];
  const change = CHANGES[action.type];
  if (!part || !change) return state;
  const next = change(part.toolCall, action);
  return next === part.toolCall ? state : withParts(state, replaced(parts, index, { ...part, toolCall: next }));
};

/** Every action except those that only make a call longer recomputes the activity, even when the action does not apply. */
const toolCallChanged: Handler = (state, action) => {
  const grows = action.type === "chat/toolCallDelta" || action.type === "chat/toolCallContentChanged";
  return grows ? callChanged(state, action) : withStatus(callChanged(state, action));
};

// Pending messages

const withoutSteering = (state: Obj, id: unknown): Obj =>
  state.steeringMessage?.id === id ? without(state, "steeringMessage") : state;

function withoutQueued(state: Obj, id: unknown): Obj {
  const queue: Obj[] = state.queuedMessages ?? [];
  const kept = allRemoved(queue, "id", id);
  return kept === queue ? state : put(state, "queuedMessages", kept.length ? kept : null);
}

const withoutPending = (state: Obj, id: unknown): Obj => {
  const after = withoutSteering(withoutQueued(state, id), id);
  return after.queuedMessages?.length ? after : without(after, "queuedMessages");
};

const pendingMessageSet: Handler = (state, action) => {
  const pending = { id: action.id, message: action.message };
  if (action.kind === "steering") return { ...state, steeringMessage: pending };
  return { ...state, queuedMessages: upserted(state.queuedMessages, pending, "id") };
};

const pendingMessageRemoved: Handler = (state, action) =>
  action.kind === "steering" ? withoutSteering(state, action.id) : withoutQueued(state, action.id);

/** Unknown ids are ignored; messages that are not named keep their order at the end. */
const queueReordered: Handler = (state, action) => {
  const queue: Obj[] = state.queuedMessages ?? [];
  const place = new Map<string, number>();
  action.order.forEach((id: string, index: number) => place.has(id) || place.set(id, index));
  const rank = (entry: Obj): number => place.get(entry.id) ?? place.size + action.order.length;
  const ordered = queue.slice().sort((a, b) => rank(a) - rank(b));
  return ordered.every((entry, index) => entry === queue[index]) ? state : { ...state, queuedMessages: ordered };
};

// Input requests

function openRequest(state: Obj, id: unknown): number {
  const parts: Obj[] = state.activeTurn?.responseParts ?? [];
  return parts.findIndex((part) => part.kind === "inputRequest" && part.request.id === id && part.response == null);
}

const inputRequested: Handler = (state, action) => {
  if (!state.activeTurn) return state;
  const parts: Obj[] = state.activeTurn.responseParts;
  const index = openRequest(state, action.request.id);
  const answers = action.request.answers ?? parts[index]?.request.answers;
  const part = { ...parts[index], kind: "inputRequest", request: put(action.request, "answers", answers) };
  return unread(withStatus(withParts(state, index < 0 ? [...parts, part] : replaced(parts, index, part))));
};

function withRequest(state: Obj, id: unknown, change: (part: Obj) => Obj): Obj {
  const index = openRequest(state, id);
  if (index < 0) return state;
  const parts: Obj[] = state.activeTurn.responseParts;
  return withParts(state, replaced(parts, index, change(parts[index] as Obj)));
}

const inputAnswerChanged: Handler = (state, action) =>
  withRequest(state, action.requestId, (part) => {
    const answers = put(part.request.answers ?? {}, action.questionId, action.answer);
    return { ...part, request: put(part.request, "answers", Object.keys(answers).length ? answers : null) };
  });

const inputCompleted: Handler = (state, action) => {
  const after = withRequest(state, action.requestId, (part) => {
    const answers = { ...part.request.answers, ...action.answers };
    const request = put(part.request, "answers", Object.keys(answers).length ? answers : null);
    return { ...part, request, response: action.response };
  });
  return after === state ? state : withStatus(after);
};

// Background work

const workRemoved: Handler = (state, action) => {
  const work: Obj[] = state.backgroundWork ?? [];
  const kept = allRemoved(work, "id", action.id);
  return kept === work ? state : put(state, "backgroundWork", kept.length ? kept : null);
};

export const chatReducer = reducer({
  "chat/turnStarted": turnStarted,
  "chat/turnComplete": turnEnded("complete"),
  "chat/turnCancelled": turnEnded("cancelled"),
  "chat/error": turnEnded("error"),
  "chat/turnResume": turnResume,
  "chat/truncated": truncated,
  "chat/turnsLoaded": turnsLoaded,
  "chat/usage": usage,
  "chat/responsePart": responsePart,
  "chat/delta": textAppended("markdown"),
  "chat/reasoning": textAppended("reasoning"),
  "chat/toolCallStart": toolCallStart,
  ...Object.fromEntries(Object.keys(CHANGES).map((type) => [type, toolCallChanged])),
  "chat/pendingMessageSet": pendingMessageSet,
  "chat/pendingMessageRemoved": pendingMessageRemoved,
  "chat/queuedMessagesReordered": queueReordered,
  "chat/inputRequested": inputRequested,
  "chat/inputAnswerChanged": inputAnswerChanged,
  "chat/inputCompleted": inputCompleted,
  "chat/draftChanged": assign("draft"),
  "chat/activityChanged": assign("activity"),
  "chat/workingDirectorySet": directorySet,
  "chat/workingDirectoryRemoved": directoryRemoved,
  "chat/isReadChanged": flagHandler(IS_READ, "isRead"),
  "chat/isArchivedChanged": flagHandler(IS_ARCHIVED, "isArchived"),
  "chat/movableChanged": (state, action) => amend(state, { movable: action.movable }),
  "chat/changesetsChanged": assign("changesets"),
  "chat/canvasesChanged": assign("canvases"),
  "chat/backgroundWorkSet": (state, action) => ({
    ...state,
    backgroundWork: upserted(state.backgroundWork, action.work, "id"),
  }),
  "chat/backgroundWorkRemoved": workRemoved,
});
