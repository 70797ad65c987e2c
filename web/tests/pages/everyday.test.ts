/** Everyday things against a real host: search, archive, references to files, company, conversations kept elsewhere, long chats. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bestPair, MEASURES, type Opened, open, shot, shut } from "./browser.ts";
import { RealHost } from "./real.ts";
import { composer, idle, panel, PYTHON, say } from "./stage.ts";

let host: RealHost;
let here: Opened;
let page: Page;

beforeAll(async () => {
  host = new RealHost();
  const store = join(host.home, "kept");
  mkdirSync(store);
  writeFileSync(join(store, "kept-1.json"), JSON.stringify({ cwd: host.work, history: [["user", "Begun in a terminal"], ["agent", "An answer from before."]] }));
  host.write("work/AGENTS.md", "# Rules\n\nUse tabs.\n")
    .write("home/plugin/.claude-plugin/plugin.json", JSON.stringify({ name: "reviews" }))
    .write("home/plugin/agents/critic.md", "---\nname: critic\ndescription: Finds faults.\n---\nFind faults.\n")
    .write("home/script.json", JSON.stringify({ store })).configure(`
[customizations]
plugins = ["${host.home}/plugin"]

[agents.keeper]
command = "${PYTHON}"
args = ["-m", "ahpkit.testing.acp_agent", "${host.home}/script.json"]
`);
  await host.start();
  here = await open(host.announced.page);
  page = here.page;
  page.setDefaultTimeout(30_000);
});
afterAll(async () => {
  await here?.close();
  await shut();
  await host?.remove();
});

async function begin(text: string): Promise<void> {
  await page.goto(`${host.origin}/#/new`);
  await page.locator("select").first().selectOption({ label: "Demo" });
  await page.getByLabel("What shall the agent do?").fill(text);
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("log").waitFor();
  await rows().filter({ hasText: text }).waitFor(); // It has its title once its first turn began.
  await idle(page);
}

const rows = () => page.locator(".session .title");

describe("sessions", () => {
  it("are found by their title and by what was said", async () => {
    await begin("Count the apples");
    await say(page, "and do not forget the quinces");
    await page.getByText("quinces").nth(1).waitFor();
    await idle(page);
    await begin("Count the pears");
    await page.getByRole("searchbox").fill("pears");
    await expect.poll(() => rows().allTextContents(), { timeout: 30_000 }).toEqual(["Count the pears"]);
    await page.getByRole("searchbox").fill("QUINCES forget");
    await expect.poll(() => rows().allTextContents(), { timeout: 30_000 }).toEqual(["Count the apples"]);
    await page.locator(".session .found b", { hasText: "quinces" }).first().click();
    await page.locator(".turn.named .said", { hasText: "do not forget the quinces" }).waitFor();
    await page.goBack(); // To the pears, where the next test goes on.
    await page.getByRole("searchbox").fill("");
  });

  it("are archived, found in the archive, and taken back; marked unread", async () => {
    await page.getByRole("button", { name: "This session" }).click();
    await page.getByRole("menuitem", { name: "Archive", exact: true }).click();
    await rows().filter({ hasText: "Count the pears" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Archive", exact: true }).click();
    await rows().filter({ hasText: "Count the pears" }).waitFor();
    await page.getByRole("button", { name: "This session" }).click();
    await page.getByRole("menuitem", { name: "Take out of the archive" }).click();
    await page.getByRole("button", { name: "Archive", exact: true }).click();
    await rows().filter({ hasText: "Count the pears" }).waitFor();
    await page.getByRole("button", { name: "This session" }).click();
    await page.getByRole("menuitem", { name: "Mark unread" }).click();
    await page.locator(".session.unread").filter({ hasText: "Count the pears" }).waitFor();
  });

  it("that an agent keeps by itself are listed, opened and gone on with", async () => {
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("menuitem", { name: /agents' own conversations/ }).click();
    await rows().filter({ hasText: "Begun in a terminal" }).click();
    await page.getByText("An answer from before.").waitFor();
    await say(page, "Go on here");
    await page.getByText("Go on here").nth(1).waitFor();
    await shot(page, "everyday-elsewhere");
  });
});

describe("a message", () => {
  it("refers to rules and files with # and to agents with @", async () => {
    await begin("Look at the rules");
    await composer(page).pressSequentially("#read");
    await page.getByRole("option", { name: /#README.md/ }).click();
    await page.locator(".composer .attachments").getByText("README.md").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.locator(".said").last().locator(".attachments").getByText("README.md").waitFor();
    await idle(page);
    await composer(page).pressSequentially("#");
    await page.getByRole("option", { name: /#AGENTS / }).click();
    await composer(page).pressSequentially("and @");
    await page.getByRole("option", { name: /critic/ }).click();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.locator(".said").last().getByText(/#AGENTS and @.*critic/).waitFor();
    await idle(page);
  });
});

describe("terminals", () => {
  it("that the host allows nobody: it says how to allow them", async () => {
    await panel(page, "terminals");
    await page.getByRole("button", { name: "New terminal" }).click();
    await page.locator("aside").getByRole("alert").getByText(/start it with --terminals/).waitFor();
    await page.getByRole("link", { name: "Close the panel" }).click();
  });
});

describe("company", () => {
  it("shows who else is here, and shares the draft while it is typed", async () => {
    const second = await open(await host.link());
    await second.page.goto(page.url());
    await page.locator(".others").getByText("Also here: Page on a computer").waitFor();
    await composer(page).fill("half a sen");
    await expect.poll(() => composer(second.page).inputValue()).toBe("half a sen");
    await second.close();
  });
});

describe("a chat of 5,000 turns", () => {
  it("opens about as fast as one of 50, in a window (19)", MEASURES, async () => {
    const turns = (count: number): object[] => Array.from({ length: count }, (_, index) => ({
      id: `t${index}`, message: { text: `question ${index}`, origin: { kind: "user" } }, state: "complete",
      responseParts: [{ kind: "markdown", id: "m", content: `answer ${count - index} ${"text ".repeat(60)}` }],
    }));
    for (const count of [50, 5_000]) {
      const file = join(host.work, `${count}.json`);
      writeFileSync(file, JSON.stringify({ format: 1, title: count > 50 ? "Long" : "Short", provider: "demo", chats: [{ title: "Chat", turns: turns(count) }] }));
      await host.run("sessions", "import", file);
    }
    const time = async (title: string): Promise<number> => {
      await page.goto(`${host.origin}/#/usage`);
      await page.reload();
      const row = rows().filter({ hasText: title });
      await row.waitFor();
      const begun = Date.now();
      await row.click();
      await page.getByText("answer 1 text").waitFor();
      return Date.now() - begun;
    };
    await time("Short");
    const allowed = (first: number): number => first * 2 + 100;
    const best = await bestPair(async () => [await time("Short"), await time("Long")], allowed);
    console.log(`a chat of 50 turns: ${best[0]} ms, of 5,000: ${best[1]} ms`);
    expect(best[1]).toBeLessThan(allowed(best[0]));
    expect(await page.locator(".turn").count()).toBe(60);
    await page.getByRole("button", { name: "Earlier turns" }).click();
    await expect.poll(() => page.locator(".turn").count(), { timeout: 20_000 }).toBe(100);
  });
});

it("nothing went wrong in the page", () => expect(here.problems).toEqual([]));
