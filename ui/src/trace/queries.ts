// Asks the API for a way. A trace that takes too long (504) becomes what was found so far.

import { type Client, isAbort, Problem } from "../client";
import type { Start } from "../route";
import type { Graph, Trace } from "./results";
import { type Direction, type Leg, legOf } from "./model";

export interface Question {
  readonly application: string;
  readonly start: Start;
  readonly direction: Direction;
}

export interface Wanted {
  readonly limit: number;
  /** Operations to follow; null for all. */
  readonly hops: number | null;
  readonly values?: boolean;
  /** List records of this operation only. */
  readonly only?: string;
  readonly cursor?: string | null;
}

export async function askTrace(
  client: Client,
  question: Question,
  wanted: Wanted,
  signal: AbortSignal,
): Promise<{ answer: Trace; isSoFar: boolean }> {
  const { hops, ...rest } = wanted;
  const parameters = { ...question.start, direction: question.direction, depth: hops, ...rest };
  try {
    return { answer: await client.trace(question.application, parameters, { signal }), isSoFar: false };
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 504 || error.next === null) throw error;
    const soFar = { ...parameters, cursor: error.next };
    return { answer: await client.trace(question.application, soFar, { signal }), isSoFar: true };
  }
}

export async function askLeg(client: Client, question: Question, wanted: Wanted, signal: AbortSignal): Promise<Leg> {
  const { answer, isSoFar } = await askTrace(client, question, wanted, signal);
  return legOf(answer, isSoFar);
}

/** The graphs of applications, each asked for once. One that cannot be had is left out: layers do without it. */
export class Graphs {
  readonly #found = new Map<string, Promise<Graph | null>>();

  constructor(private readonly client: Client) {}

  async of(applications: Iterable<string>, signal: AbortSignal): Promise<readonly Graph[]> {
    const asked = [...new Set(applications)].map((application) => {
      const known = this.#found.get(application);
      if (known !== undefined) return known;
      const graph = this.client.graph(application, { signal }).catch((error: unknown) => {
        this.#found.delete(application);
        if (isAbort(error)) throw error;
        return null;
      });
      this.#found.set(application, graph);
      return graph;
    });
    return (await Promise.all(asked)).filter((graph) => graph !== null);
  }
}
