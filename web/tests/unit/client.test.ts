/** The client against a scripted host: optimism, refusals, drops, replays, snapshots, the watchdog, and the example of its README. */

import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { backoff, Client, type ChatState, LONGEST, type SessionState } from "../../src/ahp/index.ts";
import { ScriptedHost } from "../scripted/host.ts";
import { MemorySocket } from "../scripted/memory.ts";

let host: ScriptedHost;
let up: boolean;
const clients: Client[] = [];

function client(clientId = "c1"): Client {
  const made = new Client({ dial: () => new MemorySocket(host, up), clientId, random: () => 0 });
  clients.push(made);
  made.start();
  return made;
}

const settle = (): Promise<void> => vi.advanceTimersByTimeAsync(0).then(() => undefined);
const titleOf = (state: unknown): string => (state as SessionState).title;
const rename = (title: string) => ({ type: "session/titleChanged", title });

beforeEach(() => {
  vi.useFakeTimers();
  host = new ScriptedHost();
  up = true;
});
afterEach(() => {
  for (const each of clients.splice(0)) each.close();
  vi.useRealTimers();
});

describe("a client", () => {
  it("shows its own action at once and the host's word in the end", async () => {
    const { session } = host.addSession("a");
    const c = client();
    const channel = c.follow(session);
    await settle();
    const { outcome } = c.dispatch(session, rename("mine"));
    expect(titleOf(channel.state)).toBe("mine");
    expect(titleOf(channel.mirror.confirmed)).toBe("a");
    await settle();
    expect(await outcome).toMatchObject({ accepted: true });
    expect(titleOf(channel.mirror.confirmed)).toBe("mine");
  });

  it("takes a refused action back and says why", async () => {
    const { session } = host.addSession("a");
    host.judge = (_, action) => (action.title === "bad" ? "not that title" : undefined);
    const c = client();
    const channel = c.follow(session);
    await settle();
    const refused = c.dispatch(session, rename("bad"));
    const accepted = c.dispatch(session, rename("good"));
    await settle();
    expect(await refused.outcome).toEqual({ accepted: false, reason: "not that title" });
    expect(await accepted.outcome).toMatchObject({ accepted: true });
    expect(titleOf(channel.state)).toBe("good");
  });

  it("keeps what it dispatched while away, and sends it once", async () => {
    const { session } = host.addSession("a");
    const c = client();
    const channel = c.follow(session);
    await settle();
    host.judge = () => false;
    const { outcome } = c.dispatch(session, rename("kept"));
    await settle();
    host.judge = () => undefined;
    host.dropAll();
    await settle();
    expect(c.status).toBe("offline");
    expect(titleOf(channel.state)).toBe("kept");
    await vi.advanceTimersByTimeAsync(600);
    expect(c.status).toBe("live");
    expect(await outcome).toMatchObject({ accepted: true });
    expect(host.dispatched.filter((each) => each.action.title === "kept")).toHaveLength(1);
  });

  it("settles an action whose echo was lost with the connection, from the replay", async () => {
    const { session } = host.addSession("a");
    const c = client();
    const channel = c.follow(session);
    await settle();
    const { outcome } = c.dispatch(session, rename("once"));
    host.connections.forEach((connection) => (connection.send = () => undefined));
    await settle();
    host.dropAll();
    await vi.advanceTimersByTimeAsync(600);
    expect(await outcome).toMatchObject({ accepted: true });
    expect(channel.mirror.pending.size).toBe(0);
    expect(host.dispatched).toHaveLength(1);
  });

  for (const way of ["replay", "snapshot", "initialize"] as const) {
    it(`has everything it missed after a drop (${way})`, async () => {
      const { session, chat } = host.addSession("a");
      const c = client();
      const channels = [c.follow("ahp-root://"), c.follow(session), c.follow(chat, "chat", { turns: 60 })];
      await settle();
      host.dropAll();
      await settle();
      host.act(session, rename("while away"));
      host.startTurn(chat, "t1", "hello");
      if (way === "snapshot") host.replayFrom = host.seq + 1;
      if (way === "initialize") host.clients.clear();
      await vi.advanceTimersByTimeAsync(600);
      expect(c.status).toBe("live");
      for (const channel of channels) expect(channel.state).toEqual(host.states.get(channel.uri));
      host.act(session, rename("and on"));
      await settle();
      expect(titleOf(channels[1]?.state)).toBe("and on");
    });
  }

  it("tells who holds a channel that it is gone", async () => {
    const { session } = host.addSession("a");
    const c = client();
    const channel = c.follow(session);
    await settle();
    host.dropAll();
    host.states.delete(session);
    await vi.advanceTimersByTimeAsync(600);
    expect(channel.error).toBeInstanceOf(Error);
  });

  it("says when it comes back what it speaks and the highest number it has seen: the host may have forgotten both", async () => {
    const { session } = host.addSession("a");
    const c = client();
    c.follow("ahp-root://");
    c.follow(session);
    await settle();
    host.act(session, rename("seen"));
    await settle();
    host.dropAll();
    await vi.advanceTimersByTimeAsync(600);
    const asked = host.requests.find((each) => each.method === "reconnect")?.params;
    expect(asked?._meta).toMatchObject({ "ahpkit/spoken": "1.0.0", "ahpkit/highest": host.seq });
    expect(asked?.lastSeenServerSeq).toBeLessThan(host.seq);
  });

  it("notices a link that went silent, after three intervals (6)", async () => {
    const c = client();
    await settle();
    host.silent = true;
    await vi.advanceTimersByTimeAsync(28_000);
    expect(c.status).toBe("live");
    host.silent = false;
    await vi.advanceTimersByTimeAsync(15_000);
    host.silent = true;
    const statuses: string[] = [];
    c.statusListeners.add((status) => statuses.push(status));
    await vi.advanceTimersByTimeAsync(43_000);
    expect(statuses[0]).toBe("offline");
  });

  it("dials at once when it is told that now is a good moment", async () => {
    const c = client();
    await settle();
    up = false;
    host.dropAll();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(c.status).toBe("offline");
    up = true;
    c.check();
    await settle();
    expect(c.status).toBe("live");
  });

  it("finds out soon after waking up that the link is dead", async () => {
    const c = client();
    await settle();
    host.silent = true;
    c.check();
    await vi.advanceTimersByTimeAsync(4_100);
    expect(c.status).toBe("offline");
  });

  it("says which versions a host speaks that does not speak ours", async () => {
    const { Refusal } = await import("../scripted/host.ts");
    host.methods.initialize = () => {
      throw new Refusal(-32005, "no", { supportedVersions: ["0.4.0"] });
    };
    const c = client();
    await settle();
    expect(c.status).toBe("refused");
    expect(c.refusal).toContain("0.4.0");
  });

  it("loads older turns into its own window", async () => {
    const turns = Array.from({ length: 100 }, (_, index) => ({
      id: `t${index}`, message: { text: "x", origin: { kind: "user" } }, responseParts: [], state: "complete",
    }));
    const { chat } = host.addSession("a", {}, { turns });
    const c = client();
    const channel = c.follow(chat, "chat", { turns: 60 });
    await settle();
    const state = (): ChatState => channel.state as ChatState;
    expect(state().turns).toHaveLength(60);
    await Promise.all([c.request("fetchTurns", { channel: chat, cursor: state().turnsNextCursor }), settle()]);
    expect(state().turns).toHaveLength(100);
    expect(state().turnsNextCursor).toBeUndefined();
  });

  it("can follow one channel twice and leaves it with the last hold", async () => {
    const { session } = host.addSession("a");
    const c = client();
    const one = c.follow(session);
    const two = c.follow(session);
    await settle();
    expect(one).toBe(two);
    c.release(one);
    await settle();
    expect([...host.connections][0]?.subscriptions.has(session)).toBe(true);
    c.release(two);
    await settle();
    expect([...host.connections][0]?.subscriptions.has(session)).toBe(false);
  });
});

