// The lineage of a record: the traces of one or both directions as one, and the layer of each operation. Knows nothing
// of what is drawn of it.

import { applicationOf, nodeNumber } from "../format";
import type { Edge, Flow, Trace, TracedNode, TraceRecord, TraceStart } from "./results";

export type Direction = "backward" | "forward";
export type Side = Direction | "centre";

/** The result in one direction. */
export interface DirectedTrace {
  readonly direction: Direction;
  readonly startNode: string;
  readonly start: readonly TraceRecord[];
  /** All operations at which it starts, `startNode` first: several may have the row of a file. */
  readonly starts: readonly TraceStart[];
  readonly complete: boolean;
  readonly exact: boolean;
  /** The time budget was spent before all was found. */
  readonly isPartial: boolean;
  /** In the order of the trace, the start's node among them. Records are by partition and offset. */
  readonly nodes: readonly TracedNode[];
  readonly flows: readonly Flow[];
}

/** One operation in its layer: 0 is the record's own, -1 is what it came from, 1 what became of it. */
export interface LineageNode {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly exact: boolean;
  readonly total: number;
  readonly records: readonly TraceRecord[];
  /** Of the columns of its rows. */
  readonly schema?: TracedNode["schema"];
  readonly reason: string;
  readonly application: string;
  readonly applicationName: string;
  readonly number: string;
  readonly side: Side;
  readonly layer: number;
}

export interface RecordLineage {
  /** By layer, the first input first. */
  readonly nodes: readonly LineageNode[];
  readonly centre: LineageNode;
  readonly flows: readonly Flow[];
  /** Which operation sends records to which, if both are in the lineage: [from, to]. */
  readonly links: readonly (readonly [string, string])[];
  /** Each listed record by its hash, `NODE_ID#RECORD_ID`. */
  readonly recordsByHash: ReadonlyMap<string, TracedRecord>;
}

export interface TracedRecord {
  readonly node: LineageNode;
  readonly record: TraceRecord;
}

/** The part of a graph's edge that is used here. */
export type NodeLink = Pick<Edge, "source" | "target">;

export const hashOf = (nodeId: string, record: TraceRecord): string => `${nodeId}#${record.record_id}`;

export function directedTraceOf(trace: Trace, isPartial = false): DirectedTrace {
  return {
    direction: trace.direction,
    startNode: trace.start_node,
    start: trace.start,
    starts: trace.starts,
    complete: trace.complete,
    exact: trace.exact,
    isPartial,
    nodes: trace.nodes,
    flows: trace.flows,
  };
}

/** Ids hold no control characters. */
export const pairKey = (from: string, to: string): string => `${from}\n${to}`;

const flowKey = (flow: Flow): string => pairKey(flow.hash_in, flow.hash_out);

function union(first: readonly TraceRecord[], second: readonly TraceRecord[]): TraceRecord[] {
  if (second.length === 0) return [...first];
  if (first.length === 0) return [...second];
  const records = new Map([...first, ...second].map((record) => [record.record_id, record]));
  return [...records.values()].sort((a, b) => a.partition - b.partition || a.offset - b.offset);
}

