/** How the page behaves with a host that misbehaves: each of the complaints that users of such pages have. */

import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Locator, Page } from "playwright-core";
import type { Action } from "../../src/ahp/index.ts";
import { ScriptedHost } from "../scripted/host.ts";
import { asking, busy, call, changing, CUSTOMIZATIONS, md, pendingCall, turn } from "../scripted/scenes.ts";
import { PageServer } from "../scripted/server.ts";
import { bestPair, drawn, MEASURES, type Opened, open, PHONE, press, settled, shot, shut, until } from "./browser.ts";

let host: ScriptedHost;
let server: PageServer;
let opened: Opened[] = [];

beforeEach(async () => {
  host = new ScriptedHost();
  server = await new PageServer(host).listen();
});
afterEach(async () => {
  for (const each of opened.splice(0)) {
    expect(each.problems).toEqual([]);
    await each.close();
  }
  await server.close();
});
afterAll(shut);

async function visit(hash: string, options: Parameters<typeof open>[1] = {}): Promise<Page> {
  const made = await open(`${server.url}${hash}`, options);
  opened.push(made);
  return made.page;
}

const at = (session: string, rest = ""): string => `#/s/${encodeURIComponent(session)}${rest}`;
const dispatched = (type: string): Action[] => host.dispatched.filter((each) => each.action.type === type).map((each) => each.action);
const composer = (page: Page) => page.getByRole("textbox", { name: "Message", exact: true });

/** The browser says that there is a network again: the page dials at once, instead of after a pause that grows to 15 seconds. */
const online = (page: Page): Promise<unknown> => page.evaluate(() => window.dispatchEvent(new Event("online")));

/** Until the host has everything that the page sent so far: what is typed now comes after it. */
async function sentSoFar(page: Page): Promise<void> {
  await composer(page).press("End");
  await composer(page).pressSequentially("…");
  await until(() => dispatched("chat/draftChanged").some((action) => JSON.stringify(action).includes("…")), "the draft");
}

/** An approval in the dock of a session. */
function approval(id = "p1", input = "make test"): { session: string; chat: string } {
  const made = host.addSession(`approve-${id}`, { title: "Approve me", status: 24 });
  host.startTurn(made.chat, "t", "go");
  ask(made, id, input);
  return made;
}

function ask(made: { session: string; chat: string }, id: string, input: string, changes: Record<string, unknown> = {}): void {
  const pending = pendingCall(id, input, changes);
  host.act(made.chat, { type: "chat/toolCallStart", turnId: "t", toolCallId: id, toolName: "run_command", displayName: "Run a command" });
  const { status: _s, toolCallId: _i, toolName: _n, displayName: _d, ...ready } = pending;
  host.act(made.chat, { type: "chat/toolCallReady", turnId: "t", toolCallId: id, ...ready });
  host.need(made.session, { id: `n-${id}`, chat: made.chat, kind: "toolConfirmation", turnId: "t", toolCall: pending });
}

describe("the connection", () => {
  it("comes back by itself after a drop, with everything it missed and what was typed (1, 2, 15)", async () => {
    const { session, chat } = host.addSession("a", { title: "Dropped" });
    const page = await visit(at(session));
    await composer(page).fill("half a sentence");
    await until(() => dispatched("chat/draftChanged").length > 0, "the draft is shared");
    host.dropAll();
    host.startTurn(chat, "t1", "from elsewhere");
    host.act(chat, { type: "chat/responsePart", turnId: "t1", part: md("the answer that was missed") });
    await page.getByText("the answer that was missed").waitFor();
    expect(await composer(page).inputValue()).toBe("half a sentence");
    await page.getByText("Live").first().waitFor();
  });

  it("finds out that its link is dead when somebody looks at it again, long before it would by itself (1)", async () => {
    const { session, chat } = host.addSession("a");
    const page = await visit(at(session));
    await composer(page).waitFor();
    for (const connection of host.connections) connection.send = () => undefined; // As after a night in a pocket.
    host.startTurn(chat, "t1", "said meanwhile");
    await page.clock.install();
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await page.clock.fastForward(4_500); // By itself it takes more than thirty seconds.
    await page.getByText("said meanwhile").waitFor({ timeout: 20_000 });
    expect(await page.getByRole("alert").count(), "nothing complains").toBe(0);
  });

  it("takes a fresh snapshot when the host cannot replay (2)", async () => {
    const { session, chat } = host.addSession("a");
    const page = await visit(at(session));
    await composer(page).waitFor();
    host.dropAll();
    host.startTurn(chat, "t1", "hello");
    host.replayFrom = host.seq + 1;
    await page.getByText("hello").waitFor();
  });

  it("says since when it is offline, dims, and keeps the composer usable (3, 5)", async () => {
    const { session } = host.addSession("a");
    const page = await visit(at(session));
    await composer(page).waitFor();
    const port = server.port;
    await page.clock.install();
    await server.close();
    await page.getByText(/Offline · last update/).first().waitFor();
    const [name, state, more] = await page.locator(".pane.sessions .pane-head > *").evaluateAll((all) => all.map((each) => each.getBoundingClientRect()).map(({ left, right }) => ({ left, right })));
    expect((name?.right ?? 0) <= (state?.left ?? 0) && (state?.right ?? 0) <= (more?.left ?? 0), "nothing lies on the name").toBe(true);
    await composer(page).fill("sent while offline");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("Waiting for the connection…").waitFor();
    expect(await page.locator(".app.stale").count()).toBe(0);
    await page.clock.fastForward(11_000);
    await page.locator(".app.stale").waitFor();
    const [old, mine] = await page.evaluate(() => [".transcript", ".composer"].map((each) => getComputedStyle(document.querySelector(each) as Element).opacity));
    expect(Number(old)).toBeLessThan(1);
    expect(mine).toBe("1");
    await shot(page, "offline");
    server = await new PageServer(host).listen(port);
    await online(page);
    await page.getByText("Waiting for the connection…").waitFor({ state: "detached", timeout: 30_000 });
    expect(dispatched("chat/turnStarted")).toHaveLength(1);
  });

  it("says so once on a phone, above everything", async () => {
    const page = await visit("#/", { viewport: PHONE, hasTouch: true });
    await page.getByText("Live").locator("visible=true").waitFor();
    const port = server.port;
    await server.close();
    await page.getByText(/Offline · last update/).locator("visible=true").waitFor(); // Strict: two would be one too many.
    server = await new PageServer(host).listen(port);
    await online(page);
    await page.getByText("Live").locator("visible=true").waitFor();
  });

  it("notices that the host is another one, once", async () => {
    const { session } = host.addSession("a");
    const page = await visit(at(session));
    await composer(page).waitFor();
    host.clients.clear();
    host.meta = { "ahpkit/host": { version: "2" } };
    host.dropAll();
    await page.getByText("The host has a new version").waitFor();
  });

  it("says so when a part of the page is no longer there, as after a new version of the host", async () => {
    const page = await visit("#/");
    await page.getByText("Nothing waits for you").waitFor();
    await page.route("**/assets/settings-*", (route) => route.fulfill({ status: 404 }));
    await page.goto(`${server.url}#/settings`);
    await page.getByText("A part of the page could not be loaded.").waitFor();
    await page.unroute("**/assets/settings-*");
    await page.getByRole("button", { name: "Reload" }).click();
    await page.getByText("Theme").first().waitFor();
    opened.at(-1)?.problems.splice(0); // The browser names the file that it could not load.
  });

  it("shows a refused message with the reason, and sends it again under the same id (3, 4)", async () => {
    const { session } = host.addSession("a");
    let refuse = true;
    host.judge = (_, action) => (action.type === "chat/turnStarted" && refuse ? "the agent is not there" : undefined);
    const page = await visit(at(session));
    await composer(page).fill("please");
    await page.keyboard.press("Enter");
    await page.getByText("Not sent: the agent is not there").waitFor();
    refuse = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Not sent").waitFor({ state: "detached" });
    const [first, second] = dispatched("chat/turnStarted");
    expect(first?.turnId).toBe(second?.turnId);
  });

  it("shows again what a page that was closed had not sent, and not what had arrived after all (3, 4)", async () => {
    const { session, chat } = host.addSession("a");
    const sent: Action[] = [];
    host.judge = (_, action) => (/turnStarted|pendingMessageSet/.test(action.type) && sent.push(action) ? false : undefined);
    const page = await visit(at(session));
    for (const text of ["the first", "the second", "the third", "the fourth"]) {
      await composer(page).fill(text);
      await page.keyboard.press("Enter");
      await until(() => sent.some((action) => JSON.stringify(action).includes(text)), text);
    }
    host.judge = () => undefined;
    host.act(chat, sent[2] as Action);
    host.act(chat, { ...(sent[3] as Action), kind: "steering" });
    await page.reload();
    await page.getByText("Not sent: the page was closed").nth(1).waitFor();
    expect(await page.getByRole("alert").locator(".text").allInnerTexts()).toEqual(["the first", "the second"]);
    expect(await composer(page).inputValue()).toBe("");
    const other = await visit(at(session));
    await composer(other).waitFor();
    expect(await other.getByRole("alert").count(), "another window leaves it to this one").toBe(0);
    await page.getByRole("button", { name: "Try again" }).first().click();
    await until(() => dispatched("chat/turnStarted").length === 1, "sent");
    expect(dispatched("chat/turnStarted")[0]?.turnId).toBe(sent[0]?.turnId);
    await page.getByRole("button", { name: "Discard" }).click();
    await page.getByText("Not sent").waitFor({ state: "detached" });
    await page.reload();
    await composer(page).waitFor();
    await drawn(page);
    expect(await page.getByText("Not sent").count()).toBe(0);
  });

  it("keeps a draft over a reload (15)", async () => {
    host.judge = (_, action) => (action.type === "chat/draftChanged" ? "this host keeps no drafts" : undefined);
    const { session } = host.addSession("a");
    const other = host.addSession("b");
    const page = await visit(at(session));
    await composer(page).fill("not finished");
    await page.goto(`${server.url}${at(other.session)}`);
    await page.waitForFunction(() => document.querySelector("textarea")?.value === "");
    await page.goto(`${server.url}${at(session)}`);
    await page.reload();
    await composer(page).waitFor();
    expect(await composer(page).inputValue()).toBe("not finished");
  });
});

