// What a person does in VS Code with our demo agent: choose it, talk, approve, deny. Every step waits for what it shows.
import { createRequire } from 'node:module';

const [url, place] = process.argv.slice(2);
const { chromium } = createRequire(`${place}/node_modules/`)('playwright-core');
const quiet = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath: process.env.AHPKIT_CHROMIUM, args: quiet });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
page.setDefaultTimeout(60_000);
let steps = 0;

const done = (what) => { steps += 1; console.log(`ok: ${what}`); };
const chat = () => page.locator('.interactive-session').last();
const sees = (text) => page.waitForFunction(
  (wanted) => [...document.querySelectorAll('.interactive-session')].some((one) => one.innerText.includes(wanted)), text);
const say = async (text) => {
  await page.locator('.interactive-input-editor, .chat-editor-container').last().click();
  await page.keyboard.type(text);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
};
const press = async (label) => {
  const button = chat().locator('.monaco-button:visible').filter({ hasText: label }).first();
  await button.waitFor();
  await button.click();
};
const choose = async (agent) => {  // The list has our agents once VS Code is connected to the host.
  for (let attempt = 0; ; attempt += 1) {
    await page.locator('a,div,span').filter({ hasText: /^Local$/ }).last().click();
    try {
      return await page.getByText(agent).last().click({ timeout: 4_000 });
    } catch (error) {
      if (attempt > 15) throw error;
      await page.keyboard.press('Escape');
    }
  }
};
const trust = async () => {
  const button = page.getByText(/Trust Folder/).last();
  await Promise.race([button.waitFor().then(() => button.click()), sees('You said')]);
};

try {
  for (let attempt = 0; ; attempt += 1) {
    try { await page.goto(url); break; } catch (error) { if (attempt > 40) throw error; await page.waitForTimeout(500); }
  }
  await page.getByText('Build with Agent').waitFor();
  await choose('Demo');
  done('our agent is in the picker');
  await say('hello from VS Code');
  await trust();
  await sees('Hello! You said:');
  done('a new session answers');
  await say('/tool calculate {"expression": "6*7"}');
  await press('Allow once');
  await sees('42');
  done('a tool call is approved');
  await say('/tool calculate {"expression": "7*7"}');
  await press('Deny');
  await page.waitForFunction(() => !document.querySelector('.interactive-session')?.innerText.includes('pending'));
  done('a tool call is denied');
  if (process.env.AHPKIT_VSCODE_SCREENSHOT) await page.screenshot({ path: process.env.AHPKIT_VSCODE_SCREENSHOT });
  console.log(`${steps} passed, 0 failed`);
} catch (error) {
  console.error(String(error));
  await page.screenshot({ path: `${place}/failed.png` });
  console.log(`${steps} passed, 1 failed (see ${place}/failed.png)`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
