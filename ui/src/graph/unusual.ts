// The operations of an application whose tasks behave oddly. Pure.

import type { Suspects } from "../api";

/** Suspects that are asked for at once. */
export const MOST_SUSPECTS = 1_000;

/** How many suspects of each operation are more than chance, by its id. */
export function unusualOf({ suspects }: Pick<Suspects, "suspects">): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { node_id: node, unusual } of suspects) {
    if (unusual) counts.set(node, (counts.get(node) ?? 0) + 1);
  }
  return counts;
}
