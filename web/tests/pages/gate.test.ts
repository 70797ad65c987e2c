/** The page against a real host that has tools, servers, plugins and rules: what is asked, remembered, switched and changed. */

import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Opened, open, press, settled, shot, shut } from "./browser.ts";
import type { RealHost } from "./real.ts";
import { begin, Guarded, idle, panel, say, stage } from "./stage.ts";

let host: RealHost;
let here: Opened;
let page: Page;

let tickets: Guarded;

beforeAll(async () => {
  tickets = await new Guarded().start();
  host = await stage([], `
[[mcp.servers]]
name = "tickets"
url = "${tickets.url}"
enabled = false
`).start();
  here = await open(host.announced.page);
  page = here.page;
  page.setDefaultTimeout(30_000);
  await page.getByText("Live").first().waitFor();
});
afterAll(async () => {
  await here?.close();
  await shut();
  await host?.remove();
  await tickets?.stop();
});

const card = () => page.locator(".dock .approval");
const answer = (name: string) => card().getByRole("button", { name, exact: true });
const item = (name: string) => page.locator("aside .setup-item").filter({ has: page.locator(`:scope > div > .row > strong`, { hasText: new RegExp(`^${name}$`) }) });
const why = (name: string) => item(name).locator(":scope > div > p.muted");

/** The agent's last words about the nth change; diffs have similar ones. */
const changed = (index: number) => page.locator(".md strong", { hasText: "one line at a time" }).nth(index);

describe("an approval", () => {
  it("says what for, how risky, and shows the change before the words", async () => {
    await begin(page, host, "Change the loader");
    await card().getByText("Why: One line in memory instead of the whole file.").waitFor();
    await card().getByText("Judged safe.").waitFor();
    await card().locator(".diff-row.add").first().waitFor();
    expect(await card().getByText("Coder · Edit file · in work").count()).toBe(1);
    await shot(page, "gate-edit");
  });

  it("is remembered for this session with one answer, and the next such call asks nobody", async () => {
    await settled(card());
    await card().getByRole("button", { name: /more answers/i }).click();
    await page.getByRole("menuitem", { name: "Always allow edit in this session" }).click();
    await changed(0).waitFor();
    await idle(page);
    expect(readFileSync(join(host.work, "src", "loader.py"), "utf8")).toContain("yield from file");
    await say(page, "Change it again");
    await changed(1).waitFor();
    await idle(page);
    expect(await card().count()).toBe(0);
  });

  it("is listed with who decided it; the rule is taken back, and the call asks again", async () => {
    const session = page.url();
    await page.goto(`${host.origin}/#/rules`);
    const rule = page.locator(".tree-row").filter({ hasText: "Always allow edit" });
    await rule.getByText("in the session “Change the loader”").waitFor();
    await page.getByText("by you, in this window").first().waitFor();
    await page.getByText("by the rule “Always allow edit”").first().waitFor();
    await page.locator(".tree-row").filter({ hasText: "Always deny crash" }).getByText("set in the host's settings").waitFor();
    await shot(page, "gate-rules");
    await rule.getByRole("button", { name: "Take back" }).click();
    await page.locator(".toast").getByText("Taken back.").waitFor();
    await rule.waitFor({ state: "detached" });
    await page.goto(session);
    await say(page, "Change it once more");
    await answer("Deny").waitFor();
    await press(card(), "Deny");
    await page.getByText("Then I leave it as it is.").waitFor();
  });

  it("that is risky says so", async () => {
    await begin(page, host, "Deploy it");
    await card().getByText("Judged risky.").waitFor();
    await card().getByText("It rewrites the shared branch").waitFor();
    await shot(page, "gate-risky");
    // A second, so that the timeline of the next test has something to show.
    await page.waitForFunction(() => /Waiting for you\s*[1-9][\d.]* s/.test(document.querySelector<HTMLElement>(".transcript")?.innerText ?? ""));
    await press(card(), "Deny");
    await page.getByText("Not deployed.").waitFor();
  });

  it("keeps its times: a timeline knows after a reload how long the call waited", async () => {
    await panel(page, "timeline");
    await page.reload();
    await page.locator("aside .tl-track[aria-label*='waiting for you']").waitFor();
    expect(await page.locator("aside .tl-bar.waiting").count()).toBe(1);
  });
});

