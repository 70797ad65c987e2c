/** Code blocks: a header with language and copy button, and colours from a worker once the block is complete. */

import { copy } from "../ui/bits.tsx";
import { colours } from "./safe.ts";

const LONGEST = 200_000;
let worker: Worker | undefined;
let next = 1;
const waiting = new Map<number, (html: string | undefined) => void>();

/** Code as HTML with classes for its colours; undefined for an unknown language or very long code. */
export function highlighted(code: string, language: string): Promise<string | undefined> {
  if (!language || code.length > LONGEST || typeof Worker === "undefined") return Promise.resolve(undefined);
  worker ??= start();
  const id = next++;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    worker?.postMessage({ id, code, language });
  });
}

function start(): Worker {
  const made = new Worker(new URL("./highlight.worker.ts", import.meta.url), { type: "module" });
  made.onmessage = (event: MessageEvent<{ id: number; html?: string }>) => {
    waiting.get(event.data.id)?.(event.data.html);
    waiting.delete(event.data.id);
  };
  made.onerror = () => {
    for (const resolve of waiting.values()) resolve(undefined);
    waiting.clear();
  };
  return made;
}

/** Give every code block its frame. `open`: the block may still grow, so it gets no colours yet. */
export function decorate(fragment: DocumentFragment, open = false): DocumentFragment {
  for (const pre of fragment.querySelectorAll("pre")) {
    const code = pre.querySelector("code");
    if (!code) continue;
    const language = /language-(\S+)/.exec(code.className)?.[1] ?? "";
    const box = document.createElement("div");
    box.className = "code";
    const head = document.createElement("div");
    head.className = "code-head";
    const name = document.createElement("span");
    name.textContent = language || "text";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn quiet";
    button.textContent = "Copy";
    button.addEventListener("click", () => {
      void copy(code.textContent ?? "");
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    head.append(name, button);
    pre.replaceWith(box);
    pre.tabIndex = 0;
    pre.setAttribute("role", "region");
    pre.setAttribute("aria-label", `Code${language ? ` in ${language}` : ""}`);
    box.append(head, pre);
    if (!open) void colour(code, language);
  }
  return fragment;
}

async function colour(code: HTMLElement, language: string): Promise<void> {
  const html = await highlighted(code.textContent ?? "", language.toLowerCase());
  if (html !== undefined) code.replaceChildren(colours(html));
}
