// What of an application's graph is drawn. Pure: takes the API's graph, gives groups, boxes and lines.
//
// A stage is what Spark runs in one task: operations with no shuffle between them. The API says of each edge whether
// records move between tasks on it (`shuffle`). A stage of the drawing is a connected piece of the other edges among
// operations that have as many shuffles before them; so the graph of the stages has no cycles, and reads from left to right.
// What an operation of one stage reads without a shuffle from one with fewer shuffles before it (a join with data that
// is partitioned already) is a line between two stages.
//
// Never more than `LIMIT` elements are drawn: stages are drawn closed where the whole does not fit, a very large one in
// parts, and very many side by side as one.

import type { Edge, Graph, Node as Operation } from "../api";
import { groupBy } from "../groups";
import { passedRows } from "../passthrough";
import { dataOrder } from "./order";

/** Boxes and lines together. */
export const LIMIT = 500;
/** Operations of a group; larger stages come in parts. */
const PART = 80;
/** Groups that are drawn at most. */
const GROUPS = 120;
/** Graphs up to this size are opened at first: larger ones cannot be read at a glance. */
const AT_A_GLANCE = 150;

export interface Group {
  /** Smallest number of its operations: it names the group in the address. */
  id: string;
  name: string;
  members: Operation[];
}

export interface OperationBox {
  type: "operation";
  id: string;
  operation: Operation;
  /** Rows that pass the operation, if they are counted. */
  passedRows: number | null;
  /** The open group that holds it. */
  group: string | null;
  /** How many operations of equal branches it stands for. */
  alike: number;
}

export interface GroupBox {
  type: "group";
  id: string;
  group: Group;
  isOpen: boolean;
}

export type DrawnBox = OperationBox | GroupBox;

export interface DrawnLine {
  id: string;
  source: string;
  target: string;
  /** Sum over its edges; null if none of them was counted. */
  flows: number | null;
  edges: number;
  isShuffle: boolean;
}

export interface Picture {
  boxes: DrawnBox[];
  lines: DrawnLine[];
  /** Groups that are open, in the order in which they were opened. */
  open: string[];
  /** Groups that were asked to be open and stay closed, because all of them would be too much. */
  closed: string[];
  /** Number of lines that are omitted because there are too many. */
  lineless: number;
}

/** The most shuffles before each operation. On a cycle, which no job has, the depth stays at its first value. */
export function depths(graph: Graph): Map<string, number> {
  const depth = new Map(graph.nodes.map(({ node_id }) => [node_id, 0]));
  const edges = edgesOf(graph);
  const outgoing = groupBy(edges, ({ source }) => source);
  for (const id of dataOrder(graph.nodes, edges)) {
    for (const { target, shuffle } of outgoing.get(id) ?? []) {
      depth.set(target, Math.max(depth.get(target) ?? 0, (depth.get(id) ?? 0) + (shuffle ? 1 : 0)));
    }
  }
  return depth;
}

/** Edges whose ends are both in the graph. */
function edgesOf(graph: Graph): Edge[] {
  const nodeIds = new Set(graph.nodes.map(({ node_id }) => node_id));
  return graph.edges.filter(({ source, target }) => source !== target && nodeIds.has(source) && nodeIds.has(target));
}

/** The stages, those with the fewest shuffles before them first. */
export function stagesOf(graph: Graph): { members: Operation[]; depth: number }[] {
  const depth = depths(graph);
  const leader = new Map(graph.nodes.map(({ node_id }) => [node_id, node_id]));
  const lead = (id: string): string => {
    let at = id;
    for (let next = leader.get(at) ?? at; next !== at; next = leader.get(at) ?? at) {
      leader.set(at, leader.get(next) ?? next);
      at = next;
    }
    return at;
  };
  for (const { source, target, shuffle } of edgesOf(graph)) {
    if (!shuffle && depth.get(source) === depth.get(target)) leader.set(lead(source), lead(target));
  }
  const byLeader = groupBy(graph.nodes, ({ node_id }) => lead(node_id));
  return [...byLeader.values()]
    .map((members) => ({
      members: members.sort((one, other) => one.node - other.node),
      depth: depth.get(members[0]?.node_id ?? "") ?? 0,
    }))
    .sort((one, other) => one.depth - other.depth || first(one.members) - first(other.members));
}

const first = (members: Operation[]) => members[0]?.node ?? 0;

/** The stages as groups of a drawable size: large ones in parts, very many of them several as one. */
export function groupsOf(graph: Graph): Group[] {
  const stages = stagesOf(graph);
  const parts = stages.flatMap(({ members }, at) => partsOf(members, `Stage ${at + 1}`));
  if (parts.length <= GROUPS) return parts;
  const perGroup = Math.ceil(parts.length / GROUPS);
  return Array.from({ length: Math.ceil(parts.length / perGroup) }, (_, at) => {
    const together = parts.slice(at * perGroup, (at + 1) * perGroup);
    return makeGroup(
      together.flatMap(({ members }) => members),
      `${together[0]?.name} to ${together.at(-1)?.name.toLowerCase()}`,
    );
  }).flatMap((large) => partsOf(large.members, large.name));
}