describe("changes", () => {
  it("of the session and of a turn are shown, and can be committed", async () => {
    rmSync(join(host.work, "src"), { recursive: true, force: true }); // An earlier turn made the same change.
    await begin(page, host, "Change the loader in the repository");
    await answer("Allow once").waitFor();
    await press(card(), "Allow once");
    await idle(page);
    await page.locator(".turn").last().hover();
    await page.locator(".turn").last().getByRole("link", { name: /^Changes/ }).click();
    await page.getByLabel("Which turn").waitFor();
    await page.locator("aside .file").filter({ hasText: "loader.py" }).locator(".diff-row.add").first().waitFor();
    await shot(page, "gate-turn-changes");
    await page.locator(".turn").last().getByRole("button", { name: "More about this turn" }).click();
    await page.getByRole("menuitem", { name: "Timeline" }).click();
    await page.locator("aside").getByText("Whole turn").waitFor();
    await panel(page, "changes");
    await page.locator("aside .file").filter({ hasText: "loader.py" }).locator(".diff-row.add").first().waitFor();
    await shot(page, "gate-changes");
    await page.getByLabel("Which changes").selectOption({ label: "Uncommitted changes" });
    await page.getByRole("checkbox", { name: /Reviewed: .*loader.py/ }).check();
    await page.locator("aside").getByText(/1 reviewed/).waitFor();
    await page.locator("aside").getByRole("button", { name: "Commit" }).click();
    await page.getByLabel("Message of the commit").fill("Read line by line");
    await page.getByRole("dialog").getByRole("button", { name: "Commit" }).click();
    await page.locator("aside").getByText("Nothing differs from the last commit.").waitFor();
    expect(host.git("log", "-1", "--format=%s")).toBe("Read line by line");
  });
});

describe("MCP servers", () => {
  it("that take long to start are waited for no longer than somebody wants", async () => {
    await panel(page, "setup");
    await why("broken").getByText("Off by configuration. It comes from the host's settings.").waitFor();
    await page.getByRole("switch", { name: "broken: off" }).click();
    await why("broken").getByText("Switched on in this session.").waitFor();
    await item("broken").getByText("Starting").waitFor();
    await say(page, "Say something");
    await page.getByText("Waiting for the MCP server broken to start.").waitFor();
    await page.getByRole("button", { name: "Do not wait", exact: true }).click();
    await page.getByText("You said: Say something").waitFor();
    host.write("home/broken-may-end", ""); // It fails now, is tried a few times more, and is looked at again below.
  });

  it("show their state, tools and log", async () => {
    await item("calc").getByText("Connected").waitFor();
    await item("calc").getByRole("button", { name: "Tools" }).click();
    await item("calc").getByText("add", { exact: true }).waitFor();
    await item("stranger").getByText("nobody has trusted it yet").waitFor();
    await item("calc").getByText("It comes from the host's settings.").waitFor();
    await shot(page, "gate-servers");
  });

  it("are stopped and started", async () => {
    await item("calc").getByRole("button", { name: "Stop" }).click();
    await item("calc").getByText("Stopped").waitFor();
    await item("calc").getByRole("button", { name: "Start" }).click();
    await item("calc").getByText("Connected").waitFor();
  });

  it("that want a sign-in get one in a tab of the browser, and no token reaches the page", async () => {
    await page.getByRole("switch", { name: "tickets: off" }).click();
    await item("tickets").getByText("Needs a sign-in").waitFor();
    await shot(page, "gate-sign-in");
    const tab = page.context().waitForEvent("page");
    await item("tickets").getByRole("button", { name: "Sign in", exact: true }).click();
    await (await tab).getByText("You are logged in.").waitFor();
    await (await tab).close();
    await item("tickets").getByText("Connected").waitFor();
    await page.getByRole("switch", { name: "tickets: on" }).click();
    await item("tickets").getByText("Stopped").waitFor();
  });

  it("are asked about by name when one of their tools is called", async () => {
    await say(page, 'Call calc_add {"a": 1, "b": 2}');
    await card().getByText("Coder · add of MCP server calc · in work").waitFor();
    expect(await card().locator(".fields dt").allTextContents()).toEqual(["a", "b"]);
    await press(card(), "Allow once");
    await page.getByText("calc_add: worked").waitFor();
  });

  it("are denied what a rule denies, and nobody is asked", async () => {
    await say(page, "Call calc_crash {}");
    await page.getByText("calc_crash: did not work").waitFor();
  });

  it("that fail to start say why", async () => {
    await item("broken").getByText("no such database").waitFor();
    await item("broken").getByRole("button", { name: "Log" }).click();
    await page.getByRole("region", { name: "Log of broken" }).getByText("starting").waitFor();
    await page.getByRole("switch", { name: "broken: on" }).click();
    await item("broken").getByText("Stopped").waitFor();
  });
});

