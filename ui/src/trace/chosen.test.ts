import { expect, test } from "vitest";
import { adjacencyOf } from "./adjacency";
import { type Client, Problem } from "../client";
import { chosenOf, chosenRows, fetchChosen, onlyPath, withChosen } from "./chosen";
import { flow, node, record, trace } from "./fixture";
import { directedTraceOf, lineageOf } from "./model";
import { pictureOf } from "./picture";
import type { Remark } from "./results";

const listed = Array.from({ length: 50 }, (_, offset) => record(0, offset));
const backward = directedTraceOf(
  trace(
    "backward",
    [node(2, [record(0, 0)]), node(0, listed, { total: 900, kind: "source" })],
    listed.map(({ record_id }) => flow(`app#0#${record_id}`, "app#2#0#0")),
  ),
);
/** Of the row 700: it also went into another record. */
const forward = directedTraceOf(
  trace(
    "forward",
    [node(0, [record(0, 700)]), node(2, [record(0, 0), record(0, 1)])],
    [flow("app#0#0#700", "app#2#0#0"), flow("app#0#0#700", "app#2#0#1")],
  ),
);
const path = { ...onlyPath(forward, "app#0", "app#0#0#700", "app#2#0#0"), isOutlier: true };

test("of what a row became, only what leads to the record is kept", () => {
  expect([...path.records.keys()]).toEqual(["app#0", "app#2"]);
  expect(path.records.get("app#2")?.map(({ record_id }) => record_id)).toEqual(["0#0"]);
  expect(path.flows).toEqual([flow("app#0#0#700", "app#2#0#0")]);
});

test("a row that stands out is drawn with its line, beside a sample of the others", () => {
  const lineage = lineageOf([withChosen(backward, [path])], []);
  const chosen = chosenOf([path]);
  const picture = pictureOf(lineage, adjacencyOf(lineage.flows), { more: new Map(), further: new Set(), chosen });
  const boxes = picture.groups.find((group) => group.node.id === "app#0")?.boxes ?? [];
  expect(boxes.map(({ hash, isOutlier }) => [hash, isOutlier])).toEqual([
    ["app#0#0#700", true],
    ["app#0#0#0", false],
    ["app#0#0#17", false],
    ["app#0#0#34", false],
  ]);
  expect(picture.links).toContainEqual({ from: "app#0#0#700", to: "app#2#0#0", flows: 1 });
});

test("rows of a sample are drawn before those that were listed first", () => {
  const sampled = { ...path, isOutlier: false };
  const lineage = lineageOf([withChosen(backward, [sampled])], []);
  const chosen = chosenOf([sampled]);
  const picture = pictureOf(lineage, adjacencyOf(lineage.flows), { more: new Map(), further: new Set(), chosen });
  const boxes = picture.groups.find((group) => group.node.id === "app#0")?.boxes ?? [];
  expect(boxes.map(({ hash, isOutlier, isSampled }) => [hash, isOutlier, isSampled])).toContainEqual([
    "app#0#0#700",
    false,
    true,
  ]);
});

test("what is listed whole needs no sample, and what stands out comes once", () => {
  const remark = { record_id: "read#0#700" } as Remark;
  const sample = ["read#0#10", "read#0#300", "read#0#700", "read#0#800", "read#0#890"];
  const whole = directedTraceOf(
    trace("backward", [node(0, [], { kind: "source", total: 900, remarks: [remark], sample })], []),
  );
  const idsOf = (listed: string[]) => chosenRows([whole], new Set(listed)).map(({ id, isOutlier }) => [id, isOutlier]);
  expect(idsOf([])).toEqual([
    ["read#0#700", true],
    ["read#0#10", false],
    ["read#0#300", false],
    ["read#0#800", false],
  ]);
  expect(idsOf(["app#0"])).toEqual([["read#0#700", true]]);
});

test("a row whose way takes too long is left out", async () => {
  const slow = { trace: () => Promise.reject(new Problem("Time is over", "", 504)) } as unknown as Client;
  const whole = [{ ...backward, nodes: backward.nodes.map((one) => ({ ...one, sample: ["0#700"] })) }];
  const centre = { hash: "app#2#0#0", node: "app#2" };
  expect(await fetchChosen(slow, whole, centre, new Set(["app#2"]), new AbortController().signal)).toEqual([]);
});