describe("approvals", () => {
  it("never take the focus, and typing never lands on them (7)", async () => {
    const made = host.addSession("a");
    host.startTurn(made.chat, "t", "go");
    const page = await visit(at(made.session));
    await composer(page).click();
    await page.keyboard.type("I am ty");
    ask(made, "p1", "rm -rf build");
    await page.locator(".dock .approval").waitFor();
    await page.keyboard.type("ping");
    await page.keyboard.press("Space");
    expect(await composer(page).inputValue()).toBe("I am typing ");
    expect(dispatched("chat/toolCallConfirmed")).toEqual([]);
    expect(await composer(page).evaluate((element) => document.activeElement === element)).toBe(true);
  });

  it("ignore a press in the moment they appear (7)", async () => {
    const made = host.addSession("a");
    host.startTurn(made.chat, "t", "go");
    const page = await visit(at(made.session));
    await composer(page).waitFor();
    await page.evaluate(() => {
      new MutationObserver((_, observer) => {
        const button = [...document.querySelectorAll<HTMLButtonElement>(".dock .approval .btn.primary")][0];
        if (!button) return;
        observer.disconnect();
        button.click();
        document.body.dataset.pressed = "yes";
      }).observe(document.body, { subtree: true, childList: true });
    });
    ask(made, "p1", "make");
    await page.waitForFunction(() => document.body.dataset.pressed === "yes");
    await settled(page.locator(".dock .approval"));
    expect(dispatched("chat/toolCallConfirmed")).toEqual([]);
    await page.locator(".dock .approval").getByRole("button", { name: "Allow once" }).click();
    await until(() => dispatched("chat/toolCallConfirmed").length === 1, "allowed");
    expect(dispatched("chat/toolCallConfirmed")[0]).toMatchObject({ approved: true, confirmed: "user-action", selectedOptionId: "allow" });
  });

  it("show the whole command, wrapped, however long (8)", async () => {
    const long = [`curl https://example.com/${"x".repeat(600)}`, ...Array.from({ length: 40 }, (_, index) => `step ${index} --with a-long-argument-${index}`)].join("\n");
    const { session } = approval("p1", long);
    const page = await visit(at(session));
    const payload = page.locator(".dock .approval .payload");
    expect(await payload.textContent()).toBe(long);
    expect(await payload.evaluate((element) => element.scrollWidth - element.clientWidth), "hangs out to the right").toBeLessThanOrEqual(0);
    await shot(page, "approval-40-lines");
  });

  it("leave room for the command, however long an agent talks about it (8)", async () => {
    const made = host.addSession("talks", { title: "Talks", status: 24 });
    host.startTurn(made.chat, "t", "go");
    const talk = "because it is safe ".repeat(200);
    ask(made, "p1", "rm -rf ~", { displayName: talk, confirmationTitle: talk, invocationMessage: talk, intention: talk, riskAssessment: { status: "complete", safety: 0.9, reason: talk } });
    for (const viewport of [PHONE, { width: 1280, height: 800 }]) {
      const page = await visit(at(made.session), { viewport });
      await settled(page.locator(".dock .approval"));
      const seen = await page.locator(".dock .approval .payload").evaluate((element) => {
        const box = element.getBoundingClientRect();
        return document.elementFromPoint(box.left + box.width / 2, box.bottom - 4) === element;
      });
      expect(seen, `${viewport.width}`).toBe(true);
    }
  });

  it("hide nothing: what nobody sees has a name, numbers keep their digits, and a name that comes twice is there twice (8)", async () => {
    const made = approval("p1", "rm -rf \u202e/pmt/\u202c\u200b # \u{e0041} a\u00a0b\u3164c\u2028d\re\u200df 👩\u200d💻\r\n");
    ask(made, "p2", '{"amount": 12345678901234567890, "path": "a", "path": "b"}');
    const page = await visit(at(made.session));
    const payload = page.locator(".dock .approval .payload");
    const side = (text: string) => ({ uri: "file:///home/ada/project/a.py", content: { uri: `x:/${encodeURIComponent(text)}` } });
    const [before, after] = ["ok = True  # 😀\r\nend\r\n", "if admin: \u202e# 😁\r\nend\r\n"];
    for (const text of [before, after]) host.resources.set(side(text).content.uri, { data: text });
    ask(made, "p3", "{}", { edits: { items: [{ before: side(before), after: side(after), diff: { added: 1, removed: 1 } }] } });
    await expect.poll(() => payload.textContent()).toBe("rm -rf U+202E/pmt/U+202CU+200B # U+E0041 aU+00A0bU+3164cU+2028dU+000DeU+200Df 👩\u200d💻\r\n");
    await shot(page, "approval-unseen");
    await page.locator(".dock .approval").getByRole("button", { name: "Next" }).click();
    await expect.poll(() => payload.locator("dd").allTextContents()).toEqual(["12345678901234567890", "a", "b"]);
    await page.locator(".dock .approval").getByRole("button", { name: "Next" }).click();
    await expect.poll(() => page.locator(".dock .diff-row:not(.hunk) .tx").allTextContents()).toEqual(["− Removed: ok = True  # 😀", "+ Added: if admin: U+202E# 😁", "  end"]);
    await page.locator(".dock .approval").getByRole("button", { name: "Previous" }).click();
    await page.locator(".dock .approval").getByRole("button", { name: "Edit input" }).click();
    await settled(page.locator(".dock .approval"));
    await page.locator(".dock .approval").getByRole("button", { name: "Allow as edited" }).click();
    await until(() => dispatched("chat/toolCallConfirmed").length === 1, "allowed");
    expect(String(dispatched("chat/toolCallConfirmed")[0]?.editedToolInput)).toContain("12345678901234567890");
  });

  it("say that a payload was shortened before it came here (8)", async () => {
    const made = host.addSession("a", { status: 24 });
    host.startTurn(made.chat, "t", "go");
    host.act(made.chat, { type: "chat/toolCallStart", turnId: "t", toolCallId: "x", toolName: "bash", displayName: "Bash" });
    host.act(made.chat, { type: "chat/toolCallReady", turnId: "t", toolCallId: "x", invocationMessage: "Run", toolInput: `rm -rf ~ #\r${"x".repeat(300_000)}`, _meta: { "ahpkit/truncated": true } });
    const page = await visit(at(made.session));
    await page.locator(".dock").getByText("its middle is left out").waitFor();
    await page.locator(".dock .payload").getByText("rm -rf ~").waitFor();
    expect(await page.locator(".dock .payload").textContent()).toMatch(/not shown/);
    await page.locator(".dock").getByRole("button", { name: "Show all" }).click();
    await expect.poll(async () => (await page.locator(".dock .payload").textContent())?.length).toBeGreaterThan(300_000);
  });

  it("of a helper rise to the session and the inbox, and go when the host says so (9)", async () => {
    const made = host.addSession("root", { title: "With a helper", status: 24 });
    const helper = "ahp-chat:/helper";
    host.put(helper, { resource: helper, title: "Look around", status: 24, modifiedAt: "2026-01-05T10:00:00.000Z", turns: [], origin: { kind: "tool", chat: made.chat, toolCallId: "s" }, interactivity: "read-only" }, "chat");
    host.act(made.session, { type: "session/chatAdded", summary: { resource: helper, title: "Look around", status: 24, modifiedAt: "2026-01-05T10:00:00.000Z", origin: { kind: "tool", chat: made.chat, toolCallId: "s" } } });
    host.startTurn(helper, "h", "look");
    host.need(made.session, { id: "n1", chat: helper, kind: "toolConfirmation", turnId: "h", toolCall: pendingCall("hp", "ls") });
    const page = await visit("#/");
    await page.getByText("› Look around").waitFor();
    await page.goto(`${server.url}${at(made.session)}`);
    await page.locator(".dock").getByText("› Look around").waitFor();
    host.unneed(made.session, "n1");
    await page.locator(".dock .approval").waitFor({ state: "detached" });
  });

  it("that only a chat tells of rise as well, where a host keeps no queue in the session (9)", async () => {
    const made = approval();
    host.unneed(made.session, "n-p1");
    host.summarize(made.session, { status: 24 });
    host.act(made.session, { type: "session/chatUpdated", chat: made.chat, changes: { status: 24 } });
    const page = await visit("#/");
    const card = page.locator("main .approval");
    await card.getByText("make test").first().waitFor();
    await press(card, "Deny");
    await until(() => dispatched("chat/toolCallConfirmed").length === 1, "denied");
  });

  it("spell out what a wider answer covers, in a menu (10)", async () => {
    const { session } = approval();
    const page = await visit(at(session));
    await page.locator(".dock .approval").getByRole("button", { name: "More answers" }).click();
    await page.locator("[popover]:popover-open").getByText("Kept until the session ends.").waitFor();
    await settled(page.locator(".dock .approval"));
    await page.locator("[popover]:popover-open").getByText("in this session").click();
    await until(() => dispatched("chat/toolCallConfirmed").length === 1, "answered");
    expect(dispatched("chat/toolCallConfirmed")[0]?.selectedOptionId).toBe("allow-session");
  });

  it("can be denied with a note, and allowed with an edited input", async () => {
    const made = approval();
    const page = await visit(at(made.session));
    const dock = page.locator(".dock .approval");
    await dock.getByRole("button", { name: "Add a note" }).click();
    await dock.getByRole("textbox").fill("use ninja");
    await settled(dock);
    await dock.getByRole("button", { name: "Deny" }).click();
    await until(() => dispatched("chat/toolCallConfirmed").length === 1, "denied");
    expect(dispatched("chat/toolCallConfirmed")[0]).toMatchObject({ approved: false, reason: "denied", reasonMessage: "use ninja" });
    host.unneed(made.session, "n-p1");
    ask(made, "p2", "make all");
    await dock.getByRole("button", { name: "Edit input" }).click();
    await dock.getByRole("textbox").fill("make some");
    await settled(dock);
    await dock.getByRole("button", { name: "Allow as edited" }).click();
    await until(() => dispatched("chat/toolCallConfirmed").length === 2, "allowed");
    expect(dispatched("chat/toolCallConfirmed")[1]).toMatchObject({ approved: true, editedToolInput: "make some" });
  });

  it("turn no words around: who asks, for what and why are shown as they are (8)", async () => {
    const made = host.addSession("turned", { title: "Turned", status: 24 });
    host.startTurn(made.chat, "t", "go");
    ask(made, "p1", "ls", { displayName: "List \u202efiles", intention: "To \u202elook", riskAssessment: { status: "complete", safety: 0.1, reason: "It \u202eis" } });
    const page = await visit(at(made.session));
    const card = page.locator(".dock .approval");
    await card.waitFor();
    expect(await card.locator(".unseen").allTextContents()).toEqual(["U+202E", "U+202E", "U+202E"]);
    expect(await card.textContent()).not.toContain("\u202e");
  });

  it("keep what was begun beside one while another one is looked at, and say what a rule of this host covers (10)", async () => {
    const made = approval("p1", "npm ci && npm run build");
    ask(made, "p2", "make", { options: [{ id: "allow", label: "Allow once", kind: "approve", group: 0 }, { id: "allow:tool:chat", label: "Always allow shell in this chat", kind: "approve" }, { id: "allow:tool:global", label: "Always allow shell everywhere", kind: "approve" }, { id: "deny", label: "Deny", kind: "deny", group: 0 }] });
    const page = await visit(at(made.session));
    const card = page.locator(".dock .approval");
    await card.getByRole("button", { name: "Add a note" }).click();
    await card.getByLabel(/Why not/).fill("Use make instead");
    await card.getByRole("button", { name: "Next" }).click();
    await card.getByRole("button", { name: /Always/ }).click();
    await page.getByRole("menu").getByText("Every call of this tool, whatever its input").waitFor();
    await page.keyboard.press("Escape");
    await card.getByRole("button", { name: "Previous" }).click();
    expect(await card.getByLabel(/Why not/).inputValue()).toBe("Use make instead");
    await settled(card);
    await card.getByRole("button", { name: "Deny", exact: true }).click();
    await until(() => dispatched("chat/toolCallConfirmed").length === 1, "denied");
    expect(dispatched("chat/toolCallConfirmed")[0]).toMatchObject({ approved: false, reasonMessage: "Use make instead" });
  });

  it("of a result show it, and use or discard it", async () => {
    const made = host.addSession("result", { title: "Result", status: 24 });
    host.startTurn(made.chat, "t", "go");
    const shown = { ...pendingCall("r1", "cat secrets.txt"), status: "pending-result-confirmation", content: [{ type: "text", text: "forty-two" }], success: true, pastTenseMessage: "Ran it" };
    host.need(made.session, { id: "n-r1", chat: made.chat, kind: "toolConfirmation", turnId: "t", toolCall: shown });
    const page = await visit(at(made.session));
    const dock = page.locator(".dock .approval");
    await dock.getByText("forty-two").waitFor();
    await settled(dock);
    await dock.getByRole("button", { name: "Use the result" }).click();
    await until(() => dispatched("chat/toolCallResultConfirmed").length === 1, "confirmed");
    expect(dispatched("chat/toolCallResultConfirmed")[0]).toMatchObject({ toolCallId: "r1", approved: true });
  });

  it("that are several are counted, and listed before all can be allowed", async () => {
    const made = approval("p1");
    ask(made, "p2", "make two");
    ask(made, "p3", "make three");
    const page = await visit(at(made.session));
    const dock = page.locator(".dock .approval");
    await dock.getByText("1 of 3").waitFor();
    expect(await page.getByRole("button", { name: /Allow all/ }).count()).toBe(0);
    await dock.getByRole("button", { name: "List all" }).click();
    await dock.getByText("make three").waitFor();
    await settled(dock);
    await dock.getByRole("button", { name: "Allow all 3 once" }).click();
    await until(() => dispatched("chat/toolCallConfirmed").length === 3, "all allowed");
  });

  it("of one session are in the inbox in the order in which they were asked, and a long form leaves room for them", async () => {
    const made = approval("p1", "make first");
    ask(made, "p2", "make second");
    asking(host);
    const page = await visit("#/");
    await page.locator("main .approval").nth(1).waitFor();
    const commands = await page.locator("main .approval .payload").allTextContents();
    expect(commands).toEqual(["make first", "make second"]);
    expect(await page.getByText("A name for the module").count()).toBe(0);
    await page.getByRole("button", { name: "Answer 5 questions" }).click();
    await page.locator("form.card.needs").getByText("A name for the module").first().waitFor();
  });

  it("answered in one window close in the other, and a second answer is refused in words", async () => {
    const { session } = approval();
    const one = await visit(at(session));
    const two = await visit(at(session));
    let answers = 0;
    host.judge = (_, action) => (action.type === "chat/toolCallConfirmed" && ++answers > 1 ? "tool call 'p1' is running, not pending-confirmation" : undefined);
    const press = async (page: Page, name: string): Promise<void> => {
      await settled(page.locator(".dock .approval"));
      await page.locator(".dock .approval").getByRole("button", { name }).click();
    };
    await press(one, "Allow once");
    await until(() => answers === 1, "the first answer");
    await press(two, "Deny"); // The other window has not heard of the first answer yet.
    await two.getByText("It was answered already, in another window.").first().waitFor();
    host.unneed(session, "n-p1");
    for (const page of [one, two]) await page.locator(".dock .approval").waitFor({ state: "detached" });
    expect(dispatched("chat/toolCallConfirmed").map((action) => action.approved)).toEqual([true, false]);
    expect(host.states.get("ahp-chat:/approve-p1")?.activeTurn.responseParts[0].toolCall.status).toBe("running");
  });

  it("are not closed by Escape, which stops nothing either (13)", async () => {
    const { session } = approval();
    const page = await visit(at(session));
    await page.locator(".dock .approval").waitFor();
    await page.keyboard.press("Escape");
    await composer(page).press("Escape");
    await sentSoFar(page);
    expect(host.dispatched.filter((each) => /toolCall|turnCancelled|inputCompleted/.test(each.action.type))).toEqual([]);
    expect(await page.locator(".dock .approval").count()).toBe(1);
  });

  it("are not answered by a message (14)", async () => {
    const { session } = approval();
    const page = await visit(at(session));
    await composer(page).fill("no, wait");
    await page.getByRole("button", { name: "Queue", exact: true }).click();
    await until(() => dispatched("chat/pendingMessageSet").length === 1, "queued");
    expect(dispatched("chat/toolCallConfirmed")).toEqual([]);
  });
});

