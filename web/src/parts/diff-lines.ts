/** Lines of a diff: their colours, and where two lines that replace each other differ. */

import { colours } from "./safe.ts";

export interface Piece {
  text: string;
  class: string;
}

const LANGUAGES: [RegExp, string][] = [
  [/\.pyi?$/, "python"], [/\.([cm]?[jt]s|[jt]sx)$/, "typescript"], [/\.(c|h|cc|cpp|hpp|cxx)$/, "cpp"], [/\.(sh|bash|zsh)$/, "bash"], [/\.(html?|xml|svg|vue)$/, "xml"],
  [/\.ya?ml$/, "yaml"], [/\.(md|markdown)$/, "markdown"], [/\.rs$/, "rust"], [/\.(css|go|java|json|sql)$/, ""],
];

/** The language of a file by its name; empty when it has no colours. */
export function languageOf(path: string): string {
  const found = LANGUAGES.find(([pattern]) => pattern.test(path));
  return found ? found[1] || path.slice(path.lastIndexOf(".") + 1) : "";
}

/** The pieces of coloured code, line by line; undefined if their text differs from the lines. */
export function linesOf(html: string | undefined, text: string): Piece[][] | undefined {
  if (html === undefined) return undefined;
  const lines: Piece[][] = [[]];
  const walk = (node: Node, name: string): void => {
    if (node.nodeType === Node.TEXT_NODE)
      for (const [index, part] of (node.textContent ?? "").split("\n").entries()) {
        if (index) lines.push([]);
        if (part) lines.at(-1)?.push({ text: part, class: name });
      }
    else for (const child of node.childNodes) walk(child, node instanceof Element ? node.className : name);
  };
  walk(colours(html), "");
  return lines.map((line) => line.map((piece) => piece.text).join("")).join("\n") === text ? lines : undefined;
}

/** The share of the longer line that must be the same: lines with less in common count as different lines, not as changed ones. */
const ALIKE = 0.3;

/** Whether a character of two code units, such as an emoji, begins here: it must not be cut in the middle. */
const isFirstHalf = (text: string, at: number): boolean => (text.codePointAt(at) ?? 0) > 0xffff;

/** Where two lines differ, between their common beginning and end; undefined when they have little in common. */
export function changedPart(before: string, after: string): [[number, number], [number, number]] | undefined {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  if (isFirstHalf(before, head - 1)) head -= 1;
  let tail = 0;
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  if (tail && isFirstHalf(before, before.length - tail - 1)) tail -= 1;
  const same = `${before.slice(0, head)}${before.slice(before.length - tail)}`.trim().length;
  if (same < Math.max(before.trim().length, after.trim().length) * ALIKE) return undefined;
  return [[head, before.length - tail], [head, after.length - tail]];
}

/** A line in pieces, each with the classes for its colour and for a change. */
export function piecesOf(text: string, line: Piece[] | undefined, changed: [number, number] | undefined): Piece[] {
  const whole = line?.map((piece) => piece.text).join("") === text ? (line as Piece[]) : [{ text, class: "" }];
  if (!changed || changed[0] >= changed[1]) return whole;
  const out: Piece[] = [];
  let at = 0;
  for (const piece of whole) {
    const cuts = [0, changed[0] - at, changed[1] - at, piece.text.length].map((cut) => Math.max(0, Math.min(cut, piece.text.length)));
    for (let index = 0; index < 3; index += 1) {
      const part = piece.text.slice(cuts[index], cuts[index + 1]);
      if (part) out.push({ text: part, class: index === 1 ? `${piece.class} word`.trim() : piece.class });
    }
    at += piece.text.length;
  }
  return out;
}
