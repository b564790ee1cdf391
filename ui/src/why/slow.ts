// The records that took long at operations on the way of one record.

import type { Slow, SlowRecord } from "../api";
import { type Child, h } from "../dom";
import { duration, nodeNumber, number } from "../format";
import { operationText } from "../failures/sentences";
import { inputRows } from "../inputrows";
import { traceHref } from "../route";
import { notice } from "../states";
import { readable } from "../trace/texts";
import type { Way } from "./sentences";

/** Those that are shown. */
const SHOWN = 5;

/** Records of its operations, the slowest first. */
export const slowOn = ({ nodes }: Way, { records }: Slow): SlowRecord[] =>
  records.filter(({ node_id: node }) => nodes.has(node));

/** "map at job.py:41 took 320 ms". */
export const slowText = (record: SlowRecord): string =>
  `${operationText(record)} took ${record.ms < 1000 ? `${record.ms} ms` : duration(record.ms / 1000)}`;

/** Only the records that are listed were looked through. */
export const noneText = ({ records, total }: Slow): string =>
  total > records.length
    ? `Of its operations there is none among the ${number(records.length)} slowest records.`
    : "No record is known to have taken long at its operations.";

export function slowList(application: string, way: Way, slow: Slow): Child {
  const records = slowOn(way, slow);
  return [
    records.length === 0
      ? notice("empty", noneText(slow))
      : h(
          "ul",
          {},
          records.slice(0, SHOWN).map((one) => h("li", {}, slowOf(application, one))),
        ),
    slow.how !== "" && h("p", { class: "small soft" }, slow.how),
  ];
}

const slowOf = (application: string, one: SlowRecord): Child => [
  slowText(one),
  one.record !== null && [
    " for ",
    h(
      "a",
      { href: traceHref(application, { record: one.record.record_id, node: nodeNumber(one.record.node_id) }) },
      one.record.value === null ? one.record.record_id : readable(one.record.value),
    ),
  ],
  inputRows(one.sources, one.sources_total, ({ path, row }) => traceHref(application, { path, row })),
];
