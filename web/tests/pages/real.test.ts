/** The page against `ahpkit serve` with the demo agent: what a person does, once each, in a real browser. */

import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Opened, open, PHONE, press, shot, shut } from "./browser.ts";
import { RealHost } from "./real.ts";

const PYTHON = fileURLToPath(new URL("../../../.venv/bin/python", import.meta.url));
const SDK_AGENT = fileURLToPath(new URL("../../../tests/agents/acp/sdk_agent.py", import.meta.url));

let host: RealHost;
let here: Opened;
let page: Page;

beforeAll(async () => {
  host = await new RealHost(["--terminals", "--agent", `sdk=${PYTHON} ${SDK_AGENT}`, "--extension", `${PYTHON} ${fileURLToPath(new URL("./stage/canvas.py", import.meta.url))}`]).start();
  here = await open(host.announced.page, { serviceWorkers: "allow" }); // As a person has it: the page's files are there while the host is away.
  page = here.page;
});
afterAll(async () => {
  await here?.close();
  await shut();
  await host?.remove();
});

const composer = (at = page) => at.getByRole("textbox", { name: "Message", exact: true });
const idle = (at = page): Promise<unknown> => at.getByRole("button", { name: "Send", exact: true }).waitFor();

async function say(text: string, at = page): Promise<void> {
  await composer(at).fill(text);
  await composer(at).press("Escape"); // Closes completions, and nothing else.
  await composer(at).press("Enter");
}

async function newSession(text: string, at = page): Promise<void> {
  await at.goto(`${host.origin}/#/new`);
  await at.getByRole("combobox", { name: /^Agent/ }).selectOption("demo");
  await at.getByLabel("What shall the agent do?").fill(text);
  await at.getByRole("button", { name: "Start" }).click();
  await at.getByRole("log").waitFor();
}

/** The id by which the host knows a browser. */
const deviceOf = (at: Page): Promise<string> => at.evaluate(async () => String(((await (await fetch("/page/me")).json()) as { device: string }).device));
const last = (at = page) => at.locator(".turn").last();

describe("getting in", () => {
  it("the printed link leads to the page, and no secret is left where scripts could find it", async () => {
    await page.getByText("Nothing waits for you").waitFor();
    await page.getByText("Live").first().waitFor();
    expect(page.url()).not.toContain("code=");
    const seen = await page.evaluate(() => `${document.cookie} ${JSON.stringify({ ...localStorage })} ${JSON.stringify({ ...sessionStorage })} ${location.href}`);
    expect(seen).not.toContain(host.announced.token);
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
    expect(seen).not.toContain(cookie?.value);
  });

  it("a link works once, and a stranger gets nothing", async () => {
    const stranger = await open(host.announced.page);
    await stranger.page.getByText("This link was used already").waitFor();
    await shot(stranger.page, "real-wrong-code");
    await stranger.page.goto(host.origin);
    await stranger.page.getByText("not known to the host").waitFor();
    await stranger.close();
  });
});

