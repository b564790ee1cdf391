// Rows that stand out, and how they lead to the record: the service lists the first records of each operation, and a row
// that stands out of many thousands is mostly not among them. A trace from that row to the record brings both.

import type { Client } from "../client";
import { applicationOf, nodeNumber } from "../format";
import { adjacencyOf } from "./adjacency";
import { type DirectedTrace, directedTraceOf, type Direction, hashOf } from "./model";
import type { Flow, Remark, TraceRecord } from "./results";
import { recordOf } from "./rows";

/** Rows that are fetched: each is a query. */
const MOST = 6;
/** Records of each operation on the way of one row. */
const LIMIT = 50;

/** What leads from one row to the record. */
export interface OutlierPath {
  /** The operation that has the row. */
  readonly node: string;
  /** `NODE_ID#RECORD_ID` of the row. */
  readonly outlier: string;
  /** By node id: the row, and what it became on the way to the record. */
  readonly records: ReadonlyMap<string, readonly TraceRecord[]>;
  readonly flows: readonly Flow[];
}

interface Noted {
  readonly node: string;
  readonly remark: Remark;
  readonly direction: Direction;
}

/** `whole` are the traces with remarks; `centre` is the hash of the record, at the node of that id. */
export async function fetchOutliers(
  client: Client,
  whole: Iterable<DirectedTrace>,
  centre: { readonly hash: string; readonly node: string },
  signal: AbortSignal,
): Promise<readonly OutlierPath[]> {
  const noted = [...whole].flatMap(({ direction, nodes }) =>
    nodes.flatMap(({ node_id: node, remarks }) =>
      (remarks ?? []).map((remark): Noted => ({ node, remark, direction })),
    ),
  );
  return Promise.all(noted.slice(0, MOST).map((one) => pathOf(client, one, centre, signal)));
}

async function pathOf(
  client: Client,
  { node, remark, direction }: Noted,
  centre: { readonly hash: string; readonly node: string },
  signal: AbortSignal,
): Promise<OutlierPath> {
  const { record_id, partition, offset } = recordOf(remark);
  const application = applicationOf(node);
  const back: Direction = direction === "backward" ? "forward" : "backward";
  // `to` is of the same application; from another one, the row itself has to do.
  const extent = application === applicationOf(centre.node) ? { to: nodeNumber(centre.node) } : { depth: 1 };
  const parameters = {
    node: nodeNumber(node),
    partition,
    offset,
    direction: back,
    limit: LIMIT,
    values: true,
    ...extent,
  };
  const trace = directedTraceOf(await client.trace(application, parameters, { signal }));
  return onlyPath(trace, node, `${node}#${record_id}`, centre.hash);
}

/** Of a trace that starts at a row, what lies between it and the record. Pure. */
export function onlyPath(trace: DirectedTrace, row: string, outlier: string, centre: string): OutlierPath {
  const { ancestors, descendants } = adjacencyOf(trace.flows);
  const [from, to] = trace.direction === "forward" ? [outlier, centre] : [centre, outlier];
  const [after, before] = [descendants(from), ancestors(to)];
  const way = new Set([outlier, ...[...after].filter((hash) => before.has(hash))]);
  const records = new Map<string, TraceRecord[]>();
  const listed = trace.nodes.map((node) => [node.node_id, node.records] as const);
  for (const [node, all] of [[trace.startNode, trace.start] as const, ...listed]) {
    const kept = all.filter((record) => way.has(hashOf(node, record)));
    if (kept.length > 0) records.set(node, [...(records.get(node) ?? []), ...kept]);
  }
  const flows = trace.flows.filter((flow) => way.has(flow.hash_in) && way.has(flow.hash_out));
  return { node: row, outlier, records, flows };
}

/** The trace with these paths among what it lists, as far as its operations are drawn. Pure. */
export function withOutliers(trace: DirectedTrace, paths: readonly OutlierPath[]): DirectedTrace {
  const nodes = trace.nodes.map((node) => {
    const known = new Set(node.records.map(({ record_id }) => record_id));
    const more = new Map(
      paths
        .flatMap(({ records }) => records.get(node.node_id) ?? [])
        .filter(({ record_id }) => !known.has(record_id))
        .map((record) => [record.record_id, record]),
    );
    return more.size === 0 ? node : { ...node, records: [...node.records, ...more.values()] };
  });
  const ids = new Set(nodes.map(({ node_id }) => node_id));
  const flows = paths.flatMap((path) => path.flows).filter(({ node_id }) => ids.has(node_id));
  return { ...trace, nodes, flows: [...trace.flows, ...flows] };
}
