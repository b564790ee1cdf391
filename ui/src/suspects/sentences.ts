// What is said of suspects and of properties, in words. Pure.

import type { SourceRow, Suspect, Suspects } from "../api";
import { count, nodeNumber, number } from "../format";
import { type NamedRows, namedReplayLine, rangesOf, rowsLine, YOUR_COMMAND } from "../reruns";
import { lineOf } from "../words";

/** "22.6 bits of surprise". */
export const scoreText = (score: number, method: Suspects["method"]): string =>
  method === "newt" ? `score ${number(score)}` : `${number(Number(score.toFixed(1)))} bits of surprise`;

/** What is known of a suspect beside its evidence. */
export function remarksOf({ unusual, leads_to_bad: isBad, follows_from: from }: Suspect): string[] {
  const remarks = [unusual ? "unusual" : "may be chance"];
  if (isBad !== null) remarks.push(isBad ? "leads to a bad output" : "leads to no bad output");
  if (from !== null) remarks.push(`follows from suspect ${from}`);
  return remarks;
}

/** "23 tasks were compared: 2 are unusual, 3 more may be chance." Of others, only the number is known. */
export function summaryOf({ suspects, total, tasks, method, bad, good }: Suspects): string {
  const unusual = suspects.filter((suspect) => suspect.unusual).length;
  const outputs = bad === 0 ? "" : `, in the lineage of ${count(bad, "bad output")}${goodText(good)}`;
  const compared = `${count(tasks, "task was", "tasks were")} compared${outputs}`;
  if (total === 0) return `${compared}: nothing is odd.`;
  if (method === "newt") return `${compared}: ${count(total, "task")} ${total === 1 ? "has" : "have"} a score.`;
  if (unusual === 0) return `${compared}: nothing is more than chance.`;
  const others = suspects.length - unusual;
  const unlisted = total - suspects.length;
  const chance = others > 0 ? `, ${number(others)} more may be chance` : "";
  const scored = unlisted > 0 ? `, ${number(unlisted)} more ${unlisted === 1 ? "has" : "have"} a score` : "";
  const least = unlisted > 0 ? "at least " : "";
  return `${compared}: ${least}${number(unusual)} ${unusual === 1 ? "is" : "are"} unusual${chance}${scored}.`;
}

const goodText = (good: number): string => (good === 0 ? "" : ` and ${count(good, "good one")}`);

/** Rows one by one, by file. */
export function filesOf(rows: readonly SourceRow[]): NamedRows[] {
  const files = new Map<string, number[]>();
  for (const { path, row } of rows) files.set(path, [...(files.get(path) ?? []), row]);
  return [...files].map(([path, all]) => ({ path, rows: rangesOf(all) }));
}

/** How its job runs again on the input rows of a suspect's record, or without them. Empty: none are known. */
export function replayLines(
  application: string,
  { record, sources, sources_total: total }: Suspect,
): [string, string][] {
  if (record === null || total === 0) return [];
  if (sources.length === total) {
    const files = filesOf(sources);
    return [
      ["Run the job again on these rows only:", namedReplayLine(application, "only", files)],
      ["Run it again without them:", namedReplayLine(application, "without", files)],
    ];
  }
  const start = { record: `${nodeNumber(record.node_id)}#${record.record_id}` };
  return [
    ["Write all of these rows as a row set:", rowsLine(application, start, "--output", "rows.json")],
    ["Run the job again without them:", `${lineOf(["replay", application], { without: "rows.json" })} ${YOUR_COMMAND}`],
  ];
}
