// Everything that is drawn, as tables, operation by operation in the order of the data: for those who cannot see the
// drawing, and for those who want to copy from it.

import { h, replace } from "../dom";
import { applicationHref } from "../route";
import { count, number } from "../format";
import { hashOf, type Way } from "./model";
import type { Group, Picture } from "./picture";
import { type LinkTo, recordTable } from "./rows";
import { named, type Operations } from "./sentences";

export interface ListHeard {
  more(nodeId: string): void;
  pointed(hash: string | null): void;
}

export interface List {
  readonly place: HTMLElement;
  show(way: Way, picture: Picture, operations: Operations, linkTo: LinkTo, listHref: (nodeId: string) => string): void;
  light(hashes: ReadonlySet<string> | null): void;
}

export function makeList(heard: ListHeard): List {
  const place = h("section", { class: "way-list", "aria-label": "The drawn records as tables" });
  const rows = new Map<string, Element>();
  const point = (event: Event): void => {
    const row = event.target instanceof Element ? event.target.closest("[data-key]") : null;
    heard.pointed(row?.getAttribute("data-key") ?? null);
  };
  for (const name of ["pointerover", "focusin"]) place.addEventListener(name, point);
  for (const name of ["pointerleave", "focusout"]) place.addEventListener(name, () => heard.pointed(null));
  return {
    place,
    show(way, picture, operations, linkTo, listHref) {
      const parts = picture.groups.map((group) => part(way, group, operations, linkTo, listHref, heard));
      const folded = [...picture.folded.values()]
        .flat()
        .map((node) =>
          h("li", {}, h("a", { href: listHref(node.id) }, named(node)), ` · ${count(node.total, "record")}`),
        );
      replace(
        place,
        h("h2", {}, "The drawn records as tables"),
        parts,
        folded.length > 0 && [h("h3", {}, "Operations that are not drawn"), h("ul", {}, folded)],
      );
      rows.clear();
      for (const row of place.querySelectorAll("[data-key]")) rows.set(row.getAttribute("data-key") ?? "", row);
    },
    light(hashes) {
      for (const [hash, row] of rows) row.classList.toggle("lit", hashes?.has(hash) ?? false);
    },
  };
}

function part(
  way: Way,
  { node, boxes, more }: Group,
  operations: Operations,
  linkTo: LinkTo,
  listHref: (nodeId: string) => string,
  heard: ListHeard,
): HTMLElement {
  const drawn = new Set(boxes.map((box) => box.hash));
  const records = node.records.filter((record) => drawn.has(hashOf(node.id, record)));
  const dataset = operations.get(node.id)?.dataset?.name;
  const isForeign = node.application !== way.centre.application;
  return h(
    "section",
    { class: `part ${node.kind}${node.side === "centre" ? " centre" : ""}` },
    h(
      "h3",
      {},
      named(node),
      h(
        "span",
        { class: "soft" },
        ` · ${boxes.length < node.total ? `${number(boxes.length)} of ${count(node.total, "record")}` : count(node.total, "record")}`,
        dataset ? ` · ${dataset}` : "",
        node.side === "centre" ? " · the record itself" : "",
      ),
      isForeign && [
        " · in another application: ",
        h("a", { href: applicationHref(node.application) }, node.application),
      ],
      !node.exact && h("span", { class: "warning" }, " · not exact"),
      node.reason !== "" && h("span", { class: "soft" }, ` · ${node.reason}`),
    ),
    records.length > 0 && recordTable(node.id, records, `Drawn records of ${named(node)}`, linkTo),
    more > 0 &&
      h(
        "p",
        { class: "tools" },
        h("button", { type: "button", click: () => heard.more(node.id) }, `+${number(more)} more`),
        h("a", { href: listHref(node.id) }, `All ${number(node.total)} as a table`),
      ),
  );
}
