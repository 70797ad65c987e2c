/** The only place where HTML enters the page: marked renders Markdown, DOMPurify cleans everything, and nothing is loaded from elsewhere. */

import DOMPurify from "dompurify";
import { Lexer, marked, type Token, type Tokens, type TokensList } from "marked";

const TAGS = [
  "p", "br", "em", "strong", "del", "s", "code", "pre", "blockquote", "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6",
  "table", "thead", "tbody", "tr", "th", "td", "a", "hr", "img", "input", "details", "summary", "kbd", "sub", "sup", "span",
];
const ATTRIBUTES = ["href", "title", "alt", "src", "align", "start", "checked", "disabled", "type", "class"];
const LINK = /^(https?:|mailto:)/i;
const IMAGE = /^data:image\/(png|jpeg|gif|webp|avif);/i;

/** Sanitised HTML as nodes that belong to no document yet, so that nothing in them has been loaded. */
export function sanitised(html: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll("a")) tame(link);
  for (const image of fragment.querySelectorAll("img")) if (!IMAGE.test(image.getAttribute("src") ?? "")) unload(image);
  for (const input of fragment.querySelectorAll("input")) {
    if (input.getAttribute("type") !== "checkbox") input.remove();
    input.disabled = true;
    input.setAttribute("aria-label", "Task");
  }
  for (const element of fragment.querySelectorAll("[class]"))
    if (element.tagName !== "CODE" || !/^language-[\w+#.-]{1,40}$/.test(element.className)) element.removeAttribute("class");
  return fragment;
}

function tame(link: HTMLAnchorElement): void {
  const href = link.getAttribute("href") ?? "";
  if (!LINK.test(href)) return link.removeAttribute("href");
  link.target = "_blank";
  link.rel = "noopener noreferrer";
}

/** A remote image becomes a link to it: the page itself asks no other host for anything. */
function unload(image: HTMLImageElement): void {
  const link = document.createElement("a");
  const source = image.getAttribute("src") ?? "";
  link.textContent = `Image: ${image.alt || source.slice(0, 80) || "without a source"}`;
  if (/^https?:/i.test(source)) link.href = source;
  tame(link);
  image.replaceWith(link);
}

/** The most emphasis marks in one paragraph, and in a whole text: with more of them the parser takes seconds or minutes. Nobody writes that many. */
const MARKS = 2_000;
const ALL_MARKS = 20_000;
/** The deepest nesting of quotes and list items. */
const DEEPEST = 50;

/** Text that would block the page is not parsed, but shown as plain text. */
class PatientLexer extends Lexer {
  #marks = 0;
  #depth = 0;

  override inlineTokens(text: string, tokens: Token[] = []): Token[] {
    const marks = text.match(/[*_~]/g)?.length ?? 0;
    if (marks <= MARKS && this.#marks + marks <= ALL_MARKS) {
      this.#marks += marks;
      return super.inlineTokens(text, tokens);
    }
    tokens.push({ type: "text", raw: text, text });
    return tokens;
  }

  override blockTokens(text: string, tokens: Token[] | TokensList = [], within?: boolean): Token[] & TokensList {
    if (this.#depth >= DEEPEST) tokens.push({ type: "text", raw: text, text });
    else {
      this.#depth += 1;
      super.blockTokens(text, tokens as Token[], within);
      this.#depth -= 1;
    }
    return tokens as Token[] & TokensList;
  }
}

export const lex = (text: string): TokensList => new PatientLexer({ ...marked.defaults, gfm: true }).lex(text);

/** The two lines that make rows a table. */
export const tableHead = (raw: string): string => raw.split("\n", 2).map((line) => `${line}\n`).join("");

/**
 * The first part of a block that is longer than `long` and may still grow: a paragraph up to a word between two of its marks, a list up
 * to its last item, a table up to its last row. Undefined if there is no such place.
 */
export function firstPart(token: Token, long: number): string | undefined {
  if (token.raw.length <= long) return undefined;
  if (token.type === "list") return (token as Tokens.List).items.slice(0, -1).map((item) => item.raw).join("") || undefined;
  if (token.type === "table") {
    const part = token.raw.slice(0, token.raw.lastIndexOf("\n", token.raw.length - 2) + 1);
    return part.length > tableHead(token.raw).length ? part : undefined;
  }
  if (token.type !== "paragraph") return undefined;
  let end = 0;
  let found: number | undefined;
  for (const inline of (token as Tokens.Paragraph).tokens) {
    const room = token.raw.length - long / 2 - end; // The meaning of the end may still change.
    const word = inline.type === "text" ? inline.raw.slice(0, Math.max(0, room)).search(/\s\p{L}\S*\s*$/u) : -1;
    if (word >= 0) found = end + word + 1;
    end += inline.raw.length;
  }
  return found === undefined ? undefined : token.raw.slice(0, found);
}

export function renderTokens(tokens: Token[], links: TokensList["links"]): DocumentFragment {
  return sanitised(marked.parser(Object.assign([...tokens], { links }) as TokensList));
}

/** A complete text as clean HTML. */
export function renderMarkdown(text: string): DocumentFragment {
  const tokens = lex(text);
  return renderTokens(tokens, tokens.links);
}

/** Coloured code: spans with classes, nothing else. */
export const colours = (html: string): DocumentFragment =>
  DOMPurify.sanitize(html, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true });
