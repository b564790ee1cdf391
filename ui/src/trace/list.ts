// Everything that is drawn, as tables by operation, in the order of the data: for those who cannot see the
// drawing, and to copy from.

import { h, replace } from "../dom";
import { count, number } from "../format";
import { applicationHref } from "../route";
import { hashOf, type RecordLineage } from "./model";
import type { Group, Picture } from "./picture";
import { type RecordHref, recordTable } from "./rows";
import { applicationLabel, operationLabel, type Operations } from "./sentences";

export interface ListListener {
  onMore(nodeId: string): void;
  onPoint(hash: string | null): void;
}

export interface List {
  readonly element: HTMLElement;
  show(
    lineage: RecordLineage,
    picture: Picture,
    operations: Operations,
    recordHref: RecordHref,
    listHref: (nodeId: string) => string,
  ): void;
  light(hashes: ReadonlySet<string> | null): void;
}

export function makeList(listener: ListListener): List {
  const element = h("section", { class: "trace-list", "aria-label": "The drawn records as tables" });
  const rows = new Map<string, Element>();
  const point = (event: Event): void => {
    const row = event.target instanceof Element ? event.target.closest("[data-key]") : null;
    listener.onPoint(row?.getAttribute("data-key") ?? null);
  };
  for (const name of ["pointerover", "focusin"]) element.addEventListener(name, point);
  for (const name of ["pointerleave", "focusout"]) element.addEventListener(name, () => listener.onPoint(null));
  return {
    element,
    show(lineage, picture, operations, recordHref, listHref) {
      const parts = picture.groups.map((group) =>
        sectionOf(lineage, group, operations, recordHref, listHref, listener),
      );
      const folded = [...picture.folded.values()]
        .flatMap(({ nodes }) => nodes)
        .map((node) =>
          h("li", {}, h("a", { href: listHref(node.id) }, operationLabel(node)), ` · ${count(node.total, "record")}`),
        );
      replace(
        element,
        h("h2", {}, "The drawn records as tables"),
        parts,
        folded.length > 0 && [h("h3", {}, "Operations that are not drawn"), h("ul", {}, folded)],
      );
      rows.clear();
      for (const row of element.querySelectorAll("[data-key]")) rows.set(row.getAttribute("data-key") ?? "", row);
    },
    light(hashes) {
      for (const [hash, row] of rows) row.classList.toggle("lit", hashes?.has(hash) ?? false);
    },
  };
}

function sectionOf(
  lineage: RecordLineage,
  { node, boxes, more }: Group,
  operations: Operations,
  recordHref: RecordHref,
  listHref: (nodeId: string) => string,
  listener: ListListener,
): HTMLElement {
  const drawn = new Set(boxes.map((box) => box.hash));
  const records = node.records.filter((record) => drawn.has(hashOf(node.id, record)));
  const dataset = operations.get(node.id)?.dataset?.name;
  const isForeign = node.application !== lineage.centre.application;
  return h(
    "section",
    { class: `part ${node.kind}${node.side === "centre" ? " centre" : ""}` },
    h(
      "h3",
      {},
      operationLabel(node),
      h(
        "span",
        { class: "soft" },
        ` · ${boxes.length < node.total ? `${number(boxes.length)} of ${count(node.total, "record")}` : count(node.total, "record")}`,
        dataset ? ` · ${dataset}` : "",
        node.side === "centre" ? " · the selected record" : "",
      ),
      isForeign && [
        " · in another application: ",
        h("a", { href: applicationHref(node.application), title: node.application }, applicationLabel(node)),
      ],
      !node.exact && h("span", { class: "warning" }, " · not exact"),
      node.reason !== "" && h("span", { class: "soft" }, ` · ${node.reason}`),
    ),
    records.length > 0 &&
      recordTable({
        caption: `Drawn records of ${operationLabel(node)}`,
        records,
        schema: node.schema,
        keyOf: (record) => hashOf(node.id, record),
        hrefOf: (record) => recordHref(node.id, record),
      }),
    more > 0 &&
      h(
        "p",
        { class: "tools" },
        h("button", { type: "button", click: () => listener.onMore(node.id) }, `+${number(more)} more`),
        h("a", { href: listHref(node.id) }, `All ${number(node.total)} as a table`),
      ),
  );
}
