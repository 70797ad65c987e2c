// What a person does in VS Code with our demo agent: talk, approve, deny, answer, cancel, two windows and a terminal, and a
// host that is killed. Every step waits for what it shows.
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
    await page.locator('.action-widget .monaco-list-row').first().waitFor();
    for (let row = 0; row < 6; row += 1) {
      await page.keyboard.press('ArrowDown');
      const focused = await page.locator('.action-widget .monaco-list-row.focused').first().innerText();
      if (focused.trim() === agent) return page.keyboard.press('Enter');
    }
    if (attempt > 30) throw new Error(`${agent} is not in the list of agents`);
    await page.keyboard.press('Escape');
    await page.waitForTimeout(1_000);
  }
};
const idle = () => page.waitForFunction(() => !document.querySelector('.interactive-session .codicon-stop-circle'));
const tell = (wish) => new Promise((resolve) => {  // The process that started us does it, and says so.
  process.stdin.once('data', resolve);
  console.log(`wish: ${wish}`);
});
const open = async (window) => {  // The session of the first window, in the list of another one.
  const listed = window.locator('.monaco-list-row:visible').filter({ hasText: 'hello from VS Code' }).first();
  await window.locator('.interactive-session:visible').first().waitFor();
  if (!(await listed.isVisible())) {
    await window.keyboard.press('F1');
    await window.keyboard.type('Show Agent Sessions Sidebar');
    await window.getByText('Show Agent Sessions Sidebar').first().waitFor();
    await window.keyboard.press('Enter');
  }
  await listed.click();
  await window.waitForFunction(() => document.body.innerText.includes('prompt in the terminal'));
};
const ask = (text) => tell(`say ${text}`);
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
  await say('/tool ask_user {"question": "What do you drink?"}');
  await page.getByText('What do you drink?').last().waitFor();
  await page.locator('.chat-question-input-container').last().locator('input, textarea').first().fill('tea with lemon');
  await page.locator('.chat-question-submit-button').last().click();
  await sees('tea with lemon');
  await idle();
  done('a question is answered');
  await say('/sleep 60');
  await sees('Sleeping for 60 seconds');
  await page.locator('.interactive-session .codicon-stop-circle').last().click();
  await idle();
  done('a turn is cancelled');
  await ask('prompt in the terminal');
  await sees('prompt in the terminal');
  done('the command line talks in the same session');
  const second = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await second.goto(url);
  await open(second);
  done('a second window shows the session');
  await ask('for both windows');
  await Promise.all([page, second].map((one) => one.waitForFunction(() => document.body.innerText.includes('for both windows'))));
  done('both windows follow it live');
  await tell('restart the host');
  await second.reload();  // In an open window VS Code did not dial again within a minute.
  await open(second);
  await ask('after the restart');
  await second.waitForFunction(() => document.body.innerText.includes('after the restart'));
  done('the host is killed and started again, and the session goes on in a reloaded window');
  if (process.env.AHPKIT_VSCODE_SCREENSHOT) await second.screenshot({ path: `${process.env.AHPKIT_VSCODE_SCREENSHOT}.second.png` });
  if (process.env.AHPKIT_VSCODE_SCREENSHOT) await page.screenshot({ path: process.env.AHPKIT_VSCODE_SCREENSHOT });
  console.log(`${steps} passed, 0 failed`);
} catch (error) {
  console.error(String(error));
  for (const [number, one] of browser.contexts().flatMap((each) => each.pages()).entries()) {
    await one.screenshot({ path: `${place}/failed${number || ''}.png` });
  }
  console.log(`${steps} passed, 1 failed (see ${place}/failed.png)`);
  process.exitCode = 1;
} finally {
  await browser.close();
  process.stdin.destroy();
}
