// Where a way begins and ends: the files that its records came from and went to, and the applications it passes.

import { applicationOf, nodeNumber } from "../format";
import type { Direction, Leg } from "./model";

export interface End {
  readonly id: string;
  readonly name: string;
  readonly total: number;
  readonly isInexact: boolean;
  readonly application: string;
  readonly number: string;
}

export interface Ends {
  readonly direction: Direction;
  /** Sources of a backward way, sinks of a forward one; those with most records first. */
  readonly ends: readonly End[];
  /** Operations on the way, the record's own and the ends not among them. */
  readonly between: number;
  /** Other applications on the way. */
  readonly applications: readonly string[];
  readonly isSoFar: boolean;
}

export function endsOf(leg: Leg): Ends {
  const kind = leg.direction === "backward" ? "source" : "sink";
  const others = leg.nodes.filter((node) => node.node_id !== leg.startNode);
  const ends = others
    .filter((node) => node.kind === kind)
    .map((node) => ({
      id: node.node_id,
      name: node.name,
      total: node.total,
      isInexact: !node.exact,
      application: applicationOf(node.node_id),
      number: nodeNumber(node.node_id),
    }));
  const home = applicationOf(leg.startNode);
  return {
    direction: leg.direction,
    ends: ends.sort((a, b) => b.total - a.total || (a.id < b.id ? -1 : 1)),
    between: others.length - ends.length,
    applications: [...new Set(others.map((node) => applicationOf(node.node_id)))].filter((each) => each !== home),
    isSoFar: leg.isSoFar,
  };
}

/** Whether the whole way has operations that this part of it has not. Null: not known. */
export function goesOn(part: Leg, whole: Leg | null): boolean | null {
  if (whole === null) return null;
  const shown = new Set(part.nodes.map((node) => node.node_id));
  return whole.isSoFar || whole.nodes.some((node) => !shown.has(node.node_id));
}
