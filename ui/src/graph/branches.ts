// Equal branches of a graph as one: operations with the same names, in the same order, from the same source to the same
// sink, such as twelve filters of one table that a union brings together. Pure.

import type { Edge, Graph, Node as Operation } from "../api";
import { groupBy } from "../groups";
import { dataOrder } from "./order";

/** Two operations alike, such as the sides of a join, are drawn side by side. */
const LEAST = 3;

export interface Folded {
  /** With one operation for those that are alike: the first of them, with the records of all. */
  graph: Graph;
  /** All that an operation of that graph stands for, where it is more than one. By node id. */
  alike: ReadonlyMap<string, readonly Operation[]>;
}

export function foldBranches(graph: Graph): Folded {
  const places = placesOf(graph);
  const classes = [...groupBy(graph.nodes, ({ node_id }) => places.get(node_id) ?? node_id).values()];
  const standIn = new Map<string, string>();
  const alike = new Map<string, readonly Operation[]>();
  const nodes = classes.flatMap((members) => {
    const [first] = members;
    if (first === undefined || members.length < LEAST) return members;
    for (const { node_id } of members) standIn.set(node_id, first.node_id);
    alike.set(first.node_id, members);
    return [together(first, members)];
  });
  if (alike.size === 0) return { graph, alike };
  const edges = new Map<string, Edge>();
  for (const edge of graph.edges) {
    const [source, target] = [standIn.get(edge.source) ?? edge.source, standIn.get(edge.target) ?? edge.target];
    const key = JSON.stringify([source, target]);
    const known = edges.get(key);
    const flows = known?.flows == null ? edge.flows : known.flows + (edge.flows ?? 0);
    edges.set(key, { source, target, flows, shuffle: edge.shuffle || known?.shuffle === true });
  }
  return {
    graph: { ...graph, nodes: nodes.sort((one, other) => one.node - other.node), edges: [...edges.values()] },
    alike,
  };
}

/** What leads to an operation and what follows it, as one word: the same for operations of equal branches. */
function placesOf({ nodes, edges }: Graph): ReadonlyMap<string, string> {
  const order = dataOrder(nodes, edges);
  const byId = new Map(nodes.map((node) => [node.node_id, node]));
  const words = new Map<string, number>();
  const wordFor = (text: string): number => {
    const word = words.get(text) ?? words.size;
    words.set(text, word);
    return word;
  };
  /** One word for an operation and all that lies on this side of it. */
  const sides = (ids: readonly string[], neighbours: ReadonlyMap<string, readonly string[]>) => {
    const side = new Map<string, number>();
    for (const id of ids) {
      const others = new Set((neighbours.get(id) ?? []).map((other) => side.get(other) ?? -1));
      side.set(id, wordFor(JSON.stringify([kindOf(byId.get(id)), [...others].sort((one, other) => one - other)])));
    }
    return side;
  };
  const known = edges.filter(({ source, target }) => byId.has(source) && byId.has(target));
  const incoming = new Map([...groupBy(known, ({ target }) => target)].map(([id, all]) => [id, all.map(sourceOf)]));
  const outgoing = new Map([...groupBy(known, ({ source }) => source)].map(([id, all]) => [id, all.map(targetOf)]));
  const before = sides(order, incoming);
  const after = sides([...order].reverse(), outgoing);
  return new Map(order.map((id) => [id, `${before.get(id)} ${after.get(id)}`]));
}

const sourceOf = ({ source }: Edge) => source;
const targetOf = ({ target }: Edge) => target;

/** What operations must have in common to be alike. Expressions and call sites may differ. */
const kindOf = (operation: Operation | undefined) => [
  operation?.name,
  operation?.kind,
  operation?.exact,
  operation?.state,
  operation?.dataset?.name,
  operation?.records === null,
];

function together(first: Operation, members: readonly Operation[]): Operation {
  const records = members.map((member) => member.records);
  return {
    ...first,
    description: common(members.map(({ description }) => description)),
    call_site: common(members.map(({ call_site }) => call_site)),
    records: records.some((one) => one === null) ? null : records.reduce<number>((sum, one) => sum + (one ?? 0), 0),
  };
}

/** What texts begin with, all of them; with an ellipsis if they go on differently. */
function common(texts: readonly string[]): string {
  const [first = ""] = texts;
  let length = first.length;
  for (const text of texts) while (!text.startsWith(first.slice(0, length))) length -= 1;
  return texts.every((text) => text === first) ? first : `${first.slice(0, length)}…`;
}
