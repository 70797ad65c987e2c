/** Bars for tokens and cost. Plain SVG, drawn in real pixels so that its letters keep their size. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { tokens } from "../mirror/selectors.ts";

export interface Bar {
  label: string;
  input: number;
  output: number;
  title: string;
}

const HEIGHT = 176;
const BASE = 150;
const ROOM = 128;
const LEFT = 44;

/** The width there is, followed while it changes. */
function useWidth(): { ref: { current: HTMLElement | null }; width: number } {
  const ref = useRef<HTMLElement>(null);
  const [width, set] = useState(0);
  useEffect(() => {
    const box = ref.current;
    if (!box) return undefined;
    const observer = new ResizeObserver(() => set(box.clientWidth));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}

export function Bars({ bars, label }: { bars: Bar[]; label: string }): JSX.Element | null {
  const { ref, width } = useWidth();
  if (!bars.length) return null;
  const highest = Math.max(1, ...bars.map((bar) => bar.input + bar.output));
  const step = Math.min(88, Math.max(4, (width - LEFT) / bars.length));
  const thick = Math.min(44, step * 0.7);
  const every = Math.max(1, Math.ceil(56 / step));
  return (
    <figure class="stack" style={{ gap: "4px" }} ref={ref}>
      {width > 0 && (
        <svg class="plot" width={width} height={HEIGHT} role="img" aria-label={`${label}: ${bars.map((bar) => bar.title).join("; ")}`}>
          {[0, 0.5, 1].map((part) => (
            <g key={part}>
              <line x1={LEFT} x2={width} y1={BASE - part * ROOM} y2={BASE - part * ROOM} stroke={part ? "var(--line)" : "var(--edge)"} />
              <text x={LEFT - 8} y={BASE - part * ROOM + 4} text-anchor="end">{part ? tokens(Math.round(highest * part)) : "0"}</text>
            </g>
          ))}
          {bars.map((bar, index) => {
            const x = LEFT + index * step + (step - thick) / 2;
            const output = (bar.output / highest) * ROOM;
            const input = (bar.input / highest) * ROOM;
            return (
              <g key={index}>
                <title>{bar.title}</title>
                <rect class="bar-out" x={x} y={BASE - input - output} width={thick} height={output} />
                <rect class="bar-in" x={x} y={BASE - input} width={thick} height={input} />
                {index % every === 0 && <text x={x + thick / 2} y={BASE + 18} text-anchor="middle">{bar.label.length > 12 ? `${bar.label.slice(0, 11)}…` : bar.label}</text>}
              </g>
            );
          })}
        </svg>
      )}
      <figcaption class="legend"><span><i class="key-in" />input</span><span><i class="key-out" />output</span></figcaption>
    </figure>
  );
}