describe("switches", () => {
  it("say what is on or off and why, and hold where they were set", async () => {
    await panel(page, "setup");
    await why("reviews").getByText("On: nobody switched it off.").waitFor();
    await page.getByRole("switch", { name: "reviews: on", exact: true }).click();
    await why("reviews").getByText("Switched off in this session.").waitFor();
    await why("reviews:review").getByText("Off because reviews is off.").waitFor();
    await page.getByRole("switch", { name: "reviews: off", exact: true }).click();
    await why("reviews").getByText("Switched on in this session.").waitFor();
    await item("calc").getByRole("button", { name: "Scopes of calc" }).click();
    await page.getByRole("menuitem", { name: /Switch off everywhere/ }).click();
    await why("calc").getByText(/[Oo]ff everywhere/).waitFor();
    await begin(page, host, "Say something");
    await panel(page, "setup");
    await why("calc").getByText(/[Oo]ff everywhere/).waitFor();
    await shot(page, "gate-switched-off");
    await item("calc").getByRole("button", { name: "Scopes of calc" }).click();
    await page.getByRole("menuitem", { name: /Switch on everywhere/ }).click();
    await item("calc").getByText("Connected").waitFor();
  });
});

describe("a chat", () => {
  it("goes on after a failure where it stopped", async () => {
    await begin(page, host, "Stumble over the network");
    await page.getByText("The model's service did not answer (503).").first().waitFor();
    await shot(page, "gate-failed");
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByText("the second half, after the network was back").waitFor();
  });

  it("has a side chat that knows what was said", async () => {
    await begin(page, host, "Why is the loader slow?");
    await page.getByText("The old interface stays").waitFor();
    await idle(page);
    await page.locator(".turn").last().getByRole("button", { name: "More about this turn" }).click();
    await page.getByRole("menuitem", { name: /^Ask aside/ }).click();
    await page.getByRole("navigation", { name: "Chats" }).getByText("Side chat").waitFor();
    await page.getByText("What shall we do?").waitFor();
    await say(page, "What did I ask before?");
    await page.getByText("You asked before: Why is the loader slow?").waitFor();
    await shot(page, "gate-side-chat");
  });

  it("can be archived alone", async () => {
    await page.getByRole("button", { name: "This session" }).click();
    await page.getByRole("menuitem", { name: "Archive this chat" }).click();
    await page.getByRole("navigation", { name: "Chats" }).getByRole("link").first().click();
    await page.getByRole("navigation", { name: "Chats" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "This session" }).click();
    await page.getByRole("menuitem", { name: "Archive", exact: true }).waitFor();
    expect(await page.getByRole("menuitem", { name: "Archive this chat" }).count(), "the session's own chat goes with the session").toBe(0);
    await page.keyboard.press("Escape");
  });

  it("shows the plan of its agent", async () => {
    await begin(page, host, "Plan the work");
    await page.getByText("Plan: 1 of 3 done · Read it line by line").click();
    await page.getByText("Run the tests").waitFor();
    expect(await page.locator(".plan li").allTextContents()).toEqual(["DoneFind where the file is read", "RunningRead it line by line", "Not begunRun the tests"]);
  });
});

describe("directories", () => {
  it("are added to a session and taken away", async () => {
    host.write("work/more/notes.md", "# More\n");
    await panel(page, "setup");
    await page.getByRole("button", { name: "Add a directory" }).click();
    await page.getByLabel("Directory to add").fill(join(host.work, "more"));
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.locator("header").getByText("work and 1 more").waitFor();
    await page.getByRole("button", { name: /Remove .*more/ }).click();
    await page.locator("header").getByText("work and 1 more").waitFor({ state: "detached" });
  });

  it("can be a work tree: the folder itself stays as it is", async () => {
    const before = readFileSync(join(host.work, "README.md"), "utf8");
    await page.goto(`${host.origin}/#/new`);
    await page.locator("select").first().selectOption({ label: "Coder" });
    await page.getByLabel("Isolation").selectOption({ label: "Work tree" });
    await page.getByLabel("What shall the agent do?").fill("Change the loader apart");
    await page.getByRole("button", { name: "Start" }).click();
    await answer("Allow once").waitFor();
    await page.locator("header").getByText("(work tree)").waitFor();
    await press(card(), "Allow once");
    await changed(0).waitFor();
    await shot(page, "gate-work-tree");
    expect(readFileSync(join(host.work, "README.md"), "utf8")).toBe(before);
    expect(existsSync(join(host.work, ".git"))).toBe(true);
  });
});