describe("questions", () => {
  it("are forms whose drafts other windows see; even one choice needs Submit", async () => {
    const { session } = asking(host);
    const one = await visit(at(session));
    const two = await visit(at(session));
    await one.getByLabel("Synchronous", { exact: false }).first().check();
    await two.waitForFunction(() => (document.querySelector("form.card input[type=radio]") as HTMLInputElement)?.checked);
    expect(dispatched("chat/inputCompleted")).toEqual([]);
    await two.getByRole("spinbutton").fill("8");
    await until(() => dispatched("chat/inputAnswerChanged").length >= 2, "shared");
    await one.waitForFunction(() => (document.querySelector("form.card input[type=number]") as HTMLInputElement)?.value === "8");
    await one.getByRole("button", { name: "Submit" }).click();
    await until(() => dispatched("chat/inputCompleted").length === 1, "submitted");
    expect(dispatched("chat/inputCompleted")[0]).toMatchObject({ response: "accept", answers: { style: { state: "submitted", value: { kind: "selected", value: "sync" } }, workers: { value: { kind: "number", value: 8 } } } });
    await two.getByText("Answered").waitFor();
  });

  it("take a number back that somebody erased", async () => {
    const { session } = asking(host);
    const page = await visit(at(session));
    await page.getByLabel("Synchronous", { exact: false }).first().check();
    await page.getByRole("spinbutton").fill("8");
    await until(() => dispatched("chat/inputAnswerChanged").some((action) => action.questionId === "workers"), "shared");
    await page.getByRole("spinbutton").fill("");
    await page.getByRole("button", { name: "Submit" }).click();
    await until(() => dispatched("chat/inputCompleted").length === 1, "submitted");
    expect(Object.keys(dispatched("chat/inputCompleted")[0]?.answers as object)).toEqual(["style"]);
  });

  it("begin in sight, say which required answer is missing, and bring one there", async () => {
    const { session } = asking(host);
    const page = await visit(at(session), { viewport: { width: 390, height: 500 } });
    await page.getByRole("button", { name: "To the end" }).waitFor();
    const beginning = (here: Page): Promise<number> => here.locator("form.card.needs").evaluate((form) => form.getBoundingClientRect().top - (form.closest(".transcript") as Element).getBoundingClientRect().top);
    expect(Math.round(await beginning(page))).toBe(8);
    const desk = await visit(at(session), { viewport: { width: 1280, height: 800 } }); // The form fits, and what follows it does not.
    await desk.getByText("Waiting for you").waitFor();
    await drawn(desk);
    expect(await beginning(desk)).toBeGreaterThanOrEqual(0);
    await page.getByRole("button", { name: "Submit" }).click();
    await page.getByText("This one needs an answer.").waitFor();
    await page.waitForFunction(() => document.activeElement?.closest(".question")?.textContent?.includes("This one needs"));
    const inSight = await page.evaluate(() => {
      const { top, bottom } = (document.activeElement as Element).getBoundingClientRect();
      return top > 0 && bottom < innerHeight;
    });
    expect(inSight).toBe(true);
    expect(dispatched("chat/inputCompleted")).toEqual([]);
  });

  it("that came too late stay, and go out as a message (12)", async () => {
    const { session, chat } = asking(host);
    const page = await visit(at(session));
    await page.locator("form.card").getByRole("textbox").last().fill("streams");
    await until(() => dispatched("chat/inputAnswerChanged").length > 0, "shared");
    host.act(chat, { type: "chat/turnComplete", turnId: "q", duration: 5 });
    await page.getByRole("button", { name: "Send as message" }).click();
    await until(() => dispatched("chat/turnStarted").length === 1, "sent");
    expect(JSON.stringify(dispatched("chat/turnStarted")[0])).toContain("streams");
  });
});

describe("a device that may watch", () => {
  it("is offered nothing that it may not do, and sends nothing", async () => {
    const { session, chat } = asking(host);
    host.act(chat, { type: "chat/pendingMessageSet", kind: "queued", id: "q0", message: { text: "later", origin: { kind: "user" } } });
    ask({ session, chat }, "p1", "make test");
    const ended = host.addSession("ended", { title: "Ended", status: 1 }, { turns: [turn("t1", "one", [md("1")])] });
    const watching = await new PageServer(host, () => ({ right: "watch", pairing: { possible: false } })).listen();
    const seen = await open(`${watching.url}#/`);
    opened.push(seen);
    const offered = async (where: string): Promise<string[]> => (await seen.page.locator(where).getByRole("button").allInnerTexts()).map((each) => each.trim()).filter((each) => each && !each.startsWith("To the end")).sort();
    await seen.page.getByText("This device may watch only.").first().waitFor();
    expect(await offered("main")).toEqual(["Show 5 questions", "Turn on notifications"]);
    await seen.page.goto(`${watching.url}${at(session)}`);
    await seen.page.locator(".queue").waitFor();
    await seen.page.getByRole("link", { name: "New session" }).waitFor({ state: "detached" });
    expect(await offered("main")).toEqual(["Show it"]);
    await seen.page.goto(`${watching.url}${at(ended.session)}`);
    await seen.page.getByRole("button", { name: "Copy" }).waitFor();
    expect(await offered("main")).toEqual(["Copy"]);
    await seen.page.getByRole("button", { name: "This session" }).click();
    expect(await seen.page.getByRole("menuitem").allInnerTexts()).not.toContain("Rename");
    await drawn(seen.page);
    expect(host.dispatched).toEqual([]);
    await watching.close();
  });
});

describe("the composer", () => {
  it("has the session's modes everywhere (11)", async () => {
    const made = host.addSession("m");
    const state = host.states.get(made.session) as Record<string, unknown>;
    host.put(made.session, { ...state, config: { schema: { type: "object", properties: { mode: { type: "string", title: "Mode", enum: ["plan", "code"], enumLabels: ["Plan", "Code"], sessionMutable: true } } }, values: { mode: "plan" } } }, "session");
    const page = await visit(at(made.session), { viewport: PHONE, hasTouch: true });
    await page.getByRole("combobox", { name: "Mode", exact: true }).selectOption("code");
    await until(() => dispatched("session/configChanged").length === 1, "changed");
    expect(dispatched("session/configChanged")[0]?.config).toEqual({ mode: "code" });
  });

  it("queues, edits, reorders, steers and takes back (24)", async () => {
    const made = host.addSession("q");
    host.startTurn(made.chat, "t", "go");
    const page = await visit(at(made.session));
    for (const text of ["first", "second", "third"]) {
      await composer(page).fill(text);
      await page.keyboard.press("Enter");
      await page.locator(".queue li", { hasText: text }).waitFor();
    }
    await shot(page, "queue");
    await page.locator(".queue li").nth(2).getByRole("button", { name: "Move up" }).click();
    await page.locator(".queue li").nth(1).getByText("third").waitFor();
    await page.locator(".queue li").nth(0).getByRole("button", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Queued message" }).fill("first,\nbetter");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("first,\nbetter").waitFor();
    expect(dispatched("chat/pendingMessageSet").at(-1)).toMatchObject({ message: { text: "first,\nbetter" } });
    await page.locator(".queue li").nth(2).getByRole("button", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.locator(".queue li", { hasText: "second" }).waitFor();
    await page.locator(".queue li").nth(0).getByRole("button", { name: "Steer" }).click();
    await page.getByText("Steering").waitFor();
    await page.getByRole("button", { name: /Stop/ }).first().click();
    await until(() => dispatched("chat/turnCancelled").length === 1, "stopped");
  });

  it("has every part of the queue within reach of a thumb, however long a message is (24)", async () => {
    const made = host.addSession("q");
    host.startTurn(made.chat, "t", "go");
    for (const [index, text] of ["short", "Then run the tests and tell me which of them are slower than before, in a table with all the numbers", "last"].entries())
      host.act(made.chat, { type: "chat/pendingMessageSet", kind: "queued", id: `q${index}`, message: { text, origin: { kind: "user" } } });
    const page = await visit(at(made.session), { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true });
    await page.locator(".queue li").nth(2).waitFor();
    const beyond = await page.locator(".queue li .btn:visible").evaluateAll((all) => all.map((each) => each.getBoundingClientRect()).filter((box) => box.right > 360 || box.height < 44).length);
    expect(beyond).toBe(0);
    await page.locator(".queue li").nth(1).getByRole("button", { name: "What to do with this message" }).click();
    await page.getByRole("menuitem", { name: "Move up" }).click();
    await page.locator(".queue li").nth(0).getByText("Then run the tests").waitFor();
    await page.locator(".queue li").nth(0).getByRole("button", { name: "Edit" }).click();
    await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Queued message");
  });

  it("keeps a queued message that the agent cannot be steered with, and gives one back whole", async () => {
    const made = host.addSession("q");
    host.startTurn(made.chat, "t", "go");
    const message = { text: "with a file", origin: { kind: "user" }, attachments: [{ type: "simple", label: "notes.md" }] };
    host.act(made.chat, { type: "chat/pendingMessageSet", kind: "queued", id: "q0", message });
    host.judge = (_, action) => (action.kind === "steering" ? "this agent cannot be steered" : undefined);
    const page = await visit(at(made.session));
    await page.locator(".queue li").getByRole("button", { name: "Steer" }).click();
    await page.getByText("this agent cannot be steered").first().waitFor();
    expect(dispatched("chat/pendingMessageRemoved")).toEqual([]);
    await page.locator(".queue li").getByRole("button", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await until(() => dispatched("chat/pendingMessageSet").some((action) => action.kind === "queued"), "given back");
    expect(dispatched("chat/pendingMessageSet").find((action) => action.kind === "queued")?.message).toEqual(message);
  });

  it("replaces no steering message that still waits: the next one is queued; one that is taken back can be put back", async () => {
    const made = host.addSession("s");
    host.startTurn(made.chat, "t", "go");
    const page = await visit(at(made.session));
    for (const text of ["look left", "look right"]) {
      await composer(page).fill(text);
      await page.getByRole("button", { name: "Ways to send" }).click();
      await page.getByRole("menuitem", { name: /Steer now/ }).click();
      await page.locator(".queue li", { hasText: text }).waitFor();
    }
    const kinds = (): unknown[] => dispatched("chat/pendingMessageSet").map((action) => [action.kind, (action.message as { text: string }).text]);
    expect(kinds()).toEqual([["steering", "look left"], ["queued", "look right"]]);
    expect(await page.locator(".queue li").getByRole("button", { name: "Steer", exact: true }).count()).toBe(0);
    await page.getByRole("button", { name: "Take the steering message back" }).click();
    await page.locator(".queue li").getByRole("button", { name: "Steer", exact: true }).waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await until(() => kinds().length === 3, "put back");
    expect(kinds()[2]).toEqual(["steering", "look left"]);
  });

  it("says how many completions there are beyond those it shows", async () => {
    const made = host.addSession("many");
    const item = (number: number) => ({ insertText: `/skill-${number}`, attachment: { type: "simple", label: `/skill-${number}`, _meta: { description: "Sorts a list" } } });
    host.methods.completions = () => ({ items: Array.from({ length: 60 }, (_, number) => item(number)), _meta: { "ahpkit/more": 5 } });
    const page = await visit(at(made.session));
    await composer(page).click();
    await page.keyboard.type("/sk");
    await page.getByRole("option", { name: "/skill-7 Sorts a list" }).waitFor();
    await page.getByText("15 more. Type on to find them.").waitFor();
    expect(await page.locator(".completions [role=option]").count()).toBe(50);
  });

  it("completes, attaches a pasted image and a dropped file, and shares its draft", async () => {
    const made = host.addSession("c");
    const commands = { help: "What I can do", hello: "Says hello" };
    const items = Object.entries(commands).map(([name, label]) => ({ insertText: `/${name}`, rangeStart: 0, rangeEnd: 3, attachment: { type: "simple", label } }));
    host.methods.completions = ({ text }) => (text === "/he" ? { items } : new Promise(() => undefined));
    const page = await visit(at(made.session));
    await composer(page).click();
    await page.keyboard.type("/he");
    await page.getByRole("option", { name: /hello/ }).waitFor();
    await page.keyboard.type("l"); // The host has not answered for this letter yet.
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await composer(page).inputValue()).toBe("/hello");
    expect(dispatched("chat/turnStarted")).toEqual([]);
    await composer(page).evaluate((element) => {
      const data = new DataTransfer();
      data.items.add(new File([Uint8Array.from(atob("R0lGODlhAQABAAAAACwAAAAAAQABAAA="), (char) => char.charCodeAt(0))], "dot.gif", { type: "image/gif" }));
      element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    });
    await page.locator(".attachments img").waitFor();
    await composer(page).fill(`${"QUJD".repeat(100_000)} /h`); // A long word that was pasted holds up nothing.
    await composer(page).press("End");
    await page.keyboard.type("e");
    await until(() => host.requests.at(-1)?.params.text?.endsWith(" /he"), "asked for completions");
    await composer(page).fill("/hello");
    const drag = (type: string, size: number) => page.locator(".transcript").evaluate((element, [kind, length]) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(length)], "notes.bin"));
      const event = new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
      element.dispatchEvent(event);
      return event.defaultPrevented;
    }, [type, size] as const);
    expect(await drag("dragover", 3), "the browser does not leave the page for it").toBe(true);
    await page.locator(".composer.dropping").waitFor();
    expect(await drag("drop", 6_000_000)).toBe(true);
    await page.locator(".composer:not(.dropping) .attachments").getByText("notes.bin").waitFor();
    expect(await page.evaluate((key) => JSON.parse(localStorage.getItem(key) ?? "{}").text, `ahpkit:draft:${made.chat}`), "too large to be kept, but what was typed is").toBe("/hello");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await until(() => dispatched("chat/turnStarted").length === 1, "sent");
    expect(dispatched("chat/turnStarted")[0]?.message).toMatchObject({ text: "/hello", attachments: [{ type: "embeddedResource", contentType: "image/gif" }, { type: "embeddedResource", label: "notes.bin" }] });
  });

  it("does not send while an input method composes", async () => {
    const made = host.addSession("i");
    const page = await visit(at(made.session));
    await composer(page).fill("にほん");
    await composer(page).evaluate((element) => element.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true })));
    await sentSoFar(page);
    expect(dispatched("chat/turnStarted")).toEqual([]);
  });

  it("edits and resends with what was attached, to the same model, and forks", async () => {
    const WITH = { origin: { kind: "user" }, attachments: [{ type: "simple", label: "notes.md" }], model: { id: "large" } };
    const made = host.addSession("e", {}, { turns: [turn("t1", "one", [md("1")]), turn("t2", "two", [md("2")], { message: { text: "two", ...WITH } })] });
    host.methods.createChat = (params) => {
      host.put(params.chat, { resource: params.chat, title: "", status: 1, modifiedAt: "2026-01-05T10:00:00.000Z", turns: [] }, "chat");
      host.act(made.session, { type: "session/chatAdded", summary: { resource: params.chat, title: "Fork", status: 1, modifiedAt: "2026-01-05T10:00:00.000Z" } });
      return null;
    };
    const page = await visit(at(made.session));
    await page.locator(".turn").nth(1).hover();
    await page.locator(".turn").nth(1).getByRole("button", { name: "Edit and resend" }).click();
    await page.getByRole("textbox", { name: "Edit the message" }).fill("two, again");
    await page.locator("form.said").getByRole("button", { name: "Send", exact: true }).click();
    await until(() => dispatched("chat/turnStarted").length === 1, "resent");
    expect(dispatched("chat/truncated")[0]?.turnId).toBe("t1");
    expect(dispatched("chat/turnStarted")[0]?.message).toEqual({ text: "two, again", ...WITH });
    host.act(made.chat, { type: "chat/turnComplete", turnId: dispatched("chat/turnStarted")[0]?.turnId, duration: 3 });
    await page.locator(".turn").nth(0).hover();
    await page.locator(".turn").nth(0).getByRole("button", { name: "More about this turn" }).click();
    await page.getByRole("menuitem", { name: "Fork from here" }).click();
    await until(() => host.requests.some((each) => each.method === "createChat"), "forked");
    expect(host.requests.find((each) => each.method === "createChat")?.params.source).toMatchObject({ kind: "fork", turnId: "t1" });
  });
});

