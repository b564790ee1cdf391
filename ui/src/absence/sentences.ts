// What is said of a key that an operation lacks, in words. Pure.

import type { Absence, KeyedOperation, KeyHolder, MissingRow, OtherSide } from "../api";
import { callSite, count, nodeNumber } from "../format";

/** "join (12) at report.py:31". */
export const operationText = ({ name, node_id: node, call_site: site }: KeyedOperation): string =>
  `${name} (${nodeNumber(node)})${site === "" ? "" : ` at ${callSite(site)}`}`;

/** "join (12) at report.py:31 has no record with the key". */
export const absenceText = ({ asked }: Absence): string => `${operationText(asked)} has no record with the key`;

/** Where records ended, each place once: of how many of them, if not of all. */
export function endTexts({ ended, records }: KeyHolder): string[] {
  const ends = new Map<string, number>();
  for (const text of ended.flatMap(endsOf)) ends.set(text, (ends.get(text) ?? 0) + 1);
  return [...ends].map(([text, times]) => (times === records.length ? text : `${text} (${times} of them)`));
}

function endsOf({ candidates, ended, exact, reason }: MissingRow): string[] {
  const ends = candidates.length > 0 ? candidates : ended === null ? [] : [ended];
  if (ends.length === 0) return [`Ended, and it is not known where: ${reason}`];
  const verb = candidates.length > 0 || !exact ? "May have ended" : "Ended";
  return ends.map((end) => `${verb} at ${operationText(end)}: ${end.why}`);
}

/** Whether the other side of a join has the key. */
export const hasText = ({ has_key: has }: OtherSide): string =>
  has === null ? "its keys are not known" : has ? "has the key" : "does not have the key";

export const totalText = ({ total }: KeyHolder): string => `has the key: ${count(total, "record")}`;

/** Why it is not known for sure, each reason once. */
export const reasonsOf = ({ reasons, holders }: Absence): string[] => [
  ...new Set([...reasons, ...holders.flatMap(({ ended }) => ended.map(({ reason }) => reason))].filter(Boolean)),
];
