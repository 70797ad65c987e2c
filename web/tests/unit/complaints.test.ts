/** What people complain of in pages like this one: each has an answer here, and a test that names its number. */

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const tests = fileURLToPath(new URL("..", import.meta.url));
const documentation = fileURLToPath(new URL("../../../docs/reference/page.md", import.meta.url));

/** Titles of tests end with the numbers of the complaints that they answer: "… (1, 2, 15)". */
function named(): Map<number, string[]> {
  const found = new Map<number, string[]>();
  for (const folder of ["unit", "pages"])
    for (const file of readdirSync(`${tests}/${folder}`).filter((name) => name.endsWith(".test.ts")))
      for (const [, title = "", numbers = ""] of readFileSync(`${tests}/${folder}/${file}`, "utf8").matchAll(/\bit\(["`]([^"`]*)\((\d+(?:, \d+)*)\)["`]/g))
        for (const number of numbers.split(", "))
          found.set(Number(number), [...(found.get(Number(number)) ?? []), title.replace(/\$\{\w+\}/g, "").trim()]);
  return found;
}

it("has a test for every complaint", () => {
  const found = named();
  expect(Array.from({ length: 25 }, (_, index) => index + 1).filter((number) => !found.has(number))).toEqual([]);
});

it("has every one of those tests in the documentation, under its complaint", () => {
  const rows = new Map([...readFileSync(documentation, "utf8").matchAll(/^\| (\d+) \| [^|]+ \| ([^|]+) \|$/gm)].map(([, number, cells]) => [Number(number), cells ?? ""]));
  const missing = [...named()].flatMap(([number, titles]) => titles.filter((title) => !rows.get(number)?.includes(title)).map((title) => `${number}: ${title}`));
  expect(missing).toEqual([]);
});
