/** States worth looking at: sessions of every kind, a long answer, approvals, questions, changes. */

import type { ToolCall } from "../../src/ahp/index.ts";
import { NOW, type ScriptedHost } from "./host.ts";

type Obj = Record<string, any>;

export const at = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();

export const turn = (id: string, text: string, parts: Obj[], extra: Obj = {}): Obj => ({
  id, startedAt: at(30), duration: 12_400, message: { text, origin: { kind: "user" } }, responseParts: parts, state: "complete",
  usage: { inputTokens: 12_000 + text.length * 100, outputTokens: 900, cacheReadTokens: 8_000, _meta: { cost: { amount: 0.042, currency: "USD" } } }, ...extra,
});

export const md = (content: string, id = "m"): Obj => ({ kind: "markdown", id, content });

export const call = (id: string, changes: Partial<ToolCall> & Obj): Obj => ({
  kind: "toolCall",
  toolCall: { status: "completed", toolCallId: id, toolName: "read_file", displayName: "Read file", invocationMessage: "Read src/app.py", pastTenseMessage: "Read src/app.py", confirmed: "not-needed", success: true, ...changes },
});

export const pendingCall = (id: string, input: string, changes: Obj = {}): Obj => ({
  status: "pending-confirmation", toolCallId: id, toolName: "run_command", displayName: "Run a command", intention: "The tests have to pass before the change is committed.",
  invocationMessage: "Run the test suite", toolInput: input, editable: true,
  options: [
    { id: "allow", label: "Allow once", kind: "approve" },
    { id: "allow-session", label: "Always allow “make test” in this session", kind: "approve", description: "Rule: run_command with exactly this input. Kept until the session ends." },
    { id: "allow-workspace", label: "Always allow “make …” in this workspace", kind: "approve", description: "Rule: run_command whose input begins with make. Kept for /home/ada/project." },
    { id: "deny", label: "Deny", kind: "deny" },
  ],
  ...changes,
});

export const LONG = `Here is what I found.

## The problem

The parser keeps the **whole** file in memory. Three places do it:

1. \`read_all\` in the loader
2. the cache, which never forgets
3. a test helper

| file | before | after |
|---|---:|---:|
| \`loader.py\` | 812 MB | 14 MB |
| \`cache.py\` | 120 MB | 9 MB |

\`\`\`python
def lines(path: Path) -> Iterator[str]:
    """One line at a time."""
    with path.open(encoding="utf-8") as file:
        yield from file
\`\`\`

> The old interface stays, for one release.

- [x] loader
- [ ] cache

More at <https://example.com/notes>.`;

/** Everything at once, as a person meets it on a busy afternoon. */
export function busy(host: ScriptedHost): { main: string; chat: string } {
  const { session: main, chat } = host.addSession("parser", { title: "Make the parser stream", status: 24, modifiedAt: at(1), changes: { additions: 128, deletions: 41, files: 6 } }, {
    turns: [
      turn("t1", "The parser needs 800 MB for a 100 MB file. Why?", [
        { kind: "reasoning", id: "r", content: "Look at where the file is read, then at who keeps it." },
        call("c1", {}), call("c2", { toolCallId: "c2" }), call("c3", { toolCallId: "c3", toolName: "grep", displayName: "Search" }), call("c4", { toolCallId: "c4", toolName: "bash", displayName: "Run" }),
        md(LONG),
      ]),
    ],
  });
  host.startTurn(chat, "t2", "Good. Change it, and run the tests.");
  host.act(chat, { type: "chat/responsePart", turnId: "t2", part: md("I changed the loader and the cache. Now the tests.", "m2") });
  host.act(chat, { type: "chat/toolCallStart", turnId: "t2", toolCallId: "p1", toolName: "run_command", displayName: "Run a command" });
  const pending = pendingCall("p1", "make test -j2 && make bench ARGS='--quick --compare baseline.json'");
  host.act(chat, { type: "chat/toolCallReady", turnId: "t2", toolCallId: "p1", ...without(pending, "status", "toolCallId", "toolName", "displayName") } as never);
  host.need(main, { id: "n1", chat, kind: "toolConfirmation", turnId: "t2", toolCall: pending });
  host.summarize(main, { modifiedAt: at(1) });
  host.addSession("docs", { title: "Write the how-to for reverse proxies", status: 8, modifiedAt: at(3), activity: "Editing docs/how-to/proxy.md" }, {});
  host.addSession("flaky", { title: "Find the flaky test", status: 2, modifiedAt: at(12) }, {
    turns: [turn("f1", "Which test is flaky?", [{ kind: "error", error: { errorType: "network", message: "The model's server did not answer for 60 seconds." }, resumable: true }], { state: "error" })],
    status: 2,
  });
  host.addSession("release", { title: "Prepare release 0.9", status: 33, modifiedAt: at(190), changes: { additions: 12, deletions: 3 } }, {});
  host.addSession("idea", { title: "Sketch a plugin format", status: 1, modifiedAt: at(60 * 26), workingDirectories: ["file:///home/ada/notes"], provider: "demo" }, {});
  host.addSession("old", { title: "An archived one", status: 97, modifiedAt: at(60 * 24 * 9) }, {});
  return { main, chat };
}

const without = (item: Obj, ...keys: string[]): Obj => Object.fromEntries(Object.entries(item).filter(([key]) => !keys.includes(key)));

