/** Every screen once, in both themes and three widths, without script errors, policy violations or serious axe findings. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { ScriptedHost } from "../scripted/host.ts";
import { asking, busy, changing, CUSTOMIZATIONS } from "../scripted/scenes.ts";
import { PageServer } from "../scripted/server.ts";
import { DESK, drawn, open, PHONE, shot, shut, TABLET } from "./browser.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let server: PageServer;
let host: ScriptedHost;
let made: { main: string; asks: string; edits: string };

beforeAll(async () => {
  host = new ScriptedHost();
  const { main } = busy(host);
  const { session: asks } = asking(host);
  const { session: edits } = changing(host);
  host.act(edits, { type: "session/customizationsChanged", customizations: CUSTOMIZATIONS });
  host.act(edits, { type: "session/canvasInstanceOpened", instance: { instanceId: "chart", canvasId: "chart", title: "Memory by release", availability: "ready", url: "data:text/html,<body style='font:16px sans-serif'><h1>Chart</h1><p>Drawn by a canvas.</p>" } });
  host.act(edits, { type: "session/canvasInstanceOpened", instance: { instanceId: "old", canvasId: "notes", title: "Notes", availability: "stale" } });
  made = { main, asks, edits };
  server = await new PageServer(host).listen();
});
afterAll(async () => {
  await shut();
  await server.close();
});

const at = (session: string, rest = ""): string => `#/s/${encodeURIComponent(session)}${rest}`;

const SCREENS: [string, () => string, string][] = [
  ["inbox", () => "#/", "text=things wait"],
  ["sessions", () => "#/sessions", ".session"],
  ["chat-approval", () => at(made.main), ".dock .approval"],
  ["question", () => at(made.asks), "form.card.needs"],
  ["changes", () => at(made.edits, "?panel=changes"), ".diff-row"],
  ["setup", () => at(made.edits, "?panel=setup"), ".setup-item"],
  ["canvas", () => at(made.edits, "?panel=canvases"), "iframe, .empty"],
  ["timeline", () => at(made.main, "?panel=timeline"), ".tl-row"],
  ["session-usage", () => at(made.main, "?panel=usage"), ".plot"],
  ["usage", () => "#/usage", ".plot"],
  ["new", () => "#/new", "form"],
  ["settings", () => "#/settings", "fieldset"],
  ["devices", () => "#/devices", ".tree-row"],
  ["rules", () => "#/rules", "h1"],
];

async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const result = await page.evaluate(() => (window as unknown as { axe: { run(what: unknown): Promise<{ violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[] }> } }).axe.run({ exclude: [["iframe"]] }));
  return result.violations.filter((each) => each.impact === "serious" || each.impact === "critical").map((each) => `${each.id}: ${each.nodes.map((node) => `${node.target.join(" ")} ${node.failureSummary}`).slice(0, 3).join("; ")}`);
}

for (const [theme, colorScheme] of [["light", "light"], ["dark", "dark"]] as const)
  for (const [width, viewport] of [["desk", DESK], ["tablet", TABLET], ["phone", PHONE]] as const)
    describe(`${theme}, ${width}`, () => {
      it("shows every screen", async () => {
        const { page, problems, close } = await open(server.url, { viewport, colorScheme, hasTouch: width === "phone" });
        const serious: string[] = [];
        for (const [name, hash, ready] of SCREENS) {
          await page.goto(`${server.url}${hash()}`);
          await page.waitForSelector(ready, { state: "attached" });
          await drawn(page);
          await shot(page, `${name}-${width}-${theme}`);
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          expect(overflow, `${name} is wider than the screen`).toBeLessThanOrEqual(0);
          if (width !== "tablet") serious.push(...(await findings(page)).map((each) => `${name}: ${each}`));
        }
        expect(serious).toEqual([]);
        expect(problems).toEqual([]);
        await close();
      }, 240_000);
    });
