import { expect, test } from "vitest";
import { wave } from "./fixture";
import { LEAST_STEP, roomFor, timelineOf } from "./timeline";

const latestFirst = [
  wave("w3", { decision: "skip", probability: 0.04, threshold: 0.19, bound: 0.05 }),
  wave("w2", { probability: 0.4, threshold: 0.19, bound: 0.05, error: 0.1 }),
  wave("w1", { bound: 0.05, error: 0.02 }),
  wave("w0"),
];

test("waves stand side by side, the oldest left", () => {
  const { bars, width } = timelineOf(latestFirst, 1000);
  expect(bars.map((bar) => bar.wave.wave)).toEqual(["w0", "w1", "w2", "w3"]);
  expect(bars.map(({ x }) => x)).toEqual([...bars.map(({ x }) => x)].sort((one, other) => one - other));
  const last = bars.at(-1);
  expect(last !== undefined && last.x + last.width).toBeLessThanOrEqual(width);
  const [run, skip] = [bars[0], last];
  expect(run?.height).toBeGreaterThan(skip?.height ?? 0);
  expect((run?.y ?? 0) + (run?.height ?? 0)).toBe((skip?.y ?? 0) + (skip?.height ?? 0));
});

test("what is not known is not drawn, and what is beyond its limit stands above it", () => {
  const { bands } = timelineOf(latestFirst, 1000);
  expect(bands.map(({ name, points }) => [name, points.length])).toEqual([
    ["probability", 2],
    ["error", 2],
  ]);
  for (const { points, limits, top, bottom } of bands) {
    for (const { x, y, isBeyond } of points) {
      const limit = limits.find(({ from, to }) => from <= x && x <= to);
      expect(y < (limit?.y ?? 0)).toBe(isBeyond);
      expect(y).toBeGreaterThanOrEqual(top);
      expect(y).toBeLessThanOrEqual(bottom);
    }
  }
  expect(timelineOf([wave("w0")], 1000).bands).toEqual([]);
});

test("a limit that was changed is drawn as two lines, and certain answers between interrupt none", () => {
  const waves = [0.05, null, 0.1, 0.1, null, 0.1].map((bound, at) => wave(`w${at}`, { bound, error: 0 }));
  const [band] = timelineOf(waves.toReversed(), 600).bands;
  expect(band?.limits.length).toBe(2);
  expect(band?.limits[1]?.to).toBe(6 * (band?.limits[0]?.to ?? 0));
});

test("of more waves than there is room the latest are drawn", () => {
  const many = Array.from({ length: 500 }, (_, at) => wave(`w${at}`));
  const { bars, width } = timelineOf(many, 400);
  expect(bars.length).toBe(roomFor(400));
  expect(bars.at(-1)?.wave.wave).toBe("w0");
  expect(width).toBeLessThanOrEqual(400);
  expect(bars.length).toBe(400 / LEAST_STEP);
});

test("without waves nothing is drawn", () => {
  expect(timelineOf([], 400)).toMatchObject({ bars: [], bands: [], width: 0 });
});
