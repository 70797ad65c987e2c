/** Chromium for tests: one browser per file, a fresh context per page, and everything that goes wrong is kept. */

import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";

export const SHOTS = process.env.AHPKIT_SHOTS ?? fileURLToPath(new URL("./shots", import.meta.url));
mkdirSync(SHOTS, { recursive: true });

export const DESK = { width: 1440, height: 900 };
export const TABLET = { width: 900, height: 1000 };
export const PHONE = { width: 390, height: 844 };

let browser: Browser | undefined;

export async function launch(): Promise<Browser> {
  browser ??= await chromium.launch({ executablePath: process.env.AHPKIT_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  return browser;
}

export async function shut(): Promise<void> {
  await browser?.close();
  browser = undefined;
}

export interface Opened {
  page: Page;
  problems: string[];
  requests: string[];
  close(): Promise<void>;
}

/**
 * A page in a context of its own. Script errors and policy violations are collected in `problems`. The worker for offline use
 * is not installed unless a test wants it: it loads every file of the page.
 */
export async function open(url: string, options: BrowserContextOptions = {}): Promise<Opened> {
  const context = await (await launch()).newContext({ viewport: DESK, colorScheme: "light", reducedMotion: "reduce", serviceWorkers: "block", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const problems: string[] = [];
  const requests: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/WebSocket connection|Failed to load resource|ERR_/.test(message.text())) problems.push(message.text());
  });
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(url);
  return { page, problems, requests, close: () => context.close() };
}

export const shot = (page: Page, name: string): Promise<unknown> => page.screenshot({ path: `${SHOTS}/${name}.png` });

/** Until an approval accepts presses: it ignores them while it is new or moves. */
export const settled = (card: Locator): Promise<void> => card.locator("[data-still]").first().waitFor();

/** Until the page has drawn whatever it knows. */
export const drawn = (page: Page): Promise<unknown> =>
  page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 0)))));

/** For tests that measure: a machine that is busy with other things gets a second look. All others wait for states. */
export const MEASURES = { retry: 1, timeout: 240_000 };

/**
 * Measure a pair until its second is within `bound` of its first, six times at most. The best of each counts: other
 * programs can only make a measurement worse.
 */
export async function bestPair(measure: () => Promise<[number, number]>, bound: (first: number) => number): Promise<[number, number]> {
  let best: [number, number] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < 6; round += 1) {
    const [first, second] = await measure();
    best = [Math.min(best[0], first), Math.min(best[1], second)];
    if (round > 0 && best[1] < bound(best[0])) break;
  }
  return best;
}

/** Press an answer until its card is gone: it ignores presses in the moment it appears or moves. */
export async function press(card: Locator, name: string | RegExp): Promise<void> {
  const button = typeof name === "string" ? card.getByRole("button", { name, exact: true }) : card.getByRole("button", { name });
  await button.first().waitFor();
  for (const end = Date.now() + 20_000; (await card.count()) > 0; ) {
    if (Date.now() > end) throw new Error(`the card stays, whoever presses ${name}`);
    await button.first().click({ timeout: 1_000 }).catch(() => undefined);
    await card.first().waitFor({ state: "detached", timeout: 500 }).catch(() => undefined);
  }
}

/** Wait until `check` holds; for states outside the page. */
export async function until(check: () => boolean, what: string): Promise<void> {
  const end = Date.now() + 30_000;
  while (!check()) {
    if (Date.now() > end) throw new Error(`never came true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
