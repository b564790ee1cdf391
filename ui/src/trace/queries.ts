// Queries for traces. One that exceeds its time budget (504) returns what was found so far.

import { type Client, isAbort, Problem } from "../client";
import type { Start } from "../route";
import { type DirectedTrace, directedTraceOf, type Direction } from "./model";
import type { Graph, Trace } from "./results";

export interface TraceQuery {
  readonly application: string;
  readonly start: Start;
  readonly direction: Direction;
}

export interface TraceOptions {
  readonly limit: number;
  /** Operations to follow; null for all. */
  readonly hops: number | null;
  readonly values?: boolean;
  /** List records of this operation only. */
  readonly only?: string;
  readonly cursor?: string | null;
  /** Say which rows at the ends of the trace stand out. */
  readonly remarks?: boolean;
  /** List rows by these columns, too: "a,b", or "*" for all. */
  readonly columns?: string;
  /** With `only`: order all of its rows by this column, the smallest first or (`desc`) the largest. */
  readonly sort?: string | null;
  readonly desc?: boolean | null;
  /** With `only`: list only records that fulfil this condition. */
  readonly filter?: string | null;
}

export async function fetchTrace(
  client: Client,
  query: TraceQuery,
  options: TraceOptions,
  signal: AbortSignal,
): Promise<{ trace: Trace; isPartial: boolean }> {
  const { hops, ...rest } = options;
  const parameters = { ...query.start, direction: query.direction, depth: hops, ...rest };
  try {
    return { trace: await client.trace(query.application, parameters, { signal }), isPartial: false };
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 504 || error.next === null) throw error;
    const partial = { ...parameters, cursor: error.next };
    return { trace: await client.trace(query.application, partial, { signal }), isPartial: true };
  }
}

export async function fetchDirectedTrace(
  client: Client,
  query: TraceQuery,
  options: TraceOptions,
  signal: AbortSignal,
): Promise<DirectedTrace> {
  const { trace, isPartial } = await fetchTrace(client, query, options, signal);
  return directedTraceOf(trace, isPartial);
}

/** The graphs of applications, each requested once. A graph that cannot be loaded is omitted: the layers do without it. */
export class Graphs {
  readonly graphs = new Map<string, Promise<Graph | null>>();

  constructor(private readonly client: Client) {}

  async of(applications: Iterable<string>, signal: AbortSignal): Promise<readonly Graph[]> {
    const requests = [...new Set(applications)].map((application) => {
      const cached = this.graphs.get(application);
      if (cached !== undefined) return cached;
      const graph = this.client.graph(application, { signal }).catch((error: unknown) => {
        this.graphs.delete(application);
        if (isAbort(error)) throw error;
        return null;
      });
      this.graphs.set(application, graph);
      return graph;
    });
    return (await Promise.all(requests)).filter((graph) => graph !== null);
  }
}
