import { defineConfig } from "vitest/config";

/** The built page in a real browser: two files at a time, because most of them wait for a host or a page most of the time. */
export default defineConfig({
  test: {
    include: ["tests/pages/**/*.test.ts"],
    environment: "node",
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } }, // As long as every other wait: one second is not enough on a busy machine.
  },
});
