/** Bars for tokens and cost. Plain SVG, drawn in real pixels so that the text keeps its size. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { tokens } from "../mirror/selectors.ts";

export interface Bar {
  label: string;
  input: number;
  output: number;
  title: string;
}

const BASE = 150;
const ROOM = 128;
/** Room for text of the usual size: below the bars, beside them, and for the name of a bar. */
const [BELOW, LEFT, NAME] = [26, 44, 56];

/** The available width, kept up to date, and how much larger than usual the text is. */
function useWidth(): { ref: { current: HTMLElement | null }; width: number; zoom: number } {
  const ref = useRef<HTMLElement>(null);
  const [width, set] = useState(0);
  useEffect(() => {
    const box = ref.current;
    if (!box) return undefined;
    const observer = new ResizeObserver(() => set(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return { ref, width, zoom: parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 };
}

export function Bars({ bars, label }: { bars: Bar[]; label: string }): JSX.Element | null {
  const { ref, width, zoom } = useWidth();
  if (!bars.length) return null;
  const highest = Math.max(1, ...bars.map((bar) => bar.input + bar.output));
  const left = LEFT * zoom;
  const step = Math.min(88 * zoom, Math.max(4, (width - left) / bars.length));
  const thick = Math.min(44, step * 0.7);
  const every = Math.max(1, Math.ceil((NAME * zoom) / step));
  return (
    <figure class="stack" style={{ gap: "4px" }} ref={ref}>
      {width > 0 && (
        <svg class="plot" width={width} height={BASE + BELOW * zoom} role="img" aria-label={`${label}: ${bars.map((bar) => bar.title).join("; ")}`}>
          {[0, 0.5, 1].map((part) => (
            <g key={part}>
              <line x1={left} x2={width} y1={BASE - part * ROOM} y2={BASE - part * ROOM} stroke={part ? "var(--line)" : "var(--edge)"} />
              <text x={left - 8} y={BASE - part * ROOM + 4} text-anchor="end">{part ? tokens(Math.round(highest * part)) : "0"}</text>
            </g>
          ))}
          {bars.map((bar, index) => {
            const x = left + index * step + (step - thick) / 2;
            const output = (bar.output / highest) * ROOM;
            const input = (bar.input / highest) * ROOM;
            return (
              <g key={index}>
                <title>{bar.title}</title>
                <rect class="bar-out" x={x} y={BASE - input - output} width={thick} height={output} />
                <rect class="bar-in" x={x} y={BASE - input} width={thick} height={input} />
                {index % every === 0 && <text x={x + thick / 2} y={BASE + 18 * zoom} text-anchor="middle">{bar.label.length > 12 ? `${bar.label.slice(0, 11)}…` : bar.label}</text>}
              </g>
            );
          })}
        </svg>
      )}
      <figcaption class="legend"><span><i class="key-in" />input</span><span><i class="key-out" />output</span></figcaption>
    </figure>
  );
}
