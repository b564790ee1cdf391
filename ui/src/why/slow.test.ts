import { expect, test } from "vitest";
import type { Slow, SlowRecord } from "../api";
import type { Way } from "./sentences";
import { noneText, slowOn, slowText } from "./slow";

const slow = (node: string, ms: number): SlowRecord => ({
  ms,
  node_id: node,
  name: "map",
  call_site: "/jobs/job.py:41",
  partition: 0,
  record: null,
  sources: [],
  sources_total: 0,
  exact: true,
  reason: "",
});

test("only operations on the way count", () => {
  const way = { nodes: new Set(["a#1"]) } as Partial<Way> as Way;
  const [near, far] = [slow("a#1", 320), slow("a#7", 900)];
  expect(slowOn(way, { records: [far, near] } as Partial<Slow> as Slow)).toEqual([near]);
});

test("where not all were looked through, it says so", () => {
  const of = (total: number) => noneText({ records: [slow("a#7", 900)], total } as Partial<Slow> as Slow);
  expect(of(1)).toBe("No record is known to have taken long at its operations.");
  expect(of(2)).toBe("Of its operations there is none among the 1 slowest records.");
});

test("how long it took", () => {
  expect(slowText(slow("a#1", 320))).toBe("map at job.py:41 took 320 ms");
  expect(slowText(slow("a#1", 2_300))).toBe("map at job.py:41 took 2.3 s");
});
