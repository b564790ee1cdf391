// What is drawn of a lineage: a sample of each operation's records, "+n more" for the others, and the flows between those
// drawn. Never more than MAX_DRAWN elements: else fewer records of each operation, then flows as one link between
// two operations, and at last operations in the middle as one element. Knows nothing of positions.

import type { Adjacency } from "./adjacency";
import { type Chosen, NOTHING_CHOSEN, spread } from "./chosen";
import { type Fold, fold } from "./folds";
import { hashOf, type LineageNode, pairKey, type RecordLineage, type Side } from "./model";
import { charactersIn, widthOf } from "./size";
import { placeOf, readable, shortened, shortPlace, textOf } from "./texts";

/** Elements of a drawing: operations, records, links and stubs. */
export const MAX_DRAWN = 500;
/** Records of an operation that are drawn at first: one line of them. */
export const FIRST_DRAWN = 4;
/** How many each "+n more" adds. */
export const MORE_DRAWN = 20;

/** Names of headings and stubs. */
export const headName = (nodeId: string): string => `head ${nodeId}`;
export const moreName = (nodeId: string): string => `more ${nodeId}`;
export const furtherName = (side: Side): string => `further ${side}`;
export const foldedName = (key: string): string => `folded ${key}`;

export interface Box {
  /** `NODE_ID#RECORD_ID`. */
  readonly hash: string;
  readonly text: string;
  readonly place: string;
  readonly isCentre: boolean;
  /** It is far from all others of its operation. */
  readonly isOutlier: boolean;
  /** It is of a sample of all, or led to the record from one that is. */
  readonly isSampled: boolean;
  readonly hasWarning: boolean;
}

/** One operation and those of its records that are drawn. */
export interface Group {
  readonly node: LineageNode;
  readonly boxes: readonly Box[];
  /** Number of records that were reached and are not drawn. */
  readonly more: number;
}

/** Between records (by hash) or, for several flows, between operations (by node id). */
export interface Link {
  readonly from: string;
  readonly to: string;
  /** Number of listed flows; 0 if only records flow that are not listed. */
  readonly flows: number;
}

export interface Picture {
  /** By layer. */
  readonly groups: readonly Group[];
  readonly links: readonly Link[];
  readonly bundles: readonly Link[];
  /** Operations that are not drawn individually: one element for each of these. */
  readonly folded: ReadonlyMap<string, Fold>;
  /** The sides on which the trace continues. */
  readonly further: ReadonlySet<Side>;
  /** How many elements all that is, at most MOST_DRAWN. */
  readonly elements: number;
  readonly drawn: number;
  readonly total: number;
  /** Of a record. */
  readonly width: number;
  /** How many stand side by side, from the sources to the results. */
  readonly layers: number;
}

export interface DrawOptions {
  /** Records of an operation that someone asked for, by node id. */
  readonly more: ReadonlyMap<string, number>;
  readonly further: ReadonlySet<Side>;
  /** What is drawn first. */
  readonly chosen?: Chosen;
  /** Folds that were opened. */
  readonly unfolded?: ReadonlySet<string>;
}

