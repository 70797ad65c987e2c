/** Bars for tokens and cost. Plain SVG: nothing here needs more. */

import type { JSX } from "preact";
import { tokens } from "../mirror/selectors.ts";

export interface Bar {
  label: string;
  input: number;
  output: number;
  title: string;
}

export function Bars({ bars, label }: { bars: Bar[]; label: string }): JSX.Element | null {
  if (!bars.length) return null;
  const width = 640;
  const height = 180;
  const base = 150;
  const highest = Math.max(1, ...bars.map((bar) => bar.input + bar.output));
  const step = width / bars.length;
  const thick = Math.min(48, step * 0.7);
  const every = Math.ceil(bars.length / 10);
  return (
    <figure>
      <svg class="plot" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${label}: ${bars.map((bar) => bar.title).join("; ")}`}>
        {[0.5, 1].map((part) => (
          <g key={part}><line x1="0" x2={width} y1={base - part * 130} y2={base - part * 130} stroke="var(--line)" /><text x="2" y={base - part * 130 - 3}>{tokens(Math.round(highest * part))}</text></g>
        ))}
        <line x1="0" x2={width} y1={base} y2={base} stroke="var(--edge)" />
        {bars.map((bar, index) => {
          const x = index * step + (step - thick) / 2;
          const output = (bar.output / highest) * 130;
          const input = (bar.input / highest) * 130;
          return (
            <g key={index}>
              <title>{bar.title}</title>
              <rect class="bar-out" x={x} y={base - input - output} width={thick} height={output} rx="2" />
              <rect class="bar-in" x={x} y={base - input} width={thick} height={input} rx="2" />
              {index % every === 0 && <text x={index * step + step / 2} y={base + 16} text-anchor="middle">{bar.label}</text>}
            </g>
          );
        })}
      </svg>
      <figcaption class="row small muted"><span class="chip"><span style={{ color: "var(--accent)" }}>■</span> input</span><span class="chip"><span style={{ color: "light-dark(#7c9be3, #4667b3)" }}>■</span> output</span></figcaption>
    </figure>
  );
}
