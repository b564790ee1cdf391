// What is asked of an explanation beside the record itself, as an address, a query and a command line say it. Pure.
//   same=/data/out/part-0:4      why the two are one; of a start that is a key: another key
//   with=/data/in.csv:7          a row that must be among them; several times
//   how=1                        which rows are needed together
//   compare=APP2                 what another run of the job has in its place; compare-start= names the record there

import { markOf, startNamed } from "../marks";
import { YOUR_COMMAND } from "../reruns";
import type { ExplanationRoute, Start } from "../route";
import { filled, lineWith, shellWord, startWords } from "../words";

export interface Questions {
  readonly same: string | null;
  readonly demanded: readonly string[];
  readonly how: boolean;
  readonly compare: string | null;
  readonly compareStart: string | null;
}

const textIn = (query: URLSearchParams, name: string): string | null => query.get(name)?.trim() || null;

export function questionsIn(query: URLSearchParams): Questions {
  const compare = textIn(query, "compare");
  return {
    same: textIn(query, "same"),
    demanded: query.getAll("with").filter((name) => name.trim() !== ""),
    how: query.get("how") === "1",
    compare,
    compareStart: compare === null ? null : textIn(query, "compare-start"),
  };
}

export function questionsQuery({ same, demanded, how, compare, compareStart }: Questions): URLSearchParams {
  return new URLSearchParams([
    ...filled({ same }),
    ...demanded.map((row): [string, string] => ["with", row]),
    ...filled({ how: how ? "1" : null, compare, "compare-start": compare === null ? null : compareStart }),
  ]);
}

export const isAsked = ({ same, demanded, how, compare }: Questions): boolean =>
  same !== null || demanded.length > 0 || how || compare !== null;

/** Whether a second record can be named beside this start: not beside several, nor beside one that failed. */
export const hasPair = (start: Start): boolean => "key" in start || markOf("bad", start) !== null;

/** The record that `same` names. */
const otherOf = (start: Start, name: string): Start =>
  "key" in start ? { node: start.node, key: name } : startNamed(name);

/** The start, and with `same` the other one, as the API takes them. */
export function startParameters({ start, query }: Pick<ExplanationRoute, "start" | "query">): {
  [name: string]: string | number | boolean;
} {
  const { same } = questionsIn(query);
  return same === null ? { ...start } : { starts: JSON.stringify([start, otherOf(start, same)]), same: true };
}

/** All that the API takes of an address. */
export function explanationParameters(route: Pick<ExplanationRoute, "start" | "query">): {
  [name: string]: string | number | boolean | null;
} {
  const { demanded, how, compare, compareStart } = questionsIn(route.query);
  return {
    ...startParameters(route),
    with: demanded.length === 0 ? null : JSON.stringify(demanded.map(startNamed)),
    compare,
    compare_starts: compareStart === null ? null : JSON.stringify([startNamed(compareStart)]),
    how: how ? true : null,
    limit: route.query.get("limit"),
  };
}

/** `lineage explain` with the same questions. */
export function explainCommand({
  application,
  start,
  query,
}: Pick<ExplanationRoute, "application" | "start" | "query">): string {
  const questions = questionsIn(query);
  const { record, flags } = startWords(start);
  const others: [string, string][] = [
    ...questions.demanded.map((row): [string, string] => ["with", row]),
    ...filled({ compare: questions.compare, "compare-start": questions.compareStart }),
  ];
  const how = questions.how ? " --how" : "";
  if (questions.same === null) {
    // Of a condition all rows are meant without a word for it.
    const words = record.filter((word) => word !== "--all");
    return lineWith(["explain", application, ...words], [...filled(flags), ...others]) + how;
  }
  const name = "key" in start ? start.key : (markOf("bad", start)?.name ?? "");
  const pair = ["--same", name, questions.same].map(shellWord).join(" ");
  const node = "key" in start ? filled({ node: start.node }) : [];
  return `${lineWith(["explain", application], [...node, ...others])} ${pair}${how}`;
}

/** Commands that run the job on these rows, each with what it does. The folder is the reader's to name. */
export function reproductionLines({
  application,
  start,
  query,
}: Pick<ExplanationRoute, "application" | "start" | "query">): [caption: string, line: string][] {
  const { demanded } = questionsIn(query);
  const asked = new URLSearchParams(demanded.map((row) => ["with", row]));
  const line = explainCommand({ application, start, query: asked });
  const lines: [string, string][] = [
    [
      "Run the job on these rows, add rows until it comes out again, and save them",
      `${line} --sufficient --save repro`,
    ],
    ["Leave out each row that is not needed, too", `${line} --minimal --save repro`],
  ];
  // Demanded rows are no rows that decided: of these alone nothing is saved without a run.
  if (demanded.length === 0) lines.push(["Save the rows that decided, and run nothing", `${line} --save repro`]);
  return lines.map(([caption, text]) => [caption, `${text} ${YOUR_COMMAND}`]);
}
