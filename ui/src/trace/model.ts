// The lineage of a record: the traces of one or both directions as one, and the layer of each operation. Knows nothing
// of what is drawn of it.

import { applicationOf, nodeNumber } from "../format";
import type { Edge, Flow, Trace, TracedNode, TraceRecord } from "./results";

export type Direction = "backward" | "forward";
export type Side = Direction | "centre";

/** All that was answered about one direction of a way. */
export interface Leg {
  readonly direction: Direction;
  readonly startNode: string;
  readonly start: readonly TraceRecord[];
  readonly complete: boolean;
  readonly exact: boolean;
  /** The time was spent before all was found. */
  readonly isSoFar: boolean;
  /** In the order of the way, the start's node among them. Records are by partition and offset. */
  readonly nodes: readonly TracedNode[];
  readonly flows: readonly Flow[];
}

/** One operation of the way, in its layer: 0 is the record's own, -1 is what it came from, 1 what became of it. */
export interface WayNode {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly exact: boolean;
  readonly total: number;
  readonly records: readonly TraceRecord[];
  readonly reason: string;
  readonly application: string;
  readonly number: string;
  readonly side: Side;
  readonly layer: number;
}

export interface Way {
  /** By layer, the first input first. */
  readonly nodes: readonly WayNode[];
  readonly centre: WayNode;
  readonly flows: readonly Flow[];
  /** Which operation sends records to which, as far as both are on the way: [from, to]. */
  readonly steps: readonly (readonly [string, string])[];
  /** Each listed record by its hash, `NODE_ID#RECORD_ID`. */
  readonly places: ReadonlyMap<string, Place>;
}

export interface Place {
  readonly node: WayNode;
  readonly record: TraceRecord;
}

/** What of a graph's edge is looked at here. */
export type Step = Pick<Edge, "source" | "target">;

export const hashOf = (nodeId: string, record: TraceRecord): string => `${nodeId}#${record.record_id}`;

export function legOf(answer: Trace, isSoFar = false): Leg {
  return {
    direction: answer.direction,
    startNode: answer.start_node,
    start: answer.start,
    complete: answer.complete,
    exact: answer.exact,
    isSoFar,
    nodes: answer.nodes,
    flows: answer.flows,
  };
}

/** Ids hold no control characters. */
export const pairKey = (from: string, to: string): string => `${from}\n${to}`;

const flowKey = (flow: Flow): string => pairKey(flow.hash_in, flow.hash_out);

function union(some: readonly TraceRecord[], others: readonly TraceRecord[]): TraceRecord[] {
  if (others.length === 0) return [...some];
  if (some.length === 0) return [...others];
  const found = new Map([...some, ...others].map((record) => [record.record_id, record]));
  return [...found.values()].sort((a, b) => a.partition - b.partition || a.offset - b.offset);
}

/** The legs of one record as one picture. `edges` are of the applications' graphs, as far as they are known. */
export function wayOf(legs: readonly Leg[], edges: readonly Step[]): Way {
  const first = legs[0];
  if (first === undefined) throw new Error("a way has at least one direction");
  const start = first.nodes.find((node) => node.node_id === first.startNode);
  const centre: WayNode = {
    ...described(
      start ?? {
        node_id: first.startNode,
        name: "",
        kind: "operator",
        exact: true,
        total: 0,
        records: [],
        reason: "",
        state: null,
      },
      "centre",
      0,
    ),
    total: Math.max(start?.total ?? 0, first.start.length),
    records: union(first.start, start?.records ?? []),
  };
  const flows = [...new Map(legs.flatMap((leg) => leg.flows).map((flow) => [flowKey(flow), flow])).values()];
  const sides = new Map<string, TracedNode & { side: Side }>();
  for (const leg of legs) {
    for (const node of leg.nodes) {
      if (node.node_id !== centre.id && !sides.has(node.node_id)) {
        sides.set(node.node_id, { ...node, side: leg.direction });
      }
    }
  }
  const steps = stepsOf([centre.id, ...sides.keys()], sides, flows, edges);
  const layers = layersOf(centre.id, [...sides.values()], steps);
  const nodes = [...sides.values()]
    .map((node) => described(node, node.side, layers.get(node.node_id) ?? 0))
    .concat(centre)
    .sort((a, b) => a.layer - b.layer || Number(a.number) - Number(b.number));
  const places = new Map<string, Place>();
  for (const node of nodes) {
    for (const record of node.records) places.set(hashOf(node.id, record), { node, record });
  }
  return { nodes, centre, flows, steps, places };
}

function described(node: TracedNode, side: Side, layer: number): WayNode {
  const { node_id: id, ...rest } = node;
  return { ...rest, id, application: applicationOf(id), number: nodeNumber(id), side, layer };
}

/** From the graphs, and from the listed records' own flows where a way leads from application to application. */
function stepsOf(
  ids: readonly string[],
  sides: ReadonlyMap<string, TracedNode>,
  flows: readonly Flow[],
  edges: readonly Step[],
): (readonly [string, string])[] {
  const onWay = new Set(ids);
  const nodeOf = new Map<string, string>();
  for (const node of sides.values()) {
    for (const record of node.records) nodeOf.set(hashOf(node.node_id, record), node.node_id);
  }
  const found = new Map<string, readonly [string, string]>();
  const add = (from: string | undefined, to: string): void => {
    if (from !== undefined && onWay.has(from) && onWay.has(to)) found.set(pairKey(from, to), [from, to]);
  };
  for (const edge of edges) add(edge.source, edge.target);
  for (const flow of flows) {
    const centre = ids[0];
    add(
      nodeOf.get(flow.hash_in) ?? (centre && flow.hash_in.startsWith(`${centre}#`) ? centre : undefined),
      flow.node_id,
    );
  }
  return [...found.values()];
}

/** Longest path to the record, on each side by itself; a node that no step joins stands one beyond the one before it. */
function layersOf(
  centre: string,
  nodes: readonly (TracedNode & { side: Side })[],
  steps: readonly (readonly [string, string])[],
): Map<string, number> {
  const layers = new Map([[centre, 0]]);
  for (const side of ["backward", "forward"] as const) {
    const sign = side === "backward" ? -1 : 1;
    const mine = nodes.filter((node) => node.side === side);
    const ids = new Set([...mine.map((node) => node.node_id), centre]);
    const nearer = new Map<string, string[]>();
    for (const [from, to] of steps) {
      const [far, near] = side === "backward" ? [from, to] : [to, from];
      if (ids.has(far) && ids.has(near) && far !== centre) nearer.set(far, [...(nearer.get(far) ?? []), near]);
    }
    const depths = new Map([[centre, 0]]);
    const open = new Set<string>();
    const depth = (id: string): number | undefined => {
      const known = depths.get(id);
      if (known !== undefined || open.has(id)) return known;
      open.add(id); // a cycle, which data cannot make, would come back here
      const below = (nearer.get(id) ?? []).map(depth).filter((each) => each !== undefined);
      open.delete(id);
      if (below.length === 0) return undefined;
      const found = 1 + Math.max(...below);
      depths.set(id, found);
      return found;
    };
    let before = 0;
    for (const { node_id: id } of mine) {
      before = depth(id) ?? before + 1;
      depths.set(id, before);
    }
    for (const [id, found] of depths) if (id !== centre) layers.set(id, sign * found);
  }
  return layers;
}
