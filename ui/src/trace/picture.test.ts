import { describe, expect, test } from "vitest";
import { adjacencyOf } from "./adjacency";
import { flow, node, randomTrace, record, type Shape, trace } from "./fixture";
import { directedTraceOf, lineageOf, type RecordLineage } from "./model";
import { type DrawOptions, FIRST_DRAWN, MAX_DRAWN, type Picture, pictureOf } from "./picture";

const NOTHING: DrawOptions = { more: new Map(), further: new Set() };
const drawn = (lineage: RecordLineage, options: DrawOptions = NOTHING): Picture =>
  pictureOf(lineage, adjacencyOf(lineage.flows), options);

function counted({ groups, links, bundles, folded, further }: Picture): number {
  const boxes = groups.reduce((sum, group) => sum + group.boxes.length + (group.more > 0 ? 1 : 0), 0);
  return 2 * groups.length + boxes + links.length + bundles.length + folded.size + further.size;
}

const SHAPES: [string, Shape][] = [
  ["small", { depth: 2, wide: 2, records: 4, fan: 1 }],
  ["long", { depth: 40, wide: 2, records: 20, fan: 2 }],
  ["wide", { depth: 3, wide: 60, records: 30, fan: 4 }],
  ["of hundreds of operations", { depth: 60, wide: 9, records: 3, fan: 2 }],
  ["dense", { depth: 4, wide: 3, records: 100, fan: 60 }],
];

describe.each(SHAPES)("a lineage that is %s", (_, shape) => {
  test.each([1, 2, 3, 4])("is never more than 500 elements, whatever is asked for (seed %i)", (seed) => {
    const { lineage } = randomTrace(seed, shape);
    const everyNode = new Map(lineage.nodes.map((traced) => [traced.id, 200]));
    const one = new Map(lineage.nodes.slice(0, 1).map((traced) => [traced.id, 200]));
    for (const more of [new Map<string, number>(), one, everyNode]) {
      const picture = drawn(lineage, { more, further: new Set(["backward", "forward"]) });
      expect(picture.elements).toBeLessThanOrEqual(MAX_DRAWN);
      expect(picture.elements).toBe(counted(picture));
    }
  });

  test.each([5, 6])("accounts for every record: drawn, behind a +n, or folded (seed %i)", (seed) => {
    const { lineage } = randomTrace(seed, shape);
    const picture = drawn(lineage);
    const folded = [...picture.folded.values()].flatMap(({ nodes }) => nodes);
    const accounted = picture.groups.reduce((sum, group) => sum + group.boxes.length + group.more, 0);
    expect(accounted + folded.reduce((sum, traced) => sum + traced.total, 0)).toBe(picture.total);
    expect(picture.groups.length + folded.length).toBe(lineage.nodes.length);
    for (const group of picture.groups) expect(group.boxes.length).toBeGreaterThan(0);
  });

  test("draws links between drawn records only, and each flow once", () => {
    const { lineage } = randomTrace(7, shape);
    const { groups, links } = drawn(lineage);
    const drawnHashes = new Set(groups.flatMap((group) => group.boxes.map((box) => box.hash)));
    for (const link of links) expect(drawnHashes.has(link.from) && drawnHashes.has(link.to)).toBe(true);
    expect(new Set(links.map((link) => JSON.stringify(link))).size).toBe(links.length);
  });

  test("is the same picture each time", () => {
    expect(drawn(randomTrace(8, shape).lineage)).toEqual(drawn(randomTrace(8, shape).lineage));
  });
});

function fanIn(listed: number, total: number): RecordLineage {
  const records = Array.from({ length: listed }, (_, at) => record(0, at));
  const flows = records.map((item) => flow(`app#1#${item.record_id}`, "app#2#0#0"));
  const source = node(1, records, { kind: "source", total });
  return lineageOf([directedTraceOf(trace("backward", [node(2, [record(0, 0)]), source], flows))], []);
}

describe("a record with 100,000 sources", () => {
  const lineage = fanIn(50, 100_000);

  test("shows a few of them and how many more there are", () => {
    const [source] = drawn(lineage).groups;
    expect(source?.boxes).toHaveLength(FIRST_DRAWN);
    expect(source?.more).toBe(100_000 - FIRST_DRAWN);
    expect(drawn(lineage)).toMatchObject({ drawn: FIRST_DRAWN + 1, total: 100_001 });
  });

  test("shows as many as someone asked for, as far as they are listed", () => {
    const more = (count: number) =>
      drawn(lineage, { ...NOTHING, more: new Map([["app#1", count]]) }).groups[0]?.boxes.length;
    expect(more(25)).toBe(25);
    expect(more(200)).toBe(50);
  });

  test("keeps under 500 elements at the most that can be listed", () => {
    const picture = drawn(fanIn(200, 100_000), { ...NOTHING, more: new Map([["app#1", 200]]) });
    expect(picture.groups[0]?.boxes).toHaveLength(200);
    expect(picture.links).toHaveLength(200);
    expect(picture.elements).toBeLessThanOrEqual(MAX_DRAWN);
  });
});

test("what is linked with the record comes before what is not", () => {
  const records = Array.from({ length: 40 }, (_, at) => record(0, at));
  const flows = [flow("app#1#0#33", "app#2#0#0"), flow("app#1#0#38", "app#2#0#0")];
  const lineage = lineageOf(
    [directedTraceOf(trace("backward", [node(2, [record(0, 0)]), node(1, records)], flows))],
    [],
  );
  const offsets = drawn(lineage).groups[0]?.boxes.map((box) => box.hash.split("#").at(-1));
  expect(offsets).toContain("33");
  expect(offsets).toContain("38");
  expect(offsets).toHaveLength(FIRST_DRAWN);
});

test("operations whose listed records share no flow are joined by a line of their own", () => {
  const lineage = lineageOf(
    [directedTraceOf(trace("backward", [node(2, [record(0, 0)]), node(1, [record(0, 0)], { total: 900 })], []))],
    [{ source: "app#1", target: "app#2" }],
  );
  expect(drawn(lineage)).toMatchObject({ links: [], bundles: [{ from: "app#1", to: "app#2", flows: 0 }] });
});

test("flows beyond the limit become one line between two operations, with their number", () => {
  const { lineage } = randomTrace(3, { depth: 2, wide: 1, records: 200, fan: 1 });
  const everyNode = new Map(lineage.nodes.map((traced) => [traced.id, 200]));
  const picture = drawn(lineage, { ...NOTHING, more: everyNode });
  const accounted = picture.bundles.reduce((sum, bundle) => sum + bundle.flows, picture.links.length);
  const drawnHashes = new Set(picture.groups.flatMap((group) => group.boxes.map((box) => box.hash)));
  const between = lineage.flows.filter(
    (item) => drawnHashes.has(item.hash_in) && drawnHashes.has(item.hash_out),
  ).length;
  expect(accounted).toBe(between);
});

test("of too many operations, those in the middle are folded; files and neighbours stay", () => {
  const { lineage } = randomTrace(9, { depth: 120, wide: 2, records: 3, fan: 1 });
  const picture = drawn(lineage);
  const drawnNodes = new Set(picture.groups.map((group) => group.node.id));
  expect(picture.folded.size).toBe(2);
  expect(
    lineage.nodes.filter((traced) => traced.kind !== "operator").every((traced) => drawnNodes.has(traced.id)),
  ).toBe(true);
  expect(
    lineage.nodes.filter((traced) => Math.abs(traced.layer) <= 3).every((traced) => drawnNodes.has(traced.id)),
  ).toBe(true);
});