function partsOf(members: Operation[], name: string): Group[] {
  if (members.length <= PART) return [makeGroup(members, name)];
  const parts = Math.ceil(members.length / PART);
  // In the order of their numbers: a node is registered after what it reads.
  return Array.from({ length: parts }, (_, at) =>
    makeGroup(
      members.slice(Math.floor((at * members.length) / parts), Math.floor(((at + 1) * members.length) / parts)),
      `${name}, part ${at + 1} of ${parts}`,
    ),
  );
}

const makeGroup = (members: Operation[], name: string): Group => ({
  id: String(Math.min(...members.map(({ node }) => node))),
  name,
  members,
});

/** Which groups are open at first: all, if that can be read at a glance. */
export function initiallyOpen(all: Group[], graph: Graph): string[] {
  const size = graph.nodes.length + graph.edges.length;
  return size <= AT_A_GLANCE ? all.map(({ id }) => id) : [];
}

/** The picture with these groups open; if that is too much, those that were opened first are closed again. */
export function pictureOf(
  graph: Graph,
  all: Group[],
  open: string[],
  alike: ReadonlyMap<string, readonly Operation[]> = new Map(),
  limit = LIMIT,
): Picture {
  const openIds = open.filter((id) => all.some((group) => group.id === id));
  const edges = edgesOf(graph);
  const rows = passedRows(graph);
  const drawFrom = (from: number) => drawingOf(edges, all, new Set(openIds.slice(from)), rows, alike);
  const size = (candidate: { boxes: DrawnBox[]; lines: DrawnLine[] }) =>
    candidate.boxes.length + candidate.lines.length;
  // The fewer are open, the fewer are drawn; so the first that fits is found by halving.
  let [from, to] = [0, openIds.length];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (size(drawFrom(middle)) <= limit) to = middle;
    else from = middle + 1;
  }
  const drawing = drawFrom(from);
  const room = Math.max(0, limit - drawing.boxes.length);
  const lines =
    drawing.lines.length <= room
      ? drawing.lines
      : [...drawing.lines].sort((one, other) => (other.flows ?? 0) - (one.flows ?? 0)).slice(0, room);
  return {
    boxes: drawing.boxes,
    lines,
    open: openIds.slice(from),
    closed: openIds.slice(0, from),
    lineless: drawing.lines.length - lines.length,
  };
}

function drawingOf(
  edges: Edge[],
  all: Group[],
  open: Set<string>,
  rows: ReadonlyMap<string, number>,
  alike: ReadonlyMap<string, readonly Operation[]>,
): { boxes: DrawnBox[]; lines: DrawnLine[] } {
  const boxes: DrawnBox[] = [];
  /** The box in which an operation is drawn. */
  const boxIds = new Map<string, string>();
  for (const group of all) {
    // One operation by itself needs no frame.
    const isFramed = group.members.length > 1;
    const isOpen = open.has(group.id);
    const boxId = `group ${group.id}`;
    if (isFramed) boxes.push({ type: "group", id: boxId, group, isOpen });
    for (const operation of group.members) {
      const isShown = isOpen || !isFramed;
      boxIds.set(operation.node_id, isShown ? operation.node_id : boxId);
      if (isShown) {
        boxes.push({
          type: "operation",
          id: operation.node_id,
          operation,
          passedRows: rows.get(operation.node_id) ?? null,
          group: isFramed ? boxId : null,
          alike: alike.get(operation.node_id)?.length ?? 1,
        });
      }
    }
  }
  const lines = new Map<string, DrawnLine>();
  for (const edge of edges) {
    const [source, target] = [boxIds.get(edge.source) ?? "", boxIds.get(edge.target) ?? ""];
    if (source === target) continue;
    const id = `${source} > ${target}`;
    const line = lines.get(id) ?? { id, source, target, flows: null, edges: 0, isShuffle: false };
    line.edges += 1;
    line.isShuffle ||= edge.shuffle;
    if (edge.flows !== null) line.flows = (line.flows ?? 0) + edge.flows;
    lines.set(id, line);
  }
  return { boxes, lines: [...lines.values()] };
}

/** The contents of a closed group's box. */
export interface Summary {
  operations: number;
  sources: number;
  sinks: number;
  names: string;
}

export function summaryOf({ members }: Group): Summary {
  const names = [...new Set(members.map(({ name }) => name))];
  return {
    operations: members.length,
    sources: members.filter(({ kind }) => kind === "source").length,
    sinks: members.filter(({ kind }) => kind === "sink").length,
    names: names.length > 4 ? `${names.slice(0, 4).join(", ")} …` : names.join(", "),
  };
}
