/** A live terminal. Its code is large, so it comes only when a terminal is shown. */

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

/**
 * xterm writes its theme into <style> elements, which the page's policy forbids. It is given a document whose style
 * elements feed a stylesheet made by script instead.
 */
function documentForTerminal(): Document {
  return new Proxy(document, {
    get(target, name) {
      if (name === "createElement")
        return (tag: string, options?: ElementCreationOptions) =>
          tag === "style" ? styleElement() : target.createElement(tag, options);
      const value = Reflect.get(target, name) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function styleElement(): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const element = document.createElement("span");
  element.hidden = true;
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text), get: () => "" });
  const remove = element.remove.bind(element);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    remove();
  };
  return element;
}

/** A terminal as it is shown: on a screen, or as plain text where there is no pty whose output could drive one. */
export default function TerminalView({ uri }: { uri: string }): JSX.Element {
  const state = useChannel<TerminalState>(uri, "terminal").value.state;
  return state?.isPty === false ? <pre class="term">{printed(state)}</pre> : <Screen uri={uri} />;
}

function Screen({ uri }: { uri: string }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const seen = useChannel<TerminalState>(uri, "terminal");
  const terminal = useRef<Terminal | undefined>(undefined);
  const written = useRef("");
  useEffect(() => {
    if (!box.current) return undefined;
    const term = new Terminal({
      fontFamily: "ui-monospace, 'DejaVu Sans Mono', monospace", fontSize: 13, convertEol: true,
      theme: { background: "#161615", foreground: "#ececea" }, screenReaderMode: true, documentOverride: documentForTerminal(),
    });
    const fit = new FitAddon();
    term.loadAddon(fit);
    term.open(box.current);
    fit.fit();
    terminal.current = term;
    const mine = (): boolean => {
      const claim = seen.peek().state?.claim;
      return claim?.kind === "client" && claim.clientId === clientId;
    };
    term.onData((data) => mine() && void dispatch(uri, { type: "terminal/input", data }, "terminal"));
    const observer = new ResizeObserver(() => fit.fit());
    observer.observe(box.current);
    return () => {
      observer.disconnect();
      term.dispose();
      terminal.current = undefined;
    };
  }, [uri]);
  const state = seen.value.state;
  useEffect(() => {
    if (!state || !terminal.current) return;
    const text = printed(state);
    if (text.startsWith(written.current)) terminal.current.write(text.slice(written.current.length));
    else {
      terminal.current.reset();
      terminal.current.write(text.slice(-200_000));
    }
    written.current = text;
  }, [state]);
  const lifecycle = state?.lifecycle;
  return (
    <div class="stack" style={{ gap: "4px" }}>
      <div class="term" ref={box} aria-label={state?.title ?? "Terminal"} />
      <p class="small muted">
        {seen.value.error ? `This terminal is gone: ${seen.value.error.message}` : lifecycle?.status === "exited" ? `Ended${lifecycle.exitCode === undefined ? "" : ` with code ${lifecycle.exitCode}`}` : "Running"}
      </p>
    </div>
  );
}
