/** Makes the pictures of the README anew: `AHPKIT_PICTURES=../docs/images npx vitest run --config vitest.pages.config.ts pictures` */

import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, it } from "vitest";
import { drawn, open, press, settled, shut } from "./browser.ts";
import type { RealHost } from "./real.ts";
import { begin, idle, say, stage } from "./stage.ts";

const place = process.env.AHPKIT_PICTURES;

describe.skipIf(!place)("pictures", () => {
  let host: RealHost;
  const take = (page: Page, name: string): Promise<unknown> => page.screenshot({ path: join(resolve(place as string), name) });

  beforeAll(async () => {
    host = await stage().start();
  });
  afterAll(async () => {
    await shut();
    await host?.remove();
  });

  it("a session with an approval at the desk, and what waits on a phone", async () => {
    const { page, close } = await open(host.announced.page, { viewport: { width: 1280, height: 860 } });
    await page.getByText("Live").first().waitFor();
    await begin(page, host, "Explain the cache in one paragraph");
    await idle(page);
    await begin(page, host, "Plan the rest of the work");
    await idle(page);
    await begin(page, host, "Deploy the new parser");
    await settled(page.locator(".dock .approval"));
    await begin(page, host, "Why does the parser need 800 MB for a 100 MB file?");
    await idle(page);
    await say(page, "Change it, please.");
    await page.locator(".dock .approval .diff-row .hljs-keyword").first().waitFor();
    await settled(page.locator(".dock .approval"));
    await drawn(page);
    await take(page, "page-desk.png");
    const phone = await open(await host.link(), { viewport: { width: 390, height: 780 }, colorScheme: "dark", hasTouch: true });
    await phone.page.locator(".diff-row .hljs-keyword").first().waitFor();
    await phone.page.getByText("Judged risky.").scrollIntoViewIfNeeded();
    await drawn(phone.page);
    await take(phone.page, "page-phone.png");
    await phone.close();
    await press(page.locator(".dock .approval"), "Deny");
    await close();
  });
});
