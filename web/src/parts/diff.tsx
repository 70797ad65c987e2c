/** One file's change as rows: unified or side by side, with comments on lines. Loaded when a diff is opened. */

import { structuredPatch } from "diff";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { FileEdit } from "../ahp/index.ts";
import { pathOf } from "../mirror/selectors.ts";
import { splitDiff } from "../local/settings.ts";
import { readText } from "../mirror/store.ts";
import { Exact } from "../ui/bits.tsx";
import { highlighted } from "./code.ts";
import { changedPart, languageOf, type Piece, piecesOf, linesOf } from "./diff-lines.ts";

const MAX_LINE = 2_000;
const FIRST_ROWS = 800;

export interface Row {
  kind: "add" | "del" | "same" | "hunk";
  before: number | undefined;
  after: number | undefined;
  text: string;
  /** Where the text differs from the line that it replaces or that replaces it. */
  changed?: [number, number];
}

/** Mark where lines that replace each other differ: the first removed and the first added line, and so on. */
function markChanged(rows: Row[]): Row[] {
  for (let at = 0; at < rows.length; at += 1) {
    if (rows[at]?.kind !== "del") continue;
    const end = (from: number, kind: Row["kind"]): number => {
      let to = from;
      while (rows[to]?.kind === kind) to += 1;
      return to;
    };
    const middle = end(at, "del");
    const last = end(middle, "add");
    for (let pair = 0; pair < Math.min(middle - at, last - middle); pair += 1) {
      const [before, after] = [rows[at + pair] as Row, rows[middle + pair] as Row];
      const parts = changedPart(before.text, after.text);
      if (parts) [before.changed, after.changed] = parts;
    }
    at = last - 1;
  }
  return rows;
}

/** All old lines removed and all new lines added: for texts that are too different to be compared quickly. */
function replacedWhole(before: string, after: string): Row[] {
  const lines = (text: string): string[] => (text ? text.replace(/\n$/, "").split("\n") : []);
  return [
    { kind: "hunk", before: undefined, after: undefined, text: "Whole file" },
    ...lines(before).map((text, index): Row => ({ kind: "del", before: index + 1, after: undefined, text })),
    ...lines(after).map((text, index): Row => ({ kind: "add", before: undefined, after: index + 1, text })),
  ];
}

/** Rows of a unified diff. */
export function rowsOf(before: string, after: string): Row[] {
  const patch = before && after ? structuredPatch("a", "b", before, after, "", "", { context: 3, timeout: 400 }) : undefined;
  if (!patch) return replacedWhole(before, after);
  const rows: Row[] = [];
  for (const hunk of patch.hunks) {
    rows.push({ kind: "hunk", before: undefined, after: undefined, text: `Line ${hunk.newStart}` });
    let old = hunk.oldStart;
    let fresh = hunk.newStart;
    for (const line of hunk.lines) {
      const text = line.slice(1);
      if (line[0] === "+") rows.push({ kind: "add", before: undefined, after: fresh++, text });
      else if (line[0] === "-") rows.push({ kind: "del", before: old++, after: undefined, text });
      else if (line[0] === " ") rows.push({ kind: "same", before: old++, after: fresh++, text });
    }
  }
  return markChanged(rows);
}

export interface LineComments {
  /** Text of comments by line of the new file. */
  at(line: number): string[];
  /** Missing if this device may not write. */
  add?(line: number): void;
}

/** The colours of both sides, line by line; undefined until they are known. */
interface Colours {
  before: Piece[][] | undefined;
  after: Piece[][] | undefined;
}

function Text({ row, colours }: { row: Row; colours: Colours | undefined }): JSX.Element {
  const [all, set] = useState(false);
  const { text } = row;
  if (text.length <= MAX_LINE) {
    const line = row.kind === "del" ? colours?.before?.[(row.before ?? 0) - 1] : colours?.after?.[(row.after ?? 0) - 1];
    const pieces = piecesOf(text, line, row.changed);
    return <>{pieces.map((piece, index) => (piece.class ? <span key={index} class={piece.class}><Exact text={piece.text} /></span> : <Exact key={index} text={piece.text} />))}{text ? "" : "\u200b"}</>;
  }
  if (all) return <Exact text={text} />;
  return (
    <>
      <Exact text={text.slice(0, MAX_LINE)} />{" "}
      <button type="button" class="btn quiet" onClick={() => set(true)}>Show {text.length - MAX_LINE} more characters</button>
    </>
  );
}

function Number({ line, comments, first }: { line: number | undefined; comments: LineComments | undefined; first?: boolean }): JSX.Element {
  if (line === undefined || !comments?.add) return <span class="ln">{line}</span>;
  return <button type="button" class="ln" tabIndex={first ? 0 : -1} aria-label={`Comment on line ${line}`} onClick={() => comments.add?.(line)}>{line}</button>;
}

/** Tab reaches a diff's lines once; the arrows go from line to line. */
function alongLines(event: KeyboardEvent): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  const here = event.target as Element;
  if (!step || !here.matches("button.ln")) return;
  event.preventDefault();
  const lines = [...(here.closest(".diff")?.querySelectorAll<HTMLButtonElement>("button.ln") ?? [])];
  lines[lines.indexOf(here as HTMLButtonElement) + step]?.focus();
}

const firstLine = (rows: Row[]): number | undefined => rows.find((row) => row.after !== undefined)?.after;

interface Shown {
  rows: Row[];
  comments: LineComments | undefined;
  colours: Colours | undefined;
}

