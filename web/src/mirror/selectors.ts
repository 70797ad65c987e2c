/** Values for views, computed from states. Pure: the time is passed in. */

import {
  type ActiveTurn, type ChatState, type Customization, ERROR, IN_PROGRESS, INPUT_NEEDED, type InputNeeded, IS_ARCHIVED, IS_READ,
  type SessionState, type SessionSummary, type StringOrMarkdown, type ToolCall, type Turn, type Uri,
} from "../ahp/index.ts";

export type Activity = "needs" | "failed" | "running" | "done";

export function activity(status: number): Activity {
  if ((status & INPUT_NEEDED) === INPUT_NEEDED) return "needs";
  if (status & ERROR) return "failed";
  return status & IN_PROGRESS ? "running" : "done";
}

export const WORDS: Record<Activity, string> = {
  needs: "Needs you",
  failed: "Failed",
  running: "Running",
  done: "Done",
};

export const isRead = (status: number): boolean => (status & IS_READ) !== 0;
export const isArchived = (status: number): boolean => (status & IS_ARCHIVED) !== 0;

/** Markdown marks around words. An underscore inside a word is not a mark: `my_file.py` does not change. */
const AROUND = /`+|\*{1,3}(?=\S)|(?<=\S)\*{1,3}|(?<![\p{L}\p{N}_])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![\p{L}\p{N}_])/gu;

/** Text of a string-or-markdown value, without Markdown marks: for titles and announcements. A plain string is not changed. */
export function plain(value: StringOrMarkdown | undefined): string {
  if (typeof value === "string") return value;
  return typeof value?.markdown === "string" ? value.markdown.replace(AROUND, "") : "";
}

/** The most characters of a name, or of a text in one line. */
const NAME = 500;
export const inShort = (text: string): string => (text.length > NAME ? `${text.slice(0, NAME)}…` : text);

export const pathOf = (uri: Uri): string => {
  if (!uri.startsWith("file:")) return uri;
  try {
    return decodeURIComponent(new URL(uri).pathname);
  } catch {
    return uri;
  }
};
/** A path as a URI; a URI stays one. */
export const toUri = (path: string): Uri => (/^[a-z][\w+.-]*:/i.test(path) ? path : `file://${path.split("/").map(encodeURIComponent).join("/")}`);

const foldersOf = (uri: Uri): string[] => pathOf(uri).split("/").filter(Boolean);
export const nameOf = (uri: Uri): string => foldersOf(uri).at(-1) ?? uri;

/** The folders above a directory that distinguish it from others with the same name; empty if its name is unique. */
export function placeOf(directory: Uri, others: Uri[]): string {
  const own = foldersOf(directory);
  const twins = others.filter((other) => other !== directory && nameOf(other) === nameOf(directory)).map(foldersOf);
  for (let depth = 1; twins.length && depth < own.length; depth += 1) {
    const above = (folders: string[]): string => folders.slice(-1 - depth, -1).join("/");
    if (twins.every((folders) => above(folders) !== above(own))) return above(own);
  }
  return twins.length ? pathOf(directory) : "";
}

export const directoryOf = (summary: SessionSummary): string => summary.workingDirectories?.[0] ?? "";

/** How long ago, in a few letters. */
export function age(iso: string, at: number): string {
  const seconds = Math.max(0, (at - Date.parse(iso)) / 1000);
  if (Number.isNaN(seconds)) return "";
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return seconds < 86_400 * 30 ? `${Math.floor(seconds / 86_400)}d` : new Date(iso).toLocaleDateString();
}

/** The same inside a sentence: "last seen 5m ago". */
export function ago(iso: string, at: number): string {
  const short = age(iso, at);
  return /^\d+[mhd]$/.test(short) ? `${short} ago` : short;
}

