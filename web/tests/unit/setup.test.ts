/** What the setup, the rules and the approvals say in words. */
// @vitest-environment jsdom

import { describe, expect, it } from "vitest";
import type { ConfirmationOption, Customization, SessionState, SessionSummary, ToolCall } from "../../src/ahp/index.ts";
import { fields, ownerOf } from "../../src/mirror/selectors.ts";
import { grouped } from "../../src/views/approvals.tsx";
import { ownerWords, placeWords } from "../../src/views/rules.tsx";
import { sourceOf, unusable } from "../../src/views/setup.tsx";
import { waitedFor } from "../../src/views/timeline.tsx";

const item = (changes: Partial<Customization>): Customization => ({ type: "mcpServer", id: "s", uri: "ahpkit:/mcp-servers/calc", name: "calc", ...changes });

describe("the input of a call", () => {
  it("is a list of names and values when nothing is nested, and left as it is otherwise", () => {
    expect(fields('{"a": 1, "b": "two\\nlines", "c": null}')).toEqual([["a", "1"], ["b", "two\nlines"], ["c", "null"]]);
    for (const other of ['{"a": {"b": 1}}', '{"a": [1]}', "[1]", "make test", "{", "{}"]) expect(fields(other)).toBeUndefined();
  });
});

describe("what cannot be used", () => {
  it("is said for plugins and servers, as the host says it", () => {
    expect(unusable(item({ _meta: { "ahpkit/notListed": ["skills/a: no description"] } }))).toEqual(["skills/a: no description"]);
    expect(unusable(item({ _meta: { "ahpkit/left-out": { add: "its schema is refused" } } }))).toEqual(["Without add: its schema is refused"]);
    for (const odd of [undefined, {}, { "ahpkit/notListed": "x" }, { "ahpkit/left-out": null }]) expect(unusable(item(odd ? { _meta: odd } : {}))).toEqual([]);
  });
});

describe("whose tool it is", () => {
  const session = { customizations: [item({ type: "plugin", id: "p", name: "P", children: [item({})] })], activeClients: [{ clientId: "c", displayName: "Editor", tools: [] }] } as unknown as SessionState;
  const call = (contributor: ToolCall["contributor"]): ToolCall => ({ status: "running", toolCallId: "t", toolName: "add", displayName: "Add", ...(contributor ? { contributor } : {}) });
  it("is said by name", () => {
    expect(ownerOf(call({ kind: "mcp", customizationId: "s" }), session)).toBe("MCP server calc");
    expect(ownerOf(call({ kind: "mcp", customizationId: "gone" }), session)).toBe("an MCP server");
    expect(ownerOf(call({ kind: "client", clientId: "c" }), session)).toBe("Editor");
    expect(ownerOf(call(undefined), session)).toBeUndefined();
  });
});

describe("answers for more than one call", () => {
  it("that differ only in their place are one entry with a choice of places", () => {
    const option = (id: string, label: string, kind = "approve"): ConfirmationOption => ({ id, label, kind });
    const run: string[] = [];
    const entries = grouped([
      option("1", "Always allow edit in this chat"), option("2", "Always allow edit everywhere"),
      option("3", "Always deny edit in this chat", "deny"), option("4", "Ask my lawyer"),
    ], (chosen) => run.push(chosen.id));
    expect(entries.map((entry) => [entry.label, entry.choices?.map((choice) => choice.label)])).toEqual([
      ["Always allow edit", ["this chat", "everywhere"]], ["Always deny edit in this chat", undefined], ["Ask my lawyer", undefined],
    ]);
    entries[0]?.choices?.[1]?.run();
    entries[2]?.run();
    expect(run).toEqual(["2", "4"]);
  });
});

describe("rules", () => {
  const known = new Map([["ahp-session:/1", { resource: "ahp-session:/1", title: "Parser", chats: [{ resource: "ahp-chat:/1", title: "" }] } as unknown as SessionSummary]]);
  it("say whose tool they are about and where they count", () => {
    expect([ownerWords("mcp:calc"), ownerWords("agent:coder"), ownerWords("host"), ownerWords(undefined)]).toEqual(["MCP server calc", "agent coder", "the host", ""]);
    const place = (scope: string, at?: string): string => placeWords({ id: "r", decision: "allow", scope, ...(at ? { place: at } : {}) }, known);
    expect(place("session", "ahp-session:/1")).toBe("in the session “Parser”");
    expect(place("chat", "ahp-chat:/1")).toBe("in a chat of “Parser”");
    expect(place("session", "ahp-session:/2")).toBe("in a session that is gone");
    expect(place("workspace", "file:///home/ada/project")).toBe("in /home/ada/project");
    expect(place("everywhere")).toBe("everywhere");
  });
});

describe("customizations", () => {
  it("say where they come from", () => {
    expect(sourceOf(item({}), undefined)).toBe("from the host's settings");
    expect(sourceOf(item({ uri: "file:///home/plugin" }), undefined)).toBe("from /home/plugin");
    expect(sourceOf(item({}), item({ type: "plugin", name: "reviews" }))).toBe("from the plugin reviews");
    expect(sourceOf(item({}), item({ type: "directory", name: ".mcp.json" }))).toBe("from .mcp.json");
    expect(sourceOf(item({ clientId: "c" }), undefined)).toBe("from a connected client");
  });
});

describe("times of a call", () => {
  it("count what was waited, also while it still waits", () => {
    expect(waitedFor({ startedAt: 0, waited: [[10, 20], [30, null]] }, 50)).toBe(30);
    expect(waitedFor({ startedAt: 0 }, 50)).toBe(0);
  });
});
