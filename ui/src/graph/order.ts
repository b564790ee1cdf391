// The order of operations along the data: each after all that it reads. Pure.

import type { Edge, Node as Operation } from "../api";
import { groupBy } from "../groups";

/** Ids of the operations, sources first. What lies on a cycle, which no job has, is left out. */
export function dataOrder(nodes: readonly Operation[], edges: readonly Edge[]): string[] {
  const waits = new Map(nodes.map(({ node_id }) => [node_id, 0]));
  const known = edges.filter(({ source, target }) => source !== target && waits.has(source) && waits.has(target));
  for (const { target } of known) waits.set(target, (waits.get(target) ?? 0) + 1);
  const outgoing = groupBy(known, ({ source }) => source);
  const order = [...waits].filter(([, count]) => count === 0).map(([id]) => id);
  for (const id of order) {
    for (const { target } of outgoing.get(id) ?? []) {
      const left = (waits.get(target) ?? 0) - 1;
      waits.set(target, left);
      if (left === 0) order.push(target); // visited by this loop, too
    }
  }
  return order;
}
