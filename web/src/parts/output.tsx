/** The output of a program: the first and last lines, with carriage returns applied and with its colours. */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { CopyButton } from "../ui/bits.tsx";
import { size } from "./markdown.tsx";

const LINES = 100;
const BYTES = 32_000;

/** A line that was overwritten after `\r` shows its last text. Escape codes for titles and links are left out. */
export function folded(text: string): string {
  const shown = text.includes("\u001b]") ? text.replace(/\u001b\][^\u0007\u001b\n]*(?:\u0007|\u001b\\)/g, "") : text;
  if (!shown.includes("\r")) return shown;
  // Line by line: a pattern would start again at each character of a long line.
  return shown.replaceAll("\r\n", "\n").split("\n").map((line) => line.slice(line.lastIndexOf("\r") + 1)).join("\n");
}

function after(text: string, lines: number, limit: number): number {
  let at = -1;
  for (let count = 0; count < lines; count += 1) {
    at = text.indexOf("\n", at + 1);
    if (at < 0 || at > limit) return Math.min(text.length, limit);
  }
  return at + 1;
}

function before(text: string, lines: number, limit: number): number {
  const floor = Math.max(0, text.length - limit);
  let at = text.endsWith("\n") ? text.length - 1 : text.length;
  for (let count = 0; count < lines; count += 1) {
    at = text.lastIndexOf("\n", at - 1);
    if (at < floor) return floor;
    if (at === 0) return 0;
  }
  return at + 1;
}

/** The beginning and the end of a long text, and how much is between them. It takes as long for 5 MB as for 50 kB. */
export function ends(text: string): { head: string; tail: string; left: number } {
  const stop = after(text, LINES, BYTES / 2);
  const start = Math.max(stop, before(text, LINES, BYTES / 2));
  if (start <= stop) return { head: text, tail: "", left: 0 };
  return { head: text.slice(0, stop), tail: text.slice(start), left: start - stop };
}

interface Piece {
  text: string;
  class: string;
}

function Coloured({ text }: { text: string }): JSX.Element {
  const [pieces, set] = useState<Piece[] | undefined>(undefined);
  const coloured = text.includes("\u001b");
  useEffect(() => {
    if (!coloured) return undefined;
    let here = true;
    void import("./ansi.ts").then((module) => here && set(module.pieces(text)));
    return () => {
      here = false;
    };
  }, [text]);
  if (!coloured) return <>{text}</>;
  if (!pieces) return <>{text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "")}</>;
  return <>{pieces.map((piece, index) => (piece.class ? <span key={index} class={piece.class}>{piece.text}</span> : piece.text))}</>;
}

/** `fromEnd`: the end matters most, for a command that runs or has failed. It stays visible unless the person scrolls away. */
export function Output({ text, live = false, fromEnd = false }: { text: string; live?: boolean; fromEnd?: boolean }): JSX.Element {
  const box = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  const [all, set] = useState(false);
  const clean = folded(text);
  const { head, tail, left } = all && clean.length < 2_000_000 ? { head: clean, tail: "", left: 0 } : ends(clean);
  useLayoutEffect(() => {
    if (fromEnd && follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  const onScroll = (): void => {
    const { scrollHeight, scrollTop, clientHeight } = box.current as HTMLPreElement;
    follows.current = scrollHeight - scrollTop - clientHeight < 24;
  };
  if (!clean) return <p class="small muted">{live ? "No output yet." : "No output."}</p>;
  return (
    <div class="stack" style={{ gap: "4px" }}>
      <pre ref={box} class="output" onScroll={onScroll} tabIndex={0} role="region" aria-label="Output">
        <Coloured text={head} />
        {left > 0 && <span class="gap">… {size(left)} left out …</span>}
        {tail && <Coloured text={tail} />}
      </pre>
      {(left > 0 || all) && (
        <div class="row">
          {clean.length < 2_000_000 && (
            <button type="button" class="btn quiet" onClick={() => set(!all)}>{all ? "Show less" : "Show all"}</button>
          )}
          <CopyButton text={() => text} label="Copy all" />
        </div>
      )}
    </div>
  );
}
