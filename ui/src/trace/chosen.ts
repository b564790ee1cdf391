// Rows that are chosen to be drawn, and how they lead to the record: those that stand out, and a sample of all. The
// service lists the first records of each operation, and a row of many thousands is mostly not among them. A trace from
// that row to the record brings both.

import { type Client, Problem } from "../client";
import { applicationOf, nodeNumber } from "../format";
import { adjacencyOf } from "./adjacency";
import { type DirectedTrace, directedTraceOf, type Direction, hashOf } from "./model";
import type { Flow, TraceRecord } from "./results";
import { recordOf } from "./rows";

/** Rows that are fetched, of either kind: each is a query. */
const MOST = 6;
/** Rows of a sample, at each end. */
const SAMPLE = 3;
/** Records of each operation on the way of one row. */
const LIMIT = 50;

/** A row, and what leads from it to the record. */
export interface ChosenPath {
  /** The operation that has the row. */
  readonly node: string;
  /** `NODE_ID#RECORD_ID` of the row. */
  readonly row: string;
  readonly isOutlier: boolean;
  /** By node id: the row, and what it became on the way to the record. */
  readonly records: ReadonlyMap<string, readonly TraceRecord[]>;
  readonly flows: readonly Flow[];
}

interface ChosenRow {
  readonly node: string;
  readonly id: string;
  readonly direction: Direction;
  readonly isOutlier: boolean;
}

/**
 * `whole` are the traces with remarks; `centre` is the hash of the record, at the node of that id. Operations whose
 * records are all `listed` need no sample.
 */
export async function fetchChosen(
  client: Client,
  whole: Iterable<DirectedTrace>,
  centre: { readonly hash: string; readonly node: string },
  listed: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<readonly ChosenPath[]> {
  const chosen = chosenRows(whole, listed);
  const paths = await Promise.all(chosen.map((row) => pathOf(client, row, centre, signal).catch(withoutPath)));
  return paths.flatMap((path) => path ?? []);
}

/** A row whose way takes too long is not drawn: what else is shown of the trace stays. The panel names outliers. */
const withoutPath = (error: unknown): null => {
  if (error instanceof Problem && error.status !== 401) return null;
  throw error;
};

/** Which rows to fetch. Pure. */
export function chosenRows(whole: Iterable<DirectedTrace>, listed: ReadonlySet<string>): ChosenRow[] {
  const [outliers, samples]: [ChosenRow[], ChosenRow[]] = [[], []];
  for (const { direction, nodes } of whole) {
    for (const { node_id: node, remarks, sample } of nodes) {
      const remarked = (remarks ?? []).map(({ record_id }) => record_id);
      outliers.push(...remarked.map((id) => ({ node, id, direction, isOutlier: true })));
      if (listed.has(node)) continue;
      const others = (sample ?? []).filter((id) => !remarked.includes(id));
      samples.push(...spread(others, SAMPLE).map((id) => ({ node, id, direction, isOutlier: false })));
    }
  }
  return [...outliers.slice(0, MOST), ...samples.slice(0, MOST)];
}

/** So many of these, at even distances. */
export const spread = <Item>(items: readonly Item[], most: number): readonly Item[] =>
  items.length <= most
    ? items
    : Array.from({ length: Math.max(0, most) }, (_, at) => items[Math.floor((at * items.length) / most)] as Item);

async function pathOf(
  client: Client,
  { node, id, direction, isOutlier }: ChosenRow,
  centre: { readonly hash: string; readonly node: string },
  signal: AbortSignal,
): Promise<ChosenPath> {
  const { partition, offset } = recordOf({ record_id: id });
  const application = applicationOf(node);
  const back: Direction = direction === "backward" ? "forward" : "backward";
  // `to` is of the same application; from another one, all of the trace is followed.
  const extent = application === applicationOf(centre.node) ? { to: nodeNumber(centre.node) } : {};
  const parameters = {
    node: nodeNumber(node),
    partition,
    offset,
    direction: back,
    limit: LIMIT,
    values: true,
    columns: "*",
    ...extent,
  };
  const trace = directedTraceOf(await client.trace(application, parameters, { signal }));
  return { ...onlyPath(trace, node, `${node}#${id}`, centre.hash), isOutlier };
}

/** Of a trace that starts at a row, what lies between it and the record. Pure. */
export function onlyPath(
  trace: DirectedTrace,
  node: string,
  row: string,
  centre: string,
): Omit<ChosenPath, "isOutlier"> {
  const { ancestors, descendants } = adjacencyOf(trace.flows);
  const [from, to] = trace.direction === "forward" ? [row, centre] : [centre, row];
  const [after, before] = [descendants(from), ancestors(to)];
  const way = new Set([row, ...[...after].filter((hash) => before.has(hash))]);
  const records = new Map<string, TraceRecord[]>();
  const listed = trace.nodes.map(({ node_id, records: all }) => [node_id, all] as const);
  for (const [at, all] of [[trace.startNode, trace.start] as const, ...listed]) {
    const kept = all.filter((record) => way.has(hashOf(at, record)));
    if (kept.length > 0) records.set(at, [...(records.get(at) ?? []), ...kept]);
  }
  const flows = trace.flows.filter((flow) => way.has(flow.hash_in) && way.has(flow.hash_out));
  return { node, row, records, flows };
}

/** The trace with these paths among what it lists, as far as its operations are drawn. Pure. */
export function withChosen(trace: DirectedTrace, paths: readonly ChosenPath[]): DirectedTrace {
  const nodes = trace.nodes.map((node) => {
    const known = new Set(node.records.map(({ record_id }) => record_id));
    const more = new Map(
      paths
        .flatMap(({ records }) => records.get(node.node_id) ?? [])
        .filter(({ record_id }) => !known.has(record_id))
        .map((record) => [record.record_id, record]),
    );
    if (more.size === 0) return node;
    const records = [...node.records, ...more.values()];
    return { ...node, records: records.sort((a, b) => a.partition - b.partition || a.offset - b.offset) };
  });
  const ids = new Set(nodes.map(({ node_id }) => node_id));
  const flows = paths.flatMap((path) => path.flows).filter(({ node_id }) => ids.has(node_id));
  return { ...trace, nodes, flows: [...trace.flows, ...flows] };
}

/** What of the paths is drawn first. */
export interface Chosen {
  /** Rows that stand out, by hash. */
  readonly outliers: ReadonlySet<string>;
  /** These rows, and what they became on the way to the record. */
  readonly outlierWays: ReadonlySet<string>;
  /** The same of the rows of a sample. */
  readonly sampleWays: ReadonlySet<string>;
}

export const NOTHING_CHOSEN: Chosen = { outliers: new Set(), outlierWays: new Set(), sampleWays: new Set() };

export function chosenOf(paths: readonly ChosenPath[]): Chosen {
  const ways = (chosen: readonly ChosenPath[]) =>
    new Set(
      chosen.flatMap(({ records }) => [...records].flatMap(([node, all]) => all.map((record) => hashOf(node, record)))),
    );
  const outliers = paths.filter(({ isOutlier }) => isOutlier);
  return {
    outliers: new Set(outliers.map(({ row }) => row)),
    outlierWays: ways(outliers),
    sampleWays: ways(paths.filter(({ isOutlier }) => !isOutlier)),
  };
}
