// One replay: the rows that were asked for, what came out, how that differs from the run before, and the rows that it took.

import type { OutputDifferences, Replay, ReplayedOutput, UsedRows } from "../api";
import { copyLine } from "../copy";
import { type Child, h } from "../dom";
import { count, time } from "../format";
import { lineRanges } from "../reruns";
import { applicationHref, comparisonHref, failuresHref, queryOf, traceHref } from "../route";
import { notice } from "../states";
import { table } from "../table";
import { readable } from "../trace/texts";
import {
  commandOf,
  differenceText,
  type DifferingRow,
  differingRows,
  effortText,
  outputPlace,
  outputStart,
  rowsText,
  strategyText,
  unlistedRows,
  VERDICTS,
} from "./sentences";
import { stepTables } from "./steptable";

/** Ranges of rows of one input that are shown. */
const SHOWN_RANGES = 100;

export function replayOf(replay: Replay, announce: (text: string) => void): Child[] {
  const {
    verdict,
    of_application: original,
    application,
    began,
    notes,
    refused,
    skipped,
    outputs,
    diff,
    used,
    steps,
  } = replay;
  const isOfOutputs = outputs.length > 0;
  return [
    h(
      "p",
      { class: "verdict-line" },
      h("strong", { class: `verdict ${verdict}` }, verdict),
      " ",
      diff === null || verdict === "refused" ? VERDICTS[verdict] : "All outputs were compared.",
    ),
    h(
      "p",
      {},
      `It ran ${rowsText(replay)}, ${effortText(replay)}, from `,
      h("time", { datetime: new Date(began).toISOString() }, time(began)),
      ". Original: ",
      h("a", { href: applicationHref(original) }, original),
      application !== null && [
        ", replay: ",
        h("a", { href: applicationHref(application) }, application),
        " (",
        h("a", { href: comparisonHref(queryOf({ before: original, after: application })) }, "compare both"),
        ")",
      ],
      ". No file of the original was touched; outputs are in ",
      h("span", { class: "id" }, replay.sandbox),
      ".",
    ),
    strategyText(replay) !== "" && h("p", {}, strategyText(replay)),
    refused !== null && refusalsOf(refused),
    isOfOutputs && [h("h2", {}, "Rows that were asked for"), outputTable(original, outputs)],
    isOfOutputs && extraText(replay),
    skipped !== null && [
      h("h2", {}, "Left out, since a function failed on it"),
      skipped.length === 0
        ? notice("empty", "Nothing was left out.")
        : h(
            "ul",
            {},
            skipped.map((text) => h("li", {}, readable(text))),
          ),
    ],
    diff?.map(differencesOf),
    steps !== null && [h("h2", {}, "Step by step"), stepTables(steps)],
    h("h2", {}, replay.mode === "only" ? "Input rows that it took" : "Input rows that were named"),
    used.length === 0 ? h("p", { class: "soft" }, "All rows, as they are.") : usedTable(used),
    notes.length > 0 && [
      h("h2", {}, "Notes"),
      h(
        "ul",
        {},
        notes.map((note) => h("li", {}, note)),
      ),
    ],
    h("h2", {}, "Again"),
    copyLine("the command of this replay", commandOf(replay), announce),
  ];
}

/** Rows that came out beside those that were asked for. */
function extraText({ extra }: Replay): Child {
  return (
    extra !== null && extra > 0 && h("p", { class: "soft" }, `Beside these, ${count(extra, "other row")} came out.`)
  );
}

const refusalsOf = (refused: NonNullable<Replay["refused"]>): Child =>
  refused.map(({ what, path, where }) =>
    notice(
      "failure",
      `${what}${path === null ? "" : `: ${path}`}${where === null ? "" : `, at ${where}`}. It was not done.`,
    ),
  );

const text = (value: string | null): Child =>
  value === null ? h("span", { class: "soft" }, "no such row") : h("code", {}, value);

const outputTable = (original: string, outputs: readonly ReplayedOutput[]): HTMLElement =>
  table<ReplayedOutput>({
    caption: "Rows that were asked for",
    rows: outputs,
    columns: [
      { name: "Row", cell: (output) => placeOf(original, output) },
      {
        name: "Verdict",
        kind: "narrow",
        cell: ({ verdict }) => h("span", { class: `verdict ${verdict}` }, verdict),
      },
      { name: "As it was", cell: ({ was }) => text(was) },
      { name: "As it is", cell: ({ is }) => text(is) },
      {
        name: "Remarks",
        isUsed: outputs.some(({ why, alike }) => why !== "" || (alike ?? 0) > 0),
        cell: ({ why, alike }) => [
          why !== "" && h("div", { class: "soft" }, why),
          alike !== null &&
            alike > 0 &&
            h(
              "div",
              { class: "warning" },
              `${count(alike, "other row")} of the original ${alike === 1 ? "has" : "have"} the same text.`,
            ),
        ],
      },
    ],
  });

function placeOf(original: string, output: ReplayedOutput): Child {
  const start = outputStart(output);
  const place = outputPlace(output);
  return start === null
    ? h("a", { href: failuresHref(original) }, place)
    : h("a", { href: traceHref(original, start), title: output.path }, place);
}

const differencesOf = (differences: OutputDifferences): Child => {
  const rows = differingRows(differences);
  const more = unlistedRows(differences);
  return h(
    "section",
    {},
    h("h2", {}, h("span", { class: "id" }, differences.path)),
    h("p", {}, h("strong", {}, differenceText(differences))),
    differences.same !== null && differences.note !== "" && notice("caution", differences.note),
    rows.length > 0 &&
      table<DifferingRow>({
        caption: `Rows of ${differences.path} that differ`,
        rows,
        columns: [
          { name: "Row", kind: "narrow", cell: ({ kind }) => h("span", { class: `sign ${kind}` }, kind) },
          { name: "As it was", cell: ({ was }) => text(was) },
          { name: "As it is", cell: ({ is }) => text(is) },
        ],
      }),
    more > 0 && h("p", { class: "soft" }, `and ${count(more, "more row")} that ${more === 1 ? "differs" : "differ"}`),
  );
};

const usedTable = (used: readonly UsedRows[]): HTMLElement =>
  table<UsedRows>({
    caption: "Input rows",
    rows: used,
    columns: [
      { name: "Source", cell: ({ name, node }) => `${name} (${node})` },
      { name: "File", cell: ({ path }) => path !== null && h("span", { class: "id" }, path) },
      { name: "Lines", cell: linesOf },
    ],
  });

function linesOf({ rows, why }: UsedRows): Child {
  if (rows === null) return ["all of them", why !== "" && h("div", { class: "soft" }, why)];
  const ranges = lineRanges(rows);
  const more = ranges.length - SHOWN_RANGES;
  return [
    ranges.length === 0 ? h("span", { class: "soft" }, "none") : ranges.slice(0, SHOWN_RANGES).join(", "),
    more > 0 && h("span", { class: "soft" }, ` and ${count(more, "more range")}`),
    why !== "" && h("div", { class: "soft" }, why),
  ];
}
