/** Terminals in the page against a real host: those of an agent's commands, and shells that a window opens and types into. */

import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Opened, open, shot, shut } from "./browser.ts";
import { RealHost } from "./real.ts";
import { idle, panel, PYTHON } from "./stage.ts";

let host: RealHost;
let here: Opened;
let page: Page;

beforeAll(async () => {
  const runner = fileURLToPath(new URL("./stage/runner.py", import.meta.url));
  host = await new RealHost(["--terminals", "--agent", `runner=${PYTHON} ${runner}`]).start();
  here = await open(host.announced.page);
  page = here.page;
  page.setDefaultTimeout(30_000);
});
afterAll(async () => {
  await here?.close();
  await shut();
  await host?.remove();
});

/** What stands on the screen of the terminal that is shown, line by line. */
const screen = async (at: Page, where: string): Promise<string[]> =>
  (await at.locator(`${where} .xterm-rows > div`).allTextContents()).map((line) => line.replaceAll("\u00a0", " ").trimEnd());
const shows = (line: string | RegExp, where = "aside", at = page, timeout = 30_000): Promise<unknown> =>
  expect.poll(async () => (await screen(at, where)).filter((each) => (typeof line === "string" ? each === line : line.test(each))).length, { timeout }).toBeGreaterThan(0);

async function type(line: string): Promise<void> {
  await page.locator("aside .term").click();
  await page.keyboard.type(`${line}\n`);
}

describe("a command of an agent", () => {
  it("is seen while it runs, in the chat, and has its end beside it", async () => {
    await page.goto(`${host.origin}/#/new`);
    await page.getByRole("combobox", { name: /^Agent/ }).selectOption("runner");
    await page.getByLabel("What shall the agent do?").fill("echo begun; until [ -e go ]; do sleep 0.05; done; printf '\\033[31mred\\033[0m\\n'; exit 3");
    await page.getByRole("button", { name: "Start" }).click();
    await shows("begun", ".transcript", page, 90_000); // The agent's program starts first, and that takes as long as a host's start.
    await page.getByText("Running. The agent uses it; you watch.").waitFor();
    await page.locator(".transcript .term").click();
    await page.keyboard.type("not for you"); // Nothing of it reaches the command, and nothing is refused aloud.
    await shot(page, "terminal-running");
    host.write("work/go", "");
    await shows("red", ".transcript");
    await page.getByText("Ended with code 3").waitFor();
    await idle(page);
    expect((await screen(page, ".transcript")).join("\n")).not.toContain("not for you");
  });

  it("can be opened again after a reload, with what it printed", async () => {
    await page.reload();
    await page.getByText("exit 3", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Open terminal" }).click();
    await shows("red", ".transcript");
    expect(await screen(page, ".transcript")).toContain("begun");
  });
});

describe("a shell", () => {
  it("is opened beside the chat, where the session works, and typed into", async () => {
    await panel(page, "terminals");
    await page.getByRole("button", { name: "New terminal" }).click();
    await page.getByText("What you type goes to it").waitFor();
    await type("PS1='> '; pwd; echo $((6 * 7))");
    await shows(host.work);
    await shows("42");
    await type("printf '\\033[38;2;200;100;50mtrue\\033[0m\\n'"); // A colour that is no class, but a style of its own.
    await shows("true");
    await shot(page, "terminal-shell");
  });

  it("has the size of its window, also when that changes", async () => {
    const sizes = async (): Promise<string> => {
      await type("clear; stty size");
      await shows(/^\d+ \d+$/);
      return (await screen(page, "aside")).findLast((line) => /^\d+ \d+$/.test(line)) ?? "";
    };
    const drawn = async (): Promise<string> => page.locator("aside .xterm-rows > div").count().then(String);
    const before = await sizes();
    expect(before.split(" ")[0]).toBe(await drawn());
    await page.setViewportSize({ width: 1440, height: 600 });
    await expect.poll(drawn, { timeout: 20_000 }).not.toBe(before.split(" ")[0]);
    await expect.poll(sizes, { timeout: 20_000 }).toMatch(new RegExp(`^${await drawn()} `));
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  it("is watched by another window, which cannot type", async () => {
    const other = await open(await host.link());
    await other.page.goto(page.url());
    await other.page.getByText("Another window types into it; you watch.").waitFor();
    await type("clear; echo seen by both");
    await shows("seen by both", "aside", other.page);
    await other.page.locator("aside .term").click();
    await other.page.keyboard.type("echo mine\n");
    await type("echo still here");
    await shows("still here", "aside", other.page);
    expect(await screen(other.page, "aside")).not.toContain("mine");
    expect(other.problems).toEqual([]);
    await other.close();
  });

  it("stays this window's over a reload, and answers no question of the past again", async () => {
    await type("clear; printf '\\033[6n'; read -rs -d R; echo told");
    await shows("told");
    await page.reload();
    await page.getByText("What you type goes to it").waitFor();
    await type("echo after");
    await shows("after");
    expect((await screen(page, "aside")).join("\n")).not.toMatch(/not found|\^\[/);
  });

  it("draws a flood and is there again", async () => {
    await type("clear; seq 1 200000; echo flooded");
    await shows("flooded");
    await shows("200000");
  });

  it("ends with its code, and is closed", async () => {
    await type("exit 7");
    await page.getByText("Ended with code 7").waitFor();
    await page.getByRole("button", { name: /^Close the terminal/ }).click();
    await page.getByText("No terminal is open.").or(page.getByText("Ended with code 3")).waitFor();
  });

  it("is closed while it runs, and takes its processes along", async () => {
    await page.getByRole("button", { name: "New terminal" }).click();
    await page.getByText("What you type goes to it").waitFor();
    await type("sleep 1000 & echo job $!");
    await shows(/^job \d+$/);
    const job = (await screen(page, "aside")).find((line) => /^job \d+$/.test(line))?.slice(4);
    await page.getByRole("button", { name: /^Close the terminal/ }).click();
    await expect.poll(() => {
      try {
        return process.kill(Number(job), 0);
      } catch {
        return false;
      }
    }, { timeout: 20_000 }).toBe(false);
  });
});

it("nothing went wrong in the page", () => expect(here.problems).toEqual([]));
