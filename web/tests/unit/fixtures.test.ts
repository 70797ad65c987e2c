/** Our reducers against the fixtures that the Python package runs, too: both languages prove the same behaviour. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { REDUCERS, type ChannelKind } from "../../src/ahp/index.ts";

const here = dirname(fileURLToPath(import.meta.url));
const fixtures = join(here, "../../../tests/fixtures");

/** The repository's 1.0 fixtures, the public ones beside the checkout, and others that `AHP_FIXTURES` names. */
const ours = join(fixtures, "reducers", "1.0.0");
const shared = join(here, "../../../../shared/ahp-1.0.0/fixtures/reducers");
const places = [ours, shared, process.env.AHP_FIXTURES ?? ""];

function* files(directory: string): Generator<string> {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* files(path);
    else if (entry.name.endsWith(".json")) yield path;
  }
}

/** Fixtures write null for "absent". */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([, each]) => each !== null && each !== undefined);
  return Object.fromEntries(kept.map(([key, each]) => [key, withoutNulls(each)]));
}

interface Fixture {
  description: string;
  reducer: string;
  initial: Record<string, unknown>;
  actions: { type: string }[];
  expected: Record<string, unknown>;
}

for (const place of places.filter((each) => each && existsSync(each))) {
  describe(`fixtures in ${relative(process.cwd(), place)}`, () => {
    for (const path of files(place)) {
      const fixture = JSON.parse(readFileSync(path, "utf8")) as Fixture;
      const reduce = REDUCERS[fixture.reducer as ChannelKind];
      if (!reduce) continue;
      it(`${relative(place, path)}: ${fixture.description}`, () => {
        const start = withoutNulls(fixture.initial) as Record<string, unknown>;
        const frozen = JSON.stringify(start);
        const end = fixture.actions.reduce((state, action) => reduce(state, action), start);
        expect(withoutNulls(end)).toEqual(withoutNulls(fixture.expected));
        expect(JSON.stringify(start)).toBe(frozen);
      });
    }
  });
}

it("our own fixtures are there", () => {
  expect([...files(ours)].length).toBeGreaterThan(20);
});

describe("every reducer", () => {
  for (const [kind, reduce] of Object.entries(REDUCERS)) {
    it(`${kind} returns the same object for what it does not know`, () => {
      const state = { turns: [], chats: [], files: [], annotations: [], content: [], status: 1 };
      expect(reduce(state, { type: "hologram/projected" })).toBe(state);
      expect(reduce(state, { type: "constructor" })).toBe(state);
      expect(reduce(state, { type: "chat/turnComplete" })).toBe(state);
    });
  }
});
