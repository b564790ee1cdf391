import { expect, test } from "vitest";
import {
  applicationOf,
  completeness,
  count,
  duration,
  fileName,
  nodeNumber,
  rate,
  reservations,
  share,
  short,
} from "./words";

test("counts have their unit and their commas", () => {
  expect(count(1, "record")).toBe("1 record");
  expect(count(2000, "match", "matches")).toBe("2,000 matches");
  expect(share(50, 100_000, "record")).toBe("50 of 100,000 records");
  expect(share(3, 3, "record")).toBe("3 records");
  expect(short(99_999)).toBe("99,999");
  expect(short(82_400_000)).toBe("82.4M");
  expect(rate(1234.56)).toBe("1,230 a second");
});

test.each([
  [0, "0.0 s"],
  [9.94, "9.9 s"],
  [12.3, "12 s"],
  [59.4, "59 s"],
  [59.6, "1 min 0 s"],
  [3599, "59 min 59 s"],
  [3600, "1 h 0 min"],
  [200_000, "2 days 7 h"],
])("%f seconds are %s", (seconds, words) => {
  expect(duration(seconds)).toBe(words);
});

test("what is missing is said in words", () => {
  const base = { state: "ended" as const, complete: false, missing_blocks: 0, counters: {} };
  expect(completeness({ ...base, complete: true })).toBe("complete");
  expect(completeness(base)).toBe("incomplete: not all has arrived");
  expect(completeness({ ...base, state: "running" })).toBe("incomplete: still running");
  expect(completeness({ ...base, missing_blocks: 3, counters: { dropped: 40, missing_runs: 1 } })).toBe(
    "incomplete: 3 blocks missing, 1 run missing, 40 dropped",
  );
  expect(reservations({ complete: true, exact: true, truncated: false })).toEqual([]);
  expect(reservations({ complete: false, exact: false, truncated: true })).toHaveLength(3);
});

test("ids and paths are taken apart at the right place", () => {
  expect(nodeNumber("app#1#34")).toBe("34");
  expect(applicationOf("app#1#34")).toBe("app#1");
  expect(fileName("/data/out/part-00000")).toBe("part-00000");
  expect(fileName("/data/out/")).toBe("out/");
  expect(fileName("x")).toBe("x");
});
