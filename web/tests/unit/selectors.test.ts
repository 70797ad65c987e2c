/** What views read off states: sums, folds, prices, scopes, the ends of long outputs, canvas addresses. */
// @vitest-environment jsdom

import { describe, expect, it } from "vitest";
import type { InputNeeded, ChatState, SessionState, SessionSummary, ToolCall, Turn } from "../../src/ahp/index.ts";
import { activity, age, comesFrom, duration, elapsed, fields, groups, helpersOf, nameOf, plain, pretty, price, summaryOf, placeOf, titleOf, toChoose, tokens, total, waiting } from "../../src/mirror/selectors.ts";
import { pieces } from "../../src/parts/ansi.ts";
import { endsAlike, rowsOf } from "../../src/parts/diff.tsx";
import { changedPart, languageOf, linesOf, piecesOf } from "../../src/parts/diff-lines.ts";
import { ends, folded } from "../../src/parts/output.tsx";
import { narrowest } from "../../src/views/approvals.tsx";
import { checkCanvasUrl } from "../../src/views/canvas-policy.ts";
import { expand } from "../../src/views/changes.tsx";
import { firstShown, runs } from "../../src/views/chat.tsx";
import { chatNames } from "../../src/views/session.tsx";
import { decided, effective } from "../../src/views/setup.tsx";
import { call, md } from "../scripted/scenes.ts";

const made = (name: string, status = 1, modifiedAt = "2026-01-01T00:00:00Z", directory = "file:///a"): SessionSummary => ({ resource: `s:/${name}`, provider: "p", title: name, status, createdAt: modifiedAt, modifiedAt, workingDirectories: [directory] });

describe("sessions", () => {
  it("put what needs somebody first, then the newest, by directory", () => {
    const list = groups([made("old"), made("new", 1, "2026-02-01T00:00:00Z"), made("needs", 24, "2025-01-01T00:00:00Z"), made("b", 1, "2026-03-01T00:00:00Z", "file:///b"), made("gone", 65)], "", false);
    expect(list.map((group) => group.sessions.map((each) => each.title))).toEqual([["needs", "new", "old"], ["b"]]);
  });
  it("in directories of the same name say which of them", () => {
    const all = ["file:///home/ada/one/app", "file:///home/ada/two/app", "file:///srv/two/app", "file:///home/ada/notes", "file:///app", ""];
    expect(all.map((each) => placeOf(each, all))).toEqual(["one", "ada/two", "srv/two", "", "/app", ""]);
  });
  it("are found by every word, and by hits in their text", () => {
    const all = [made("fix the parser"), made("write docs")];
    expect(groups(all, "parser fix", false).flatMap((group) => group.sessions)).toHaveLength(1);
    expect(groups(all, "zebra", false, new Set(["s:/write docs"])).flatMap((group) => group.sessions)).toHaveLength(1);
  });
  it("without a title are told apart, and found, by the slash command that they began with", () => {
    const begun = (title: string): SessionSummary => ({ ...made(title), _meta: { "ahpkit/opening": "/stream 100" } });
    expect([begun("New session"), begun(""), begun("A name"), made("New session"), made("")].map(titleOf)).toEqual(["/stream 100", "/stream 100", "A name", "New session", "Untitled"]);
    expect(groups([begun("New session"), made("New session")], "stream", false).flatMap((group) => group.sessions)).toHaveLength(1);
  });
  it("have four plain states", () => {
    expect([24, 26, 2, 8, 1, 33].map(activity)).toEqual(["needs", "needs", "failed", "running", "done", "done"]);
  });
  it("say how old they are", () => {
    const at = Date.parse("2026-01-01T00:00:00Z");
    expect([10, 120, 7200, 200_000].map((seconds) => age("2026-01-01T00:00:00Z", at + seconds * 1000))).toEqual(["now", "2m", "2h", "2d"]);
  });
});

