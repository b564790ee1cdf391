// The endpoints of a trace: the files in which it ends, and the applications that it passes.

import { nodeNumber } from "../format";
import type { DirectedTrace, Direction } from "./model";
import type { Remark } from "./results";

export interface Endpoint {
  readonly id: string;
  readonly name: string;
  readonly total: number;
  readonly isInexact: boolean;
  readonly application: string;
  readonly number: string;
  /** The rows that stand out of all of its rows. */
  readonly remarks: readonly Remark[];
}

/** Whose operations a trace passes. */
export interface PassedApplication {
  readonly id: string;
  readonly name: string;
}

export interface Endpoints {
  readonly direction: Direction;
  /** Sources of a backward trace, sinks of a forward one; those with most records first. */
  readonly endpoints: readonly Endpoint[];
  /** Number of operations between the record's own and the endpoints. */
  readonly intermediate: number;
  /** Other applications in the trace. */
  readonly applications: readonly PassedApplication[];
  readonly isPartial: boolean;
}

export function endpointsOf(trace: DirectedTrace): Endpoints {
  const kind = trace.direction === "backward" ? "source" : "sink";
  const others = trace.nodes.filter((node) => node.node_id !== trace.startNode);
  const endpoints = others
    .filter((node) => node.kind === kind)
    .map((node) => ({
      id: node.node_id,
      name: node.name,
      total: node.total,
      isInexact: !node.exact,
      application: node.application_id,
      number: nodeNumber(node.node_id),
      remarks: node.remarks ?? [],
    }));
  const ownApplication = trace.starts[0]?.application_id;
  const names = new Map(others.map((node) => [node.application_id, node.application_name]));
  return {
    direction: trace.direction,
    endpoints: endpoints.sort((a, b) => b.total - a.total || (a.id < b.id ? -1 : 1)),
    intermediate: others.length - endpoints.length,
    applications: [...names].filter(([id]) => id !== ownApplication).map(([id, name]) => ({ id, name })),
    isPartial: trace.isPartial,
  };
}

/** Whether the whole trace has operations that this part of it lacks. Null: unknown. */
export function continuesBeyond(part: DirectedTrace, whole: DirectedTrace | null): boolean | null {
  if (whole === null) return null;
  const partNodes = new Set(part.nodes.map((node) => node.node_id));
  return whole.isPartial || whole.nodes.some((node) => !partNodes.has(node.node_id));
}
