/** The page with an agent that nobody here wrote: goose, which asks for permission, writes a file and answers. `AHPKIT_REAL_AGENTS` says where it is. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Opened, open, press, shot, shut } from "./browser.ts";
import { owned, RealHost } from "./real.ts";
import { composer, idle, PYTHON, say } from "./stage.ts";

const program = join(process.env.AHPKIT_REAL_AGENTS ?? "/nowhere", "node_modules/@aaif/goose-binary-linux-x64/bin/goose");

describe.skipIf(!existsSync(program))("goose", () => {
  let model: ChildProcess;
  let host: RealHost;
  let here: Opened;

  beforeAll(async () => {
    model = owned(spawn(PYTHON, ["-m", "ahpkit.testing.fake_model", "--port", "0"]));
    const said = await new Promise<string>((resolve) => model.stdout?.once("data", (data) => resolve(String(data))));
    const root = /http:\/\/[\d.]+:\d+/.exec(said)?.[0];
    host = new RealHost();
    host.configure(`
[agents.goose]
command = "${program}"
args = ["acp", "--with-builtin", "developer"]
env = { GOOSE_PROVIDER = "openai", GOOSE_MODEL = "fake-model", OPENAI_HOST = "${root}", OPENAI_API_KEY = "x", GOOSE_MODE = "approve", GOOSE_DISABLE_KEYRING = "1", GOOSE_TELEMETRY_ENABLED = "false", GOOSE_CONTEXT_LIMIT = "100000" }
`);
    await host.start();
    here = await open(host.announced.page);
    here.page.setDefaultTimeout(60_000);
  });
  afterAll(async () => {
    await here?.close();
    await shut();
    await host?.remove();
    model?.kill();
  });

  it("is asked, wants a permission, writes a file and answers", async () => {
    const { page } = here;
    await page.goto(`${host.origin}/#/new`);
    await page.getByRole("combobox", { name: /^Agent/ }).selectOption("goose");
    await page.getByLabel("What shall the agent do?").fill("hello");
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".turn .md").first().waitFor();
    await idle(page);
    await composer(page).waitFor();
    await say(page, `CALL write ${JSON.stringify({ path: join(host.work, "made.txt"), content: "from goose\n" })}`);
    const card = page.locator(".dock .approval");
    await card.getByText("made.txt").first().waitFor();
    await shot(page, "agent-goose-asks");
    await press(card, /^Allow once|^Allow/);
    await idle(page);
    expect(readFileSync(join(host.work, "made.txt"), "utf8")).toBe("from goose\n");
    await shot(page, "agent-goose");
    expect(here.problems).toEqual([]);
  });
});
