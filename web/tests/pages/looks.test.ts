/** Every screen once, in both themes and three widths, without script errors, policy violations or serious axe findings. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { ScriptedHost } from "../scripted/host.ts";
import { asking, busy, changing, CUSTOMIZATIONS, md, turn } from "../scripted/scenes.ts";
import { PageServer } from "../scripted/server.ts";
import { DESK, drawn, type Opened, open, PHONE, shot, shut, TABLET } from "./browser.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let server: PageServer;
let host: ScriptedHost;
let made: { main: string; asks: string; edits: string };

beforeAll(async () => {
  host = new ScriptedHost();
  server = await new PageServer(host).listen();
  server.canvas = "<body style='font:16px sans-serif;background:white'><h1>Memory</h1><svg width='300' height='120'><rect width='60' height='120' fill='#2f5fd0'/><rect x='80' y='90' width='60' height='30' fill='#1c6e3f'/></svg><p>Drawn by a canvas.</p>";
  const { main } = busy(host);
  const { session: asks } = asking(host);
  const { session: edits } = changing(host);
  host.act(edits, { type: "session/customizationsChanged", customizations: CUSTOMIZATIONS });
  host.act(edits, { type: "session/canvasInstanceOpened", instance: { instanceId: "chart", canvasId: "chart", title: "Memory by release", availability: "ready", url: `${server.url}canvas/chart/` } });
  host.act(edits, { type: "session/canvasInstanceOpened", instance: { instanceId: "old", canvasId: "notes", title: "Notes", availability: "stale" } });
  made = { main, asks, edits };
});
afterAll(async () => {
  await shut();
  await server.close();
});

const at = (session: string, rest = ""): string => `#/s/${encodeURIComponent(session)}${rest}`;

const SCREENS: [string, () => string, string][] = [
  ["inbox", () => "#/", ".card .answers"],
  ["sessions", () => "#/sessions", ".session"],
  ["chat-approval", () => at(made.main), ".dock .approval"],
  ["question", () => at(made.asks), "form.card.needs"],
  ["changes", () => at(made.edits, "?panel=changes"), ".diff-row"],
  ["setup", () => at(made.edits, "?panel=setup"), ".setup-item"],
  ["canvas", () => at(made.edits, "?panel=canvases"), "iframe"],
  ["timeline", () => at(made.main, "?panel=timeline"), ".tl-row"],
  ["session-usage", () => at(made.main, "?panel=usage"), ".plot"],
  ["usage", () => "#/usage", ".plot"],
  ["new", () => "#/new", "form"],
  ["settings", () => "#/settings", "fieldset"],
  ["devices", () => "#/devices", ".tree-row"],
  ["rules", () => "#/rules", "h1"],
];

/** How far what is on the screen reaches beyond its right edge. */
const overflow = (page: Page): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

async function show(page: Page, hash: string, ready: string): Promise<void> {
  await page.goto(`${server.url}${hash}`);
  await page.waitForSelector(ready, { state: "attached" });
  await drawn(page);
}

/** What axe finds serious. With `rules` only those: what is not about colours is the same in both themes. */
async function findings(page: Page, rules?: string[]): Promise<string[]> {
  await page.evaluate(axe);
  const result = await page.evaluate((only) => (window as unknown as { axe: { run(what: unknown, how: unknown): Promise<{ violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[] }> } }).axe.run({ exclude: [["iframe"]] }, { resultTypes: ["violations"], ...(only ? { runOnly: only } : {}) }), rules);
  return result.violations.filter((each) => each.impact === "serious" || each.impact === "critical").map((each) => `${each.id}: ${each.nodes.map((node) => `${node.target.join(" ")} ${node.failureSummary}`).slice(0, 3).join("; ")}`);
}

for (const [theme, colorScheme] of [["light", "light"], ["dark", "dark"]] as const)
  for (const [width, viewport] of [["desk", DESK], ["tablet", TABLET], ["phone", PHONE]] as const)
    describe(`${theme}, ${width}`, () => {
      it("shows every screen", async () => {
        const { page, problems, close } = await open(server.url, { viewport, colorScheme, hasTouch: width === "phone" });
        const serious: string[] = [];
        for (const [name, hash, ready] of SCREENS) {
          await show(page, hash(), ready);
          await shot(page, `${name}-${width}-${theme}`);
          expect(await overflow(page), `${name} is wider than the screen`).toBeLessThanOrEqual(0);
          if (width !== "tablet") serious.push(...(await findings(page, theme === "dark" ? ["color-contrast"] : undefined)).map((each) => `${name}: ${each}`));
        }
        expect(serious).toEqual([]);
        expect(problems).toEqual([]);
        await close();
      }, 240_000);
    });

