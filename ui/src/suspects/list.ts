// The suspects of an application, the oddest first: the evidence, the record and the input rows that show it.

import "./suspects.css";
import type { Suspect, Suspects } from "../api";
import { captionedLines } from "../copy";
import { type Child, h } from "../dom";
import { callSite, nodeNumber } from "../format";
import { inputRows } from "../inputrows";
import { recordsHref, traceHref } from "../route";
import { readable } from "../trace/texts";
import { remarksOf, replayLines, scoreText } from "./sentences";

export const suspectsList = (
  { application_id: application, method, suspects }: Suspects,
  announce: (text: string) => void,
): HTMLElement =>
  h(
    "ol",
    { class: "suspects-list" },
    suspects.map((suspect) =>
      h("li", { class: suspect.unusual && "is-unusual" }, suspectOf(application, method, suspect, announce)),
    ),
  );

/** What is said of a suspect, with its name before it. */
const fact = (name: string, ...value: Child[]): Child => [h("dt", {}, name), h("dd", {}, value)];

function suspectOf(
  application: string,
  method: Suspects["method"],
  suspect: Suspect,
  announce: (text: string) => void,
): Child {
  const { rank, why, score, record, sources, sources_total: total } = suspect;
  const lines = replayLines(application, suspect);
  return [
    h("h3", {}, `${rank}. ${readable(why)}`),
    h(
      "p",
      { class: "remarks" },
      scoreText(score, method),
      remarksOf(suspect).map((remark) => ` · ${remark}`),
    ),
    h(
      "dl",
      {},
      fact("Operation", operationOf(application, suspect)),
      record !== null &&
        fact(
          "Record",
          h(
            "a",
            { href: traceHref(application, { record: record.record_id, node: nodeNumber(record.node_id) }) },
            `${nodeNumber(record.node_id)}#${record.record_id}`,
          ),
        ),
      total > 0 &&
        fact(
          "Input rows",
          inputRows(sources, total, ({ path, row }) => traceHref(application, { path, row })),
        ),
    ),
    lines.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, "Run the job again with or without these rows"),
        captionedLines(lines, announce),
      ),
  ];
}

const operationOf = (application: string, { node_id: node, name, call_site: site, partition }: Suspect): Child => [
  h("a", { href: recordsHref(application, nodeNumber(node)), title: site }, `${name} (${nodeNumber(node)})`),
  site !== "" && ` at ${callSite(site)}`,
  partition !== null && h("span", { class: "soft" }, `, partition ${partition}`),
];
