// What is said of failures, in words. Pure.

import type { Failure } from "../api";
import { callSite, count, fileName, number } from "../format";
import { shortFile } from "../trace/texts";

/** The operation and its line: `map at job.py:41`. */
export function operationText({ name, call_site }: Pick<Failure, "name" | "call_site">): string {
  const operation = name ?? "The program";
  return call_site === null || call_site === "" ? operation : `${operation} at ${callSite(call_site)}`;
}

/** "map at job.py:41 failed on line 41,018 of orders.csv". */
export const failureLine = (failure: Failure): string => `${operationText(failure)} failed${recordText(failure)}`;

/** Which record it was, as far as it is known. */
function recordText({ exact, record, sources, sources_total: total, recovered }: Failure): string {
  const end = recovered ? ", and a later attempt ended well" : "";
  const [row] = sources;
  const files = [...new Set(sources.map(({ path }) => shortFile(fileName(path))))].join(", ");
  if (exact && total === 1 && row !== undefined) return ` on line ${number(row.line)} of ${files}${end}`;
  if (exact && total > 1) return ` on a record made of ${count(total, "input row")} of ${files}${end}`;
  if (exact && record !== null) return ` on record ${record.record_id}${end}`;
  if (total > 1 && files !== "") return ` on one of ${count(total, "input row")} of ${files}${end}`;
  if (row !== undefined) return `, perhaps on line ${number(row.line)} of ${files}${end}`;
  return ` on a record that is not known${end}`;
}

/** "4 attempts, and a later one ended well". */
export function attemptsText({ attempts, recovered }: Pick<Failure, "attempts" | "recovered">): string {
  if (attempts === 0) return "no task has reported it";
  return recovered ? `${count(attempts, "attempt")}, and a later one ended well` : count(attempts, "attempt");
}

/** "partition 3 of stage 0", as far as it is known. */
export function taskText({ partition, stage }: Pick<Failure, "partition" | "stage">): string {
  const parts = [partition !== null && `partition ${partition}`, stage !== null && `stage ${stage}`];
  return parts.filter((part) => part !== false).join(" of ");
}
