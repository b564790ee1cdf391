import { expect, test } from "vitest";
import {
  applicationOf,
  callSite,
  clock,
  colourOf,
  completeness,
  count,
  duration,
  errorText,
  expressionText,
  fileName,
  nodeNumber,
  number,
  rate,
  share,
  short,
  stateText,
  time,
} from "./format";

test("counts have their unit and their commas", () => {
  expect(count(1, "record")).toBe("1 record");
  expect(count(2000, "match", "matches")).toBe("2,000 matches");
  expect(share(50, 100_000, "record")).toBe("50 of 100,000 records");
  expect(share(3, 3, "record")).toBe("3 records");
  expect(short(99_999)).toBe("99,999");
  expect(short(82_400_000)).toBe("82.4M");
  expect(rate(1234.56)).toBe("1,230 per second");
});

test("numbers and times are what Intl makes of them", () => {
  const numbers = [0, 0.5, 0.0004, 7, 12.3456, 999, 1000, 99_999, 100_000, 123_456, 999_949, 999_950, 1_000_000].concat(
    Array.from({ length: 400 }, (_, at) => (at % 7) * 1.37 ** at * 0.01).filter((value) => value < 1e9),
  );
  const plain = new Intl.NumberFormat("en");
  const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
  const significant = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
  for (const value of numbers) {
    expect(number(value)).toBe(plain.format(value));
    if (value >= 100_000) expect(short(value)).toBe(compact.format(value));
    if (value === 0 || value >= 0.01) expect(rate(value)).toBe(`${significant.format(value)} per second`);
  }
  const when = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
  for (const value of [0, 1_700_000_000_000, 1_767_225_599_999, 1_772_366_705_000]) {
    expect(time(value)).toBe(when.format(value));
    expect(clock(value)).toBe(new Date(value).toLocaleTimeString("en-GB"));
  }
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
  expect(completeness(base)).toBe("incomplete: some lineage has not arrived");
  expect(completeness({ ...base, state: "running" })).toBe("incomplete: still running");
  expect(completeness({ ...base, missing_blocks: 3, counters: { dropped: 40, missing_runs: 1 } })).toBe(
    "incomplete: 3 blocks missing, 1 run missing, 40 dropped",
  );
  expect(completeness({ ...base, missing_blocks: 3, counters: { spooled: 3 } })).toBe(
    "incomplete: 3 blocks to be delivered",
  );
  expect(completeness({ ...base, missing_blocks: 3, counters: { spooled: 1 } })).toBe(
    "incomplete: 2 blocks missing, 1 block to be delivered",
  );
  expect(completeness({ ...base, counters: { lost_rows: 2 } })).toBe("incomplete: 2 rows lost by the flow store");
});

test("ids and paths are taken apart at the right place", () => {
  expect(nodeNumber("app#1#34")).toBe("34");
  expect(applicationOf("app#1#34")).toBe("app#1");
  expect(fileName("/data/out/part-00000")).toBe("part-00000");
  expect(fileName("/data/out/")).toBe("out/");
  expect(fileName("x")).toBe("x");
});

test("a call site has no folders, wherever it is", () => {
  expect(callSite("/home/me/job.py:12, 14, /home/me/lib.py:3")).toBe("job.py:12, 14, lib.py:3");
  expect(callSite("In [3]:2")).toBe("In [3]:2");
  expect(callSite("")).toBe("");
});

test("expressions are what neither name nor file says", () => {
  expect(expressionText({ name: "Filter", description: "v > 3", dataset: null })).toBe("v > 3");
  expect(expressionText({ name: "map", description: "map", dataset: null })).toBe("");
  expect(expressionText({ name: "csv", description: "/out", dataset: { name: "/out" } })).toBe("");
});

test("an application that failed or was lost differs from one that ended well, in colour too", () => {
  const times = { started: 1_000, ended: 4_000 };
  expect(stateText({ ...times, state: "ended" })).toBe("ended after 3.0 s");
  expect(stateText({ ...times, state: "failed" })).toBe("failed after 3.0 s");
  expect(stateText({ started: 1_000, ended: null, state: "running" })).toBe("running");
  expect(stateText({ started: 1_000, ended: null, state: "lost" })).toBe("lost");
  expect((["running", "ended", "failed", "lost"] as const).map(colourOf)).toEqual([null, null, "is-failed", "is-lost"]);
});

test("an error says its type, its message and the line, as far as they are known", () => {
  expect(errorText({ type: "ValueError", message: "no day", frame: "/jobs/etl.py:41" })).toBe(
    "ValueError: no day (etl.py:41)",
  );
  expect(errorText({ type: "KeyError", message: "", frame: null })).toBe("KeyError");
  expect(errorText({ type: "", message: "", frame: null })).toBe("it is not known why");
});

test("what was not followed is counted", () => {
  expect(completeness({ state: "ended", complete: false, missing_blocks: 0, counters: { gaps: 2 } })).toBe(
    "incomplete: 2 parts not followed",
  );
});
