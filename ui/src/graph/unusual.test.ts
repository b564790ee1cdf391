import { expect, test } from "vitest";
import type { Suspect } from "../api";
import { unusualOf } from "./unusual";

const suspect = (node: string, unusual: boolean): Suspect => ({
  rank: 1,
  node_id: node,
  name: "map",
  call_site: "",
  partition: 0,
  score: 12,
  unusual,
  feature: "outputs",
  value: 57,
  low: 1,
  high: 3,
  others: 100,
  why: "",
  record: null,
  sources: [],
  sources_total: 0,
  leads_to_bad: null,
  follows_from: null,
});

test("only what is more than chance counts, by operation", () => {
  const suspects = [suspect("a#1", true), suspect("a#2", false), suspect("a#1", true)];
  expect([...unusualOf({ suspects })]).toEqual([["a#1", 2]]);
});