export const QUESTIONS = {
  id: "q1", message: "Before I go on, **three things**.",
  questions: [
    { id: "style", kind: "single-select", message: "Which style shall the API have?", required: true, options: [{ id: "sync", label: "Synchronous", description: "Simple, blocks" }, { id: "async", label: "Asynchronous", recommended: true }], allowFreeformInput: true },
    { id: "targets", kind: "multi-select", message: "Which targets?", options: [{ id: "linux", label: "Linux" }, { id: "mac", label: "macOS" }] },
    { id: "name", kind: "text", message: "A name for the module", max: 40 },
    { id: "workers", kind: "integer", message: "How many workers?", min: 1, max: 64, defaultValue: 4 },
    { id: "keep", kind: "boolean", message: "Keep the old interface?" },
  ],
};

export function asking(host: ScriptedHost): { session: string; chat: string } {
  const made = host.addSession("asks", { title: "Design the client", status: 24 });
  host.startTurn(made.chat, "q", "Design the client");
  host.act(made.chat, { type: "chat/inputRequested", request: QUESTIONS });
  host.need(made.session, { id: "nq", chat: made.chat, kind: "chatInput", request: QUESTIONS });
  return made;
}

export function changing(host: ScriptedHost): { session: string; chat: string; changeset: string } {
  const made = host.addSession("edits", { title: "Rename the option", changes: { additions: 4, deletions: 2, files: 3 } }, { turns: [turn("e1", "Rename it", [md("Done.")])] });
  const changeset = "ahp-changeset:/edits/all";
  const text = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`).join("\n");
  host.resources.set("x:/before/a", { data: text });
  host.resources.set("x:/after/a", { data: text.replace("line 7", "line seven").replace("line 20\n", "") });
  host.resources.set("x:/after/b", { data: "import os\n\nprint(os.name)\n" });
  host.resources.set("x:/before/big", { data: Array.from({ length: 5_000 }, (_, index) => `old ${index}`).join("\n") });
  host.resources.set("x:/after/big", { data: Array.from({ length: 5_000 }, (_, index) => `new ${index}`).join("\n") });
  host.resources.set("x:/bin", { data: "AAAAAA==", encoding: "base64" });
  const side = (uri: string, content: string): Obj => ({ uri: `file:///home/ada/project/${uri}`, content: { uri: content } });
  const files = [
    { id: "a", edit: { before: side("src/options.py", "x:/before/a"), after: side("src/options.py", "x:/after/a"), diff: { added: 1, removed: 2 } } },
    { id: "b", edit: { after: side("src/new_file.py", "x:/after/b"), diff: { added: 3, removed: 0 } } },
    { id: "c", edit: { before: side("src/generated/big.py", "x:/before/big"), after: side("src/generated/big.py", "x:/after/big"), diff: { added: 5_000, removed: 5_000 } } },
    { id: "d", edit: { before: side("logo.png", "x:/bin"), after: side("logo.png", "x:/bin") } },
  ];
  host.put(changeset, { status: "ready", files, operations: [
    { id: "undo", label: "Undo all", scopes: ["changeset", "resource"], confirmation: "Undo every change of this session? The files go back to what they were.", status: "idle" },
    { id: "commit", label: "Commit", scopes: ["changeset"], status: "idle" },
  ] }, "changeset");
  host.put(`${made.session}/annotations`, { annotations: [] }, "annotations");
  host.act(made.session, { type: "session/changesetsChanged", changesets: [{ label: "All changes", uriTemplate: changeset, changeKind: "session", capabilities: { review: {} } }, { label: "One turn", uriTemplate: "ahp-changeset:/edits/{turnId}", changeKind: "turn" }] });
  host.put("ahp-changeset:/edits/e1", { status: "ready", files: files.slice(0, 1) }, "changeset");
  return { ...made, changeset };
}

export const CUSTOMIZATIONS = [
  { type: "plugin", id: "p1", uri: "file:///home/me/.plugins/reviewer", name: "reviewer", version: "1.2.0", load: { kind: "degraded", message: "One hook was left out: its event is not known." },
    enablement: [{ kind: "workspace", uri: "file:///home/ada/project", enabled: true }],
    children: [
      { type: "skill", id: "s1", uri: "file:///p/s", name: "review-diff", description: "Reviews a diff and lists what matters.", disableModelInvocation: true },
      { type: "mcpServer", id: "m2", uri: "file:///p/m", name: "tickets", state: { kind: "authRequired", reason: "required", resource: { resource: "https://tickets.example", resource_name: "Tickets", authorization_servers: ["https://login.example"] } } },
    ] },
  { type: "directory", id: "d1", uri: "file:///home/ada/project/.github/prompts", name: "prompts", enabled: false, contents: "prompt", writable: true, load: { kind: "loaded" }, children: [{ type: "prompt", id: "pr", uri: "file:///x", name: "release-notes" }] },
  { type: "mcpServer", id: "m1", uri: "file:///home/ada/project/.mcp.json", name: "filesystem", state: { kind: "ready" }, channel: "mcp://m1" },
  { type: "mcpServer", id: "m3", uri: "file:///home/ada/project/.mcp.json", name: "browser", state: { kind: "error", error: { errorType: "spawn", message: "The program “browser-mcp” was not found." } } },
];

export { NOW };