describe("as people set it", () => {
  const SETTINGS: [string, Parameters<typeof open>[1], (here: Opened) => Promise<unknown>][] = [
    ["text-200", { viewport: DESK }, twiceTheText],
    ["phone-text-200", { viewport: PHONE }, twiceTheText],
    ["zoom-400", { viewport: { width: 320, height: 256 }, deviceScaleFactor: 4 }, async () => undefined], // 1280 × 1024 at 400 %.
    ["forced-colours", { viewport: DESK, forcedColors: "active" }, async () => undefined],
  ];

  /** The size of text that somebody chose in the browser. */
  async function twiceTheText({ page }: Opened): Promise<void> {
    const session = await page.context().newCDPSession(page);
    const size = (): Promise<number> => page.evaluate(() => parseFloat(getComputedStyle(document.body).fontSize));
    const before = await size();
    await session.send("Page.setFontSizes", { fontSizes: { standard: 32, fixed: 26 } });
    await page.reload();
    expect(await size()).toBeGreaterThanOrEqual(before * 2);
  }

  /** A command that waits can be read whole, however little room there is, and the button that allows it, too. */
  async function commandIsWhole(page: Page, name: string): Promise<void> {
    await show(page, at(made.main), ".dock .approval .payload");
    const payload = page.locator(".dock .approval .payload");
    await payload.scrollIntoViewIfNeeded();
    await shot(page, `${name}-command`);
    const [seen, whole] = await payload.evaluate((element) => {
      const box = element.getBoundingClientRect();
      const middle = document.elementFromPoint(box.left + box.width / 2, box.top + Math.min(box.height, innerHeight - box.top) / 2);
      return [middle === element, element.scrollHeight <= element.clientHeight + 1];
    });
    expect([seen, whole]).toEqual([true, true]);
    const allow = page.locator(".dock").getByRole("button", { name: "Allow once", exact: true });
    expect(await allow.evaluate((element) => element.scrollWidth <= element.clientWidth + 1)).toBe(true);
  }

  for (const [name, options, set] of SETTINGS)
    it(`every screen fits, and a command that waits can be read whole: ${name}`, async () => {
      const here = await open(server.url, options);
      await set(here);
      for (const [screen, hash, ready] of SCREENS) {
        await show(here.page, hash(), ready);
        await shot(here.page, `${name}-${screen}`);
        expect(await overflow(here.page), `${screen} is wider than the screen`).toBeLessThanOrEqual(0);
        const cut = await here.page.locator(".plot text").evaluateAll((all) => all.filter((each) => each.getBoundingClientRect().left < (each.closest("svg") as Element).getBoundingClientRect().left).map((each) => each.textContent));
        expect(cut, `numbers beside the bars of ${screen}`).toEqual([]);
        if (screen === "sessions") await here.page.locator(".session").last().click({ trial: true });
        const covered = await here.page.locator(".setup-item").evaluateAll((all) => all.filter((each) => (each.querySelector("input")?.getBoundingClientRect().right ?? 0) > (each.querySelector("strong")?.getBoundingClientRect().left ?? 0)).length);
        expect(covered, `names behind the switches of ${screen}`).toBe(0);
        if (screen === "setup") expect(await here.page.locator("[role=switch]").first().evaluate((each) => getComputedStyle(each).appearance), "on or off is seen").toBe(options?.forcedColors ? "auto" : "none");
      }
      await commandIsWhole(here.page, name);
      expect(here.problems).toEqual([]);
      await here.close();
    }, 240_000);

  it("beside a panel the answers that decide fill a row, equally wide, and the others follow in one", async () => {
    const { page, close } = await open(server.url, { viewport: { width: 1280, height: 800 } });
    await show(page, at(made.main, "?panel=timeline"), ".dock .approval");
    const boxes = await page.locator(".dock .answers .btn").evaluateAll((all) => all.map((each) => [each.getBoundingClientRect().top, each.getBoundingClientRect().width].map(Math.round)));
    expect(boxes.length).toBeGreaterThan(3);
    expect(boxes[0]).toEqual(boxes[1]);
    expect(new Set(boxes.slice(2).map(([top]) => top)).size).toBe(1);
    await close();
  });

  it("canvases in tabs are named once, and closed beside their tabs", async () => {
    const { page, close } = await open(server.url);
    await show(page, at(made.edits, "?panel=canvases"), "iframe");
    const [tab, cross] = [await page.getByRole("tab", { name: "Memory by release" }).boundingBox(), await page.getByRole("button", { name: "Close this canvas" }).boundingBox()];
    expect(Math.abs((tab?.y ?? 0) - (cross?.y ?? 100))).toBeLessThan(8);
    expect(await page.locator("aside").getByText("Memory by release").count()).toBe(1);
    await close();
  });

  it("text that runs from right to left does so in titles, messages, answers and while it is written", async () => {
    const made = host.addSession("rtl", { title: "תיקון המנתח" }, { turns: [turn("r1", "למה המנתח צריך 800 MB?", [md("כי הקובץ **כולו** בזיכרון.\n\n1. `read_all`\n2. המטמון\n\nEnglish words stay as they are.")])] });
    const { page, close } = await open(server.url, { viewport: PHONE });
    await show(page, at(made.session), ".md li");
    await page.getByRole("textbox", { name: "Message", exact: true }).fill("תודה");
    const directions = await page.evaluate(() => ["h1", ".said .text", ".md p", ".composer textarea"].map((each) => getComputedStyle(document.querySelector(each) as Element).direction));
    await shot(page, "right-to-left");
    expect(directions).toEqual(["rtl", "rtl", "rtl", "rtl"]);
    const indent = (text: string): Promise<number> => page.getByText(text).evaluate((element) => {
      const words = document.createRange();
      words.selectNodeContents(element);
      return words.getBoundingClientRect().left - element.getBoundingClientRect().left;
    });
    expect(await indent("English words stay")).toBeLessThan(2);
    expect(await indent("כי הקובץ")).toBeGreaterThan(20);
    await close();
  });

  it("300 sessions are a short list with the rest on demand", async () => {
    const many = new ScriptedHost();
    for (let index = 0; index < 300; index += 1) many.addSession(`many-${index}`, { title: `Session ${index}`, workingDirectories: [`file:///home/ada/project-${index % 7}`], status: index % 40 ? 33 : 24 });
    const other = await new PageServer(many).listen();
    for (const [name, viewport] of [["desk", DESK], ["phone", PHONE]] as const) {
      const { page, close } = await open(`${other.url}#/sessions`, { viewport, colorScheme: "dark" });
      await page.getByRole("button", { name: /\d+ more/ }).first().waitFor();
      await shot(page, `sessions-300-${name}`);
      expect(await page.locator("a.session").count()).toBeLessThan(100);
      await close();
    }
    await other.close();
  });
});