/** A small generator of numbers, so that a failure can be repeated from its seed. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

describe("two clients under random drops, refusals and lost logs", () => {
  for (let seed = 1; seed <= 30; seed += 1) {
    it(`end with the host's state (seed ${seed})`, async () => {
      const pick = numbers(seed);
      const { session, chat } = host.addSession("a");
      host.judge = (_, action) => (String(action.title ?? "").endsWith("3") ? "no threes" : undefined);
      const all = [client("c1"), client("c2")];
      const channels = all.flatMap((each) => [each.follow(session), each.follow(chat, "chat")]);
      const outcomes: Promise<unknown>[] = [];
      let turn = 0;
      await settle();
      for (let step = 0; step < 40; step += 1) {
        const who = all[pick(2)] as Client;
        const what = pick(8);
        if (what === 0) host.dropAll();
        else if (what === 1) host.replayFrom = host.seq;
        else if (what === 2) host.startTurn(chat, `t${(turn += 1)}`, "go");
        else if (what === 3 && turn)
          host.act(chat, { type: "chat/turnComplete", turnId: `t${turn}`, duration: 5 });
        else if (what === 4)
          outcomes.push(who.dispatch(chat, { type: "chat/draftChanged", draft: { text: String(step), origin: { kind: "user" } } }).outcome);
        else outcomes.push(who.dispatch(session, rename(`${seed}-${step}`)).outcome);
        await vi.advanceTimersByTimeAsync(pick(300));
      }
      await vi.advanceTimersByTimeAsync(60_000);
      await Promise.all(outcomes);
      for (const channel of channels) {
        expect(channel.mirror.pending.size).toBe(0);
        expect(channel.state).toEqual(host.states.get(channel.uri));
      }
    });
  }
});

describe("the pause before the next attempt", () => {
  it("grows from half a second to fifteen, and is never the same for everyone", () => {
    expect(backoff(1, 0.999)).toBeLessThanOrEqual(500);
    expect(backoff(1, 0)).toBe(250);
    expect(backoff(50, 0.999)).toBeLessThanOrEqual(LONGEST);
    expect(backoff(50, 0)).toBe(LONGEST / 2);
  });
});

describe("the README", () => {
  const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

  it("has an example that is checked and run", async () => {
    const example = read("../scripted/example.ts").replace("../../src/ahp/index.ts", "ahpkit-client");
    expect(read("../../src/ahp/README.md")).toContain(`\`\`\`ts\n${example}\`\`\``);
    vi.useRealTimers();
    const { session } = host.addSession("a", { title: "Old" });
    vi.stubGlobal("WebSocket", class extends MemorySocket {
      constructor() {
        super(host, true);
      }
    });
    const said: unknown[] = [];
    vi.spyOn(console, "log").mockImplementation((words) => said.push(words));
    await import("../scripted/example.ts");
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
    expect(said).toContain("A better title");
    expect(said.at(-1)).toMatchObject({ accepted: true });
    expect(host.states.get(session)?.title).toBe("A better title");
    host.dropAll(1000);
  });
});