describe("what waits", () => {
  it("is listed once, whether the session or the chat says so", () => {
    const toolCall = { status: "pending-confirmation", toolCallId: "c" } as ToolCall;
    const inQueue: InputNeeded = { id: "q", chat: "ahp-chat:/1", kind: "toolConfirmation", turnId: "t", toolCall };
    const chat = { resource: "ahp-chat:/1", title: "", status: 24, modifiedAt: "", turns: [], activeTurn: { id: "t", startedAt: "", message: { text: "", origin: { kind: "user" } }, responseParts: [{ kind: "toolCall" as const, toolCall }] } };
    expect(waiting({ inputNeeded: [inQueue] } as SessionState, chat)).toEqual([inQueue]);
    expect(waiting({} as SessionState, chat)).toHaveLength(1);
    toolCall._meta = { "ahpkit/settled": "rule" };
    expect(waiting({} as SessionState, chat)).toHaveLength(0);
  });
  it("does not ask again what this window has just answered, while the session's queue still has it", () => {
    const request = { id: "r" };
    const asked = (response?: string): ChatState => ({ resource: "ahp-chat:/c", turns: [], activeTurn: { id: "t", responseParts: [{ kind: "inputRequest", request, response }] } }) as never;
    const session = { inputNeeded: [{ id: "n", chat: "ahp-chat:/c", kind: "chatInput", request }] } as never as SessionState;
    expect([asked(), asked("accept")].map((chat) => waiting(session, chat).length)).toEqual([1, 0]);
    expect(waiting(session, { ...asked("accept"), resource: "ahp-chat:/other" })).toHaveLength(1);
  });
  it("offers the narrowest answer first", () => {
    const options = [{ id: "always", label: "Always allow", kind: "approve" }, { id: "once", label: "Allow", kind: "approve" }, { id: "no", label: "Deny", kind: "deny" }];
    expect(narrowest(options, "approve")?.id).toBe("once");
    expect(narrowest(options, "deny")?.id).toBe("no");
    expect(narrowest(undefined, "deny")).toBeUndefined();
  });
});

describe("coloured output", () => {
  it("has a class for each colour that the page knows, and no colour that could not be read", () => {
    const found = pieces("\u001b[32mok\u001b[0m \u001b[1;91mbad\u001b[0m \u001b[2mdim\u001b[0m \u001b[30mblack\u001b[38;5;200mpalette");
    expect(found.filter((each) => each.text.trim()).map((each) => [each.text.trim(), each.class])).toEqual([
      ["ok", "ansi-green-fg"], ["bad", "ansi-bright-red-fg ansi-bold"], ["dim", "ansi-dim"], ["black", ""], ["palette", ""],
    ]);
  });
});

describe("a turn that runs", () => {
  it("says for how long, from its first second on, also when the host's clock is ahead", () => {
    expect([Number.NaN, -5_000, 999, 1_000, 61_000].map(elapsed)).toEqual(["", "", "", "1.0 s", "1 min 1 s"]);
  });
  it("never took 60 seconds of a minute, or a thousand of a unit", () => {
    expect([999.9, 9_999, 59_999, 119_700, 3_599_999, 7_199_999].map(duration)).toEqual(["999 ms", "9.9 s", "59 s", "1 min 59 s", "59 min 59 s", "1 h 59 min"]);
    expect([999, 9_949, 9_960, 999_499, 999_999, 12_340_000].map(tokens)).toEqual(["999", "9.9k", "10k", "999k", "1.0M", "12.3M"]);
  });
});

describe("the turns that a panel offers", () => {
  it("are the newest, and the one that was asked for, however old", () => {
    const turns = Array.from({ length: 100 }, (_, index) => ({ id: `t${index}` }) as Turn);
    const ids = (asked?: string): string[] => toChoose(turns, asked).map((each) => each.id);
    expect([ids().length, ids()[0], ids().at(-1)]).toEqual([40, "t99", "t60"]);
    expect([ids("t3").length, ids("t3").at(-1), ids("t99").length, ids("gone").length]).toEqual([41, "t3", 40, 40]);
    expect(toChoose(undefined, "t3")).toEqual([]);
  });
});

describe("words of an agent", () => {
  it("keep the names of files, whether they are text or Markdown", () => {
    expect(plain("Edit src/my_file.py and __init__.py")).toBe("Edit src/my_file.py and __init__.py");
    expect(plain("2 * 3 * 4, `ls *.py`")).toBe("2 * 3 * 4, `ls *.py`");
    expect(plain({ markdown: "Edit `src/my_file.py`, **not** *that_one* or _this_" })).toBe("Edit src/my_file.py, not that_one or this");
    expect(plain(undefined)).toBe("");
  });
});

