/** A phone over TLS: the host's own authority, a code that works once, a right that holds, and the end of it. */

import { get } from "node:https";
import { createServer } from "node:net";
import { connect } from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Opened, open, PHONE, press, shot, shut } from "./browser.ts";
import { RealHost } from "./real.ts";

let host: RealHost;
let desk: Opened;
let phone: Opened;
let url: string;

/** The test's browser takes the certificate as if the authority were installed. */
const TRUSTING = { ignoreHTTPSErrors: true };

const freePort = (): Promise<number> => new Promise((resolve) => {
  const server = createServer();
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as { port: number };
    server.close(() => resolve(port));
  });
});

/** A request past the browser: with any cookie, and whoever signed the certificate. */
const ask = (path: string, cookie = ""): Promise<{ status: number; text: string }> => new Promise((resolve, reject) => {
  get(`${url}${path}`, { rejectUnauthorized: false, headers: cookie ? { Cookie: cookie } : {} }, (answer) => {
    let text = "";
    answer.on("data", (data) => (text += String(data)));
    answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
  }).on("error", reject);
});

beforeAll(async () => {
  const port = await freePort();
  url = `https://localhost:${port}`;
  host = new RealHost().configure(`
[host]
tls_authority = true
allowed_hosts = ["localhost"]

[canvas]
page_url = "${url}"
`);
  host.port = String(port);
  await host.start();
  desk = await open(host.announced.page, TRUSTING);
});
afterAll(async () => {
  await phone?.close();
  await desk?.close();
  await shut();
  await host?.remove();
});

it("serves a certificate that its authority vouches for, and the authority's to install", async () => {
  const { status, text } = await ask("/authority.crt");
  expect(status).toBe(200);
  const authorized = await new Promise<boolean>((resolve, reject) => {
    const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", servername: "localhost", ca: text }, () => {
      resolve(socket.authorized);
      socket.end();
    });
    socket.on("error", reject);
  });
  expect(authorized).toBe(true);
});

it("lets a phone in with a code that works once, over a cookie that only TLS carries", async () => {
  await desk.page.goto(`${url}/#/devices`);
  await desk.page.getByRole("button", { name: "Show a code" }).click();
  await desk.page.getByRole("img", { name: /QR code/ }).waitFor();
  await shot(desk.page, "pairing-code");
  const code = String(await desk.page.locator(".card code").textContent());
  phone = await open(`${url}/`, { ...TRUSTING, viewport: PHONE, hasTouch: true, isMobile: true });
  await shot(phone.page, "pairing-phone-out");
  await phone.page.getByRole("textbox").fill(code);
  await phone.page.getByRole("button", { name: /in/i }).first().click();
  await phone.page.getByText("Nothing waits for you").waitFor();
  await phone.page.locator("main").getByText("Live").waitFor();
  const [cookie] = await phone.page.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: "Strict" });
  const stranger = await open(`${url}/`, TRUSTING);
  await stranger.page.getByRole("textbox").fill(code);
  await stranger.page.getByRole("button", { name: /in/i }).first().click();
  await stranger.page.getByText(/used already|expired|not right|wrong/i).first().waitFor();
  await stranger.close();
});

it("keeps the phone to its right: it answers, and writes nothing", async () => {
  await desk.page.goto(`${url}/#/new`);
  await desk.page.getByLabel("What shall the agent do?").fill('/tool calculate {"expression": "6 * 7"}');
  await desk.page.getByRole("button", { name: "Start" }).click();
  await desk.page.locator(".dock .approval").waitFor();
  await phone.page.getByText("1 thing waits for you").waitFor();
  await press(phone.page.locator("main .approval"), "Allow once");
  await desk.page.getByText("42").first().waitFor();
  await phone.page.getByText("Nothing waits for you").waitFor();
  await phone.page.getByRole("link", { name: "Sessions" }).click();
  await phone.page.locator(".session").first().click();
  await phone.page.getByText("This device may answer only.").waitFor();
  await shot(phone.page, "pairing-phone-answers");
});

it("is over when it is revoked: cut off at once, and a stolen cookie opens nothing", async () => {
  const [cookie] = await phone.page.context().cookies();
  const stolen = `${cookie?.name}=${cookie?.value}`;
  expect((await ask("/page/me", stolen)).status).toBe(200);
  await desk.page.goto(`${url}/#/devices`);
  await desk.page.getByRole("button", { name: "Revoke" }).click();
  await desk.page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await phone.page.getByText("not known to the host").waitFor({ timeout: 20_000 });
  expect((await ask("/page/me", stolen)).status).toBe(401);
  expect((await ask("/page/devices", stolen)).status).toBe(401);
});

it("nothing went wrong in the pages", () => expect([...desk.problems, ...phone.problems]).toEqual([]));
