// What went into each operation of a replay and came out of it, on the way of what was asked for. Pure.

import type { ReplayStep, StepRecord } from "../api";
import { callSite, count, nodeNumber } from "../format";
import { filePlace } from "../trace/texts";

/** A record that an operation gave, and those that went in for it. */
export interface StepRow {
  readonly came: StepRecord;
  readonly went: readonly StepRecord[];
}

/** Each step with its rows, in the order of the way. Records that are not listed went in unseen. */
export function rowsOfSteps(steps: readonly ReplayStep[]): { step: ReplayStep; rows: StepRow[] }[] {
  const listed = new Map<string, StepRecord>();
  for (const { node_id: node, records } of steps) {
    for (const record of records) if (record.record_id !== null) listed.set(`${node}#${record.record_id}`, record);
  }
  return steps.map((step) => ({
    step,
    rows: step.records.map((came) => ({
      came,
      went: came.made_of.map((id) => listed.get(id)).filter((record) => record !== undefined),
    })),
  }));
}

/** "map (1) at own_words.py:9: 2 records". */
export const stepText = ({ node_id: node, name, call_site: site, total }: ReplayStep): string =>
  `${name} (${nodeNumber(node)})${site === "" ? "" : ` at ${callSite(site)}`}: ${count(total, "record")}`;

/** "documents.txt:3", else its id, else that it is the error. */
export const recordPlace = ({ record_id: id, path, line }: StepRecord): string =>
  path !== null && line !== null ? `${filePlace(path)}:${line}` : (id ?? "error");

/** What it says; its key if its value is not known. */
export const recordText = ({ value, key }: StepRecord): string | null => value ?? key;
