// Graphs for tests: made from few words, or at random with a seed.

import type { Edge, Graph, Node as Operation } from "../api";

export const operation = (node: number, more: Partial<Operation> = {}): Operation => ({
  node_id: `app#${node}`,
  node,
  name: `map${node}`,
  description: "",
  kind: "operator",
  call_site: `/jobs/job.py:${node}`,
  exact: true,
  reason: "",
  dataset: null,
  records: node,
  has_values: false,
  schema: [],
  schema_note: "",
  state: null,
  error: null,
  ...more,
});

/** `"0 1, 1 = 2"`: 0 sends to 1, and 1 by a shuffle to 2. */
export function graphOf(edges: string, nodes = 0): Graph {
  const parsed: Edge[] = edges
    .split(",")
    .filter((text) => text.trim() !== "")
    .map((text) => {
      const [source, target] = text.match(/\d+/g) ?? [];
      return { source: `app#${source}`, target: `app#${target}`, flows: 1, shuffle: text.includes("=") };
    });
  const numbers = parsed.flatMap(({ source, target }) => [source, target]).map((id) => Number(id.slice(4)));
  const size = Math.max(nodes, ...numbers.map((number) => number + 1));
  return { application_id: "app", nodes: Array.from({ length: size }, (_, node) => operation(node)), edges: parsed };
}

/** A generator of numbers in [0, 1) (mulberry32). */
export function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Each operation reads one to three before it, some of them by a shuffle. */
export function randomGraph(seed: number, size: number, shuffles: number): Graph {
  const next = dice(seed);
  const edges: Edge[] = [];
  for (let target = 1; target < size; target += 1) {
    const parents = new Set(
      Array.from({ length: 1 + Math.floor(next() * 3) }, () => Math.max(0, target - 1 - Math.floor(next() * 12))),
    );
    for (const source of parents) {
      edges.push({
        source: `app#${source}`,
        target: `app#${target}`,
        flows: Math.floor(next() * 1000),
        shuffle: next() < shuffles,
      });
    }
  }
  return { application_id: "app", nodes: Array.from({ length: size }, (_, node) => operation(node)), edges };
}