describe("the keyboard alone", () => {
  const keys = (...pressed: string[]): Promise<void> => pressed.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  const focused = (): Promise<string> => page.evaluate(() => {
    const at = document.activeElement;
    return `${at?.localName} ${at?.id} ${at?.getAttribute("aria-label") ?? at?.textContent ?? ""}`.slice(0, 120);
  });
  const holds = (what: RegExp): Promise<void> => expect.poll(focused).toMatch(what);

  /** Tab until something has the keyboard; a person would not go on for ever either. */
  async function tabTo(what: RegExp, most = 40): Promise<void> {
    const passed: string[] = [];
    for (let step = 0; step < most; step += 1) {
      await page.keyboard.press("Tab");
      passed.push(await focused());
      if (what.test(passed.at(-1) as string)) return;
    }
    throw new Error(`${what} is not reached in ${most} steps: ${passed.join("; ")}`);
  }

  /** F8, once the page has counted what waits. */
  async function goToWhatWaits(): Promise<void> {
    await expect.poll(() => page.title()).toMatch(/^\(\d/);
    await keys("F8");
  }

  async function command(words: string): Promise<void> {
    await keys("Control+k");
    await page.locator("#palette-list").waitFor();
    await page.keyboard.type(words);
    await page.locator("#palette-0", { hasText: new RegExp(words, "i") }).waitFor();
    await keys("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }

  async function start(agent: string, words: string): Promise<void> {
    await command("New session");
    await holds(/^textarea *$/); // Not that of a message, which has the keyboard until the form is there.
    await page.keyboard.type(words);
    await tabTo(/^select/);
    await expect.poll(async () => {
      await page.keyboard.type(agent);
      return page.evaluate(() => (document.activeElement as HTMLSelectElement).selectedOptions[0]?.textContent);
    }).toContain(agent);
    await keys("Shift+Tab", "Control+Enter");
    await page.getByRole("log").waitFor();
    await holds(/^textarea .*Message/);
  }

  it("starts a session, approves a change, comments on its lines, and undoes it", async () => {
    rmSync(join(host.work, "src"), { recursive: true, force: true });
    host.git("add", "--all");
    host.git("commit", "--quiet", "--allow-empty", "--message", "Without the loader");
    await start("Coder", "Change the loader by keyboard");
    await card().waitFor();
    await settled(card());
    await goToWhatWaits();
    await holds(/^section .*Needs approval/);
    await tabTo(/^button .*Allow once/, 6);
    await keys("Enter");
    await changed(0).waitFor();
    await idle(page);
    await holds(/^textarea .*Message/);
    await command("Show changes");
    await holds(/^aside region-side/);
    await page.locator("aside .diff-row.add").first().waitFor();
    await tabTo(/^button .*Comment on line 1$/);
    await keys("ArrowDown", "ArrowDown");
    await holds(/Comment on line 3$/);
    await keys("Enter");
    await holds(/^textarea/);
    await page.keyboard.type("Why this?");
    await keys("Tab", "Enter");
    await page.locator("aside .comment", { hasText: "Why this?" }).waitFor();
    await holds(/Comment on line 3$/);
    await page.getByLabel("Which changes").focus();
    await page.keyboard.type("Session");
    await page.locator("aside select:has(option:checked:text-matches('Session', 'i'))").waitFor();
    await page.locator("aside").getByRole("button", { name: /Undo/i }).first().waitFor();
    await tabTo(/^button .*Undo/i);
    await keys("Enter");
    await page.getByRole("dialog").waitFor();
    await tabTo(/^button .*Undo/i, 4);
    await keys("Enter");
    await page.getByText("This session has changed no files yet.").waitFor();
    expect(existsSync(join(host.work, "src", "loader.py"))).toBe(false);
  });

  it("answers a question, opens a canvas, and changes a setting", async () => {
    await start("Demo", "/ask");
    await page.locator("form.card.needs").waitFor();
    await goToWhatWaits();
    await holds(/^form .*Question/);
    await keys("Tab");
    await page.keyboard.type("Ada");
    await tabTo(/^button .*Submit/);
    await keys("Enter");
    await idle(page);
    await holds(/^textarea .*Message/);
    await page.keyboard.type('/canvas open checklist trip {"title": "Trip", "items": ["Pack"]}');
    await keys("Escape", "Enter");
    await page.getByRole("link", { name: /^Canvases/ }).waitFor();
    await command("Show canvases");
    await holds(/^aside region-side/);
    await page.frameLocator("iframe").getByText("Pack").waitFor();
    await tabTo(/^iframe/);
    await page.locator("#region-main").focus(); // Keys in a frame belong to the canvas.
    await command("Settings");
    await holds(/^main region-main/);
    await page.getByText("Theme").first().waitFor();
    await tabTo(/^input/);
    await keys("ArrowDown");
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
    await keys("ArrowUp");
  });
});

it("nothing went wrong in the page", () => expect(here.problems).toEqual([]));
