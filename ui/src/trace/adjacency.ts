// Which records flow into which, among the listed flows: inputs and outputs, ancestors and descendants.
// x is an ancestor of y if and only if y is a descendant of x.

import type { Flow } from "./results";

export interface Adjacency {
  /** The record and all that it came from. */
  ancestors(hash: string): ReadonlySet<string>;
  /** The record and all that became of it. */
  descendants(hash: string): ReadonlySet<string>;
  /** Ancestors and descendants. */
  connected(hash: string): ReadonlySet<string>;
  /** The records that flow directly into it, and directly out of it. */
  inputs(hash: string): readonly string[];
  outputs(hash: string): readonly string[];
}

export function adjacencyOf(flows: readonly Flow[]): Adjacency {
  const inputs = new Map<string, string[]>();
  const outputs = new Map<string, string[]>();
  for (const { hash_in: from, hash_out: to } of flows) {
    const incoming = inputs.get(to);
    if (incoming === undefined) inputs.set(to, [from]);
    else incoming.push(from);
    const outgoing = outputs.get(from);
    if (outgoing === undefined) outputs.set(from, [to]);
    else outgoing.push(to);
  }
  const ancestors = (hash: string): Set<string> => reachable(hash, inputs);
  const descendants = (hash: string): Set<string> => reachable(hash, outputs);
  return {
    ancestors,
    descendants,
    connected: (hash) => new Set([...ancestors(hash), ...descendants(hash)]),
    inputs: (hash) => inputs.get(hash) ?? [],
    outputs: (hash) => outputs.get(hash) ?? [],
  };
}

function reachable(hash: string, links: ReadonlyMap<string, readonly string[]>): Set<string> {
  const visited = new Set([hash]);
  for (const current of visited) for (const next of links.get(current) ?? []) visited.add(next); // a Set visits what is added
  return visited;
}
