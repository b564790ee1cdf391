// What stands beside the drawing: the record that is pointed at, where the way begins and ends, and what the record
// looked like on its way.

import { type Child, h, replace } from "../dom";
import { applicationHref, recordsHref } from "../route";
import { loading, notice } from "../states";
import { nodeNumber, number } from "../format";
import type { Values } from "./results";
import type { Ends } from "./endpoints";
import type { Direction, Place, Way } from "./model";
import { type LinkTo, sourceText } from "./rows";
import * as sentences from "./sentences";
import { textOf } from "./texts";

export interface Panel {
  readonly place: HTMLElement;
  /** Parts to fill with a failure. */
  readonly endsPlace: (direction: Direction) => HTMLElement;
  readonly valuesPlace: HTMLElement;
  record(place: Place | undefined, way: Way, operations: sentences.Operations, linkTo: LinkTo): void;
  ends(
    ends: Ends | null,
    direction: Direction,
    operations: sentences.Operations,
    listHref: (id: string) => string,
    goOn: () => void,
  ): void;
  values(values: Values | null): void;
  /** Which directions are looked at. */
  directions(all: readonly Direction[]): void;
}

/** Values of an operation that are shown before anyone asks for more. */
const FEW = 3;

const TITLES: { [D in Direction]: string } = { backward: "Where it came from", forward: "What became of it" };

export function makePanel(): Panel {
  const record = h("section", { class: "pointed" });
  const places = { backward: h("div", { class: "ends" }), forward: h("div", { class: "ends" }) };
  const parts = {
    backward: h("section", {}, h("h2", {}, TITLES.backward), places.backward),
    forward: h("section", {}, h("h2", {}, TITLES.forward), places.forward),
  };
  const values = h("div", { class: "values" });
  const place = h(
    "aside",
    { class: "way-panel", "aria-label": "About the record" },
    record,
    parts.backward,
    parts.forward,
    h("section", {}, h("h2", {}, "Its values on the way"), values),
  );
  return {
    place,
    endsPlace: (direction) => places[direction],
    valuesPlace: values,
    record(shown, way, operations, linkTo) {
      replace(record, shown === undefined ? several(way) : one(shown, way, operations, linkTo));
    },
    ends(ends, direction, operations, listHref, goOn) {
      replace(
        places[direction],
        ends === null
          ? loading("Counting …")
          : [
              h("p", {}, sentences.ends(ends)),
              h(
                "ul",
                {},
                ends.ends.map((end) =>
                  h(
                    "li",
                    {},
                    h("a", { href: listHref(end.id) }, sentences.end(end, operations)),
                    h("span", { class: "soft" }, ` · ${sentences.named(end)}`),
                    end.isInexact && h("span", { class: "warning" }, " · not exact"),
                  ),
                ),
              ),
              ends.applications.length > 0 && [
                h("p", {}, "Other applications on the way:"),
                h(
                  "ul",
                  { class: "foreign" },
                  ends.applications.map((each) => h("li", {}, h("a", { href: applicationHref(each) }, each))),
                ),
              ],
              ends.isSoFar &&
                notice(
                  "care",
                  sentences.stopped(direction),
                  " ",
                  h("button", { type: "button", click: goOn }, "Go on looking"),
                ),
            ],
      );
    },
    values(found) {
      replace(values, found === null ? loading() : told(found));
    },
    directions(all) {
      parts.backward.hidden = !all.includes("backward");
      parts.forward.hidden = !all.includes("forward");
    },
  };
}

const several = (way: Way): Child => [h("h2", {}, "The records"), h("p", {}, sentences.title(way))];

function one({ node, record }: Place, way: Way, operations: sentences.Operations, linkTo: LinkTo): Child {
  const operation = operations.get(node.id);
  const isForeign = node.application !== way.centre.application;
  const fact = (name: string, ...value: Child[]): Child => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return [
    h("h2", {}, node.side === "centre" ? "The record" : "On its way"),
    record.source ? sourceText(record) : h("code", {}, textOf(record)),
    h(
      "dl",
      { class: "facts" },
      record.source && fact("Where", record.source.path, `, line ${record.source.line}`),
      fact("Record", record.record_id),
      fact("Operation", h("a", { href: recordsHref(node.application, node.number) }, sentences.named(node))),
      operation !== undefined && operation.call_site !== "" && fact("Called at", operation.call_site),
      record.key !== undefined && record.key !== null && fact("Key", h("code", {}, record.key)),
      record.value !== undefined &&
        record.value !== null &&
        fact(`Value (${record.value_type ?? "?"})`, h("code", {}, record.value)),
      isForeign && fact("Application", h("a", { href: applicationHref(node.application) }, node.application)),
    ),
    node.side !== "centre" && h("p", {}, h("a", { href: linkTo(node.id, record) }, "Go to its own way")),
  ];
}

const line = (step: Values["steps"][number]): Child =>
  h(
    "li",
    {},
    step.type === "withheld" ? h("em", {}, "withheld") : h("code", {}, step.value),
    step.cut && h("span", { class: "soft" }, " (cut)"),
  );

function told({ steps, captured, how }: Values): Child {
  const byNode = new Map<string, Values["steps"]>();
  for (const step of steps) byNode.set(step.node_id, [...(byNode.get(step.node_id) ?? []), step]);
  return [
    [...byNode].map(([id, [first, ...others]]) => [
      h("h3", {}, `${first?.name ?? ""} (${nodeNumber(id)})`),
      first !== undefined && h("ul", {}, [first, ...others.slice(0, FEW - 1)].map(line)),
      others.length >= FEW &&
        h(
          "details",
          {},
          h("summary", {}, `${number(others.length + 1 - FEW)} more`),
          h("ul", {}, others.slice(FEW - 1).map(line)),
        ),
    ]),
    how !== "" && h("p", { class: "how" }, `${how.charAt(0).toUpperCase()}${how.slice(1)}`),
    !captured && how === "" && h("p", {}, "No values of intermediate records were captured."),
    steps.length === 0 && captured && how === "" && h("p", {}, "No values lie on its way."),
  ];
}