const SIGN = { add: "+", del: "−", same: " ", hunk: "" };
const WORD = { add: "Added: ", del: "Removed: ", same: "", hunk: "" };

function Unified({ rows, comments, colours }: Shown): JSX.Element {
  const first = firstLine(rows);
  return (
    <>
      {rows.map((row, index) => (
        <div key={index}>
          <div class={`diff-row ${row.kind}`}>
            <Number line={row.before} comments={undefined} />
            <Number line={row.after} comments={comments} first={row.after === first} />
            <span class="tx"><span aria-hidden="true">{SIGN[row.kind]} </span><span class="sr">{WORD[row.kind]}</span><Text row={row} colours={colours} /></span>
          </div>
          {row.after !== undefined && comments?.at(row.after).map((text) => <p key={text} class="comment note">{text}</p>)}
        </div>
      ))}
    </>
  );
}

function Split({ rows, comments, colours }: Shown): JSX.Element {
  const pairs = useMemo(() => {
    const out: { left: Row | undefined; right: Row | undefined }[] = [];
    let dels: Row[] = [];
    const drain = (): void => {
      for (const row of dels) out.push({ left: row, right: undefined });
      dels = [];
    };
    for (const row of rows) {
      if (row.kind === "del") dels.push(row);
      else if (row.kind === "add") out.push({ left: dels.shift(), right: row });
      else {
        drain();
        out.push({ left: row, right: row });
      }
    }
    drain();
    return out;
  }, [rows]);
  return (
    <>
      {pairs.map(({ left, right }, index) => (
        <div key={index} class={`diff-row ${left?.kind === "hunk" ? "hunk" : ""}`}>
          <span class="ln">{left?.before}</span>
          <span class={`tx ${left?.kind === "del" ? "cell-del" : ""}`}>{left && left.kind !== "add" && <Text row={left} colours={colours} />}</span>
          <Number line={right?.after} comments={comments} first={right?.after === firstLine(rows)} />
          <span class={`tx ${right?.kind === "add" ? "cell-add" : ""}`}>{right && right.kind !== "hunk" && <Text row={right} colours={colours} />}</span>
        </div>
      ))}
    </>
  );
}

type Loaded = { rows: Row[]; before: string; after: string } | { binary: true } | { error: string } | undefined;

/** If both sides have Windows line ends, these are not shown. If only one side has them, its lines show them. */
export function endsAlike(before: string, after: string): [string, string] {
  const windows = (text: string): boolean => !/(?<!\r)\n/.test(text);
  return windows(before) && windows(after) ? [before.replaceAll("\r\n", "\n"), after.replaceAll("\r\n", "\n")] : [before, after];
}

async function load(edit: FileEdit, fresh: boolean): Promise<Loaded> {
  try {
    const side = (at: FileEdit["before"]): Promise<string | undefined> | string => (at ? readText(at.content.uri, fresh) : "");
    const [before, after] = await Promise.all([side(edit.before), side(edit.after)]);
    if (before === undefined || after === undefined) return { binary: true };
    const same = endsAlike(before, after);
    return { rows: rowsOf(...same), before: same[0], after: same[1] };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

/** Colours are added when the worker has computed them. Until then, and for languages without colours, the text is plain. */
function useColours(loaded: Loaded, edit: FileEdit): Colours | undefined {
  const [found, set] = useState<Colours | undefined>(undefined);
  const language = languageOf(pathOf(edit.after?.uri ?? edit.before?.uri ?? ""));
  const texts = loaded && "rows" in loaded ? loaded : undefined;
  useEffect(() => {
    set(undefined);
    if (!texts || !language) return undefined;
    let here = true;
    void Promise.all([highlighted(texts.before, language), highlighted(texts.after, language)]).then(([before, after]) => {
      if (here) set({ before: linesOf(before, texts.before), after: linesOf(after, texts.after) });
    });
    return () => {
      here = false;
    };
  }, [texts, language]);
  return found;
}

export default function Diff({ edit, comments }: { edit: FileEdit; comments?: LineComments }): JSX.Element {
  const [loaded, set] = useState<Loaded>(undefined);
  const [shown, show] = useState(FIRST_ROWS);
  const key = `${edit.before?.content.uri} ${edit.before?.content.nonce} ${edit.after?.content.uri} ${edit.after?.content.nonce}`;
  useEffect(() => {
    let here = true;
    void load(edit, loaded !== undefined).then((result) => here && set(result));
    return () => {
      here = false;
    };
  }, [key, edit]);
  const colours = useColours(loaded, edit);
  if (!loaded) return <p class="comment small muted">Loading the diff…</p>;
  if ("error" in loaded) return <p class="comment small danger">The content could not be read: {loaded.error}</p>;
  if ("binary" in loaded) return <p class="comment small muted">A binary file. There is nothing to compare line by line.</p>;
  if (!loaded.rows.length) return <p class="comment small muted">No difference in the text.</p>;
  const rows = loaded.rows.slice(0, shown);
  const split = splitDiff.value && innerWidth >= 720;
  return (
    <div class={`diff${split ? " split" : ""}`} tabIndex={0} role="region" aria-label="Diff" onKeyDown={alongLines}>
      {split ? <Split rows={rows} comments={comments} colours={colours} /> : <Unified rows={rows} comments={comments} colours={colours} />}
      {loaded.rows.length > shown && (
        <button type="button" class="btn quiet" onClick={() => show(shown + 2_000)}>Show more ({loaded.rows.length - shown} lines left)</button>
      )}
    </div>
  );
}
