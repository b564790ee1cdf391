// What concerns one record among the answers about its application, and commands to go on with. Pure.

import type { Failure, Replay, ReplayedOutput } from "../api";
import { influenceLine, isOutput, replayLine, rowsLine, siftLine } from "../reruns";
import type { Start } from "../route";
import type { DirectedTrace } from "../trace/model";
import type { Remark, TraceRecord } from "../trace/results";

/** A record, and the operations on its way from the inputs. */
export interface Way {
  readonly startNode: string;
  readonly record: TraceRecord | null;
  /** It is a record of an input: nothing is before it. */
  readonly isInput: boolean;
  readonly nodes: ReadonlySet<string>;
  /** Rows at its beginnings that are far from all others, with their operations. */
  readonly remarks: readonly { node: string; remark: Remark }[];
  /** How many rows were looked at for them. */
  readonly looked: number;
}

export function wayOf(trace: DirectedTrace): Way {
  const [first] = trace.starts;
  return {
    startNode: trace.startNode,
    record: first !== undefined && first.total === 1 ? (first.records[0] ?? null) : null,
    isInput: first?.kind === "source",
    nodes: new Set([trace.startNode, ...trace.nodes.map(({ node_id }) => node_id)]),
    remarks: trace.nodes.flatMap(({ node_id: node, remarks }) => (remarks ?? []).map((remark) => ({ node, remark }))),
    looked: trace.nodes.reduce((sum, { remarks_of: rows }) => sum + (rows ?? 0), 0),
  };
}

/** The failures that the start names, else those at operations on the way. */
export const failuresOn = (start: Start, way: Way, failures: readonly Failure[]): Failure[] =>
  "failure" in start
    ? failures.filter(({ failure }) => failure === start.failure)
    : failures.filter(({ node_id: node }) => node !== null && way.nodes.has(node));

/** The replays that have asked for this record. */
export const replaysOf = ({ startNode, record }: Way, replays: readonly Replay[]): Replay[] =>
  record === null ? [] : replays.filter(({ outputs }) => outputs.some((output) => isOf(output, startNode, record)));

const isOf = (output: ReplayedOutput, node: string, { record_id: id, source }: TraceRecord): boolean =>
  output.record === `${node}#${id}` || (source != null && output.path === source.path && output.row === source.row);

/** The start as an output of the API, a list in JSON. Null: a failure is no output. */
export const outputOf = (start: Start): string | null => ("failure" in start ? null : JSON.stringify([start]));

/** Commands that run its job again, or copy its input rows, each below what it does. */
export function linesOf(application: string, start: Start): [string, string][] {
  const rows: [string, string] = [
    "Its input rows as files, for a unit test:",
    rowsLine(application, start, "--extract", "fixture"),
  ];
  if (!isOutput(start) && !("failure" in start)) return [rows];
  const isFailure = "failure" in start;
  const sift = siftLine(application, start);
  const again = isFailure ? "Does the task fail again" : "Does it come out again";
  const lines: [string, string][] = [
    [
      `${again} on its input rows only, and step by step? The job is run again, in a sandbox:`,
      replayLine(application, start, "--step"),
    ],
  ];
  if (sift !== null) lines.push([isFailure ? SIFT_OF_FAILURE : SIFT_OF_OUTPUT, sift]);
  if (!isFailure) lines.push(["How far does it move without each of these rows?", influenceLine(application, start)]);
  return [...lines, rows];
}

const SIFT_OF_FAILURE = "Which of these rows suffice to make it fail?";
const SIFT_OF_OUTPUT = "Which of these rows suffice to make it wrong?";
