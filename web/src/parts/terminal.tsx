/** A live terminal. Its code is large, so it is loaded only when a terminal is shown. */

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { TerminalState } from "../ahp/index.ts";
import { clientId, dispatch, useChannel } from "../mirror/store.ts";

/** Everything printed so far, as one stream. */
const printed = (state: TerminalState): string =>
  state.content.map((part) => (part.type === "command" ? part.output : part.value)).join("");

/** xterm writes its theme into <style> elements, which the page's policy forbids. While it opens, the text of these elements goes into stylesheets made by script. */
function openIn(term: Terminal, box: HTMLElement): void {
  const create = document.createElement.bind(document);
  document.createElement = ((tag: string, options?: ElementCreationOptions) =>
    tag === "style" ? styleElement() : create(tag, options)) as typeof document.createElement;
  try {
    term.open(box);
  } finally {
    delete (document as { createElement?: unknown }).createElement;
  }
}

/** xterm also writes colours into style attributes, which the policy forbids. Setting them through `element.style` is allowed. */
const setAttribute = HTMLElement.prototype.setAttribute;
HTMLElement.prototype.setAttribute = function (this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else setAttribute.call(this, name, value);
};

function styleElement(): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const element = Document.prototype.createElement.call(document, "span");
  element.hidden = true;
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text), get: () => "" });
  const remove = element.remove.bind(element);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    remove();
  };
  return element;
}

/** A terminal: an emulated screen, or plain text if the output does not come from a pty. */
export default function TerminalView({ uri, typing = false }: { uri: string; typing?: boolean }): JSX.Element {
  const state = useChannel<TerminalState>(uri, "terminal").value.state;
  return state?.isPty === false ? <pre class="term">{printed(state)}</pre> : <Screen uri={uri} typing={typing} />;
}

/** The holder of a terminal types into it and sets its size. All others see it in that size. */
export const isMine = (state: TerminalState | undefined): boolean =>
  state?.claim.kind === "client" && state.claim.clientId === clientId && state.lifecycle.status === "running";

/** Older output than this is not drawn again when a terminal is opened. */
const REDRAWN = 200_000;

/** The number of lines that are not empty, so that three lines of output do not take a whole screen. */
function usedRows(term: Terminal): number {
  const buffer = term.buffer.active;
  if (buffer.type === "alternate" || buffer.baseY > 0) return term.rows;
  let last = buffer.cursorY;
  for (let row = term.rows - 1; row > last; row -= 1) if (buffer.getLine(row)?.translateToString(true)) last = row;
  return Math.max(2, last + 1);
}

/** Programs send queries to a terminal. Only live ones are answered, because answers to old ones would be typed into the shell. */
function write(term: Terminal, text: string, replaying: { current: number }, live: boolean, drawn: () => void): void {
  if (!text) return;
  replaying.current += live ? 0 : 1;
  term.write(text, () => {
    replaying.current -= live ? 0 : 1;
    drawn();
  });
}

function Screen({ uri, typing }: { uri: string; typing: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const seen = useChannel<TerminalState>(uri, "terminal");
  const terminal = useRef<{ term: Terminal; fit: FitAddon } | undefined>(undefined);
  const written = useRef<string | undefined>(undefined);
  const replaying = useRef(0);
  const state = seen.value.state;
  const mine = isMine(state);
  /** A window that may only watch shows the output and takes no input. */
  const shrink = (): void => {
    const term = terminal.current?.term;
    const drawn = box.current?.querySelector<HTMLElement>(".xterm-screen");
    if (!term || !box.current || !drawn || isMine(seen.peek().state)) return;
    box.current.style.height = `${Math.ceil((drawn.clientHeight / term.rows) * usedRows(term)) + 12}px`;
  };
  /** The holder's window sets the size; all others use it. */
  const size = (): void => {
    const shown = terminal.current;
    const now = seen.peek().state;
    if (!shown || !now) return;
    if (!isMine(now)) {
      shown.term.resize(now.cols ?? 80, now.rows ?? 24);
      return shrink();
    }
    if (box.current) box.current.style.height = "";
    const fits = shown.fit.proposeDimensions();
    if (!fits || !(fits.cols > 0 && fits.rows > 0)) return;
    shown.term.resize(fits.cols, fits.rows);
    if (fits.cols !== now.cols || fits.rows !== now.rows) void dispatch(uri, { type: "terminal/resized", cols: fits.cols, rows: fits.rows }, "terminal");
  };
  useEffect(() => {
    if (!box.current) return undefined;
    const term = new Terminal({
      fontFamily: "ui-monospace, 'DejaVu Sans Mono', monospace", fontSize: 13, convertEol: true, scrollback: 10_000,
      theme: { background: "#161615", foreground: "#ececea" }, screenReaderMode: true,
    });
    const fit = new FitAddon();
    term.loadAddon(fit);
    openIn(term, box.current);
    terminal.current = { term, fit };
    written.current = undefined;
    term.onData((data) => {
      if (!replaying.current && isMine(seen.peek().state)) void dispatch(uri, { type: "terminal/input", data }, "terminal");
    });
    const observer = new ResizeObserver(size);
    observer.observe(box.current);
    return () => {
      observer.disconnect();
      term.dispose();
      terminal.current = undefined;
    };
  }, [uri]);
  useEffect(size, [mine, state?.cols, state?.rows]);
  useEffect(() => {
    const shown = terminal.current?.term;
    if (!shown) return;
    shown.options.disableStdin = !mine;
    if (mine && typing) shown.focus();
  }, [mine, typing, uri]);
  useEffect(() => {
    const shown = terminal.current?.term;
    if (!state || !shown) return;
    const text = printed(state);
    const before = written.current;
    written.current = text;
    if (before !== undefined && text.startsWith(before)) return write(shown, text.slice(before.length), replaying, true, shrink);
    shown.reset();
    write(shown, text.slice(-REDRAWN), replaying, false, shrink);
  }, [state]);
  return (
    <div class="stack term-stack">
      <div class={`term${mine ? "" : " watched"}`} ref={box} role="group" aria-label={state?.title ?? "Terminal"} />
      <p class="small muted">{seen.value.error ? `This terminal is gone: ${seen.value.error.message}` : words(state)}</p>
    </div>
  );
}

function words(state: TerminalState | undefined): string {
  if (!state) return "Loading…";
  if (state.lifecycle.status === "exited") return `Ended${state.lifecycle.exitCode === undefined ? "" : ` with code ${state.lifecycle.exitCode}`}`;
  if (isMine(state)) return "Running. What you type goes to it; Shift+Tab leaves it.";
  return state.claim.kind === "client" ? "Running. Another window types into it; you watch." : "Running. The agent uses it; you watch.";
}