/** A time in milliseconds for people. Rounded down everywhere, so that it never says "60 s". */
export function duration(time: number): string {
  const ms = Math.max(0, Math.floor(time));
  if (ms < 1000) return `${ms} ms`;
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long something has been running; empty in the first second, because it would change too fast to read. */
export const elapsed = (time: number): string => (time >= 1000 ? duration(time) : "");

/** The turns that a panel offers, the newest first: the last ones, and the one that was asked for, however old. */
export const toChoose = (turns: Turn[] = [], asked: string | undefined): Turn[] =>
  turns.filter((turn, index) => index >= turns.length - 40 || turn.id === asked).reverse();

const UNTITLED = /^(New session)?$/; // The host's title for a session without a name.

/** The slash command that a session without a title began with. It helps to distinguish such sessions. */
export function opening(summary: SessionSummary | undefined): string | undefined {
  const command = summary?._meta?.["ahpkit/opening"];
  return summary && UNTITLED.test(summary.title.trim()) && typeof command === "string" ? command : undefined;
}

/** The title of a session in lists. */
export const titleOf = (summary: SessionSummary): string => opening(summary) ?? (inShort(summary.title) || "Untitled");

// Sessions: those that wait for a person come first, then the newest.

export interface Group {
  directory: string;
  sessions: SessionSummary[];
}

const rank = (summary: SessionSummary): number => (activity(summary.status) === "needs" ? 0 : 1);
const byTime = (a: SessionSummary, b: SessionSummary): number =>
  rank(a) - rank(b) || (a.modifiedAt < b.modifiedAt ? 1 : a.modifiedAt > b.modifiedAt ? -1 : 0);

export function groups(all: Iterable<SessionSummary>, query: string, archived: boolean, hits?: { has(session: Uri): boolean }): Group[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = new Map<string, SessionSummary[]>();
  for (const summary of all) {
    if (isArchived(summary.status) !== archived) continue;
    const text = `${titleOf(summary)} ${summary.provider} ${directoryOf(summary)} ${summary.activity ?? ""}`.toLowerCase();
    if (!words.every((word) => text.includes(word)) && !hits?.has(summary.resource)) continue;
    const directory = directoryOf(summary);
    found.set(directory, [...(found.get(directory) ?? []), summary]);
  }
  const list = [...found].map(([directory, sessions]) => ({ directory, sessions: sessions.sort(byTime) }));
  return list.sort((a, b) => byTime(a.sessions[0] as SessionSummary, b.sessions[0] as SessionSummary));
}

// What waits for a person in one session. The session's queue is the list; a chat that is open fills in for it.

export const asksPerson = (request: InputNeeded): boolean => request.kind !== "toolClientExecution";

/** Whether a question is answered in the chat, although the session's queue still has it. So an answer is shown at once in the window that gave it. */
const isAnswered = (entry: InputNeeded, chat: ChatState): boolean =>
  entry.kind === "chatInput" && entry.chat === chat.resource &&
  Boolean(chat.activeTurn?.responseParts.some((part) => part.kind === "inputRequest" && part.request.id === entry.request.id && part.response !== undefined));

export function waiting(session: SessionState | undefined, chat?: ChatState): InputNeeded[] {
  const queue = (session?.inputNeeded ?? []).filter((entry) => asksPerson(entry) && !(chat && isAnswered(entry, chat)));
  const known = new Set(queue.map(keyOf));
  for (const entry of chat ? inChat(chat) : []) if (!known.has(keyOf(entry))) queue.push(entry);
  return queue;
}

/** A request has the same key in the queue and in the chat. */
export const keyOf = (entry: InputNeeded): string =>
  `${entry.chat} ${entry.kind === "chatInput" ? entry.request.id : entry.toolCall.toolCallId}`;

/** Whether a request comes from this chat, or from a helper that one of its calls started. */
export const comesFrom = (entry: InputNeeded, chat: Uri, session: SessionState | undefined): boolean => {
  const seen = new Set<Uri>();
  for (let at: Uri | undefined = entry.chat; at !== undefined && !seen.has(at); at = session?.chats.find((each) => each.resource === at)?.origin?.chat) {
    if (at === chat) return true;
    seen.add(at);
  }
  return false;
};

function* inChat(chat: ChatState): Generator<InputNeeded> {
  const turn = chat.activeTurn;
  for (const part of turn?.responseParts ?? []) {
    if (part.kind === "inputRequest" && part.response === undefined)
      yield { id: part.request.id, chat: chat.resource, kind: "chatInput", request: part.request };
    if (part.kind !== "toolCall" || !turn) continue;
    const base = { id: part.toolCall.toolCallId, chat: chat.resource, turnId: turn.id, toolCall: part.toolCall };
    if (waitsForPerson(part.toolCall))
      yield { ...base, kind: "toolConfirmation" };
    if (part.toolCall.status === "auth-required") yield { ...base, kind: "toolAuthentication" };
  }
}

// Tool calls.

/** Whether a pending call is already denied: the host shows a denied call as pending for one action, because only a pending call can be denied. */
export const waitsForPerson = (call: ToolCall): boolean =>
  (call.status === "pending-confirmation" && call._meta?.["ahpkit/settled"] === undefined) || call.status === "pending-result-confirmation";
export const isOpen = (call: ToolCall): boolean => call.status !== "completed" && call.status !== "cancelled";
export const failed = (call: ToolCall): boolean => call.status === "completed" && call.success === false;

export function inputText(call: ToolCall): string | undefined {
  if (call.status === "streaming") return call.partialInput;
  return typeof call.toolInput === "string" ? call.toolInput : undefined;
}

const JSON_PARTS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const DEEPEST = 50; // Deeper nesting is not indented, because that costs more than it helps.

/**
 * The parts of a JSON text as they were written: numbers keep every digit, and a name that occurs twice is shown twice. A
 * parsed value would lose both, and would differ from the input that runs. Undefined if the text is not JSON, or very large.
 */
function jsonParts(text: string): string[] | undefined {
  if (!/^\s*[{[]/.test(text) || text.length > 200_000) return undefined;
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  return text.match(JSON_PARTS) ?? undefined;
}

/** A string without its quotes and escapes; any other value as it was written. */
const written = (part: string): string => (part.startsWith('"') ? String(JSON.parse(part)) : part);

/** The members of a flat JSON object as names and values; undefined for anything else. */
export function fields(text: string): [string, string][] | undefined {
  const inside = jsonParts(text)?.slice(1, -1);
  if (!/^\s*\{/.test(text) || !inside?.length || inside.length >= 16 * 4 || inside.some((part) => opens(part) || closes(part))) return undefined;
  const found: [string, string][] = [];
  for (let at = 0; at < inside.length; at += 4) found.push([written(inside[at] as string), written(inside[at + 2] as string)]);
  return found;
}

const opens = (part: string | undefined): boolean => part === "{" || part === "[";
const closes = (part: string | undefined): boolean => part === "}" || part === "]";

/** Input for a person: JSON is indented. */
export function pretty(text: string): string {
  const parts = jsonParts(text) ?? [];
  let out = "";
  let depth = 0;
  for (const [at, part] of parts.entries()) {
    depth += opens(part) ? 1 : closes(part) ? -1 : 0;
    if (depth > DEEPEST) return text;
    const line = `\n${"  ".repeat(depth)}`;
    if (closes(part)) out += opens(parts[at - 1]) ? part : `${line}${part}`;
    else out += part.startsWith('"') ? JSON.stringify(written(part)) : part;
    if (part === "," || (opens(part) && !closes(parts[at + 1]))) out += line;
    else if (part === ":") out += " ";
  }
  return out || text;
}

/** Every customization of a session with its container, each container before what is inside. */
export function* customizationsOf(session: SessionState | undefined): Generator<{ item: Customization; parent: Customization | undefined }> {
  for (const item of session?.customizations ?? []) {
    yield { item, parent: undefined };
    for (const child of item.children ?? []) yield { item: child, parent: item };
  }
}

/** How many MCP servers of a session want a sign-in. */
export const signInsOf = (session: SessionState | undefined): number =>
  [...customizationsOf(session)].filter(({ item }) => item.type === "mcpServer" && item.state?.kind === "authRequired").length;

/** The owner of a call's tool, in words: an MCP server or a client; empty for the agent's own tools. */
export function ownerOf(call: ToolCall, session: SessionState | undefined): string | undefined {
  const by = call.contributor;
  if (by?.kind === "mcp") {
    for (const { item } of customizationsOf(session)) if (item.id === by.customizationId) return `MCP server ${item.name}`;
    return "an MCP server";
  }
  if (by?.kind !== "client") return undefined;
  return session?.activeClients.find((each) => each.clientId === by.clientId)?.displayName ?? "a connected client";
}

/** A helper's conversation that a call started. */
export interface Helper {
  resource: Uri;
  title: string;
  agentName?: string;
}

/** The helpers of a call: those that its content names, then those whose chats name this call as their origin. */
export function helpersOf(call: ToolCall, chat: Uri, session: SessionState | undefined): Helper[] {
  const named: Helper[] = (call.content ?? []).flatMap((content) => (content.type === "subagent" ? [content] : []));
  const silent = (session?.chats ?? []).filter(({ resource, origin }) =>
    origin?.kind === "tool" && origin.toolCallId === call.toolCallId && origin.chat === chat && !named.some((each) => each.resource === resource));
  return [...named, ...silent.map(({ resource, title }) => ({ resource, title }))];
}

const VERBS: [RegExp, string, string, string][] = [
  [/(^|[^a-z])(read|open|cat|view)([^a-z]|$)/i, "Read", "file", "files"],
  [/(^|[^a-z])(edit|write|patch|create|replace)([^a-z]|$)/i, "Edited", "file", "files"],
  [/(^|[^a-z])(bash|shell|exec|execute|command|terminal|run)([^a-z]|$)/i, "Ran", "command", "commands"],
  [/(^|[^a-z])(search|grep|glob|find|list)([^a-z]|$)/i, "Searched", "time", "times"],
  [/(^|[^a-z])(web|http|fetch|browse)([^a-z]|$)/i, "Fetched", "page", "pages"],
];

/** One line for a run of finished calls: "Read 7 files, ran 2 commands". */
export function summaryOf(calls: ToolCall[]): string {
  const counts = new Map<string, { verb: string; one: string; many: string; count: number }>();
  for (const call of calls) {
    const known = VERBS.find(([pattern]) => pattern.test(call.toolName));
    const [verb, one, many] = known ? [known[1], known[2], known[3]] : ["Used", call.displayName || call.toolName, call.displayName || call.toolName];
    const key = `${verb} ${one}`;
    const entry = counts.get(key) ?? { verb, one, many, count: 0 };
    entry.count += 1;
    counts.set(key, entry);
  }
  const texts = [...counts.values()].map(({ verb, one, many, count }) => {
    if (verb === "Used") return count === 1 ? `used ${one}` : `used ${one} ${count} times`;
    if (verb === "Searched") return count === 1 ? "searched once" : `searched ${count} times`;
    return `${verb.toLowerCase()} ${count} ${count === 1 ? one : many}`;
  });
  const line = texts.join(", ");
  return line.charAt(0).toUpperCase() + line.slice(1);
}

// Usage and cost. A price that is not known makes the total a lower bound.

export interface Totals {
  input: number;
  output: number;
  cached: number;
  /** Amounts by currency. */
  costs: ReadonlyMap<string, number>;
  /** Turns that used tokens and have no price. */
  unpriced: number;
  turns: number;
}

interface Cost {
  amount: number;
  currency: string;
}

/** The cost of a turn, if its agent reports it. An amount without a currency is in dollars. */
export function costOf(turn: Turn | ActiveTurn): Cost | undefined {
  const meta = turn.usage?._meta ?? {};
  for (const value of [meta["ahpkit/cost"], (meta["ahpkit/acp"] as Record<string, unknown> | undefined)?.cost, meta.cost]) {
    const { amount, currency = "USD" } = typeof value === "number" ? { amount: value } : ((value ?? {}) as Partial<Cost>);
    if (Number.isFinite(amount)) return { amount: amount as number, currency: String(currency) };
  }
  return undefined;
}

/** A number of tokens; undefined for any other value, because it would make the whole sum NaN. */
const counted = (tokens: unknown): number => (typeof tokens === "number" && tokens >= 0 ? tokens : 0);

export function total(turns: Iterable<Turn | ActiveTurn>): Totals {
  const costs = new Map<string, number>();
  const sum = { input: 0, output: 0, cached: 0, costs, unpriced: 0, turns: 0 };
  for (const turn of turns) {
    if (!turn.usage) continue;
    sum.turns += 1;
    sum.input += counted(turn.usage.inputTokens);
    sum.output += counted(turn.usage.outputTokens);
    sum.cached += counted(turn.usage.cacheReadTokens);
    const cost = costOf(turn);
    if (cost) costs.set(cost.currency, (costs.get(cost.currency) ?? 0) + cost.amount);
    else sum.unpriced += 1;
  }
  return sum;
}

/** An amount as text; an agent may name an unknown currency. */
function money(amount: number, currency: string): string {
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: Math.abs(amount) < 1 ? 4 : 2 };
  if (/^[A-Za-z]{3}$/.test(currency)) return new Intl.NumberFormat(undefined, { style: "currency", currency, ...digits }).format(amount);
  return `${new Intl.NumberFormat(undefined, digits).format(amount)} ${currency.slice(0, 12)}`;
}

/** "$0.12"; "≥ $0.12" when a part has no price; "$0.12 + €3.00" when there are several currencies; empty when no part has a price. */
export function price(sum: Totals): string {
  if (!sum.costs.size) return "";
  const amounts = [...sum.costs].map(([currency, amount]) => money(amount, currency)).join(" + ");
  return sum.unpriced ? `≥ ${amounts}` : amounts;
}

/** A large number in a few letters. Each unit begins where the one below would be rounded to a thousand. */
export const tokens = (count: number): string =>
  count < 1000 ? String(count) : count < 999_500 ? `${(count / 1000).toFixed(count < 9_950 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`;

// Plans are in the session's `_meta`, by chat.

export interface PlanEntry {
  content: string;
  status: string;
}

export function planOf(session: SessionState | undefined, chat: Uri): PlanEntry[] {
  const byChat = session?._meta?.["ahpkit/plan"] as Record<string, { entries?: PlanEntry[] }[]> | undefined;
  return (byChat?.[chat] ?? []).flatMap((plan) => plan.entries ?? []);
}
