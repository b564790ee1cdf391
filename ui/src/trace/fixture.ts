// Random traces for tests: a layered graph of operations with records and flows between them, from a seed.

import {
  type DirectedTrace,
  directedTraceOf,
  type Direction,
  hashOf,
  lineageOf,
  type NodeLink,
  type RecordLineage,
} from "./model";
import type { Flow, Trace, TracedNode, TraceRecord } from "./results";

/** Numbers from 0 to 1 (mulberry32): the same for the same seed. */
export function dice(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const record = (partition: number, offset: number, more: Partial<TraceRecord> = {}): TraceRecord => ({
  record_id: `${partition}#${offset}`,
  partition,
  offset,
  ...more,
});

export const node = (number: number, records: TraceRecord[], more: Partial<TracedNode> = {}): TracedNode => ({
  node_id: `app#${number}`,
  application_id: "app",
  application_name: "Takings",
  name: `map${number}`,
  kind: "operator",
  exact: true,
  total: records.length,
  records,
  reason: "",
  state: null,
  ...more,
});

export const flow = (from: string, to: string): Flow => ({
  hash_in: from,
  hash_out: to,
  node_id: to.split("#").slice(0, 2).join("#"),
});

export const trace = (direction: Direction, nodes: TracedNode[], flows: Flow[], more: Partial<Trace> = {}): Trace => ({
  direction,
  start: nodes[0]?.records.slice(0, 1) ?? [],
  start_node: nodes[0]?.node_id ?? "app#0",
  starts: nodes.slice(0, 1).map(({ node_id, application_id, application_name, name, kind, total, records }) => ({
    node_id,
    application_id,
    application_name,
    name,
    kind,
    total,
    records,
  })),
  complete: true,
  exact: true,
  truncated: nodes.some((traced) => traced.total > traced.records.length),
  nodes,
  flows,
  next: null,
  how: "",
  ...more,
});

export interface RandomTrace {
  readonly traces: readonly DirectedTrace[];
  readonly edges: readonly NodeLink[];
  readonly lineage: RecordLineage;
}

export interface Shape {
  /** Layers on each side of the record. */
  depth: number;
  /** Most operations in a layer, records listed of each, flows out of each record. */
  wide: number;
  records: number;
  fan: number;
}

/** A record in the middle of layers of operations; some have more records than are listed. */
export function randomTrace(seed: number, shape: Shape): RandomTrace {
  const random = dice(seed);
  const upTo = (most: number): number => 1 + Math.floor(random() * most);
  let number = 0;
  const centre = node(0, [record(0, 7)]);
  const edges: NodeLink[] = [];
  const traces = (["backward", "forward"] as const).map((direction) => {
    const nodes = [centre];
    const flows: Flow[] = [];
    let near: TracedNode[] = [centre];
    for (let layer = 1; layer <= shape.depth; layer += 1) {
      const far: TracedNode[] = [];
      for (let count = upTo(shape.wide); count > 0; count -= 1) {
        number += 1;
        const records = Array.from({ length: upTo(shape.records) }, (_, at) => record(at % 3, Math.floor(at / 3)));
        records.sort((a, b) => a.partition - b.partition || a.offset - b.offset);
        const isEnd = layer === shape.depth;
        far.push(
          node(number, records, {
            kind: isEnd ? (direction === "backward" ? "source" : "sink") : "operator",
            total: records.length + (random() < 0.3 ? upTo(100_000) : 0),
          }),
        );
      }
      for (const farNode of far) {
        const other = near[Math.floor(random() * near.length)] ?? centre;
        const [from, to] = direction === "backward" ? [farNode, other] : [other, farNode];
        edges.push({ source: from.node_id, target: to.node_id });
        for (const farRecord of farNode.records) {
          for (let count = upTo(shape.fan); count > 0; count -= 1) {
            const nearRecord = other.records[Math.floor(random() * other.records.length)];
            if (nearRecord === undefined) continue;
            const [a, b] = [hashOf(farNode.node_id, farRecord), hashOf(other.node_id, nearRecord)];
            flows.push(direction === "backward" ? flow(a, b) : flow(b, a));
          }
        }
      }
      nodes.push(...far);
      near = far;
    }
    return directedTraceOf(trace(direction, nodes, flows));
  });
  return { traces, edges, lineage: lineageOf(traces, edges) };
}
