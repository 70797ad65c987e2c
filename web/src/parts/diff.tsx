/** One file's change as rows: unified or side by side, with comments on lines. Loaded when a diff is opened. */

import { structuredPatch } from "diff";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { FileEdit } from "../ahp/index.ts";
import { splitDiff } from "../local/settings.ts";
import { readText } from "../mirror/store.ts";

const MAX_LINE = 2_000;
const FIRST_ROWS = 800;

export interface Row {
  kind: "add" | "del" | "same" | "hunk";
  before: number | undefined;
  after: number | undefined;
  text: string;
}

/** Everything out, everything in: for texts that are too different to be compared in time. */
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
  return rows;
}

export interface LineComments {
  /** Text of comments by line of the new file. */
  at(line: number): string[];
  add(line: number): void;
}

function Text({ text }: { text: string }): JSX.Element {
  const [all, set] = useState(false);
  if (text.length <= MAX_LINE || all) return <>{text || "\u200b"}</>;
  return (
    <>
      {text.slice(0, MAX_LINE)}{" "}
      <button type="button" class="btn quiet" onClick={() => set(true)}>Show {text.length - MAX_LINE} more characters</button>
    </>
  );
}

function Number({ line, comments, first }: { line: number | undefined; comments: LineComments | undefined; first?: boolean }): JSX.Element {
  if (line === undefined || !comments) return <span class="ln">{line}</span>;
  return <button type="button" class="ln" tabIndex={first ? 0 : -1} aria-label={`Comment on line ${line}`} onClick={() => comments.add(line)}>{line}</button>;
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

const SIGN = { add: "+", del: "−", same: " ", hunk: "" };
const WORD = { add: "Added: ", del: "Removed: ", same: "", hunk: "" };

function Unified({ rows, comments }: { rows: Row[]; comments: LineComments | undefined }): JSX.Element {
  const first = firstLine(rows);
  return (
    <>
      {rows.map((row, index) => (
        <div key={index}>
          <div class={`diff-row ${row.kind}`}>
            <Number line={row.before} comments={undefined} />
            <Number line={row.after} comments={comments} first={row.after === first} />
            <span class="tx"><span aria-hidden="true">{SIGN[row.kind]} </span><span class="sr">{WORD[row.kind]}</span><Text text={row.text} /></span>
          </div>
          {row.after !== undefined && comments?.at(row.after).map((text) => <p key={text} class="comment note">{text}</p>)}
        </div>
      ))}
    </>
  );
}

function Split({ rows, comments }: { rows: Row[]; comments: LineComments | undefined }): JSX.Element {
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
          <span class={`tx ${left?.kind === "del" ? "cell-del" : ""}`}>{left && left.kind !== "add" && <Text text={left.text} />}</span>
          <Number line={right?.after} comments={comments} first={right?.after === firstLine(rows)} />
          <span class={`tx ${right?.kind === "add" ? "cell-add" : ""}`}>{right && right.kind !== "hunk" && <Text text={right.text} />}</span>
        </div>
      ))}
    </>
  );
}

type Loaded = { rows: Row[] } | { binary: true } | { error: string } | undefined;

async function load(edit: FileEdit, fresh: boolean): Promise<Loaded> {
  try {
    const side = (at: FileEdit["before"]): Promise<string | undefined> | string => (at ? readText(at.content.uri, fresh) : "");
    const [before, after] = await Promise.all([side(edit.before), side(edit.after)]);
    if (before === undefined || after === undefined) return { binary: true };
    return { rows: rowsOf(before, after) };
  } catch (error) {
    return { error: (error as Error).message };
  }
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
  if (!loaded) return <p class="comment small muted">Loading the diff…</p>;
  if ("error" in loaded) return <p class="comment small danger">The content could not be read: {loaded.error}</p>;
  if ("binary" in loaded) return <p class="comment small muted">A binary file. There is nothing to compare line by line.</p>;
  if (!loaded.rows.length) return <p class="comment small muted">No difference in the text.</p>;
  const rows = loaded.rows.slice(0, shown);
  const split = splitDiff.value && innerWidth >= 720;
  return (
    <div class={`diff${split ? " split" : ""}`} tabIndex={0} role="region" aria-label="Diff" onKeyDown={alongLines}>
      {split ? <Split rows={rows} comments={comments} /> : <Unified rows={rows} comments={comments} />}
      {loaded.rows.length > shown && (
        <button type="button" class="btn quiet" onClick={() => show(shown + 2_000)}>Show more ({loaded.rows.length - shown} lines left)</button>
      )}
    </div>
  );
}
