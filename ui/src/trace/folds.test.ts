import { expect, test } from "vitest";
import { node, record, trace } from "./fixture";
import { fold } from "./folds";
import { directedTraceOf, lineageOf } from "./model";

/** `"0 1, 1 2"`: what leads to the last operation, which has the record. Those with the number 0 to 9 in `sources` read. */
function lineage(edges: string, sources = [0]) {
  const pairs = edges.split(", ").map((pair) => pair.split(" ").map(Number));
  const numbers = [...new Set(pairs.flat())].sort((one, other) => other - one);
  const nodes = numbers.map((at) => node(at, [record(0, 0)], sources.includes(at) ? { kind: "source" } : {}));
  const links = pairs.map(([source, target]) => ({ source: `app#${source}`, target: `app#${target}` }));
  return lineageOf([directedTraceOf(trace("backward", nodes, []))], links);
}

const chain = (length: number) => lineage(Array.from({ length }, (_, at) => `${at} ${at + 1}`).join(", "));

test("of a long chain, what lies between the file and the record's neighbour is one", () => {
  const { single, folds } = fold(chain(20), new Set());
  expect(single.map(({ number, layer }) => [number, layer])).toEqual([
    ["0", -3],
    ["19", -1],
    ["20", 0],
  ]);
  expect([...folds].map(([id, { nodes, canOpen, layer }]) => [id, nodes.length, canOpen, layer])).toEqual([
    ["app#1", 18, true, -2],
  ]);
});

test("a fold that was opened stays open, and a short chain has none", () => {
  expect(fold(chain(20), new Set(["app#1"])).single).toHaveLength(21);
  expect(fold(chain(9), new Set()).folds.size).toBe(0);
});

test("two branches of a join are folded each, and stand side by side", () => {
  const branches = lineage(
    "0 2, 2 3, 3 4, 4 13, 13 14, 14 9, 1 5, 5 6, 6 7, 7 8, 8 15, 15 16, 16 9, 9 10, 10 11, 11 20",
    [0, 1],
  );
  const { single, folds } = fold(branches, new Set());
  expect([...folds].map(([id, { nodes, layer }]) => [id, nodes.length, layer])).toEqual([
    ["app#5", 6, -4],
    ["app#2", 5, -4],
  ]);
  expect(single.filter(({ kind }) => kind === "source").map(({ layer }) => layer)).toEqual([-5, -5]);
});

test("an operation that is not exact, or changes the number of records, is drawn", () => {
  const { nodes, links } = chain(20);
  const changed = nodes.map((one) => {
    if (one.number === "10") return { ...one, exact: false };
    return Number(one.number) < 6 ? { ...one, total: 9 } : one;
  });
  const { single, folds } = fold({ nodes: changed, links }, new Set());
  expect(single.map(({ number }) => number)).toEqual(["0", "6", "10", "19", "20"]);
  expect([...folds].map(([id, { nodes }]) => [id, nodes.length])).toEqual([
    ["app#1", 5],
    ["app#7", 3],
    ["app#11", 8],
  ]);
});

test("of a long trace without straight runs, the middle is one", () => {
  // Twenty diamonds: each operation leads to two, which lead to the next.
  const diamonds = Array.from({ length: 20 }, (_, at) => 3 * at)
    .map((at) => `${at} ${at + 1}, ${at} ${at + 2}, ${at + 1} ${at + 3}, ${at + 2} ${at + 3}`)
    .join(", ");
  const { single, folds } = fold(lineage(diamonds), new Set());
  expect([...folds.keys()]).toEqual(["middle backward"]);
  expect(single.map(({ number, layer }) => [number, layer])).toEqual([
    ["0", -5],
    ["55", -3],
    ["56", -3],
    ["57", -2],
    ["58", -1],
    ["59", -1],
    ["60", 0],
  ]);
  expect(fold(lineage(diamonds), new Set(["middle backward"])).single).toHaveLength(61);
});
