/**
 * Markdown that grows: blocks that are settled are never touched again, only the last one is drawn again.
 * An open code fence grows as plain text in one node. When the text is complete it is drawn once as a whole.
 */

import type { Token, TokensList } from "marked";
import { decorate } from "./code.ts";
import { firstPart, lex, renderMarkdown, renderTokens, tableHead } from "./safe.ts";

/** How many finished blocks form one group; a part of a long block ends its group. The browser neither lays out nor paints groups that are out of sight, see `.chunk`. */
const CHUNK = 24;

/** A paragraph, list or table with more characters than this gets its first part settled. */
const LONG = 4_000;

const OPEN_FENCE = /^ {0,3}(`{3,}|~{3,})([^\n`]*)\n/;

export class MarkdownStream {
  #settled = document.createElement("div");
  #tail = document.createElement("div");
  #text = "";
  /** How much of the text is in settled blocks. */
  #end = 0;
  /** The first lines of a table whose first rows are settled: without them the other rows would not be parsed as a table. */
  #head = "";
  #fence: { closing: RegExp; node: Text; shown: number } | undefined;
  #complete = false;

  constructor(root: HTMLElement) {
    root.replaceChildren(this.#settled, this.#tail);
  }

  /** Show `text`; cheap when it only grew. */
  show(text: string, complete: boolean): void {
    if (complete) return this.#whole(text);
    if (this.#complete || !text.startsWith(this.#text)) this.#restart();
    if (text === this.#text) return;
    this.#text = text;
    if (this.#fence && this.#grow(text)) return;
    this.#tailAnew(text);
  }

  #whole(text: string): void {
    if (this.#complete && text === this.#text) return;
    this.#text = text;
    this.#complete = true;
    this.#fence = undefined;
    this.#settled.replaceChildren(decorate(renderMarkdown(text)));
    this.#tail.replaceChildren();
  }

  #restart(): void {
    this.#settled.replaceChildren();
    this.#tail.replaceChildren();
    this.#text = "";
    this.#end = 0;
    this.#head = "";
    this.#fence = undefined;
    this.#complete = false;
  }

  #tailAnew(text: string): void {
    this.#fence = undefined;
    const tokens = lex(this.#head + text.slice(this.#end));
    const last = tokens.length - 1;
    // A run of blank lines belongs to the block before it.
    const done = tokens.slice(0, Math.max(0, last));
    if (done.some((token) => token.type !== "space")) {
      this.#settle(this.#drawn(done, tokens));
      this.#end += done.reduce((sum, token) => sum + token.raw.length, 0) - this.#head.length;
      this.#head = "";
    }
    else if (this.#splitLong(tokens)) return this.#tailAnew(text);
    const rest = text.slice(this.#end);
    const fence = OPEN_FENCE.exec(rest);
    if (fence && !closing(fence[1] as string).test(rest.slice(fence[0].length))) return this.#openFence(rest, fence);
    const open = done.some((token) => token.type !== "space") ? tokens.slice(last) : tokens;
    this.#tail.replaceChildren(this.#drawn(open, tokens, true));
  }

  #drawn(tokens: Token[], all: TokensList, open = false): DocumentFragment {
    const blocks = decorate(renderTokens(tokens, all.links), open);
    if (this.#head) blocks.querySelector("table")?.classList.add("continued");
    return blocks;
  }

  /** Settle the first part of a paragraph, a list or a table that does not end: it would be drawn again and again. When the text is complete, it is drawn as a whole. */
  #splitLong(tokens: TokensList): boolean {
    const part = tokens.length === 1 && tokens[0] ? firstPart(tokens[0], LONG) : undefined;
    if (part === undefined) return false;
    const drawn = this.#drawn(lex(part), tokens);
    drawn.lastElementChild?.classList.add("goes-on");
    this.#settle(drawn);
    this.#end += part.length - this.#head.length;
    this.#head = tokens[0]?.type === "table" ? tableHead(part) : "";
    return true;
  }

  #settle(blocks: DocumentFragment): void {
    let chunk = this.#settled.lastElementChild;
    for (const block of [...blocks.childNodes].filter((node) => node instanceof Element || node.textContent?.trim())) {
      if (!chunk || chunk.childElementCount >= CHUNK || chunk.lastElementChild?.classList.contains("goes-on")) {
        chunk = document.createElement("div");
        chunk.className = "chunk";
        this.#settled.append(chunk);
      }
      chunk.append(block);
    }
  }

  #openFence(rest: string, fence: RegExpExecArray): void {
    const block = document.createDocumentFragment();
    const pre = document.createElement("pre");
    const code = document.createElement("code");
    const language = fence[2]?.trim().split(/\s/)[0];
    if (language) code.className = `language-${language}`;
    const node = document.createTextNode(rest.slice(fence[0].length));
    code.append(node);
    pre.append(code);
    block.append(pre);
    this.#tail.replaceChildren(decorate(block, true)); // Its header is there from the beginning, so that nothing jumps when the block is closed.
    this.#fence = { closing: closing(fence[1] as string), node, shown: this.#text.length };
  }

  /** Append to the open fence; false when it was closed. */
  #grow(text: string): boolean {
    const fence = this.#fence;
    if (!fence) return false;
    const lineStart = text.lastIndexOf("\n", fence.shown - 1);
    if (fence.closing.test(text.slice(Math.max(0, lineStart)))) return false;
    fence.node.appendData(text.slice(fence.shown));
    fence.shown = text.length;
    return true;
  }
}

const closing = (marker: string): RegExp =>
  new RegExp(`(^|\\n) {0,3}${marker.charAt(0) === "`" ? "`" : "~"}{${marker.length},}[ \\t]*(\\n|$)`);
