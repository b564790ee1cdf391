// A number over the last minutes, as a small line. The points are pure; the element is recreated at each update.

import { s } from "./dom";

export interface Sample {
  /** Milliseconds. */
  at: number;
  value: number | null;
}

const [WIDTH, HEIGHT] = [160, 36];

/** The samples of the last `span` milliseconds before the newest one. */
export function recent(samples: readonly Sample[], span: number): Sample[] {
  const newest = samples.at(-1)?.at ?? 0;
  return samples.filter(({ at }) => at >= newest - span);
}

/** Points of the line in a box of the width and height: the newest right, zero at the bottom. */
export function points(samples: readonly Sample[], span: number, width = WIDTH, height = HEIGHT): [number, number][] {
  const newest = samples.at(-1)?.at ?? 0;
  const max = Math.max(1, ...samples.map(({ value }) => value ?? 0));
  return samples
    .filter((sample): sample is { at: number; value: number } => sample.value !== null)
    .map(({ at, value }) => [width - ((newest - at) / span) * width, height - 2 - (value / max) * (height - 4)]);
}

export function trend(samples: readonly Sample[], span: number, label: string): SVGElement {
  const line = points(samples, span).map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`);
  return s(
    "svg",
    {
      class: "trend",
      width: WIDTH,
      height: HEIGHT,
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": label,
    },
    s("polyline", { points: line.join(" ") }),
  );
}
