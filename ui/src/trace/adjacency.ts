// Up and down from a record: all that it came from and all that became of it, among the flows that are known.
// What is up of one is down of the other.

import type { Flow } from "./results";

export interface Ways {
  /** What the record came from, itself among it. */
  up(hash: string): ReadonlySet<string>;
  /** What became of the record, itself among it. */
  down(hash: string): ReadonlySet<string>;
  /** Both. */
  through(hash: string): ReadonlySet<string>;
  /** The records one step up and one step down. */
  inputs(hash: string): readonly string[];
  outputs(hash: string): readonly string[];
}

export function waysOf(flows: readonly Flow[]): Ways {
  const inputs = new Map<string, string[]>();
  const outputs = new Map<string, string[]>();
  for (const { hash_in: from, hash_out: to } of flows) {
    const into = inputs.get(to);
    if (into === undefined) inputs.set(to, [from]);
    else into.push(from);
    const outOf = outputs.get(from);
    if (outOf === undefined) outputs.set(from, [to]);
    else outOf.push(to);
  }
  const up = (hash: string): Set<string> => reach(hash, inputs);
  const down = (hash: string): Set<string> => reach(hash, outputs);
  return {
    up,
    down,
    through: (hash) => new Set([...up(hash), ...down(hash)]),
    inputs: (hash) => inputs.get(hash) ?? [],
    outputs: (hash) => outputs.get(hash) ?? [],
  };
}

function reach(hash: string, links: ReadonlyMap<string, readonly string[]>): Set<string> {
  const seen = new Set([hash]);
  for (const each of seen) for (const next of links.get(each) ?? []) seen.add(next); // a Set visits what is added
  return seen;
}
