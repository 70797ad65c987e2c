/** The life cycle of a tool call: which action leads from which status to which, and what each status carries. */

import { amend, type Obj } from "./common.ts";

const PARAMETERS = ["invocationMessage", "toolInput"];
const CONFIRMATION = ["confirmationTitle", "riskAssessment", "edits", "editable", "options"];
const CONFIRMED = ["confirmed", "selectedOption"];
const RESULT = ["success", "pastTenseMessage", "content", "structuredContent", "error"];

const FIELDS: Record<string, string[]> = {
  streaming: ["partialInput", "invocationMessage"],
  "pending-confirmation": [...PARAMETERS, ...CONFIRMATION],
  running: [...PARAMETERS, ...CONFIRMED, "content"],
  "auth-required": [...PARAMETERS, ...CONFIRMED, "content", "auth"],
  "pending-result-confirmation": [...PARAMETERS, ...CONFIRMED, ...RESULT],
  completed: [...PARAMETERS, ...CONFIRMED, ...RESULT],
  cancelled: [...PARAMETERS, "reason", "reasonMessage", "userSuggestion", "selectedOption"],
};
const IDENTITY = ["toolCallId", "toolName", "displayName", "intention", "contributor", "_meta"];
const PASSING = new Set(Object.values(FIELDS).flat());

export const WAITING = new Set(["pending-confirmation", "pending-result-confirmation", "auth-required"]);

/** The call in its next status: `changes` are written, and members that this status does not have are removed. */
function entered(call: Obj, status: string, changes: Obj, meta: unknown): Obj {
  const kept: Obj = {};
  for (const [key, value] of Object.entries(call))
    if (!PASSING.has(key) || FIELDS[status]?.includes(key)) kept[key] = value;
  const after = amend(kept, changes);
  if (meta !== undefined && meta !== null) after._meta = meta;
  after.status = status;
  return after;
}

const pick = (from: Obj, keys: string[]): Obj => Object.fromEntries(keys.map((key) => [key, from[key]]));
const present = (from: Obj, keys: string[]): Obj =>
  Object.fromEntries(keys.filter((key) => from[key] !== undefined && from[key] !== null).map((key) => [key, from[key]]));

export function started(action: Obj): Obj {
  return { status: "streaming", ...present(action, IDENTITY) };
}

/** The members that a result writes: all that it has, known or not. */
function resultOf(action: Obj): Obj {
  const own = (key: string): boolean => key !== "status" && !IDENTITY.includes(key) && !PASSING.has(key);
  return { ...pick(action.result, RESULT), ...pick(action.result, Object.keys(action.result).filter(own)) };
}

/** Cancels a tool call that is still open when its turn ends. */
export function skipped(call: Obj): Obj {
  if (call.status === "completed" || call.status === "cancelled" || !FIELDS[call.status]) return call;
  const invocationMessage = call.invocationMessage ?? (call.status === "streaming" ? "" : null);
  const after = entered(call, "cancelled", { reason: "skipped", invocationMessage }, null);
  delete after.selectedOption;
  return after;
}

type Change = (call: Obj, action: Obj) => Obj;

const delta: Change = (call, action) => {
  if (call.status !== "streaming") return call;
  const changes: Obj = present(action, ["invocationMessage"]);
  if (typeof action.content === "string") changes.partialInput = (call.partialInput ?? "") + action.content;
  return entered(call, "streaming", changes, action._meta);
};

/** The client that runs the calls of a contributor; undefined when the host runs them. */
const owner = (contributor: Obj | undefined): unknown =>
  contributor?.kind === "client" ? contributor.clientId : undefined;

/** `intention` and a contributor may be refined; a client's call keeps its owner, and a call of the host never becomes a client's. */
function refined(call: Obj, action: Obj): Obj {
  const changes = present(action, ["intention"]);
  const next = action.contributor;
  if (next && owner(next) === owner(call.contributor)) changes.contributor = next;
  return changes;
}

const ready: Change = (call, action) => {
  const open = call.status === "streaming" || call.status === "running" || call.status === "pending-confirmation";
  if (!open) return call;
  const before = call.status === "streaming" ? undefined : call.toolInput;
  const shared = {
    ...refined(call, action),
    invocationMessage: action.invocationMessage,
    toolInput: action.toolInput ?? before,
  };
  if (action.confirmed !== undefined && action.confirmed !== null)
    return entered(call, "running", { ...shared, confirmed: action.confirmed, selectedOption: null, content: null }, action._meta);
  const asked = call.status === "pending-confirmation" ? present(action, CONFIRMATION) : pick(action, CONFIRMATION);
  return entered(call, "pending-confirmation", { ...shared, ...asked }, action._meta);
};

const confirmed: Change = (call, action) => {
  if (call.status !== "pending-confirmation") return call;
  const option = (call.options as Obj[] | undefined)?.find((each) => each.id === action.selectedOptionId);
  if (!action.approved) {
    const why = pick(action, ["reason", "reasonMessage", "userSuggestion"]);
    return entered(call, "cancelled", { ...why, selectedOption: option }, action._meta);
  }
  const isText = typeof call.toolInput === "string";
  const toolInput = isText ? (action.editedToolInput ?? call.toolInput) : call.toolInput;
  return entered(call, "running", { toolInput, confirmed: action.confirmed, selectedOption: option }, action._meta);
};

const complete: Change = (call, action) => {
  const result: Obj = action.result;
  if (call.status === "auth-required") {
    if (result.success) return call;
    const content = result.content ?? call.content;
    return entered(call, "completed", { ...resultOf(action), content }, action._meta);
  }
  if (call.status !== "running" && call.status !== "pending-confirmation") return call;
  const next = action.requiresResultConfirmation ? "pending-result-confirmation" : "completed";
  const confirmed = call.status === "running" ? call.confirmed : "not-needed";
  return entered(call, next, { ...resultOf(action), confirmed }, action._meta);
};

const resultConfirmed: Change = (call, action) => {
  if (call.status !== "pending-result-confirmation") return call;
  return action.approved
    ? entered(call, "completed", {}, action._meta)
    : entered(call, "cancelled", { reason: "result-denied" }, action._meta);
};

const contentChanged: Change = (call, action) =>
  call.status === "running" ? entered(call, "running", { content: action.content }, action._meta) : call;

const authRequired: Change = (call, action) =>
  call.status === "running" && call.contributor?.kind === "mcp"
    ? entered(call, "auth-required", { auth: action.auth }, action._meta)
    : call;

const authResolved: Change = (call, action) =>
  call.status === "auth-required" ? entered(call, "running", {}, action._meta) : call;

export const CHANGES: Record<string, Change> = {
  "chat/toolCallDelta": delta,
  "chat/toolCallReady": ready,
  "chat/toolCallConfirmed": confirmed,
  "chat/toolCallComplete": complete,
  "chat/toolCallResultConfirmed": resultConfirmed,
  "chat/toolCallContentChanged": contentChanged,
  "chat/toolCallAuthRequired": authRequired,
  "chat/toolCallAuthResolved": authResolved,
};
