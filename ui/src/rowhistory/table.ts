// The versions of a row as a table, the oldest first: what each did, and who wrote it.

import type { RowVersion } from "../api";
import { type Child, h } from "../dom";
import { applicationOf, nodeNumber, time } from "../format";
import { applicationHref, traceHref } from "../route";
import { table } from "../table";
import { filePlace } from "../trace/texts";
import type { ShownValue } from "../values";
import { type ChangedColumn, type Step, stepsOf } from "./changes";
import { unknownWriter } from "./sentences";

const COLOURS: { [C in RowVersion["change"]]: string } = {
  inserted: "sign new",
  changed: "sign changed",
  rewritten: "soft",
  deleted: "sign gone",
};

export const versionTable = (versions: readonly RowVersion[]): HTMLElement =>
  table<Step>({
    caption: "Versions of the row, the oldest first",
    rows: stepsOf(versions),
    key: ({ version }) => String(version.version),
    opens: true,
    columns: [
      { name: "Version", kind: "count", cell: ({ version }) => version.version_name },
      {
        name: "When",
        kind: "narrow",
        cell: ({ version: { time: at } }) =>
          at === null
            ? h("span", { class: "soft" }, "not known")
            : h("time", { datetime: new Date(at).toISOString() }, time(at)),
      },
      {
        name: "It was",
        kind: "narrow",
        cell: ({ version: { change } }) => h("span", { class: COLOURS[change] }, change),
      },
      { name: "Statement", cell: ({ version: { operation } }) => operation },
      { name: "What changed", cell: changesOf },
      { name: "Row", cell: ({ version }) => placeOf(version) },
      { name: "Written by", cell: ({ version }) => writerOf(version) },
    ],
  });

const changesOf = ({ version, columns, note }: Step): Child => [
  columns.length > 0 && h("dl", { class: "columns" }, columns.map(columnOf)),
  note !== "" && h("div", { class: "soft" }, note),
  version.warning !== null && h("div", { class: "warning" }, version.warning),
];

const columnOf = ({ name, was, is }: ChangedColumn): HTMLElement =>
  h(
    "div",
    {},
    h("dt", {}, name),
    h(
      "dd",
      {},
      was !== null && [h("span", { class: "unseen" }, "was "), h("del", {}, textOf(was))],
      was !== null && is !== null && [" → ", h("mark", {}, textOf(is))],
      was === null && is !== null && textOf(is),
    ),
  );

const textOf = ({ text, full, isNull }: ShownValue): HTMLElement =>
  h("span", { class: isNull && "soft", title: full }, text);

function writerOf(version: RowVersion): Child {
  const { application_id: id, application_name: name } = version;
  if (id === null) return h("span", { class: "soft" }, unknownWriter(version));
  return [h("a", { href: applicationHref(id) }, name || id), name !== id && h("div", { class: "id" }, id)];
}

/** The row of its file leads to its trace, where it is known which record it is. */
function placeOf({ path, line, node_id: node, record_id: record, version }: RowVersion): Child {
  if (path === null) return null;
  const place = `${filePlace(path)}:${line ?? "?"}`;
  return [
    node !== null &&
      record !== null &&
      h(
        "a",
        {
          href: traceHref(applicationOf(node), { record, node: nodeNumber(node) }),
          "aria-label": `Trace version ${version} of the row`,
        },
        "Trace",
      ),
    h("div", { class: "id", title: path }, place),
  ];
}
