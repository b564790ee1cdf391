// Operations that rows only pass, as those of DataFrames do: they have no records of their own. What is known of one is
// how many rows went on from it, and where these began and ended. Pure.

import type { Graph, Node as Operation } from "./api";
import { grouped } from "./groups";

export const isPassed = ({ records }: Operation): boolean => records === null;

/** How many rows went on from the operations that they only pass, as far as it is known. */
export function passing(graph: Graph): ReadonlyMap<string, number> {
  const passed = new Set(graph.nodes.filter(isPassed).map(({ node_id }) => node_id));
  const found = new Map<string, number>();
  for (const { source, flows } of graph.edges) {
    if (passed.has(source) && flows !== null) found.set(source, Math.max(flows, found.get(source) ?? 0));
  }
  return found;
}

/** The nearest operations with records of their own, before and behind one. */
export function around(graph: Graph, nodeId: string): { before: Operation[]; behind: Operation[] } {
  const into = grouped(graph.edges, ({ target }) => target);
  const outOf = grouped(graph.edges, ({ source }) => source);
  const of = new Map(graph.nodes.map((node) => [node.node_id, node]));
  const nearest = (next: (id: string) => string[]): Operation[] => {
    const seen = new Set([nodeId]);
    const found: Operation[] = [];
    for (const id of seen) {
      const node = of.get(id);
      if (node !== undefined && !isPassed(node)) found.push(node);
      else for (const each of next(id)) seen.add(each); // a Set visits what is added
    }
    return found.sort((one, other) => one.node - other.node);
  };
  return {
    before: nearest((id) => (into.get(id) ?? []).map(({ source }) => source)),
    behind: nearest((id) => (outOf.get(id) ?? []).map(({ target }) => target)),
  };
}