describe("finished tool calls", () => {
  it("fold into one line, and stop folding at what failed or still runs", () => {
    const parts = [call("1", {}), call("2", {}), call("3", { success: false }), call("4", {}), md("x"), call("5", { status: "running" })];
    expect(runs(parts as never).map((run) => (run.kind === "run" ? run.calls.length : run.part.kind))).toEqual([2, "toolCall", 1, "markdown", "toolCall"]);
  });

  it("draws the last parts of a long turn, and whatever is still open", () => {
    const said = { kind: "part", part: { kind: "markdown", id: "m", content: "x" }, index: 0 };
    const waiting = { kind: "part", part: { kind: "toolCall", toolCall: { toolCallId: "c", status: "pending-confirmation" } }, index: 0 };
    const asked = { kind: "part", part: { kind: "inputRequest", request: { id: "q" } }, index: 0 };
    const many = (count: number): unknown[] => Array.from({ length: count }, () => said);
    expect(firstShown(many(10) as never, 150)).toBe(0);
    expect(firstShown(many(1_000) as never, 150)).toBe(850);
    expect(firstShown([...many(500), waiting, ...many(499)] as never, 150)).toBe(500);
    expect(firstShown([...many(300), asked, ...many(699)] as never, 150)).toBe(300);
  });
  it("are summed up in words", () => {
    const named = (toolName: string, displayName = toolName): ToolCall => ({ toolName, displayName }) as ToolCall;
    expect(summaryOf([named("read_file"), named("read_file"), named("bash")])).toBe("Read 2 files, ran 1 command");
    expect(summaryOf([named("frobnicate", "Frobnicate")])).toBe("Used Frobnicate");
  });
});

describe("the input of a call", () => {
  it("is shown as it was written: every digit, and a name that comes twice", () => {
    expect(fields('{"amount": 12345678901234567890, "path": "a\\u00fc\\n", "on": null, "path": 1.0}')).toEqual([["amount", "12345678901234567890"], ["path", "aü\n"], ["on", "null"], ["path", "1.0"]]);
    expect(pretty('{"a":[1.0,12345678901234567890,{}],"b":[],"a":"x\\u00fc","c":{"d":true}}')).toBe('{\n  "a": [\n    1.0,\n    12345678901234567890,\n    {}\n  ],\n  "b": [],\n  "a": "xü",\n  "c": {\n    "d": true\n  }\n}');
  });
  it("is left alone when it is no JSON, or nested without end", () => {
    const deep = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
    for (const text of ["make test", "{ echo a; }", '{"a": }', deep]) expect([fields(text), pretty(text)]).toEqual([undefined, text]);
    for (const text of ["{}", "[1]", '{"a": {}}']) expect(fields(text)).toBeUndefined();
  });
});

describe("cost", () => {
  const paid = (cost: unknown): Turn => ({ id: "t", message: { text: "", origin: { kind: "user" } }, responseParts: [], state: "complete", usage: { inputTokens: 10, outputTokens: 5, ...(cost === undefined ? {} : { _meta: { cost } }) } });
  const turn = (amount?: number): Turn => paid(amount === undefined ? undefined : { amount, currency: "USD" });
  it("is a lower bound when a price is not known (25)", () => {
    expect(price(total([turn(0.5), turn()]))).toMatch(/^≥ /);
    expect(price(total([turn(0.5)]))).not.toContain("≥");
    expect(price(total([turn()]))).toBe("");
    expect(total([{ ...turn(), usage: { inputTokens: "many", outputTokens: Number.NaN } } as never, turn()])).toMatchObject({ input: 10, output: 5 });
  });
  it("is known when it is nothing, and never a sum of different currencies", () => {
    expect(price(total([turn(0)]))).toMatch(/0\.00/);
    expect(price(total([turn(1), paid({ amount: 2, currency: "EUR" }), turn(3)]))).toMatch(/4\.00 \+ .*2\.00/);
  });
  it("is shown whatever an agent takes for an amount or a currency", () => {
    expect(price(total([paid({ amount: 2, currency: "credits <b>" })]))).toBe("2.00 credits <b>");
    for (const odd of [{ amount: Number.NaN }, { amount: "1" }, { currency: "USD" }, "1", null, [], true]) expect(price(total([paid(odd)]))).toBe("");
  });
});

