import { defineConfig } from "vitest/config";

/** The page is built into the Python package's tree; `src/ahpkit/web/page` is never committed. */
export default defineConfig({
  base: "/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: process.env.AHPKIT_PAGE ?? "../src/ahpkit/web/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: "assets.json",
    rollupOptions: {
      input: { index: "index.html", sw: "src/sw.ts" },
      output: { entryFileNames: (chunk) => (chunk.name === "sw" ? "sw.js" : "assets/[name]-[hash].js") },
    },
    chunkSizeWarningLimit: 600,
  },
  server: { host: "127.0.0.1" },
  test: { include: ["tests/unit/**/*.test.{ts,tsx}"], environment: "node", testTimeout: 60_000 },
});