describe("the transcript", () => {
  it("follows the end, and lets go when somebody reads above (18)", async () => {
    const made = host.addSession("s", {}, { turns: Array.from({ length: 12 }, (_, index) => turn(`t${index}`, `question ${index}`, [md(`${"a long answer. ".repeat(40)}`)])) });
    host.startTurn(made.chat, "t", "go");
    host.act(made.chat, { type: "chat/responsePart", turnId: "t", part: md("start", "m1") });
    const page = await visit(at(made.session));
    const log = page.getByRole("log");
    await page.locator(".md", { hasText: "start" }).waitFor();
    const bottom = (): Promise<number> => log.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight);
    await page.waitForFunction(() => {
      const element = document.querySelector(".transcript");
      return element !== null && element.scrollHeight - element.scrollTop - element.clientHeight < 50;
    });
    await log.hover();
    await page.mouse.wheel(0, -1500);
    await page.getByRole("button", { name: /New output/ }).waitFor();
    const before = await log.evaluate((element) => element.scrollTop);
    for (let index = 0; index < 30; index += 1) host.act(made.chat, { type: "chat/delta", turnId: "t", partId: "m1", content: `\n\nmore ${index}` });
    await page.getByText("more 29").waitFor({ state: "attached" });
    await drawn(page);
    expect(Math.abs((await log.evaluate((element) => element.scrollTop)) - before)).toBeLessThan(5);
    await page.getByRole("button", { name: /New output/ }).click();
    await expect.poll(bottom, { timeout: 20_000 }).toBeLessThan(50);
  });

  it("mounts a window of turns, adds earlier ones and holds its place (19)", MEASURES, async () => {
    const turns = Array.from({ length: 5_000 }, (_, index) => turn(`t${index}`, `question ${index}`, [md(`answer ${index} ${"text ".repeat(60)}`)]));
    const long = host.addSession("long", { title: "Long" }, { turns });
    const short = host.addSession("short", { title: "Short" }, { turns: turns.slice(-50) });
    const time = async (session: string): Promise<number> => {
      const page = await visit("#/sessions");
      await page.getByText("Long").first().waitFor();
      const begun = Date.now();
      await page.evaluate((hash) => (location.hash = hash), at(session));
      await page.getByText("answer 4999").waitFor();
      return Date.now() - begun;
    };
    const allowed = (first: number): number => first * 2 + 250;
    const [first, second] = await bestPair(async () => [await time(short.session), await time(long.session)], allowed);
    expect(second).toBeLessThan(allowed(first));
    const page = opened.at(-1)?.page as Page;
    expect(await page.locator(".turn").count()).toBe(60);
    await page.getByRole("log").hover();
    await expect.poll(async () => {
      await page.mouse.wheel(0, -5_000); // As a person scrolls: the page lets go of the end.
      return page.getByRole("log").evaluate((element) => element.scrollTop);
    }, { timeout: 20_000 }).toBe(0);
    await drawn(page);
    const place = (): Promise<number> => page.getByText("question 4940", { exact: true }).evaluate((element) => element.getBoundingClientRect().top);
    const held = await place();
    await page.getByRole("button", { name: "Earlier turns" }).click();
    await page.getByText("question 4900", { exact: true }).waitFor({ state: "attached" });
    expect(await page.locator(".turn").count()).toBe(100);
    await expect.poll(async () => Math.abs((await place()) - held), { timeout: 10_000 }).toBeLessThan(60);
  });

  it("brings the turn that a search found into view, however far up, and stays there", async () => {
    const made = host.addSession("far", {}, { turns: Array.from({ length: 300 }, (_, index) => turn(`t${index}`, `question ${index}`, [md(`answer ${"text ".repeat(index)}`)])) });
    const page = await visit(at(made.session, `/${encodeURIComponent(made.chat)}?turn=t20`));
    const found = page.locator(".turn.named");
    const top = (): Promise<number> => found.evaluate((element) => element.getBoundingClientRect().top - (element.closest(".transcript") as Element).getBoundingClientRect().top);
    await found.getByText("question 20", { exact: true }).waitFor();
    await expect.poll(async () => Math.abs(await top())).toBeLessThan(60);
    host.startTurn(made.chat, "new", "one more");
    await page.getByText("one more", { exact: true }).waitFor({ state: "attached" });
    await drawn(page);
    expect(Math.abs(await top())).toBeLessThan(60);
    await page.getByRole("button", { name: /New output/ }).click();
    await page.getByText("one more", { exact: true }).waitFor();
  });

  it("keeps its window while turns are added to a chat that is open (19)", async () => {
    const made = host.addSession("grows", {}, { turns: Array.from({ length: 50 }, (_, index) => turn(`t${index}`, `question ${index}`, [md("x")])) });
    const page = await visit(at(made.session));
    await page.getByText("question 49", { exact: true }).waitFor();
    for (let number = 50; number < 80; number += 1) {
      host.startTurn(made.chat, `t${number}`, `question ${number}`);
      host.act(made.chat, { type: "chat/turnComplete", turnId: `t${number}`, duration: 5 });
    }
    await page.getByText("question 79", { exact: true }).waitFor();
    expect(await page.locator(".turn").count()).toBe(60);
    await page.getByRole("button", { name: "Earlier turns" }).click();
    await page.getByText("question 0", { exact: true }).waitFor({ state: "attached" });
  });

  it("draws the end of a turn with thousands of parts, and the rest when asked", async () => {
    const parts = Array.from({ length: 4_000 }, (_, index) => (index % 2 ? call(`c${index}`, { success: true, content: [] }) : md(`remark ${index} of many`, `m${index}`)));
    const made = host.addSession("busy", { title: "Busy" }, { turns: [turn("t1", "work", parts)] });
    const page = await visit(at(made.session));
    await page.getByText("remark 3998 of many").waitFor();
    expect(await page.getByText(/remark \d+ of many/).count()).toBe(75);
    await page.getByRole("button", { name: "Earlier in this turn (3850)" }).click();
    await page.getByText("remark 3700 of many").waitFor({ state: "attached" });
    expect(await page.getByText(/remark \d+ of many/).count()).toBe(150);
  });

  it("has the colours of a program's output, and tables as they were aligned", async () => {
    const text = "\u001b[32mPASSED\u001b[0m one\n\u001b[31mFAILED\u001b[0m two\n";
    const made = host.addSession("colours", {}, { turns: [turn("t1", "go", [call("c1", { success: false, content: [{ type: "text", text }], error: { message: "exit 1" } }), md("| file | size |\n|---|---:|\n| a.py | 12 |")])] });
    const page = await visit(at(made.session));
    const colour = (words: string): Promise<string> => page.locator(".output").getByText(words, { exact: true }).evaluate((element) => getComputedStyle(element).color);
    const plain = await page.locator(".output").evaluate((element) => getComputedStyle(element).color);
    expect(new Set([await colour("PASSED"), await colour("FAILED"), plain]).size).toBe(3);
    expect(await page.getByRole("cell", { name: "12" }).evaluate((element) => getComputedStyle(element).textAlign)).toMatch(/end|right/);
  });

  it("begins at the same edge as the composer, and every head ends at the same height", async () => {
    const { session } = changing(host);
    const page = await visit(at(session, "?panel=changes"), { viewport: { width: 1280, height: 800 } });
    await page.locator(".diff-row").first().waitFor();
    const box = async (what: string): Promise<{ x: number; y: number; width: number; height: number }> => (await page.locator(what).first().boundingBox()) ?? { x: -1, y: -1, width: -1, height: -1 };
    const [said, writing] = [await box(".said"), await box(".composer")];
    expect([writing.x, writing.width]).toEqual([said.x, said.width]);
    const ends = await page.locator(".pane-head").evaluateAll((heads) => heads.map((head) => head.getBoundingClientRect().bottom));
    expect(new Set(ends).size, String(ends)).toBe(1);
    await page.evaluate(() => localStorage.setItem("ahpkit:side", "1500"));
    await page.reload();
    await page.locator(".diff-row").first().waitFor();
    expect((await box("main")).width, "room for the chat beside a panel that was made wide on a larger screen").toBeGreaterThan(350);
  });

  it("shows 5 MB of output and 5 MB of text without dying (21)", async () => {
    const line = `${"x".repeat(99)}\n`;
    const made = host.addSession("big", { title: "Big" }, { turns: [turn("t1", "big", [call("c1", { success: false, content: [{ type: "text", text: line.repeat(50_000) }], error: { message: "exit 1" } }), md("# Head\n\n" + "word ".repeat(1_000_000))])] });
    const page = await visit(at(made.session));
    await page.getByText(/left out/).waitFor({ timeout: 20_000 });
    await page.getByRole("button", { name: /Show more/ }).waitFor();
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    expect(nodes).toBeLessThan(3_000);
  });

  for (const [length, before, blank] of [["", "", 60], [" of a long answer", `${"Some words of an answer, with `code` in it. ".repeat(5)}\n\n`.repeat(300), 60], [" of a paragraph that does not end", "", 1e9]] as const)
  it(`draws 2,000 deltas a second${length} with little of the main thread (16)`, MEASURES, async () => {
    const made = host.addSession("fast", { title: "Fast" });
    host.startTurn(made.chat, "t", "go");
    host.act(made.chat, { type: "chat/responsePart", turnId: "t", part: md(before, "m1") });
    const page = await visit(at(made.session));
    await page.getByRole("log").waitFor();
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" }); // The thread's own time, whatever else the machine does.
    const busyTime = async (): Promise<{ task: number; frames: number }> => {
      const { metrics } = await session.send("Performance.getMetrics");
      const task = metrics.find((metric) => metric.name === "TaskDuration")?.value ?? 0;
      return { task, frames: await page.evaluate(() => (window as unknown as { frames: number }).frames) };
    };
    await page.evaluate(() => {
      const counter = window as unknown as { frames: number };
      counter.frames = 0;
      const count = (): void => {
        counter.frames += 1;
        requestAnimationFrame(count);
      };
      requestAnimationFrame(count);
    });
    const words = "Some words of an answer, with `code` and **bold** text in it. ".split(" ");
    let sent = 0;
    /** One and a half seconds of it; what other programs do to the caches of this machine is not ours, so the best counts. */
    const stretch = async (): Promise<number> => {
      const before = await busyTime();
      const begun = Date.now();
      const first = sent;
      while (Date.now() < begun + 1_500) {
        for (const due = first + (Date.now() - begun) * 2; sent < due; sent += 1) {
          const content = sent % blank === blank - 1 ? "\n\n" : `${words[sent % words.length]} `;
          host.act(made.chat, { type: "chat/delta", turnId: "t", partId: "m1", content });
        }
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      const after = await busyTime();
      return ((after.task - before.task) / (after.frames - before.frames)) * 1000;
    };
    const measured: number[] = [];
    while (measured.length < 3 || (measured.length < 9 && Math.min(...measured) >= 8)) measured.push(await stretch());
    host.act(made.chat, { type: "chat/delta", turnId: "t", partId: "m1", content: "\n\nthe very end" });
    await page.getByText("the very end").waitFor();
    const perFrame = Math.min(...measured);
    console.log(`${sent} deltas, 2,000 a second: ${measured.map((each) => each.toFixed(1)).join(", ")} ms of main thread per frame`);
    expect(perFrame).toBeLessThan(8);
  });

  it("draws no more of endless names, words and drafts than can be read, and the rest when asked (21)", async () => {
    const endless = "long words of a text ".repeat(240_000);
    const made = approval();
    ask(made, "p2", "make", { displayName: endless, invocationMessage: endless, intention: endless, confirmationTitle: endless });
    host.unneed(made.session, "n-p1");
    host.act(made.session, { type: "session/titleChanged", title: endless });
    host.summarize(made.session, { title: endless, status: 24 });
    host.act(made.chat, { type: "chat/draftChanged", draft: { text: endless, origin: { kind: "user" } } });
    host.act(made.chat, { type: "chat/pendingMessageSet", kind: "queued", id: "q", message: { text: endless, origin: { kind: "user" } } });
    const page = await visit(at(made.session));
    await page.locator(".dock .approval").getByText("make", { exact: true }).waitFor();
    expect(await page.evaluate(() => document.body.innerHTML.length)).toBeLessThan(300_000);
    expect(await composer(page).inputValue()).toBe("");
    await page.locator(".dock .approval h3").getByRole("button", { name: "Show all" }).dispatchEvent("click");
    expect((await page.locator(".dock .approval h3").textContent())?.length).toBe(endless.length);
    await composer(page).evaluate((element) => {
      const data = new DataTransfer();
      data.setData("text/plain", "pasted ".repeat(50_000));
      element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    });
    await page.locator(".composer .attachments").getByText("pasted text.txt").waitFor();
  });

  it("colours a block of code once, when it is closed, and takes half a language name and an unknown one (17)", async () => {
    const made = host.addSession("colours");
    host.startTurn(made.chat, "t", "go");
    host.act(made.chat, { type: "chat/responsePart", turnId: "t", part: md("```py", "m1") });
    const page = await visit(at(made.session));
    const add = (content: string): void => host.act(made.chat, { type: "chat/delta", turnId: "t", partId: "m1", content });
    const block = page.locator(".turn pre");
    for (const [piece, shown] of [["thon\nimport os\n", "import os"], ["def half(", "def half("], ["):\n    return 1\n", "return 1"]] as const) {
      add(piece);
      await expect.poll(() => block.textContent()).toContain(shown);
      expect(await block.locator("span").count(), "plain while it grows").toBe(0);
    }
    add("```\n\nand then\n\n```klingon\nimport Qapla'\n```\n\n```typ\nimport x\n```\n\nsome");
    const keyword = block.first().locator(".hljs-keyword").first();
    await keyword.evaluate((element) => element.setAttribute("data-first", "yes"));
    for (const word of ["one", "two", "three"]) {
      add(` ${word}`);
      await page.getByText(`some ${word === "one" ? "one" : word === "two" ? "one two" : "one two three"}`).waitFor();
      expect(await keyword.getAttribute("data-first"), "coloured once").toBe("yes");
    }
    expect(await block.nth(1).innerHTML()).toContain("import Qapla'");
    expect(await block.locator("span").count()).toBe(await block.first().locator("span").count());
  });

  it("folds finished calls, shows failures and helpers, and a code block can be copied", async () => {
    busy(host);
    const page = await visit(at("ahp-session:/parser"));
    await page.getByText("Read 2 files, searched once, ran 1 command").waitFor();
    await page.locator(".code-head").getByText("python").waitFor();
    await page.waitForSelector(".hljs-keyword");
  });
});