export function pictureOf(lineage: RecordLineage, adjacency: Adjacency, options: DrawOptions): Picture {
  const { single, folds: folded } = fold(lineage, options.unfolded ?? new Set());
  const stubs = [...folded.values()];
  const inLayers = [...single, ...stubs.filter(({ canOpen }) => canOpen)];
  const apart = stubs.filter(({ canOpen }) => !canOpen).length + options.further.size;
  const layers = new Set(inLayers.map(({ layer }) => layer)).size + apart;
  const width = widthOf(layers);
  // An operation is a frame and its heading.
  const fixed = 2 * single.length + folded.size + options.further.size;
  const limits = new Map(single.map((node) => [node.id, Math.max(FIRST_DRAWN, options.more.get(node.id) ?? 0)]));
  const draw = (quota: number): Candidate =>
    candidateWith(lineage, adjacency, single, limits, quota, { ...options, characters: charactersIn(width) });
  const cost = (candidate: Candidate): number => fixed + candidate.boxes + candidate.stubs + candidate.links.length;

  // The largest share at which every flow has a line of its own.
  const quotas = quotasUpTo(limits);
  let drawing = draw(1);
  for (let [low, high] = [0, quotas.length - 1]; low <= high;) {
    const middle = (low + high) >> 1;
    const candidate = draw(quotas[middle] ?? 1);
    if (cost(candidate) <= MAX_DRAWN) {
      drawing = candidate;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  const room = Math.max(0, MAX_DRAWN - fixed - drawing.boxes - drawing.stubs);
  const { links, bundles } = bundleLinks(lineage, drawing, folded, room);
  return {
    groups: drawing.groups,
    links,
    bundles,
    folded,
    further: options.further,
    elements: fixed + drawing.boxes + drawing.stubs + links.length + bundles.length,
    drawn: drawing.boxes,
    total: lineage.nodes.reduce((sum, node) => sum + node.total, 0),
    width,
    layers,
  };
}

function quotasUpTo(limits: ReadonlyMap<string, number>): number[] {
  const most = Math.max(...limits.values());
  const quotas = [most, ...limits.values(), 200, 150, 100, 75, 50, 40, 30, 25, 20, 15, 10, 8, 5, 4, 3, 2, 1];
  return [...new Set(quotas)].filter((quota) => quota <= most).sort((a, b) => a - b);
}

interface Candidate {
  readonly groups: readonly Group[];
  readonly links: readonly Link[];
  readonly boxes: number;
  readonly stubs: number;
}

function candidateWith(
  lineage: RecordLineage,
  adjacency: Adjacency,
  single: readonly LineageNode[],
  limits: ReadonlyMap<string, number>,
  quota: number,
  { characters, chosen = NOTHING_CHOSEN }: { characters: number; chosen?: Chosen },
): Candidate {
  const drawnHashes = new Set<string>();
  const perNode = new Map<string, readonly Box[]>();
  // Outwards from the record, so that what is linked with it comes before what is not.
  for (const node of [...single].sort((a, b) => Math.abs(a.layer) - Math.abs(b.layer))) {
    const most = Math.min(quota, limits.get(node.id) ?? FIRST_DRAWN);
    const hashes = node.records.map((record) => hashOf(node.id, record));
    const isLinked = (hash: string): boolean =>
      [...adjacency.inputs(hash), ...adjacency.outputs(hash)].some((other) => drawnHashes.has(other));
    const isOnWay = (hash: string): boolean => chosen.outlierWays.has(hash);
    const linked = hashes.length <= most ? hashes : hashes.filter(isLinked);
    const sampled = hashes.filter((hash) => chosen.sampleWays.has(hash));
    const taken = new Set([...new Set([...hashes.filter(isOnWay), ...sampled])].slice(0, most));
    for (const hash of [...spread(linked, most - taken.size), ...hashes]) {
      if (taken.size >= most) break;
      taken.add(hash);
    }
    const boxes = [...node.records]
      .filter((record) => taken.has(hashOf(node.id, record)))
      .sort((a, b) => Number(isOnWay(hashOf(node.id, b))) - Number(isOnWay(hashOf(node.id, a))))
      .map((record) => {
        const hash = hashOf(node.id, record);
        const isOutlier = chosen.outliers.has(hash);
        const place = textOf(record) === placeOf(record) ? "" : placeOf(record);
        return {
          hash,
          text: shortened(`${isOutlier ? "◆ " : ""}${readable(textOf(record))}`, characters),
          place: shortPlace(place, characters),
          isCentre: node.side === "centre",
          isOutlier,
          isSampled: chosen.sampleWays.has(hash),
          hasWarning: Boolean(record.source?.warning),
        };
      });
    for (const box of boxes) drawnHashes.add(box.hash);
    perNode.set(node.id, boxes);
  }
  const groups = single.map((node) => {
    const boxes = perNode.get(node.id) ?? [];
    return { node, boxes, more: Math.max(0, node.total - boxes.length) };
  });
  const links = lineage.flows
    .filter((flow) => drawnHashes.has(flow.hash_in) && drawnHashes.has(flow.hash_out))
    .map((flow) => ({ from: flow.hash_in, to: flow.hash_out, flows: 1 }));
  return { groups, links, boxes: drawnHashes.size, stubs: groups.filter((group) => group.more > 0).length };
}

/** Links of the pairs of operations that have most become one, until there is room; pairs without a line get one. */
function bundleLinks(
  lineage: RecordLineage,
  drawing: Candidate,
  folded: ReadonlyMap<string, Fold>,
  room: number,
): { links: readonly Link[]; bundles: readonly Link[] } {
  const foldedIn = new Map([...folded].flatMap(([key, { nodes }]) => nodes.map((node) => [node.id, foldedName(key)])));
  const drawn = new Set(drawing.groups.map((group) => group.node.id));
  const nodeOf = (hash: string): string => lineage.recordsByHash.get(hash)?.node.id ?? "";
  const pairs = new Map<string, { from: string; to: string; links: Link[] }>();
  for (const link of drawing.links) {
    const [from, to] = [nodeOf(link.from), nodeOf(link.to)];
    const key = pairKey(from, to);
    const pair = pairs.get(key) ?? { from, to, links: [] };
    pair.links.push(link);
    pairs.set(key, pair);
  }
  let count = drawing.links.length;
  const bundles: Link[] = [];
  for (const [key, pair] of [...pairs].sort((a, b) => b[1].links.length - a[1].links.length)) {
    if (count <= room) break;
    bundles.push({ from: pair.from, to: pair.to, flows: pair.links.length });
    count -= pair.links.length - 1;
    pairs.delete(key);
  }
  const links = [...pairs.values()].flatMap((pair) => pair.links);
  const joined = new Set([...pairs.keys(), ...bundles.map((bundle) => pairKey(bundle.from, bundle.to))]);
  // What is folded is joined with what it comes from and goes to.
  const standIns = new Map<string, Link>();
  for (const [from, to] of lineage.links) {
    const [first, last] = [foldedIn.get(from) ?? from, foldedIn.get(to) ?? to];
    if (first !== last && (first !== from || last !== to)) {
      standIns.set(pairKey(first, last), { from: first, to: last, flows: 0 });
    }
  }
  bundles.push(...standIns.values());
  for (const [from, to] of lineage.links) {
    if (!drawn.has(from) || !drawn.has(to) || joined.has(pairKey(from, to))) continue;
    bundles.push({ from, to, flows: 0 });
  }
  return { links, bundles: bundles.slice(0, Math.max(0, room - links.length)) };
}