describe("a session", () => {
  it("is created with a first message and answers in Markdown", async () => {
    await newSession("/stream 40");
    await last().locator(".md").first().waitFor();
    await idle();
    await page.locator(".session").first().waitFor();
    await shot(page, "real-chat");
  });

  it("shows reasoning, usage and cost", async () => {
    await say("/think");
    await page.locator("details.fold", { hasText: "Thought" }).waitFor();
    await idle();
    await say("/usage");
    await page.getByText(/\d+ in, \d+ out/).first().waitFor();
    await idle();
  });

  it("asks before it uses a tool; allowing and denying both work", async () => {
    await say('/tool calculate {"expression": "6*7"}');
    const dock = page.locator(".dock .approval");
    await dock.waitFor();
    await shot(page, "real-approval");
    await page.waitForFunction(() => document.title.startsWith("(1)"));
    await press(dock, "Allow once");
    await idle();
    await last().locator(".tool").first().waitFor();
    await say('/tool calculate {"expression": "1+1"}');
    await dock.waitFor();
    await press(dock, "Deny");
    await idle();
  });

  it("is answered from the inbox", async () => {
    await say('/tool calculate {"expression": "2+2"}');
    await page.locator(".dock .approval").waitFor();
    await page.goto(`${host.origin}/#/`);
    await page.getByText("1 thing waits for you").waitFor();
    await shot(page, "real-inbox");
    await press(page.locator("main .approval"), "Allow once");
    await page.getByText("Nothing waits for you").waitFor();
    await page.goBack();
    await idle();
  });

  it("asks questions with a form; two windows share its drafts and one answers", async () => {
    const url = page.url();
    await say("/ask");
    const form = page.locator("form.card.needs");
    await form.waitFor();
    const other = await open(await host.link());
    await other.page.goto(url);
    const second = other.page.locator("form.card.needs");
    await second.waitFor();
    const text = form.locator("textarea, input[type=text], input:not([type])").first();
    await text.fill("from the first window");
    await other.page.waitForFunction(() => [...document.querySelectorAll<HTMLInputElement>("form.card textarea, form.card input")].some((input) => input.value === "from the first window"));
    await shot(page, "real-question");
    await second.getByRole("button", { name: "Decline" }).click();
    await form.waitFor({ state: "detached" });
    await idle();
    await other.close();
  });

  it("runs a helper as a nested thread", async () => {
    await say("/subagent look around");
    await idle();
    await last().locator(".helper > summary").last().click();
    await last().locator(".nested").waitFor();
    await shot(page, "real-subagent");
  });

  it("can be stopped, steered and queued for", async () => {
    await say("/sleep 60");
    await page.getByRole("button", { name: /Stop/ }).first().waitFor();
    await say("next one");
    await page.locator(".queue li", { hasText: "next one" }).waitFor();
    await composer().fill("hurry");
    await page.getByRole("button", { name: "Ways to send" }).click();
    await page.getByRole("menuitem", { name: /Steer/ }).click();
    await page.keyboard.press("Control+.");
    await page.locator(".turn", { hasText: "next one" }).waitFor();
    await idle();
  });

  it("fails in words, and the failure is in the list", async () => {
    await say("/fail the disk is full");
    await page.getByText("the disk is full").last().waitFor();
    await idle();
    await shot(page, "real-failed");
  });

  it("forks, and edits and resends", async () => {
    const before = await page.locator(".turn").count();
    await last().hover();
    await last().getByRole("button", { name: "Edit and resend" }).click();
    await page.getByRole("textbox", { name: "Edit the message" }).fill("said better");
    await page.locator("form.said").getByRole("button", { name: "Send" }).click();
    await page.locator(".turn", { hasText: "said better" }).waitFor();
    await idle();
    expect(await page.locator(".turn").count()).toBe(before);
    await last().getByRole("button", { name: "More about this turn" }).click();
    await page.getByRole("menuitem", { name: "Fork from here" }).click();
    await page.getByRole("navigation", { name: "Chats" }).waitFor();
  });

  it("completes commands", async () => {
    await composer().fill("");
    await composer().pressSequentially("/st");
    await page.getByRole("option", { name: /stream/ }).waitFor();
    await composer().press("Escape");
    await composer().fill("");
  });

  it("opens a canvas in a frame of its own", async () => {
    await newSession('/canvas open checklist trip {"title": "Trip", "items": ["Pack", "Pay"]}');
    await idle();
    await page.getByRole("link", { name: /Canvases/ }).first().click();
    await page.frameLocator("iframe").getByText("Pack").waitFor();
    await shot(page, "real-canvas");
    expect(await page.locator("iframe").getAttribute("sandbox")).not.toContain("same-origin");
  });

  it("runs a canvas that is all in its address, and lets it reach nothing", async () => {
    await newSession("/canvas open escape one");
    await idle();
    await page.getByRole("link", { name: /Canvases/ }).first().click();
    const frame = page.frameLocator("iframe[title=Escape]");
    await frame.getByText("reached:").waitFor();
    expect(await frame.locator("body").textContent()).toBe("reached: .");
    const alone = await open(await page.locator("iframe[title=Escape]").evaluate((each) => (each as HTMLIFrameElement).src));
    expect(await alone.page.locator("body").textContent()).not.toContain("reached"); // A stranger has no cookie.
    await alone.close();
    const forbidden = [/Connecting to 'ws:/, /Fetch API cannot load/];
    await expect.poll(() => forbidden.every((each) => here.problems.some((said) => each.test(said))), { timeout: 10_000 }).toBe(true);
    here.problems.splice(0); // The browser said what it forbade.
  });

  it("shows its setup, timeline and usage", async () => {
    for (const [panel, text] of [["setup", "MCP servers"], ["timeline", "Whole turn"], ["usage", /usage|Per turn/]] as const) {
      await page.goto(`${page.url().split("?")[0]}?panel=${panel}`);
      await page.locator("aside").getByText(text).first().waitFor();
    }
  });
});

describe("an agent that speaks ACP", () => {
  it("built on its own SDK, streams and asks for permission in the page", async () => {
    await page.goto(`${host.origin}/#/new`);
    await page.getByRole("combobox", { name: /^Agent/ }).selectOption("sdk");
    await page.getByLabel("What shall the agent do?").fill("write");
    await page.getByRole("button", { name: "Start" }).click();
    const dock = page.locator(".dock .approval");
    await dock.waitFor({ timeout: 60_000 }); // The SDK takes a while to load on a busy machine.
    await shot(page, "real-acp");
    await press(dock, /^Allow/);
    await idle();
  });
});

describe("a new session", () => {
  it("works in the host's directory, also when its form was there before the host had answered", async () => {
    const other = await open(await host.link());
    await other.page.getByText("Live").first().waitFor();
    await other.page.goto(`${host.origin}/#/new`);
    await other.page.reload();
    await expect.poll(() => other.page.getByLabel("Directory").inputValue()).toBe(host.work);
    await newSession("Where are we?", other.page);
    await other.page.locator(".group", { hasText: "Where are we?" }).getByRole("heading", { name: /^work/ }).waitFor();
    await other.close();
  });
});

describe("the host", () => {
  it("restarts while somebody types: nothing is lost, and the page comes back by itself", async () => {
    await newSession("before the restart");
    await idle();
    await composer().fill("half a thought");
    await host.stop("SIGKILL");
    await page.getByText(/Offline/).first().waitFor();
    await composer().pressSequentially(" and more");
    await host.start();
    await page.getByText("Live").first().waitFor({ timeout: 40_000 });
    expect(await composer().inputValue()).toBe("half a thought and more");
    await composer().press("Enter");
    await page.locator(".turn", { hasText: "half a thought and more" }).waitFor();
    await idle();
  });

  it("lets a phone in that may answer, and shows it the same", async () => {
    const phone = await open(await host.link(), { viewport: PHONE, hasTouch: true, isMobile: true });
    await phone.page.getByRole("link", { name: "Sessions" }).click();
    await phone.page.getByText("half a thought").or(phone.page.locator(".session")).first().waitFor();
    await shot(phone.page, "real-phone");
    await phone.close();
  });

  it("revokes a browser: it is cut off at once, and its cookie is worth nothing", async () => {
    const other = await open(await host.link());
    await other.page.getByText("Live").first().waitFor();
    await host.run("devices", "revoke", await deviceOf(other.page));
    await other.page.getByText("not known to the host").waitFor({ timeout: 20_000 });
    await other.close();
  });

  it("tells a browser that was forgotten while the host was away", async () => {
    const other = await open(await host.link());
    await other.page.getByText("Live").first().waitFor();
    const device = await deviceOf(other.page);
    await host.stop();
    await other.page.getByText(/Offline/).first().waitFor();
    host.forgetDevice(device);
    await host.start();
    for (const each of [other.page, page]) await each.evaluate(() => window.dispatchEvent(new Event("online"))); // They need not wait for their next try.
    await other.page.getByText("not known to the host").waitFor({ timeout: 40_000 });
    await other.close();
    await page.getByText("Live").first().waitFor({ timeout: 40_000 });
  });

  it("sends nothing anywhere else, and nothing went wrong in the page", () => {
    const port = new URL(host.announced.url).port;
    expect(here.requests.filter((url) => !url.includes(`:${port}`) && !/^(data|blob|about):/.test(url))).toEqual([]);
    expect(here.problems).toEqual([]);
  });
});