describe("what an agent shows", () => {
  const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC";

  it("pictures at once, other content when asked for, the end of what failed, what it does, and steps that nobody has begun", async () => {
    const made = host.addSession("shows", { title: "Shows", status: 8 }, { turns: [turn("t1", "draw", [
      { kind: "contentRef", uri: "ahp-content:/dot", contentType: "image/png", sizeHint: 78 },
      { kind: "contentRef", uri: "ahp-content:/words", contentType: "text/plain", sizeHint: 6 },
      { kind: "contentRef", uri: "file:///home/ada/secret.png", contentType: "image/png", sizeHint: 6 },
      call("c1", { success: false, pastTenseMessage: "make failed", content: [{ type: "text", text: `${"passed\n".repeat(150)}THE ONE THAT FAILED\n` }] }),
    ])] });
    host.resources.set("ahp-content:/dot", { data: DOT, encoding: "base64" });
    host.resources.set("ahp-content:/words", { data: btoa(String.fromCharCode(...new TextEncoder().encode("grün"))), encoding: "base64" });
    host.startTurn(made.chat, "t2", "go");
    host.act(made.chat, { type: "chat/activityChanged", activity: "Reading src/limits.py" });
    host.act(made.session, { type: "session/metaChanged", _meta: { "ahpkit/plan": { [made.chat]: [{ entries: [{ content: "One", status: "completed" }, { content: "Two", status: "pending" }] }] } } });
    const page = await visit(at(made.session));
    await page.waitForFunction(() => (document.querySelector<HTMLImageElement>(".picture img")?.naturalWidth ?? 0) === 10);
    await page.getByRole("button", { name: /Load text\/plain/ }).click();
    await page.getByText("grün").waitFor();
    expect(host.requests.filter((each) => each.method === "resourceRead").map((each) => each.params?.uri)).not.toContain("file:///home/ada/secret.png");
    const output = page.locator(".tool .output");
    expect(await output.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight)).toBeLessThan(2);
    await page.locator(".activity").getByText("Reading src/limits.py").waitFor();
    await page.getByText("Plan: 1 of 2 done").click();
    expect(await page.locator(".plan li").evaluateAll((steps) => steps.map((step) => step.querySelector(".sr")?.textContent))).toEqual(["Done", "Not begun"]);
  });
});

describe("helpers", () => {
  it("that only their own chat tells of are shown inside the call that started them, and what they ask is what the turn waits for (9)", async () => {
    const made = host.addSession("boss", { title: "Boss", status: 24 });
    host.startTurn(made.chat, "t", "go");
    host.act(made.chat, { type: "chat/toolCallStart", turnId: "t", toolCallId: "task", toolName: "task", displayName: "Task" });
    host.act(made.chat, { type: "chat/toolCallReady", turnId: "t", toolCallId: "task", invocationMessage: "Look for slow queries", toolInput: "{}", confirmed: "not-needed" });
    const helper = "ahp-chat:/helper";
    const status = { resource: helper, title: "Slow queries", status: 24, modifiedAt: new Date().toISOString(), origin: { kind: "tool", chat: made.chat, turnId: "t", toolCallId: "task" }, interactivity: "read-only" };
    host.put(helper, { ...status, turns: [] }, "chat");
    host.act(made.session, { type: "session/chatAdded", summary: status });
    host.startTurn(helper, "h", "look");
    host.act(helper, { type: "chat/responsePart", turnId: "h", part: md("I count the rows first.") });
    host.need(made.session, { id: "n", chat: helper, kind: "toolConfirmation", turnId: "h", toolCall: pendingCall("count", "psql -c 'select count(*)'") as never });
    const page = await visit(at(made.session));
    await page.locator(".tool .nested").getByText("I count the rows first.").waitFor();
    await page.locator(".activity").getByText("Waiting for you").waitFor();
    await page.locator("header").getByText(/Needs you/).first().waitFor();
    host.unneed(made.session, "n");
    await page.locator(".activity").getByText("Look for slow queries").waitFor();
  });
});

describe("changes", () => {
  it("show what changed inside a line, in the colours of the language", async () => {
    const { session } = changing(host);
    const page = await visit(at(session, "?panel=changes"));
    await page.locator(".diff-row.add .word", { hasText: /^seven$/ }).waitFor();
    await page.locator(".diff-row.add .hljs-keyword", { hasText: "import" }).waitFor();
  });

  it("offer what can be done without files, such as bringing an undo back", async () => {
    const { session, changeset } = changing(host);
    host.put(changeset, { status: "ready", files: [], operations: [{ id: "undo", label: "Undo all", scopes: ["changeset"], status: "disabled" }, { id: "redo", label: "Redo", scopes: ["changeset"], status: "idle" }] }, "changeset");
    host.methods.invokeChangesetOperation = () => ({ message: "Brought back 2 files." });
    const page = await visit(at(session, "?panel=changes"));
    await page.getByRole("button", { name: "Redo" }).click();
    await page.getByText("Brought back 2 files.").first().waitFor();
    expect(await page.getByRole("button", { name: "Undo all" }).count()).toBe(0);
    expect(host.requests.find((each) => each.method === "invokeChangesetOperation")?.params).toMatchObject({ channel: changeset, operationId: "redo" });
  });

  it("say why the content of a file is not shown", async () => {
    const { session, changeset } = changing(host);
    const uri = "file:///home/ada/project/huge.iso";
    host.act(changeset, { type: "changeset/fileSet", file: { id: uri, edit: { after: { uri, content: { uri: "x:/none" } } }, _meta: { "ahpkit/note": "too large" } } });
    const page = await visit(at(session, "?panel=changes"));
    const file = page.getByRole("region", { name: /huge\.iso/ });
    await file.getByText("too large").waitFor();
    await file.getByRole("button", { name: "huge.iso", exact: true }).click();
    expect(await file.locator(".diff-row, .comment, .danger").count()).toBe(0);
    expect(host.requests.some((each) => each.method === "resourceRead" && each.params.uri === "x:/none")).toBe(false);
  });

  it("open small diffs, ask for large ones, mark reviewed, comment, undo (20)", async () => {
    const { session, changeset } = changing(host);
    host.methods.invokeChangesetOperation = () => ({ message: "Undone" });
    const page = await visit(at(session, "?panel=changes"));
    await page.getByText("line seven").waitFor();
    expect(await page.getByText("new 4999").count()).toBe(0);
    await page.getByRole("region", { name: /big\.py/ }).getByRole("button", { name: "Load diff" }).click();
    await page.locator(".diff-row.del", { hasText: /old 0$/ }).waitFor({ timeout: 20_000 });
    expect(await page.locator(".diff-row").count()).toBeLessThan(1_000);
    await page.getByRole("checkbox", { name: /options\.py/ }).check();
    await until(() => dispatched("changeset/filesReviewChanged").length === 1, "reviewed");
    await page.getByRole("button", { name: "Comment on line 3" }).last().click();
    await page.getByRole("dialog").getByRole("textbox").fill("Why os?");
    await page.getByRole("button", { name: "Add comment" }).click();
    await page.getByText("1 comment waits").waitFor();
    await composer(page).fill("see my comment");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await until(() => dispatched("chat/turnStarted").length === 1, "sent");
    expect(JSON.stringify(dispatched("chat/turnStarted")[0]?.message)).toContain('"type":"annotations"');
    await page.getByRole("button", { name: "Undo all" }).first().click();
    await page.getByText("The files go back").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Undo all" }).click();
    await until(() => host.requests.some((each) => each.method === "invokeChangesetOperation"), "undone");
    expect(host.requests.find((each) => each.method === "invokeChangesetOperation")?.params).toMatchObject({ channel: changeset, operationId: "undo" });
  });
});

/**
 * What the browser reported while hostile text was cleaned. The page's policy also holds in the document in which that
 * happens, which is never shown, and browsers say what they forbade there.
 */
