// Where the waves of a job stand in their drawing: a strip of decisions, and above it what was expected and measured.
// Pure. Waves stand side by side in their order, the oldest left: they may be a second or a month apart.

import type { Trigger } from "../api";
import { isBeyond, isMissed } from "./sentences";

export interface Point {
  x: number;
  y: number;
  wave: Trigger;
  /** It is beyond the limit: the job is run. */
  isBeyond: boolean;
  /** An error that the model did not expect. */
  isMissed: boolean;
}

/** A value over time, zero at the bottom, with the limit that it is compared with. */
export interface Band {
  name: "probability" | "error";
  top: number;
  bottom: number;
  /** What stands at the top. */
  most: number;
  points: Point[];
  /** From left to right; several where the limit was changed. */
  limits: { from: number; to: number; y: number }[];
}

export interface Bar {
  x: number;
  y: number;
  width: number;
  height: number;
  wave: Trigger;
}

export interface Timeline {
  width: number;
  height: number;
  bands: Band[];
  bars: Bar[];
}

/** A wave takes so much at least, and at most. */
export const [LEAST_STEP, MOST_STEP] = [4, 28];
const BAND = 72;
const GAP = 14;
const RUN = 22;
const SKIP = 8;

/** How many waves have room. */
export const roomFor = (width: number): number => Math.max(1, Math.floor(width / LEAST_STEP));

/** Of those waves that have room; they come with the latest first. */
export function timelineOf(latestFirst: readonly Trigger[], width: number): Timeline {
  const waves = latestFirst.slice(0, roomFor(width)).reverse();
  const step = Math.min(MOST_STEP, width / Math.max(1, waves.length));
  const middle = (at: number) => step * (at + 0.5);
  const bands: Band[] = [];
  const add = (name: Band["name"], limit: "threshold" | "bound", isPointBeyond: (wave: Trigger) => boolean) => {
    if (waves.every((wave) => wave[name] === null)) return;
    const top = bands.length * (BAND + GAP);
    const bottom = top + BAND;
    const most = Math.max(...waves.map((wave) => Math.max(wave[name] ?? 0, wave[limit] ?? 0))) || 1;
    const heightOf = (value: number) => bottom - (value / most) * BAND;
    bands.push({
      name,
      top,
      bottom,
      most,
      points: waves.flatMap((wave, at) => {
        const value = wave[name];
        return value === null
          ? []
          : [
              {
                x: middle(at),
                y: heightOf(value),
                wave,
                isBeyond: isPointBeyond(wave),
                isMissed: name === "error" && isMissed(wave),
              },
            ];
      }),
      limits: limitsOf(waves.map((wave) => wave[limit])).map(({ first, last, value }) => ({
        from: step * first,
        to: step * (last + 1),
        y: heightOf(value),
      })),
    });
  };
  add(
    "probability",
    "threshold",
    ({ probability, threshold }) => probability !== null && threshold !== null && probability >= threshold,
  );
  add("error", "bound", isBeyond);
  const floor = bands.length * (BAND + GAP) + RUN;
  const bars = waves.map((wave, at) => {
    const height = wave.decision === "run" ? RUN : SKIP;
    return { x: step * at + 0.5, y: floor - height, width: Math.max(1, step - 1), height, wave };
  });
  return { width: step * waves.length, height: floor, bands, bars };
}

/** Runs of equal values. An answer without one interrupts none: certain answers stand between others. */
function limitsOf(values: readonly (number | null)[]): { first: number; last: number; value: number }[] {
  const runs: { first: number; last: number; value: number }[] = [];
  values.forEach((value, at) => {
    if (value === null) return;
    const last = runs.at(-1);
    if (last !== undefined && last.value === value) last.last = at;
    else runs.push({ first: at, last: at, value });
  });
  return runs;
}
