/** A host with everything a session can have: an agent that edits and asks, MCP servers, a plugin, a rule, a repository. */

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { owned, RealHost } from "./real.ts";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
export const PYTHON = here("../../../.venv/bin/python");

/** `more` are further tables of the settings. */
export function stage(options: string[] = [], more = ""): RealHost {
  const host = new RealHost(options);
  return host
    .write("home/plugin/.claude-plugin/plugin.json", JSON.stringify({ name: "reviews", version: "1.2.0", description: "Reviews of changes, in a calm voice." }))
    .write("home/plugin/skills/review/SKILL.md", "---\nname: review\ndescription: Reviews the changes of this branch.\n---\nLook at the diff.\n")
    .write("work/.mcp.json", JSON.stringify({ mcpServers: { stranger: { command: "true" } } }))
    .commit()
    .configure(`
[agents.coder]
python = "${here("./stage/coder.py")}:coder"

[customizations]
plugins = ["${host.home}/plugin"]

[[rules]]
decision = "deny"
owner = "mcp:calc"
tool = "crash"

[[mcp.servers]]
name = "calc"
command = ["${PYTHON}", "${here("../../../tests/mcp_servers/plain_server.py")}"]

[[mcp.servers]]
name = "broken"
command = ["${PYTHON}", "${here("./stage/broken.py")}", "${host.home}/broken-may-end"]
enabled = false
${more}`);
}

/** A server that wants a sign-in, in a process of its own. */
export class Guarded {
  url = "";
  #process: ChildProcess | undefined;

  async start(): Promise<this> {
    const child = spawn(PYTHON, [here("./stage/guarded.py")], { env: { ...process.env, PYTHONPATH: here("../../../tests") } });
    this.#process = owned(child);
    let said = "";
    child.stderr.on("data", (data) => {
      said += String(data);
    });
    this.url = await new Promise<string>((resolve, reject) => {
      child.stdout.once("data", (data) => resolve(String(data).trim()));
      child.on("exit", () => reject(new Error(`the server ended: ${said}`)));
      setTimeout(() => reject(new Error(`the server does not start: ${said}`)), 90_000);
    });
    return this;
  }

  async stop(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.stdin?.end();
    await ended;
  }
}

export const composer = (page: Page) => page.getByRole("textbox", { name: "Message", exact: true });
export const idle = (page: Page): Promise<unknown> => page.getByRole("button", { name: "Send", exact: true }).waitFor({ timeout: 40_000 });

export async function say(page: Page, text: string): Promise<void> {
  await composer(page).fill(text);
  await composer(page).press("Escape"); // Closes completions, and nothing else.
  await composer(page).press("Enter");
}

/** A session with the coder that was given its first message. */
export async function begin(page: Page, host: RealHost, text: string): Promise<void> {
  await page.goto(`${host.origin}/#/new`);
  await page.locator("select").first().selectOption({ label: "Coder" });
  await page.getByLabel("What shall the agent do?").fill(text);
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("log").waitFor();
}

/** Open a panel of the session that is shown. */
export async function panel(page: Page, name: string): Promise<void> {
  await page.goto(`${page.url().split("?")[0]}?panel=${name}`);
  await page.locator("aside").waitFor();
}