describe("output", () => {
  it("shows the ends of what is long, quickly", () => {
    const text = Array.from({ length: 200_000 }, (_, index) => `line ${index} ${"x".repeat(20)}`).join("\n");
    const times = Array.from({ length: 5 }, () => {
      const begun = performance.now();
      ends(text);
      return performance.now() - begun;
    });
    expect(Math.min(...times)).toBeLessThan(50);
    const { head, tail, left } = ends(text);
    expect(head.split("\n").length).toBeLessThanOrEqual(101);
    expect(tail).toContain("line 199999");
    expect(head.length + tail.length + left).toBe(text.length);
    expect(head.length + tail.length).toBeLessThanOrEqual(33_000);
  });
  it("keeps what is short as it is", () => {
    expect(ends("a\nb\n")).toEqual({ head: "a\nb\n", tail: "", left: 0 });
  });
  it("folds carriage returns", () => {
    expect(folded("10%\r20%\r100%\ndone\r\n")).toBe("100%\ndone\n");
    expect(folded("10%\r20%\r\nlast\r")).toBe("20%\n");
    const long = "a".repeat(1_000_000); // For a pattern that begins again at each letter this is many minutes.
    expect(folded(`x\r\n${long}\r${long}\nend`) === `x\n${long}\nend`).toBe(true);
    expect(nameOf(`file:///home${"/".repeat(1_000_000)}x//`)).toBe("x");
    expect(folded("\u001b]0;title\u0007a \u001b]8;;https://example.com\u001b\\link\u001b]8;;\u001b\\")).toBe("a link");
  });
});

describe("diffs", () => {
  it("have rows with both numbers", () => {
    const rows = rowsOf("a\nb\nc\n", "a\nB\nc\n");
    expect(rows.filter((row) => row.kind !== "same").map((row) => [row.kind, row.text])).toEqual([["hunk", "Line 1"], ["del", "b"], ["add", "B"]]);
  });
  it("of files that came or went are all of one colour", () => {
    expect(rowsOf("", "a\nb\n").map((row) => row.kind)).toEqual(["hunk", "add", "add"]);
    expect(rowsOf("a\n", "").map((row) => row.kind)).toEqual(["hunk", "del"]);
    expect([endsAlike("a\r\nb\r\n", "a\r\n"), endsAlike("a\r\nb\n", "a\r\n")]).toEqual([["a\nb\n", "a\n"], ["a\r\nb\n", "a\r\n"]]);
  });
});

describe("changesets", () => {
  it("expand their template, or are left out", () => {
    const changeset = { label: "", changeKind: "", uriTemplate: "c:/x/{turnId}" };
    expect(expand(changeset, "t 1")).toBe("c:/x/t%201");
    expect(expand(changeset, undefined)).toBeUndefined();
    expect(expand({ ...changeset, uriTemplate: "c:/{a}/{b}" }, "t")).toBeUndefined();
  });
});

describe("switches", () => {
  const plugin = { type: "plugin", id: "p", uri: "u", name: "P", enablement: [{ kind: "global" as const, enabled: false }] };
  it("say why they stand as they do", () => {
    expect(effective(plugin, undefined)).toEqual({ on: false, why: "Switched off everywhere." });
    expect(effective({ type: "skill", id: "s", uri: "u", name: "S" }, plugin)).toEqual({ on: false, why: "Off because P is off." });
    expect(effective({ type: "skill", id: "s", uri: "u", name: "S" }, undefined).on).toBe(true);
  });
  it("keep the decisions of the other scopes, the narrowest first", () => {
    expect(decided(plugin, "session", true, undefined)).toEqual([{ kind: "session", enabled: true }, { kind: "global", enabled: false }]);
    expect(decided(plugin, "workspace", true, "file:///w")[0]).toEqual({ kind: "workspace", uri: "file:///w", enabled: true });
  });
});

describe("canvas addresses", () => {
  const page = new URL("http://ahpkit-1.localhost:7110/");
  const url = (text: unknown): string | undefined => checkCanvasUrl(text, page).url;
  it("are this machine's, https or data, and nothing that has to be repaired", () => {
    for (const good of ["http://127.0.0.1:7110/canvas/x/", "data:text/html,x"]) expect(url(good)).toBe(good);
    expect(checkCanvasUrl("https://example.com/x", page).foreign).toBe("example.com");
    for (const bad of [undefined, "", "javascript:alert(1)", "file:///etc/passwd", "http://evil.example/", "https://u:p@x/", "https:\\\\x", " https://x", "ht\ntps://x", "https:x", "blob:https://x/1", "http://127.1/", "http://localhost.evil.example/"]) expect(url(bad)).toBeUndefined();
  });
  it("are reached where the page came from, when that is elsewhere", () => {
    expect(checkCanvasUrl("http://127.0.0.1:7110/canvas/x/", new URL("https://desk.example/")).url).toBe("https://desk.example/canvas/x/");
  });
});

