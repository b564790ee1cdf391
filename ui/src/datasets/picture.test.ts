import { describe, expect, test } from "vitest";
import type { DatasetGraphNode } from "../api";
import { placementOf } from "../graph/placement";
import { centreOf, labelOf, layoutRequestOf, netOf, nodeName, runsText, sideOf } from "./picture";

const node = (id: string, kind: "dataset" | "job", layer: number): DatasetGraphNode => ({
  id,
  kind,
  layer,
  namespace: kind === "dataset" ? "file" : "",
  name: kind === "dataset" ? `/data/${id}` : id,
  runs: kind === "job" ? 3 : 0,
  failed_runs: 0,
  application_id: null,
  at: null,
  remark: "",
});
const edge = (source: string, target: string) => ({ source, target, exact: true });

const GRAPH = {
  nodes: [
    node("flights", "dataset", -2),
    node("weather", "dataset", -2),
    node("winds", "job", -1),
    node("monthly", "dataset", 0),
    node("report", "job", 1),
  ],
  edges: [edge("flights", "winds"), edge("weather", "winds"), edge("winds", "monthly"), edge("monthly", "report")],
  truncated: false,
};

describe("the graph around a dataset", () => {
  test("is drawn from left to right, each box behind all that lead to it", () => {
    const { boxes, bends } = placementOf(layoutRequestOf(netOf(GRAPH)));
    for (const { source, target } of GRAPH.edges) expect(boxes[source]?.x).toBeLessThan(boxes[target]?.x ?? 0);
    expect(boxes.flights?.x).toBe(boxes.weather?.x);
    expect(boxes.flights?.y).not.toBe(boxes.weather?.y);
    expect(Object.keys(bends)).toHaveLength(4);
  });

  test("is drawn where jobs read what they write, too", () => {
    const circle = { ...GRAPH, edges: [...GRAPH.edges, edge("monthly", "winds")] };
    const { boxes } = placementOf(layoutRequestOf(netOf(circle)));
    expect(new Set(Object.values(boxes).map(({ x, y }) => `${x} ${y}`)).size).toBe(5);
  });

  test("has the dataset in its centre, and says on which side the others are", () => {
    expect(centreOf(GRAPH)?.id).toBe("monthly");
    expect(GRAPH.nodes.map(sideOf)).toEqual(["before", "before", "before", "this dataset", "after"]);
  });
});

test("a dataset is labelled by its last part and its folder, a job by its runs", () => {
  expect(labelOf(node("monthly", "dataset", 0))).toBe("monthly\n/data/");
  expect(labelOf({ ...node("x", "dataset", 0), namespace: "s3://bucket", name: "out/day" })).toBe(
    "day\ns3://bucket/out/",
  );
  expect(labelOf({ ...node("x", "dataset", 0), namespace: "kafka://b:9092", name: "orders" })).toBe(
    "orders\nkafka://b:9092",
  );
  expect(labelOf({ ...node("Winds", "job", 1), failed_runs: 1 })).toBe("Winds\n3 runs, 1 failed");
  expect(nodeName({ kind: "dataset", name: "/data/monthly/" })).toBe("monthly");
  expect(runsText({ runs: 0, failed_runs: 0 })).toBe("");
});
