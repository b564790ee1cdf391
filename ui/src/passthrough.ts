// Pass-through operations, such as those of DataFrames: rows pass them, and they have no records of their own. Computes
// how many rows pass one, and the operations where these rows begin and end. Pure.

import type { Graph, Node as Operation } from "./api";
import { groupBy } from "./groups";

export const isPassThrough = ({ records }: Operation): boolean => records === null;

/** How many rows pass each of these operations, if it is counted. */
export function passedRows(graph: Graph): ReadonlyMap<string, number> {
  const passThrough = new Set(graph.nodes.filter(isPassThrough).map(({ node_id }) => node_id));
  const rows = new Map<string, number>();
  for (const { source, flows } of graph.edges) {
    if (passThrough.has(source) && flows !== null) rows.set(source, Math.max(flows, rows.get(source) ?? 0));
  }
  return rows;
}

/** The nearest operations with records of their own, before and after one. */
export function neighbours(graph: Graph, nodeId: string): { before: Operation[]; after: Operation[] } {
  const incoming = groupBy(graph.edges, ({ target }) => target);
  const outgoing = groupBy(graph.edges, ({ source }) => source);
  const nodesById = new Map(graph.nodes.map((node) => [node.node_id, node]));
  const nearest = (next: (id: string) => string[]): Operation[] => {
    const visited = new Set([nodeId]);
    const nodes: Operation[] = [];
    for (const id of visited) {
      const node = nodesById.get(id);
      if (node !== undefined && !isPassThrough(node)) nodes.push(node);
      else for (const nextId of next(id)) visited.add(nextId); // a Set visits what is added
    }
    return nodes.sort((one, other) => one.node - other.node);
  };
  return {
    before: nearest((id) => (incoming.get(id) ?? []).map(({ source }) => source)),
    after: nearest((id) => (outgoing.get(id) ?? []).map(({ target }) => target)),
  };
}
