import { Client, type SessionState, type SessionSummary } from "../../src/ahp/index.ts";

const token = "…"; // `ahpkit serve --json` prints it beside the address. A page that the host itself serves needs none.
const dial = () => new WebSocket("ws://127.0.0.1:7110/", ["ahp", `ahp.token.${token}`]);
const client = new Client({ dial, clientId: crypto.randomUUID() });
client.start();

const { items } = await client.request<{ items: SessionSummary[] }>("listSessions", { channel: "ahp-root://" });
const uri = items[0]!.resource;
const session = client.follow(uri, "session");
session.listeners.add(() => console.log((session.state as SessionState | undefined)?.title)); // None before the host has answered.

const { outcome } = client.dispatch(uri, { type: "session/titleChanged", title: "A better title" });
console.log(await outcome); // { accepted: true, serverSeq: 7 } or { accepted: false, reason: "…" }
