/** Markdown as a component: it streams while `live`, and very long texts do not block the page. */

import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { CopyButton } from "../ui/bits.tsx";
import { MarkdownStream } from "./stream.ts";

/** How many characters are drawn as Markdown; the rest is shown as plain text, on demand. */
const LONGEST = 150_000;

export function Markdown({ content, live = false }: { content: string; live?: boolean }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const stream = useRef<MarkdownStream | undefined>(undefined);
  const long = content.length > LONGEST;
  const head = long ? content.slice(0, content.lastIndexOf("\n", LONGEST) + 1 || LONGEST) : content;
  useLayoutEffect(() => {
    if (!ref.current) return;
    stream.current ??= new MarkdownStream(ref.current);
    stream.current.show(head, !live || long);
  }, [head, live, long]);
  return (
    <>
      <div class="md" dir="auto" ref={ref} />
      {long && <Rest text={content} from={head.length} />}
    </>
  );
}

function Rest({ text, from }: { text: string; from: number }): JSX.Element {
  const [shown, set] = useState(0);
  const left = text.length - from - shown;
  return (
    <div class="stack">
      {shown > 0 && <pre class="output">{text.slice(from, from + shown)}</pre>}
      <div class="row wrap">
        {left > 0 && (
          <button type="button" class="btn" onClick={() => set(shown + LONGEST)}>
            Show more ({size(left)} left)
          </button>
        )}
        <CopyButton text={() => text} label="Copy all" />
      </div>
    </div>
  );
}

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 999_500 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
