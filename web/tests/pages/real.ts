/** A real host as its own process, with the demo agent, in directories of its own. What a test file leaves is ended after it. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

const COMMAND = process.env.AHPKIT ?? fileURLToPath(new URL("../../../.venv/bin/ahpkit", import.meta.url));

const started = new Set<ChildProcess>();
const directories = new Set<string>();

/** A process that ends with the test file at the latest, also when the hook that started it gave up. */
export function owned(child: ChildProcess): ChildProcess {
  started.add(child);
  child.on("exit", () => started.delete(child));
  return child;
}

afterAll(async () => {
  const ends = [...started].map((child) => new Promise((resolve) => child.on("exit", resolve)));
  for (const child of started) child.kill();
  await Promise.all(ends);
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

export interface Announced {
  url: string;
  token: string;
  page: string;
  pid: number;
}

export class RealHost {
  readonly base = mkdtempSync(join(tmpdir(), "ahpkit-page-"));
  readonly home = join(this.base, "home");
  readonly work = join(this.base, "work");
  announced!: Announced;
  /** 0 takes a free one. */
  port = "0";
  #process: ChildProcess | undefined;
  errors = "";

  constructor(private readonly options: string[] = []) {
    directories.add(this.base);
    mkdirSync(this.home, { mode: 0o700 }); // Also the runtime directory, which counts only when it is private.
    mkdirSync(this.work);
    writeFileSync(join(this.work, "README.md"), "# A project\n\nWith one file.\n");
  }

  /** Settings of its own, instead of none. */
  configure(toml: string): this {
    const path = join(this.home, "config.toml");
    writeFileSync(path, toml);
    this.options.push("--config", path);
    return this;
  }

  /** A file below the host's directories. */
  write(path: string, text: string): this {
    mkdirSync(dirname(join(this.base, path)), { recursive: true });
    writeFileSync(join(this.base, path), text);
    return this;
  }

  /** The project becomes a git repository with one commit. */
  commit(): this {
    this.git("init", "--quiet");
    this.git("config", "user.name", "Tester");
    this.git("config", "user.email", "tester@example.com");
    this.git("add", "--all");
    this.git("commit", "--quiet", "--message", "One");
    return this;
  }

  git(...args: string[]): string {
    return execFileSync("git", args, { cwd: this.work, encoding: "utf8" }).trim();
  }

  /** Start, or start again on the same port. */
  async start(): Promise<this> {
    const port = this.announced ? new URL(this.announced.url).port : this.port;
    const args = ["serve", "--json", "--port", port, "--data-dir", join(this.home, "data"), "--root", this.work, ...this.options];
    const environment = { ...process.env, HOME: this.home, XDG_RUNTIME_DIR: this.home, XDG_DATA_HOME: join(this.home, "share"), XDG_CONFIG_HOME: join(this.home, "config") };
    const child = spawn(COMMAND, args, { cwd: this.work, env: environment });
    this.#process = owned(child);
    child.stderr.on("data", (data) => {
      this.errors += String(data);
    });
    this.announced = await new Promise<Announced>((resolve, reject) => {
      let text = "";
      child.stdout.on("data", (data) => {
        text += String(data);
        if (text.includes("\n")) resolve(JSON.parse(text) as Announced);
      });
      child.on("exit", (code) => reject(new Error(`the host ended with ${code}: ${this.errors}`)));
      setTimeout(() => reject(new Error(`the host does not start: ${this.errors}`)), 90_000);
    });
    return this;
  }

  /** Take a device out of what the host keeps; while it does not run. */
  forgetDevice(id: string): void {
    const path = join(this.home, "data", "devices.json");
    const kept = JSON.parse(readFileSync(path, "utf8")) as { devices: { id: string }[] };
    writeFileSync(path, JSON.stringify({ devices: kept.devices.filter((device) => device.id !== id) }));
  }

  /** The page's address, and a fresh link to come in by. */
  get origin(): string {
    return new URL(this.announced.page).origin;
  }

  async link(): Promise<string> {
    const answer = await fetch(`${this.announced.url.replace("ws", "http")}/page/link`, { method: "POST", headers: { Authorization: `Bearer ${this.announced.token}`, "Content-Type": "application/json" }, body: "{}" });
    return ((await answer.json()) as { url: string }).url;
  }

  run(...args: string[]): Promise<string> {
    return new Promise((resolve) => {
      const child = spawn(COMMAND, args, { cwd: this.work, env: { ...process.env, AHPKIT_URL: this.announced.url, AHPKIT_TOKEN: this.announced.token } });
      let text = "";
      child.stdout.on("data", (data) => {
        text += String(data);
      });
      child.on("exit", () => resolve(text));
    });
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill(signal);
    await ended;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.base, { recursive: true, force: true });
  }
}
