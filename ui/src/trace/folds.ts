// Operations that are drawn as one: straight runs in a trace of many layers, through which each record passes as one, and
// which a click opens; and those in the middle of a trace that has too many to draw. Pure.

import { groupBy } from "../groups";
import { type LineageNode, pairKey, type RecordLineage, type Side } from "./model";

export interface Fold {
  readonly side: Side;
  readonly nodes: readonly LineageNode[];
  /** A click draws each of them, else they are in the table only. */
  readonly canOpen: boolean;
  /** As that of an operation. */
  readonly layer: number;
}

export interface Folded {
  /** In their layers of what is drawn. */
  readonly single: readonly LineageNode[];
  /** By the id of a run's first operation; by a name of its side, if it is the middle of it. */
  readonly folds: ReadonlyMap<string, Fold>;
}

type Links = RecordLineage["links"];

/** Operations that are drawn at most. */
const MAX_GROUPS = 80;
/** Layers that can be read side by side on a laptop, in all of its width. */
const READABLE_LAYERS = 10;
/** Layers on each side of the record that are drawn in any case. */
const NEAR = 3;
/** Of more than these, the middle of the trace is one until some of it is opened. */
const MOST_LAYERS = 12;
/** Operations of a run: fewer need no fold. */
const LEAST_RUN = 3;

export function fold({ nodes, links }: Pick<RecordLineage, "nodes" | "links">, opened: ReadonlySet<string>): Folded {
  const layers = new Set(nodes.map(({ layer }) => layer));
  const folded =
    layers.size > READABLE_LAYERS ? withoutRuns(nodes, links, opened) : { single: nodes, folds: new Map() };
  return folded.single.length > MAX_GROUPS ? withoutMiddle(nodes) : folded;
}

/** Those between the record's neighbours and the files are folded, on each side as one. */
function withoutMiddle(nodes: readonly LineageNode[]): Folded {
  const rank = (node: LineageNode): number =>
    node.side === "centre" ? -2 : node.kind === "operator" ? Math.abs(node.layer) : -1;
  const byRank = [...nodes].sort((a, b) => rank(a) - rank(b));
  const single = new Set(byRank.slice(0, MAX_GROUPS));
  const folded = groupBy(
    nodes.filter((node) => !single.has(node)),
    ({ side }) => side,
  );
  const folds = [...folded].map(([side, all]): [string, Fold] => {
    // The stub is where most of them were: between it and the record are only neighbours.
    const nearest = side === "backward" ? Math.max : Math.min;
    return [side, { side, nodes: all, canOpen: false, layer: nearest(...all.map(({ layer }) => layer)) }];
  });
  return { single: nodes.filter((node) => single.has(node)), folds: new Map(folds) };
}

function withoutRuns(nodes: readonly LineageNode[], links: Links, opened: ReadonlySet<string>): Folded {
  const runs = runsOf(nodes, links).map((run) => [run[0]?.id ?? "", run] as const);
  const folded = foldedInto(new Map(runs.filter(([key]) => !opened.has(key))), nodes, links);
  const drawn = new Set([...folded.single, ...folded.folds.values()].map(({ layer }) => layer));
  if (drawn.size <= MOST_LAYERS || opened.size > 0) return folded;
  const middles = (["backward", "forward"] as const)
    .map((side) => [`middle ${side}`, nodes.filter((node) => node.side === side && isInMiddle(node))] as const)
    .filter(([, all]) => all.length >= LEAST_RUN);
  return middles.length === 0 ? folded : foldedInto(new Map(middles), nodes, links);
}

/** Neither a file, nor near the record, nor what one has to know of. */
const isInMiddle = ({ kind, exact, layer }: LineageNode): boolean =>
  kind === "operator" && exact && Math.abs(layer) > NEAR;

/** With these groups as one each, by the keys of the folds. */
function foldedInto(groups: ReadonlyMap<string, readonly LineageNode[]>, nodes: readonly LineageNode[], links: Links) {
  const standIns = new Map([...groups.values()].flatMap((all) => all.map(({ id }) => [id, all[0]?.id ?? id] as const)));
  const layers = layersOf(nodes, links, standIns);
  const layerOf = (id: string): number => layers.get(id) ?? 0;
  const single = nodes
    .filter(({ id }) => !standIns.has(id))
    .map((node) => (groups.size === 0 ? node : { ...node, layer: layerOf(node.id) }))
    .sort((a, b) => a.layer - b.layer || Number(a.number) - Number(b.number));
  const folds = [...groups].flatMap(([key, all]): [string, Fold][] => {
    const [first] = all;
    if (first === undefined) return [];
    return [[key, { side: first.side, nodes: all, canOpen: true, layer: layerOf(first.id) }]];
  });
  return { single, folds: new Map(folds) };
}

/** Operations one behind the other: each is the only one behind the one before it, and has as many records. */
function runsOf(nodes: readonly LineageNode[], links: Links): LineageNode[][] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const before = groupBy(links, ([, to]) => to);
  const behind = groupBy(links, ([from]) => from);
  const isStraight = ({ id, kind, exact, layer, total }: LineageNode): boolean =>
    kind === "operator" &&
    exact &&
    Math.abs(layer) > 1 && // the record's neighbours stay
    before.get(id)?.length === 1 &&
    behind.get(id)?.length === 1 &&
    byId.get(before.get(id)?.[0]?.[0] ?? "")?.total === total;
  const next = (node: LineageNode): LineageNode | null => {
    const other = byId.get(behind.get(node.id)?.[0]?.[1] ?? "");
    return other !== undefined && isStraight(other) ? other : null;
  };
  const straight = nodes.filter(isStraight);
  const followers = new Set(straight.map((node) => next(node)?.id));
  return straight
    .filter(({ id }) => !followers.has(id))
    .map((first) => {
      const run = [first];
      for (let node = next(first); node !== null && run.length < nodes.length; node = next(node)) run.push(node);
      return run;
    })
    .filter((run) => run.length >= LEAST_RUN);
}

/** The longest way to the record, on each side by itself, where what is folded is one operation. */
function layersOf(
  nodes: readonly LineageNode[],
  links: Links,
  standIns: ReadonlyMap<string, string>,
): Map<string, number> {
  const sideOf = new Map(nodes.map(({ id, side }) => [id, side]));
  const nearer = new Map<string, Set<string>>();
  const seen = new Set<string>();
  for (const [from, to] of links) {
    const [first, last] = [standIns.get(from) ?? from, standIns.get(to) ?? to];
    if (first === last || seen.has(pairKey(first, last))) continue;
    seen.add(pairKey(first, last));
    const isBackward = sideOf.get(first) === "backward" && sideOf.get(last) !== "forward";
    const [far, near] = isBackward ? [first, last] : [last, first];
    nearer.set(far, (nearer.get(far) ?? new Set()).add(near));
  }
  const depths = new Map<string, number>();
  const depth = (id: string): number => {
    const known = depths.get(id);
    if (known !== undefined) return known;
    depths.set(id, 0); // on a cycle, which data cannot make, this ends it
    const own = sideOf.get(id) === "centre" ? 0 : 1 + Math.max(0, ...[...(nearer.get(id) ?? [])].map(depth));
    depths.set(id, own);
    return own;
  };
  return new Map(nodes.map(({ id, side }) => [id, side === "backward" ? -depth(id) : depth(id)]));
}
