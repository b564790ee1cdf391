// The panel beside the drawing: the selected record, the endpoints of its trace, and the record's values
// along the trace.

import { type Child, h, replace } from "../dom";
import { nodeNumber, number } from "../format";
import { applicationHref, missingHref, queryOf, recordsHref } from "../route";
import { loading, notice } from "../states";
import type { Endpoints } from "./endpoints";
import type { Direction, RecordLineage, TracedRecord } from "./model";
import type { Values } from "./results";
import { type RecordHref, recordOf, sourceColumns } from "./rows";
import * as sentences from "./sentences";
import { doneText, textOf } from "./texts";

export interface Panel {
  readonly element: HTMLElement;
  /** Elements in which a failure can be shown. */
  readonly endpointsContainer: (direction: Direction) => HTMLElement;
  readonly valuesContainer: HTMLElement;
  record(
    element: TracedRecord | undefined,
    lineage: RecordLineage,
    operations: sentences.Operations,
    recordHref: RecordHref,
  ): void;
  endpoints(
    endpoints: Endpoints | null,
    direction: Direction,
    operations: sentences.Operations,
    listHref: (id: string) => string,
    recordHref: RecordHref,
    resume: () => void,
  ): void;
  values(values: Values | null): void;
  /** Which directions are shown. */
  directions(all: readonly Direction[]): void;
}

/** Values of an operation that are shown at first. */
const FIRST_VALUES = 3;

const TITLES: { [D in Direction]: string } = { backward: "Where it came from", forward: "What became of it" };

export function makePanel(): Panel {
  const record = h("section", { class: "pointed" });
  const places = { backward: h("div", { class: "endpoints" }), forward: h("div", { class: "endpoints" }) };
  const parts = {
    backward: h("section", {}, h("h2", {}, TITLES.backward), places.backward),
    forward: h("section", {}, h("h2", {}, TITLES.forward), places.forward),
  };
  const values = h("div", { class: "values" });
  const element = h(
    "aside",
    { class: "trace-panel", "aria-label": "About the record" },
    record,
    parts.backward,
    parts.forward,
    h("section", {}, h("h2", {}, "Values along the trace"), values),
  );
  return {
    element,
    endpointsContainer: (direction) => places[direction],
    valuesContainer: values,
    record(tracedRecord, lineage, operations, recordHref) {
      replace(
        record,
        tracedRecord === undefined ? manyRecords(lineage) : oneRecord(tracedRecord, lineage, operations, recordHref),
      );
    },
    endpoints(endpoints, direction, operations, listHref, recordHref, resume) {
      replace(
        places[direction],
        endpoints === null
          ? loading("Counting …")
          : [
              h("p", {}, sentences.endpointsText(endpoints)),
              h(
                "ul",
                {},
                endpoints.endpoints.map((end) =>
                  h(
                    "li",
                    {},
                    h("a", { href: listHref(end.id) }, sentences.endpointText(end, operations)),
                    h("span", { class: "soft" }, ` · ${sentences.operationLabel(end)}`),
                    end.isInexact && h("span", { class: "warning" }, " · not exact"),
                    end.remarks.map((remark) =>
                      h(
                        "p",
                        { class: "notice outlier" },
                        h("a", { href: recordHref(end.id, recordOf(remark)) }, sentences.remarkText(remark)),
                      ),
                    ),
                  ),
                ),
              ),
              endpoints.applications.length > 0 && [
                h("p", {}, "Other applications in the trace:"),
                h(
                  "ul",
                  { class: "foreign" },
                  endpoints.applications.map(({ id, name }) => h("li", {}, applicationLink(id, name))),
                ),
              ],
              endpoints.isPartial &&
                notice(
                  "caution",
                  sentences.stopped(direction),
                  " ",
                  h("button", { type: "button", click: resume }, "Continue the trace"),
                ),
            ],
      );
    },
    values(result) {
      replace(values, result === null ? loading() : valueItems(result));
    },
    directions(all) {
      parts.backward.hidden = !all.includes("backward");
      parts.forward.hidden = !all.includes("forward");
    },
  };
}

const applicationLink = (id: string, name: string): Child => [
  h("a", { href: applicationHref(id) }, name || id),
  name !== "" && name !== id && h("span", { class: "soft" }, ` · ${id}`),
];

const manyRecords = (lineage: RecordLineage): Child => [
  h("h2", {}, "The records"),
  h("p", {}, sentences.title(lineage)),
];

function oneRecord(
  { node, record }: TracedRecord,
  lineage: RecordLineage,
  operations: sentences.Operations,
  recordHref: RecordHref,
): Child {
  const operation = operations.get(node.id);
  const isForeign = node.application !== lineage.centre.application;
  const fact = (name: string, ...value: Child[]): Child => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return [
    h("h2", {}, node.side === "centre" ? "The record" : "In the trace"),
    record.source ? sourceColumns(record, node.schema) : h("code", {}, textOf(record)),
    h(
      "dl",
      { class: "facts" },
      record.source && fact("Location", record.source.path, `, line ${record.source.line}`),
      fact("Record", record.record_id),
      fact("Operation", h("a", { href: recordsHref(node.application, node.number) }, sentences.operationLabel(node))),
      operation !== undefined && operation.call_site !== "" && fact("Called at", operation.call_site),
      record.operation != null &&
        fact("What the statement did", h("code", {}, record.operation), `: ${doneText(record.operation)}`),
      record.key !== undefined && record.key !== null && fact("Key", h("code", {}, record.key)),
      record.value !== undefined &&
        record.value !== null &&
        fact(`Value (${record.value_type ?? "?"})`, h("code", {}, record.value)),
      isForeign && fact("Application", applicationLink(node.application, node.applicationName)),
    ),
    operation?.kind === "source" &&
      record.source &&
      h("p", {}, h("a", { href: whyNotHref(node.application, record.source) }, "Why is it not in the output?")),
    node.side !== "centre" && h("p", {}, h("a", { href: recordHref(node.id, record) }, "Go to its own trace")),
  ];
}

const whyNotHref = (application: string, { path, row }: { path: string; row: number }): string =>
  missingHref(application, queryOf({ path, row }));

const valueItem = (step: Values["steps"][number]): Child =>
  h(
    "li",
    {},
    step.type === "withheld" ? h("em", {}, "withheld") : h("code", {}, step.value),
    step.cut && h("span", { class: "soft" }, " (cut)"),
  );

function valueItems({ steps, captured, how }: Values): Child {
  const byNode = new Map<string, Values["steps"]>();
  for (const step of steps) byNode.set(step.node_id, [...(byNode.get(step.node_id) ?? []), step]);
  return [
    [...byNode].map(([id, [first, ...others]]) => [
      h("h3", {}, `${first?.name ?? ""} (${nodeNumber(id)})`),
      first !== undefined && h("ul", {}, [first, ...others.slice(0, FIRST_VALUES - 1)].map(valueItem)),
      others.length >= FIRST_VALUES &&
        h(
          "details",
          {},
          h("summary", {}, `${number(others.length + 1 - FIRST_VALUES)} more`),
          h("ul", {}, others.slice(FIRST_VALUES - 1).map(valueItem)),
        ),
    ]),
    how !== "" && h("p", { class: "how" }, `${how.charAt(0).toUpperCase()}${how.slice(1)}`),
    !captured && how === "" && h("p", {}, "No values of intermediate records were captured."),
    steps.length === 0 && captured && how === "" && h("p", {}, "There are no values along the trace."),
  ];
}
