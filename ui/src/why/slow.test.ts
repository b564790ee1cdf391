import { expect, test } from "vitest";
import type { Slow, SlowRecord } from "../api";
import type { Way } from "./sentences";
import { slowOn, slowText } from "./slow";

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

test("how long it took", () => {
  expect(slowText(slow("a#1", 320))).toBe("map at job.py:41 took 320 ms");
  expect(slowText(slow("a#1", 2_300))).toBe("map at job.py:41 took 2.3 s");
});