const WHILE_CLEANING = /^(Applying inline style|Setting the document's base URI|Executing inline event handler)/;

/** Whatever could run something and is in the page itself. */
const dangerous = (page: Page): Promise<string[]> => page.evaluate(() => [...document.querySelectorAll("*")].flatMap((each) =>
  each.localName === "script" && !(each as HTMLScriptElement).src ? ["script"] : each.getAttributeNames().filter((name) => name.startsWith("on")).map((name) => `${each.localName} ${name}`)));

describe("attacks", () => {
  it("hostile text in every field runs nothing and loads nothing", async () => {
    const evil = "<img src=https://evil.example/x onerror=\"document.title='owned'\"><script>document.title='owned'</script>[x](javascript:document.title='owned')![y](https://evil.example/y)";
    const made = host.addSession("evil", { title: evil, activity: evil, provider: evil, workingDirectories: [`file:///${evil}`] }, {
      turns: [turn("t1", evil, [md(evil), { kind: "reasoning", id: "r", content: evil }, call("c", { displayName: evil, pastTenseMessage: { markdown: evil }, success: false, error: { message: evil }, content: [{ type: "text", text: evil }, { type: "hologram" } as never] }), { kind: "error", error: { errorType: evil, message: evil } }, { kind: "hologram", content: evil }, { kind: "systemNotification", content: { markdown: evil } }], { state: "error" })],
      queuedMessages: [{ id: "q", message: { text: evil, origin: { kind: "user" } } }],
    });
    host.act(made.session, { type: "session/customizationsChanged", customizations: [{ type: "plugin", id: "p", uri: evil, name: evil, description: evil, load: { kind: "error", message: evil } }] });
    host.act(made.session, { type: "session/canvasInstanceOpened", instance: { instanceId: "i", canvasId: "c", title: evil, url: "javascript:document.title='owned'", availability: "ready" } });
    for (const panel of ["", "?panel=setup", "?panel=canvases", "?panel=timeline", "?panel=usage", "?panel=changes"]) {
      const page = await visit(at(made.session, panel));
      await page.locator(".turn").first().waitFor();
      if (panel) await page.locator("aside .empty, aside .tree, aside .stack, aside section, aside p").first().waitFor();
      await drawn(page);
    }
    for (const each of opened) {
      expect(await each.page.title()).not.toContain("owned");
      expect(await dangerous(each.page)).toEqual([]);
      expect(each.problems.splice(0).filter((problem) => !WHILE_CLEANING.test(problem))).toEqual([]);
    }
    const foreign = opened.flatMap((each) => each.requests).filter((url) => !url.startsWith(server.url.replace("http", "")) && !url.startsWith(server.url) && !url.startsWith("data:") && !url.startsWith("blob:"));
    expect(foreign.filter((url) => !url.includes(`:${server.port}`))).toEqual([]);
  });

  it("hostile text of servers, clients, settings and lists runs nothing and loads nothing", async () => {
    const evil = "<img src=https://evil.example/x onerror=\"document.title='owned'\"><svg onload=document.title='owned'>[x](javascript:document.title='owned')\u202e";
    const root = host.states.get("ahp-root://") as Record<string, unknown>;
    host.put("ahp-root://", { ...root, agents: [{ provider: "demo", displayName: evil, description: evil, models: [{ id: "a", provider: "demo", name: evil }, { id: "b", provider: "demo", name: evil }], capabilities: { multipleWorkingDirectories: {} } }], terminals: [{ resource: "ahp-terminal:/t", title: evil, lifecycle: { status: "running" }, claim: { kind: "session", session: "ahp-session:/asks" } }] });
    const options = { type: "object", properties: { mode: { type: "string", title: evil, description: evil, enum: [evil, "b"], enumLabels: [evil, evil], sessionMutable: true } } };
    host.methods.resolveSessionConfig = () => ({ schema: options, values: { mode: evil } });
    host.methods.completions = () => ({ items: [{ insertText: "/evil", attachment: { type: "simple", label: evil, _meta: { description: evil } } }] });
    host.methods["tools/list"] = () => ({ tools: [{ name: evil, description: evil }] });
    host.methods["_ahpkit/mcp/log"] = () => ({ lines: [evil] });
    host.methods["_ahpkit/rules/list"] = () => ({ rules: [{ id: "r", decision: evil, scope: evil, owner: `mcp:${evil}`, says: evil, tool: evil }] });
    host.methods["_ahpkit/approvals/list"] = () => ({ approvals: [{ at: Date.now(), session: "ahp-session:/asks", tool: evil, owner: evil, decision: evil, by: evil, who: evil, reason: evil, shown: { title: evil, message: evil, input: evil } }] });
    const question = (kind: string) => ({ id: `${kind}${evil}`, kind, title: evil, message: evil, options: [{ id: evil, label: evil, description: evil }], allowFreeformInput: true });
    const made = host.addSession("asks", { title: evil, status: 24, state: { config: { schema: options, values: { mode: evil } }, creationError: { message: evil }, activeClients: [{ clientId: evil, displayName: evil, tools: [] }], serverTools: [{ name: evil, description: evil }] } }, {
      backgroundWork: [{ id: "w", label: evil, command: evil }], draft: { text: evil, origin: { kind: "user" }, attachments: [] }, changes: { files: 1 }, steeringMessage: { id: "s", message: { text: evil, origin: { kind: "user" } } },
      turns: [turn("t1", evil, [md("x"), { kind: "contentRef", uri: `javascript:${evil}` }], { message: { text: evil, origin: { kind: evil }, attachments: [{ type: "embeddedResource", label: evil, contentType: "image/svg+xml", data: btoa("<svg onload=alert(1)>") }, { type: evil, label: evil }], model: { id: evil } } })],
    });
    host.startTurn(made.chat, "q", evil);
    const request = { id: "q1", message: evil, url: `javascript:${evil}`, questions: ["text", "single-select", "multi-select", "boolean", "integer", evil].map(question) };
    host.act(made.chat, { type: "chat/inputRequested", request });
    host.need(made.session, { id: "nq", chat: made.chat, kind: "chatInput", request });
    host.need(made.session, { id: "na", chat: made.chat, kind: "toolAuthentication", turnId: "q", toolCall: { ...pendingCall("a1", evil), status: "auth-required", displayName: evil, auth: { reason: evil, description: evil, requiredScopes: [evil], resource: { resource: evil, resource_name: evil, authorization_servers: [`javascript:${evil}`, "https://evil.example/in"], resource_documentation: evil } } } });
    host.act(made.session, { type: "session/customizationsChanged", customizations: [{ type: "mcpServer", id: "m", uri: evil, name: evil, state: { kind: "error", error: { errorType: evil, message: evil } }, channel: "mcp://m", _meta: { "ahpkit/notListed": [evil], "ahpkit/left-out": { [evil]: evil }, "ahpkit/enablement": { reason: evil, effective: true }, "ahpkit/trust": evil } }, { type: evil, id: "k", uri: evil, name: evil, version: evil, globs: [evil], children: [{ type: evil, id: "k2", uri: evil, name: evil }] }] });
    const changeset = "ahp-changeset:/asks/all";
    const side = { uri: `file:///home/ada/${evil}`, content: { uri: "x:/evil" } };
    host.resources.set("x:/evil", { data: evil });
    host.put(changeset, { status: "ready", files: [{ id: "a", edit: { after: side, diff: { added: 1, removed: 0 } } }], operations: [{ id: "undo", label: evil, description: evil, scopes: ["changeset", "resource"], confirmation: { markdown: evil }, status: "idle", error: { message: evil } }] }, "changeset");
    host.put(`${made.session}/annotations`, { annotations: [{ id: "c", resource: side.uri, range: { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } }, entries: [{ id: "e", text: evil }] }] }, "annotations");
    host.act(made.session, { type: "session/changesetsChanged", changesets: [{ label: evil, uriTemplate: changeset, changeKind: evil, capabilities: { review: {} } }] });
    const page = await visit("#/");
    await page.locator("main article").nth(1).waitFor();
    for (const [hash, ready] of [["#/new", "form select"], ["#/rules", ".decision"], ["#/devices", ".tree-row"], ["#/usage", "h1"], [at(made.session), "form.card.needs"], [at(made.session, "?panel=setup"), "aside .setup-item"], [at(made.session, "?panel=changes"), "aside .diff-row"], [at(made.session, "?panel=terminals"), "aside [role=tab]"]] as const) {
      await page.goto(`${server.url}${hash}`);
      await page.locator(ready).first().waitFor();
      for (const button of await page.locator("aside").getByRole("button", { name: /^(Tools|Log)$/ }).all()) await button.click();
      await page.locator("details:not([open]) > summary").evaluateAll((folds) => folds.forEach((fold) => (fold as HTMLElement).click()));
      await drawn(page);
      expect(await dangerous(page), hash).toEqual([]);
      const links = await page.locator("a[href]").evaluateAll((all) => all.map((each) => each.getAttribute("href") ?? "").filter((href) => !/^(https?:\/\/|mailto:|#\/)/.test(href)));
      expect(links, hash).toEqual([]);
      expect(await page.getByText("This part cannot be shown").count(), hash).toBe(0);
    }
    await composer(page).fill("/ev");
    await page.getByRole("option").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.locator("#palette-list [role=option]").first().waitFor();
    expect(await dangerous(page)).toEqual([]);
    expect(await page.title()).not.toContain("owned");
    const here = opened.at(-1);
    expect(here?.requests.filter((url) => url.includes("evil.example"))).toEqual([]);
    expect(here?.problems.splice(0).filter((problem) => !WHILE_CLEANING.test(problem))).toEqual([]);
  });

  it("odd values in what an agent says break the part they stand in, and not the page", async () => {
    const usage = (cost: unknown) => ({ usage: { inputTokens: 1, outputTokens: 1, _meta: { cost } } });
    const made = host.addSession("odd", {}, { turns: [
      turn("t1", "a currency", [md("first")], usage({ amount: 1, currency: "no such <b>" })),
      turn("t2", "a part", [{ kind: "toolCall", toolCall: null }, md("hidden")]),
      turn("t3", "a time", [md("third")], { startedAt: "yesterday", duration: Number.NaN }),
      turn("t4", "a tool", [call("c", { toolName: 7 as never, content: "text" as never }), md("fourth")]),
    ] });
    const state = host.states.get(made.session) as Record<string, unknown>;
    host.put(made.session, { ...state, _meta: { "ahpkit/plan": { [made.chat]: "no list" } } }, "session");
    const page = await visit(at(made.session));
    for (const words of ["first", "third", "fourth"]) await page.getByText(words, { exact: true }).waitFor();
    await page.getByText("This part cannot be shown").first().waitFor();
    await composer(page).fill("still here");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await until(() => dispatched("chat/turnStarted").length === 1, "sent");
    await page.getByRole("link", { name: /Inbox/ }).first().click();
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
  });

  it("payloads for parsers and for the names that the page itself uses change nothing", async () => {
    const payloads = [
      "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=document.title='owned'&gt;\">",
      "<svg><style><img src=x onerror=document.title='owned'></style></svg><svg><animate onbegin=document.title='owned' attributeName=x>",
      "<form id=app action=javascript:document.title='owned'><input name=attributes autofocus onfocus=document.title='owned'><button>x</button></form>",
      "<a id=region-main name=region-main href=\"java&#9;script:document.title='owned'\">x</a><img name=getElementById>",
      "<details open ontoggle=document.title='owned'><summary>x</summary></details><iframe srcdoc=\"<script>parent.document.title='owned'</script>\"></iframe>",
      "<base href=https://evil.example/><meta http-equiv=refresh content=0;url=https://evil.example/><link rel=stylesheet href=https://evil.example/c.css><style>@import 'https://evil.example/s.css'</style>",
      "<object data=data:text/html,x></object><embed src=https://evil.example/e><video src=https://evil.example/v onerror=document.title='owned'><audio src=x onerror=document.title='owned'>",
      "[a](vbscript:x) [b](data:text/html;base64,PHNjcmlwdD4=) [c](JaVaScRiPt:document.title='owned') [d](//evil.example) [e](file:///etc/passwd) <https://evil.example/\"onmouseover=document.title='owned'>",
      "```html\"onmouseover=document.title='owned'\n<script>document.title='owned'</script>\n```\n\n![x\"onerror=document.title='owned'](data:image/svg+xml,<svg/onload=document.title='owned'>)",
      "\u202Eevil\u202C \u0000 <p style=\"position:fixed;inset:0;z-index:99\" class=\"btn primary\">Allow once</p>",
    ];
    const made = host.addSession("payloads", { title: payloads[3], status: 24 }, { turns: payloads.map((text, index) => turn(`p${index}`, text, [md(text), { kind: "reasoning", id: `r${index}`, content: text }])) });
    host.startTurn(made.chat, "ask", payloads[0] as string);
    const evil = payloads.join("\n\n");
    const pending = { ...pendingCall("c", evil), displayName: evil, invocationMessage: { markdown: evil }, intention: evil, options: [{ id: "allow", label: evil, description: evil, kind: "approve" }, { id: "deny", label: "Deny", kind: "deny" }] };
    host.act(made.chat, { type: "chat/toolCallStart", turnId: "ask", toolCallId: "c", toolName: evil, displayName: evil });
    host.act(made.chat, { type: "chat/toolCallReady", turnId: "ask", toolCallId: "c", invocationMessage: pending.invocationMessage, toolInput: evil, options: pending.options } as never);
    host.need(made.session, { id: "n", chat: made.chat, kind: "toolConfirmation", turnId: "ask", toolCall: pending });
    const page = await visit(at(made.session));
    await page.locator(".dock .approval").waitFor();
    await page.locator(".turns details:not([open]) > summary").evaluateAll((folds) => folds.forEach((fold) => (fold as HTMLElement).click()));
    await drawn(page);
    const found = await page.evaluate(() => {
      const text = [...document.querySelectorAll(".turns, .dock, .session-list")];
      const all = text.flatMap((each) => [...each.querySelectorAll("*")]);
      const links = all.filter((each): each is HTMLAnchorElement => each instanceof HTMLAnchorElement && each.hasAttribute("href"));
      return {
        tags: [...new Set(all.map((each) => each.localName))].filter((name) => ["script", "iframe", "object", "embed", "form", "base", "meta", "link", "style", "video", "audio", "math", "animate", "mglyph"].includes(name)),
        handlers: all.flatMap((each) => each.getAttributeNames()).filter((name) => name.startsWith("on")),
        links: links.map((each) => each.getAttribute("href") ?? "").filter((href) => !/^(https?:|mailto:|#\/)/.test(href)),
        images: all.filter((each): each is HTMLImageElement => each instanceof HTMLImageElement).map((each) => each.src).filter((source) => !source.startsWith("data:image/")),
        twice: ["app", "region-main", "region-sessions"].filter((id) => document.querySelectorAll(`#${id}`).length !== 1),
        covered: all.filter((each) => each.closest(".md") && (getComputedStyle(each).position === "fixed" || each.classList.contains("btn") && !each.closest("button"))).map((each) => each.textContent).filter((words) => words === "Allow once"),
      };
    });
    expect(found).toEqual({ tags: [], handlers: [], links: [], images: [], twice: [], covered: [] });
    expect(await page.title()).not.toContain("owned");
    const here = opened.at(-1);
    expect(here?.requests.filter((url) => url.includes("evil.example"))).toEqual([]);
    expect(await dangerous(page)).toEqual([]);
    expect(here?.problems.splice(0).filter((problem) => !WHILE_CLEANING.test(problem))).toEqual([]);
  });

  it("a canvas reaches neither the page, nor its cookie, nor the network", async () => {
    const made = host.addSession("canvas");
    server.canvas = (`<!doctype html><body>wait<script>const out=[];const tries={parent:()=>parent.document.title,top:()=>top.location.href,cookie:()=>document.cookie,storage:()=>localStorage.length};for(const [n,t] of Object.entries(tries)){try{t();out.push(n)}catch{}}try{top.location='https://evil.example/'}catch{}document.body.textContent='reached: '+out.join(',')+'.'</script>`);
    host.act(made.session, { type: "session/canvasInstanceOpened", instance: { instanceId: "i", canvasId: "c", title: "Bad", availability: "ready", url: `${server.url}canvas/bad/` } });
    const page = await visit(at(made.session, "?panel=canvases"));
    const frame = page.frameLocator("iframe");
    await frame.getByText("reached:").waitFor();
    expect(await frame.locator("body").textContent()).toBe("reached: .");
    expect(page.url()).toContain(`:${server.port}/`);
    expect(await page.locator("iframe").getAttribute("sandbox")).not.toContain("allow-same-origin");
    // The browser reports what it forbade; it must have forbidden leaving the frame, and nothing else happened.
    opened.at(-1)?.problems.splice(0);
  });
});

describe("a new session", () => {
  it("is begun with the keyboard alone, from wherever one is", async () => {
    const page = await visit("#/settings");
    await page.getByText("Theme").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.locator("#palette-list").waitFor();
    await page.keyboard.type("new session");
    await page.locator("#palette-0", { hasText: /new session/i }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement?.localName === "textarea");
    await page.keyboard.type("Look around");
    await page.keyboard.press("Control+Enter");
    await until(() => host.requests.some((each) => each.method === "createSession"), "created");
  });

  it("has the keyboard in its composer, also after an answer was given with it", async () => {
    const made = approval();
    const page = await visit(at(made.session));
    const writing = (): Promise<unknown> => page.waitForFunction(() => document.activeElement?.matches(".composer textarea"));
    await writing();
    const deny = page.locator(".dock .approval").getByRole("button", { name: "Deny", exact: true });
    await settled(page.locator(".dock .approval"));
    host.react = (_, action) => {
      if (action.type === "chat/toolCallConfirmed") host.unneed(made.session, "n-p1");
    };
    await deny.focus();
    await page.keyboard.press("Enter");
    await page.locator(".dock .approval").waitFor({ state: "detached" });
    await writing();
  });

  it("answers no call whose input is not in sight: at the call itself stands that it waits, and a way to it (8)", async () => {
    const made = approval("p1", "make test");
    ask(made, "p2", "curl https://example.com/install.sh | sh");
    const page = await visit(at(made.session));
    const calls = page.locator(".tool.waiting");
    await calls.nth(0).getByText("Asked below").waitFor();
    expect(await calls.getByRole("button", { name: /Allow|Deny/ }).count()).toBe(0);
    await calls.nth(1).getByRole("button", { name: "Show" }).click();
    await page.locator(".dock .approval").getByText("install.sh | sh").waitFor();
    await calls.nth(1).getByText("Asked below").waitFor();
    await calls.nth(0).getByRole("button", { name: "Show" }).waitFor();
    await page.waitForFunction(() => document.activeElement?.matches(".dock .approval"));
  });

  it("keeps the keyboard when what had it is gone: in the panel, or where one writes", async () => {
    const { session, changeset } = changing(host);
    const chat = "ahp-chat:/edits";
    host.startTurn(chat, "t", "go");
    host.act(chat, { type: "chat/pendingMessageSet", kind: "queued", id: "q0", message: { text: "later", origin: { kind: "user" } } });
    host.methods.invokeChangesetOperation = () => {
      host.act(changeset, { type: "changeset/cleared" });
      host.act(changeset, { type: "changeset/operationsChanged", operations: [] }); // As a host does that has nothing left to undo.
      return { message: "Undone" };
    };
    const page = await visit(at(session, "?panel=changes"));
    const holds = (what: string): Promise<unknown> => page.waitForFunction((selector) => document.activeElement?.matches(selector), what);
    const press = async (button: Locator): Promise<void> => {
      await button.focus();
      await page.keyboard.press("Enter");
    };
    await press(page.getByRole("button", { name: "Undo all" }).first());
    await press(page.getByRole("dialog").getByRole("button", { name: "Undo all" }));
    await page.getByText("This session has changed no files yet.").waitFor();
    await holds("#region-side");
    await press(page.getByRole("button", { name: "Remove from the queue" }));
    await page.locator(".queue").waitFor({ state: "detached" });
    await holds(".composer textarea");
    await press(page.getByRole("button", { name: "Undo", exact: true }));
    await page.locator(".queue li").waitFor();
    await holds(".composer textarea");
    host.act(chat, { type: "chat/pendingMessageSet", kind: "queued", id: "q1", message: { text: "even later", origin: { kind: "user" } } });
    await page.locator(".queue li").nth(1).waitFor();
    await press(page.getByRole("button", { name: "Move up" }).last());
    await holds(".queue .btn:enabled"); // At the top it cannot be moved further up.
    host.act(chat, { type: "chat/pendingMessageRemoved", kind: "queued", id: "q1" });
    await page.getByRole("log").click();
    host.act(chat, { type: "chat/pendingMessageRemoved", kind: "queued", id: "q0" });
    await page.locator(".queue").waitFor({ state: "detached" });
    await drawn(page);
    await holds("[role=log]"); // Nobody who is elsewhere is moved.
  });

  it("says how far its creation is", async () => {
    host.methods.createSession = (params) => {
      host.put(params.channel as string, { provider: "demo", title: "New", status: 1, lifecycle: "creating", activeClients: [], chats: [] }, "session");
      host.notify("root/progress", { channel: "ahp-root://", progressToken: params.progressToken, progress: 1, total: 3, message: "Starting the agent" });
      return null;
    };
    const page = await visit("#/new");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("Starting the agent").waitFor();
    expect(host.requests.find((each) => each.method === "createSession")?.params.activeClient, "before any turn").toMatchObject({ canRenderCanvases: true });
    expect(await page.getByRole("progressbar", { name: "Creating the session" }).getAttribute("value")).toBe("1");
  });
});

describe("many sessions", () => {
  it("that all change at once are drawn once per frame", async () => {
    for (let index = 0; index < 500; index += 1) host.addSession(`s${index}`, { title: `Session ${index}`, workingDirectories: [`file:///home/ada/p${index % 7}`] });
    const page = await visit("#/");
    await page.locator(".session").first().waitFor();
    await page.evaluate(() => {
      const counted = Object.assign(window, { drawn: 0, framed: 0 });
      new MutationObserver(() => (counted.drawn += 1)).observe(document.querySelector(".pane.sessions") as Element, { subtree: true, childList: true, characterData: true });
      const frame = (): void => {
        counted.framed += 1;
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    });
    const begun = Date.now(); // The first session is the newest, however long this takes.
    for (let round = 0; round < 3; round += 1) for (let index = 0; index < 500; index += 1) host.summarize(`ahp-session:/s${index}`, { title: `Renamed ${round} ${index}`, modifiedAt: new Date(begun - index).toISOString() });
    await page.getByText("Renamed 2 0", { exact: true }).waitFor();
    const [times = 0, frames = 0] = await page.evaluate(() => ["drawn", "framed"].map((name) => Number(Reflect.get(window, name))));
    console.log(`1,500 changes in ${frames} frames: drawn ${times} times`);
    expect(times).toBeLessThanOrEqual(frames * 4 + 8); // Once for each list that is drawn, and some that come late.
    expect(await page.locator(".session").count()).toBeLessThan(150);
    await page.getByRole("searchbox").fill("2 499");
    await page.getByText("Renamed 2 499", { exact: true }).waitFor();
  });

  it("are searched to the last, as long as the words stand", async () => {
    for (const name of ["newest", "oldest"]) host.addSession(name, { title: `The ${name} one` });
    const asked: unknown[] = [];
    let answer: () => void = () => undefined;
    host.methods["_ahpkit/sessions/search"] = ({ words, before }) => {
      asked.push([words, before]);
      if (words === "something else") return { found: [] };
      if (before === undefined) return { found: [], next: 20 };
      return new Promise((resolve) => (answer = () => resolve({ found: [{ session: "ahp-session:/oldest", chat: "ahp-chat:/beside", turnId: "t", text: "…<b>no</b> Plum- (jam). PLUM-…" }], next: 1 })));
    };
    const page = await visit("#/");
    const box = page.getByRole("searchbox");
    await box.fill("plum- (jam");
    await until(() => asked.length === 2, "asked for more");
    await page.getByText("Searching…").waitFor();
    answer();
    const row = page.locator(".session", { hasText: "The oldest one" });
    expect(await row.getAttribute("href")).toContain(`${encodeURIComponent("ahp-chat:/beside")}?turn=t`);
    expect(await row.locator(".found").textContent()).toBe("…<b>no</b> Plum- (jam). PLUM-…");
    expect(await row.locator("b").allTextContents()).toEqual(["Plum-", "(jam", "PLUM-"]);
    await until(() => asked.length === 3, "and for the rest");
    await box.fill("something else");
    await until(() => asked.length === 4, "asked anew");
    answer();
    await page.getByText("Nothing found.").waitFor();
    await drawn(page);
    expect(asked).toEqual([["plum- (jam", undefined], ["plum- (jam", 20], ["plum- (jam", 1], ["something else", undefined]]);
  });

  it("that come, change and go while the list is read are as they are, and not as the list says", async () => {
    for (const name of ["changed", "gone", "same"]) host.addSession(name, { title: `The ${name} one` });
    const [changed, gone, same] = structuredClone([...host.summaries.values()]);
    let goOn: () => void = () => undefined;
    const second = new Promise<void>((resolve) => (goOn = resolve));
    host.methods.listSessions = async ({ cursor }) => (cursor ? second.then(() => ({ items: [changed, gone] })) : { items: [same], nextCursor: "2" });
    const page = await visit("#/");
    await page.getByText("The same one").first().waitFor();
    host.addSession("late", { title: "The late one" });
    host.summarize("ahp-session:/changed", { title: "Called something else" });
    host.summaries.delete("ahp-session:/gone");
    host.notify("root/sessionRemoved", { channel: "ahp-root://", session: "ahp-session:/gone" });
    goOn();
    await page.getByText("Called something else").first().waitFor();
    await drawn(page);
    expect((await page.locator(".session .title").allInnerTexts()).sort()).toEqual(["Called something else", "The late one", "The same one"]);
  });

  it("can be archived, taken back, marked unread; what waits is counted in the title (25)", async () => {
    busy(host);
    const page = await visit("#/");
    await page.waitForFunction(() => document.title.startsWith("("));
    await page.goto(`${server.url}${at("ahp-session:/release")}`);
    await page.getByRole("button", { name: "This session" }).click();
    await page.getByRole("menuitem", { name: "Mark unread" }).click();
    await until(() => dispatched("session/isReadChanged").some((action) => action.isRead === false), "unread");
    await page.getByRole("button", { name: "This session" }).click();
    await page.getByRole("menuitem", { name: "Archive" }).click();
    await until(() => dispatched("session/isArchivedChanged").length === 1, "archived");
    await page.getByRole("button", { name: "Undo" }).click();
    await until(() => dispatched("session/isArchivedChanged").length === 2, "taken back");
  });
});

describe("usage", () => {
  it("is counted on the reader's own days, and by currency (25)", async () => {
    const spent = (id: string, startedAt: string, currency: string) => turn(id, id, [md("done")], { startedAt, usage: { inputTokens: 10, outputTokens: 5, _meta: { cost: { amount: 2, currency } } } });
    host.addSession("spends", {}, { turns: [spent("t1", "2026-01-05T20:00:00Z", "USD"), spent("t2", "2026-01-06T05:00:00Z", "EUR")] });
    const page = await visit("#/usage", { timezoneId: "Pacific/Auckland", locale: "en-GB" });
    const days = await page.getByRole("img", { name: /^Tokens by day/ }).getAttribute("aria-label");
    expect(days).toBe("Tokens by day: 6 Jan: 20 in, 10 out, US$2.00 + €2.00");
  });
});

describe("a session that is open", () => {
  it("says that a server of it wants a sign-in, and leads to it", async () => {
    const made = host.addSession("servers", { title: "Servers" });
    host.act(made.session, { type: "session/customizationsChanged", customizations: CUSTOMIZATIONS });
    const page = await visit(at(made.session));
    const link = page.getByRole("link", { name: "Setup Needs you" });
    expect(await link.getAttribute("title")).toBe("An MCP server needs a sign-in");
    await link.click();
    await page.locator("aside").getByRole("button", { name: "Sign in", exact: true }).waitFor();
    const phone = await visit(at(made.session), { viewport: PHONE, hasTouch: true, isMobile: true });
    await phone.getByRole("button", { name: "This session" }).click();
    await phone.getByRole("menuitem", { name: /^Setup\s*An MCP server needs a sign-in$/ }).waitFor();
    host.act(made.session, { type: "session/customizationsChanged", customizations: [] });
    await page.getByRole("link", { name: "Close the panel" }).click();
    await page.getByRole("link", { name: "Setup", exact: true }).waitFor();
  });

  it("is renamed from its menu, with the keyboard in the field; Escape keeps the name", async () => {
    const made = host.addSession("name", { title: "Before" });
    const page = await visit(at(made.session));
    const rename = async (text: string, key: string): Promise<void> => {
      await page.getByRole("button", { name: "This session" }).click();
      await page.getByRole("menuitem", { name: "Rename" }).click();
      await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Title");
      await page.keyboard.press("Control+A");
      await page.keyboard.type(text);
      await page.keyboard.press(key);
    };
    await rename("Never", "Escape");
    await page.getByRole("heading", { name: "Before" }).waitFor();
    await rename("After", "Enter");
    await page.getByRole("heading", { name: "After" }).waitFor();
    expect(dispatched("session/titleChanged")).toEqual([{ type: "session/titleChanged", title: "After" }]);
  });

  it("is read when its turn ends, and stays unread when somebody marks it so", async () => {
    const made = approval();
    const page = await visit(at(made.session));
    await page.locator(".dock .approval").waitFor();
    await until(() => dispatched("session/isReadChanged").length === 1, "read while it waits");
    // Its time is told before its state: both belong to the same end.
    host.summarize(made.session, { modifiedAt: new Date().toISOString() });
    await drawn(page);
    host.unneed(made.session, "n-p1");
    await drawn(page);
    host.summarize(made.session, { status: 1 });
    await until(() => dispatched("session/isReadChanged").length === 2, "read at its end");
    await page.getByRole("button", { name: "This session" }).click();
    await page.getByRole("menuitem", { name: "Mark unread" }).click();
    await until(() => dispatched("session/isReadChanged").length === 3, "unread");
    await drawn(page);
    expect(dispatched("session/isReadChanged").map((action) => action.isRead)).toEqual([true, true, false]);
  });
});

describe("a phone", () => {
  it("shows one pane at a time with real history, and large targets (22)", async () => {
    busy(host);
    const page = await visit("#/sessions", { viewport: PHONE, hasTouch: true, isMobile: true });
    await page.getByText("Prepare release 0.9").click();
    await composer(page).waitFor();
    expect(await page.locator(".pane.sessions").isVisible()).toBe(false);
    await page.getByRole("button", { name: "This session" }).click();
    await page.getByRole("menuitem", { name: "Changes" }).click();
    await page.getByRole("link", { name: "Back to the chat" }).waitFor();
    expect(await page.getByRole("log").isVisible()).toBe(false);
    await page.goBack();
    await composer(page).waitFor();
    await page.goBack();
    await page.getByText("Prepare release 0.9").waitFor();
    await page.goto(`${server.url}${at("ahp-session:/parser")}`);
    const small = await page.locator(".dock .answers .btn").evaluateAll((buttons) => buttons.map((button) => button.getBoundingClientRect().height).filter((height) => height < 44));
    expect(small).toEqual([]);
    expect(await composer(page).evaluate((element) => Number.parseFloat(getComputedStyle(element).fontSize))).toBeGreaterThanOrEqual(16);
    const content = await page.locator("meta[name=viewport]").getAttribute("content");
    expect(content).toContain("interactive-widget=resizes-content");
    expect(content).not.toContain("user-scalable=no");
  });

  it("has room for what is chosen, for names of files and for the tab that is shown, at 360 px", async () => {
    busy(host);
    const { session: edits } = changing(host);
    const page = await visit(at("ahp-session:/parser"), { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true });
    await page.locator(".dock .approval").waitFor();
    const cut = await page.locator(".composer .picks select").evaluateAll((all) => all.map((each) => each.getBoundingClientRect()).filter((box) => box.right > 360 || box.width < 64).length);
    expect(cut).toBe(0);
    const both = host.addSession("both", {}, {});
    const state = host.states.get(both.session) as Record<string, unknown>;
    host.put(both.session, { ...state, config: { schema: { type: "object", properties: { mode: { type: "string", title: "Mode", enum: ["plan", "code"], enumLabels: ["Plan first", "Write code"], sessionMutable: true } } }, values: { mode: "plan" } } }, "session");
    host.startTurn(both.chat, "t", "go");
    await page.goto(`${server.url}${at(both.session)}`);
    await page.getByRole("button", { name: "Stop" }).waitFor();
    const picks = page.locator(".composer .picks select");
    await picks.nth(1).waitFor();
    const words = (): Promise<number[]> => picks.evaluateAll((all) => all.map((each) => Math.round(each.getBoundingClientRect().width)));
    const shown = await words();
    expect(await page.locator(".composer :is(.btn, select):visible").evaluateAll((all) => all.filter((each) => each.getBoundingClientRect().right > 360).length)).toBe(0);
    await picks.evaluateAll((all) => all.forEach((each) => (each as HTMLElement).style.setProperty("flex-shrink", "0")));
    expect(shown, "beside the buttons of an agent that works, each choice is whole").toEqual(await words());
    await page.goto(`${server.url}${at("ahp-session:/parser")}`);
    await page.locator(".dock .approval").waitFor();
    const tools = await page.locator(".turn-tools").first().locator(".btn:visible").evaluateAll((all) => all.map((each) => Math.round(each.getBoundingClientRect().top)));
    expect(new Set(tools).size, "tools of a turn in one row").toBe(1);
    await page.getByRole("button", { name: "More about this turn" }).first().click();
    await page.getByRole("menuitem", { name: "Timeline" }).click();
    const tab = await page.getByRole("navigation", { name: "Panels" }).locator("[aria-current]").boundingBox();
    expect((tab?.x ?? 999) + (tab?.width ?? 999)).toBeLessThanOrEqual(360);
    await page.goto(`${server.url}${at(edits)}?panel=changes`);
    await page.locator(".file-head").first().waitFor();
    expect(await page.locator(".file-head .cut-start").evaluateAll((all) => all.filter((each) => each.scrollWidth > each.clientWidth + 1).length)).toBe(0);
  });
});

describe("keys", () => {
  it("open the palette, go to what waits, and move between regions", async () => {
    busy(host);
    const page = await visit("#/settings");
    await page.getByText("Theme").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.locator("#palette-list").waitFor();
    await page.keyboard.type("release");
    await page.locator("#palette-0", { hasText: /release/i }).waitFor();
    await page.keyboard.press("Enter");
    await composer(page).waitFor();
    await page.keyboard.press("F8");
    await page.locator(".dock .approval:focus").waitFor();
    await page.keyboard.press("F6");
    expect(await page.evaluate(() => document.activeElement?.id)).toMatch(/^region-/);
    await page.keyboard.press("Control+/");
    await page.getByText("Next part of the page").waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("Next part of the page").waitFor({ state: "detached" });
  });
});

describe("a menu", () => {
  it("has the keyboard in the moment it opens", async () => {
    const { session } = host.addSession("menu");
    const page = await visit(at(session));
    const had = await page.getByRole("button", { name: "This session" }).evaluate((button) => {
      (button as HTMLButtonElement).click();
      return document.activeElement === document.querySelector(":popover-open .menu-item");
    });
    expect(had).toBe(true);
  });
});

describe("F8", () => {
  /** The card that has the keyboard itself, not one of its buttons; another one than before. */
  const card = async (page: Page, before: string): Promise<string> => {
    const found = await page.waitForFunction((last) => {
      const words = document.activeElement?.matches("section.approval, form.card") ? (document.activeElement.textContent ?? "") : "";
      const what = ["make first", "make second", "three things"].find((each) => words.includes(each));
      return what !== last && what;
    }, before);
    return String(await found.jsonValue());
  };

  it("archives a session from the list, without opening it, by mouse or by keys", async () => {
    const first = host.addSession("first", { title: "First" });
    const second = host.addSession("second", { title: "Second" });
    const page = await visit("#/");
    const row = (title: string): Locator => page.locator(".listed", { hasText: title });
    await row("First").hover();
    await row("First").getByRole("button", { name: "What to do with First" }).click();
    await page.getByRole("menuitem", { name: "Archive" }).click();
    await row("Second").getByRole("link").focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("menuitem", { name: /^Mark/ }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await until(() => dispatched("session/isArchivedChanged").length === 2, "archived");
    expect(host.dispatched.filter((each) => each.action.type === "session/isArchivedChanged").map((each) => each.channel)).toEqual([first.session, second.session]);
    expect(new URL(page.url()).hash).toBe("#/");
  });

  it("brings the keyboard to each thing that waits, in every session, and answers none of them", async () => {
    const made = approval("p1", "make first");
    ask(made, "p2", "make second");
    asking(host);
    const page = await visit(at(made.session));
    await page.getByText("1 of 2").waitFor();
    const seen: string[] = [];
    for (let step = 0; step < 4; step += 1) {
      await page.keyboard.press("F8");
      seen.push(await card(page, seen.at(-1) ?? ""));
      await page.keyboard.press("Enter");
    }
    expect(new Set(seen.slice(0, 3))).toEqual(new Set(["make first", "make second", "three things"]));
    expect(seen[3]).toBe(seen[0]);
    expect(dispatched("chat/toolCallConfirmed")).toEqual([]);
    expect(dispatched("chat/inputCompleted")).toEqual([]);
  });

  it("says so when nothing waits", async () => {
    const page = await visit(at(host.addSession("calm").session));
    await composer(page).waitFor();
    await page.keyboard.press("F8");
    await page.getByText("Nothing waits for you").first().waitFor();
  });
});

describe("notifications", () => {
  it("say whether they can work and why not, and can be tried (23)", async () => {
    const page = await visit("#/settings", { permissions: ["notifications"] });
    await page.getByText("Notifications are allowed").waitFor();
    await page.getByRole("button", { name: "Send test" }).waitFor();
    await page.addInitScript(() => Object.defineProperty(Notification, "permission", { get: () => "denied" }));
    await page.reload();
    await page.getByText("This browser blocks notifications from this page. Allow them in the site's settings").waitFor();
  });

  it("come for what waits while nobody looks, and not while somebody does (23)", async () => {
    const page = await visit("#/settings", { permissions: ["notifications"] });
    await page.getByLabel("Notify me in this browser").check();
    await page.evaluate(() => {
      const worker = { showNotification: async (title: string, options: { body: string }) => document.body.append(`told: ${title}, ${options.body}.`), getNotifications: async () => [] };
      navigator.serviceWorker.getRegistration = async () => worker as never;
    });
    approval("p1");
    await page.waitForFunction(() => document.title.startsWith("(1)"));
    await page.evaluate(() => Object.defineProperty(document, "hidden", { get: () => true }));
    const made = host.addSession("later", { title: "Later", status: 24 });
    host.startTurn(made.chat, "t", "go");
    ask(made, "p2", "secret command");
    await page.waitForFunction(() => document.body.textContent?.includes("told: Later, Asks to use Run a command."));
    const told = await page.evaluate(() => document.body.textContent?.split("told: ").slice(1).join());
    expect(told?.split("Later,").length, "told once").toBe(2);
    expect(told).not.toContain("Approve me");
    expect(told).not.toContain("secret command");
  });
});

describe("what it weighs", () => {
  it("is at most 80 kB for the first view, and asks nobody else for anything", async () => {
    const { gzipSync } = await import("node:zlib");
    const made = await open(server.url);
    const bodies: Promise<number>[] = [];
    await made.close();
    const again = await open("about:blank");
    again.page.on("response", (response) => {
      if (response.url().startsWith(server.url) && !response.url().includes("/page/")) bodies.push(response.body().then((body) => gzipSync(body).length, () => 0));
    });
    await again.page.goto(server.url);
    await again.page.getByText("Nothing waits for you").waitFor();
    const total = (await Promise.all(bodies)).reduce((sum, size) => sum + size, 0);
    console.log(`first view: ${(total / 1000).toFixed(1)} kB gzipped`);
    expect(total).toBeLessThan(80_000);
    expect(again.requests.filter((url) => !url.startsWith(server.url) && !url.startsWith(server.url.replace("http", "ws")))).toEqual(["about:blank"].filter((url) => again.requests.includes(url)));
    await again.close();
  });

  it("opens without a network once it was there", async () => {
    const made = await open(server.url, { serviceWorkers: "allow" });
    await made.page.getByText("Nothing waits for you").waitFor();
    await made.page.evaluate(async () => {
      await navigator.serviceWorker.ready;
      while (!navigator.serviceWorker.controller) await new Promise((resolve) => setTimeout(resolve, 50));
    });
    const url = server.url;
    await server.close();
    // The driver may take the worker's own failed request for the page's: what counts is what is shown.
    await made.page.goto(url).catch(() => undefined);
    await made.page.getByText("ahpkit").first().waitFor();
    await made.page.getByText(/Offline|Connecting/).first().waitFor();
    await made.page.getByText("The host cannot be reached.").waitFor();
    await made.page.getByText("Offline", { exact: true }).first().waitFor(); // This window has heard nothing: there is no last update.
    expect(await made.page.getByText("Loading…").count()).toBe(0);
    await made.page.goto(`${url}${at("ahp-session:/one")}`);
    await made.page.getByRole("heading", { name: "Not connected" }).waitFor(); // Nothing is said of what is not known.
    await made.page.getByText("The host cannot be reached.").waitFor();
    await made.close();
    server = await new PageServer(host).listen();
  });
});

describe("a terminal without a pty", () => {
  it("is plain text, with every character as it came", async () => {
    const terminal = "ahp-terminal:/log";
    const content = [{ type: "unclassified", value: "10%\r\n\u001b[31mred\u001b[0m first\n" }];
    const claim = { kind: "session", session: "ahp-session:/a", chat: "ahp-chat:/a" };
    host.put(terminal, { title: "log", isPty: false, content, claim, lifecycle: { status: "running" } });
    const shown = call("1", { content: [{ type: "terminal", resource: terminal, title: "make" }] });
    const { session } = host.addSession("a", {}, { turns: [turn("t", "go", [shown])] });
    const page = await visit(at(session));
    await page.getByText("Read src/app.py").click();
    await page.getByRole("button", { name: "Open terminal" }).click();
    const text = (): Promise<string | null> => page.locator(".transcript pre.term").textContent();
    await expect.poll(text, { timeout: 20_000 }).toBe("10%\r\n\u001b[31mred\u001b[0m first\n");
    host.act(terminal, { type: "terminal/data", data: "\u001b[2Jmore\n" });
    await expect.poll(text, { timeout: 20_000 }).toContain("first\n\u001b[2Jmore\n");
    expect(await page.locator(".xterm").count()).toBe(0);
  });
});