describe("helpers", () => {
  const chats = [
    { resource: "c:/main" },
    { resource: "c:/named", title: "Named", origin: { kind: "tool", chat: "c:/main", toolCallId: "t1" } },
    { resource: "c:/silent", title: "Silent", origin: { kind: "tool", chat: "c:/main", toolCallId: "t1" } },
    { resource: "c:/deeper", title: "Deeper", origin: { kind: "tool", chat: "c:/silent", toolCallId: "t1" } },
    { resource: "c:/fork", title: "Fork", origin: { kind: "fork", chat: "c:/main", toolCallId: "t1" } },
  ];
  const session = { chats } as unknown as SessionState;

  it("are those that a call names and those whose chat says so, each once", () => {
    const asked = { ...call("t1", {}).toolCall, content: [{ type: "subagent", resource: "c:/named", title: "Named", agentName: "scout" }] } as ToolCall;
    expect(helpersOf(asked, "c:/main", session).map((each) => [each.resource, each.agentName])).toEqual([["c:/named", "scout"], ["c:/silent", undefined]]);
    expect(helpersOf({ ...asked, toolCallId: "t2", content: [] }, "c:/main", session)).toEqual([]);
  });
  it("ask for the turn that started them, however deep they are", () => {
    const from = (chat: string): InputNeeded => ({ id: "n", chat, kind: "chatInput", request: { id: "q" } }) as InputNeeded;
    expect(["c:/main", "c:/deeper", "c:/elsewhere"].map((chat) => comesFrom(from(chat), "c:/main", session))).toEqual([true, true, false]);
    const round = { chats: [{ resource: "c:/a", origin: { kind: "tool", chat: "c:/b" } }, { resource: "c:/b", origin: { kind: "tool", chat: "c:/a" } }] } as unknown as SessionState;
    expect(comesFrom(from("c:/a"), "c:/main", round)).toBe(false);
  });
});

describe("lines of a diff", () => {
  it("say which words changed, unless they have little in common", () => {
    expect(changedPart("now = time.time()", "now = time.monotonic()")).toEqual([[11, 15], [11, 20]]);
    expect(changedPart("    return a", "    raise ValueError(text)")).toBeUndefined();
    expect(changedPart("a face 😀 here", "a face 😁 here")).toEqual([[7, 9], [7, 9]]);
    expect(rowsOf("a = 1\nb = 2\n", "a = 1\nb = 3\n").map((row) => row.changed)).toEqual([undefined, undefined, [4, 5], [4, 5]]);
    expect(rowsOf("one\ntwo\n", "one\n").some((row) => row.changed)).toBe(false);
  });
  it("keep every character in its colour, and only colours of the same text count", () => {
    const lines = linesOf('<span class="hljs-string">&quot;a\nb&quot;</span> + <img src=x onerror=alert(1)>c', '"a\nb" + c');
    expect(lines).toEqual([[{ text: '"a', class: "hljs-string" }], [{ text: 'b"', class: "hljs-string" }, { text: " + ", class: "" }, { text: "c", class: "" }]]);
    expect(piecesOf('b" + c', lines?.[1], [1, 5])).toEqual([
      { text: "b", class: "hljs-string" }, { text: '"', class: "hljs-string word" }, { text: " + ", class: "word" }, { text: "c", class: "" },
    ]);
    expect(linesOf("other", "text")).toBeUndefined();
    expect(piecesOf("text", [{ text: "other", class: "x" }], undefined)).toEqual([{ text: "text", class: "" }]);
  });
  it("are coloured by the name of their file", () => {
    expect(["a/b.py", "x.tsx", "m.go", "data.json", "Makefile", "x.toml"].map(languageOf)).toEqual(["python", "typescript", "go", "json", "", ""]);
  });
});

it("chats of one title are told apart", () => {
  const fork = { kind: "fork", chat: "c:/1" };
  expect(chatNames([{ title: "Parser" }, { title: "Parser", origin: fork }, { title: "Parser", origin: fork }, { title: "" }, { title: "Side chat" }, { title: "Side chat" }, { title: "Own", origin: fork }])).toEqual(
    ["Parser", "Fork of Parser", "Fork of Parser (2)", "Chat 4", "Side chat", "Side chat (2)", "Own"]);
});