/** The traces of one record as one lineage. `edges` are those of the applications' graphs, as far as they are loaded. */
export function lineageOf(traces: readonly DirectedTrace[], edges: readonly NodeLink[]): RecordLineage {
  const first = traces[0];
  if (first === undefined) throw new Error("a lineage has at least one trace");
  const start = first.nodes.find((node) => node.node_id === first.startNode);
  const centre: LineageNode = {
    ...lineageNodeOf(
      start ?? {
        node_id: first.startNode,
        application_id: applicationOf(first.startNode),
        application_name: first.starts[0]?.application_name ?? "",
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
  const flows = [...new Map(traces.flatMap((trace) => trace.flows).map((flow) => [flowKey(flow), flow])).values()];
  const sides = new Map<string, TracedNode & { side: Side }>();
  for (const trace of traces) {
    for (const node of trace.nodes) {
      if (node.node_id !== centre.id && !sides.has(node.node_id)) {
        sides.set(node.node_id, { ...node, side: trace.direction });
      }
    }
  }
  const links = linksOf([centre.id, ...sides.keys()], sides, flows, edges);
  const layers = layersOf(centre.id, [...sides.values()], links);
  const nodes = [...sides.values()]
    .map((node) => lineageNodeOf(node, node.side, layers.get(node.node_id) ?? 0))
    .concat(centre)
    .sort((a, b) => a.layer - b.layer || Number(a.number) - Number(b.number));
  const recordsByHash = new Map<string, TracedRecord>();
  for (const node of nodes) {
    for (const record of node.records) recordsByHash.set(hashOf(node.id, record), { node, record });
  }
  return { nodes, centre, flows, links, recordsByHash };
}

function lineageNodeOf(node: TracedNode, side: Side, layer: number): LineageNode {
  const { node_id: id, application_id: application, application_name: applicationName, ...rest } = node;
  return { ...rest, id, application, applicationName, number: nodeNumber(id), side, layer };
}

/** From the graphs; between applications, from the flows of the listed records. */
function linksOf(
  ids: readonly string[],
  sides: ReadonlyMap<string, TracedNode>,
  flows: readonly Flow[],
  edges: readonly NodeLink[],
): (readonly [string, string])[] {
  const nodeIds = new Set(ids);
  const nodeOf = new Map<string, string>();
  for (const node of sides.values()) {
    for (const record of node.records) nodeOf.set(hashOf(node.node_id, record), node.node_id);
  }
  const pairs = new Map<string, readonly [string, string]>();
  const add = (from: string | undefined, to: string): void => {
    if (from !== undefined && nodeIds.has(from) && nodeIds.has(to)) pairs.set(pairKey(from, to), [from, to]);
  };
  for (const edge of edges) add(edge.source, edge.target);
  for (const flow of flows) {
    const centre = ids[0];
    add(
      nodeOf.get(flow.hash_in) ?? (centre && flow.hash_in.startsWith(`${centre}#`) ? centre : undefined),
      flow.node_id,
    );
  }
  return [...pairs.values()];
}

/** Longest path to the record, on each side by itself; a node without links is one layer beyond the previous one. */
function layersOf(
  centre: string,
  nodes: readonly (TracedNode & { side: Side })[],
  links: readonly (readonly [string, string])[],
): Map<string, number> {
  const layers = new Map([[centre, 0]]);
  for (const side of ["backward", "forward"] as const) {
    const sign = side === "backward" ? -1 : 1;
    const sideNodes = nodes.filter((node) => node.side === side);
    const ids = new Set([...sideNodes.map((node) => node.node_id), centre]);
    const nearerNodes = new Map<string, string[]>();
    for (const [from, to] of links) {
      const [far, near] = side === "backward" ? [from, to] : [to, from];
      if (ids.has(far) && ids.has(near) && far !== centre)
        nearerNodes.set(far, [...(nearerNodes.get(far) ?? []), near]);
    }
    const depths = new Map([[centre, 0]]);
    const visiting = new Set<string>();
    const depth = (id: string): number | undefined => {
      const cached = depths.get(id);
      if (cached !== undefined || visiting.has(id)) return cached;
      visiting.add(id); // a cycle, which data cannot make, would come back here
      const below = (nearerNodes.get(id) ?? []).map(depth).filter((value) => value !== undefined);
      visiting.delete(id);
      if (below.length === 0) return undefined;
      const result = 1 + Math.max(...below);
      depths.set(id, result);
      return result;
    };
    let previous = 0;
    for (const { node_id: id } of sideNodes) {
      previous = depth(id) ?? previous + 1;
      depths.set(id, previous);
    }
    for (const [id, layerDepth] of depths) if (id !== centre) layers.set(id, sign * layerDepth);
  }
  return layers;
}
