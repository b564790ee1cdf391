// Why rows of inputs are not in the output: where each ended, and what became of those that are there.

import type { Duplicate, Missing, MissingRow, ReachedRow, RowEnd } from "./api";
import { type Client, isAbort, Problem } from "./client";
import { type Child, h, replace } from "./dom";
import { applicationOf, callSite, count, nodeNumber } from "./format";
import { applicationHref, type MissingRoute, recordsHref, traceHref } from "./route";
import { loading, notice, refusal, showFailure } from "./states";
import { filePlace, readable } from "./trace/texts";
import type { View, ViewContext } from "./view";

export function missingView(container: HTMLElement, context: ViewContext, first: MissingRoute): View<MissingRoute> {
  let asking = new AbortController();
  const heading = h("h1", { tabindex: -1 }, "Why is it not in the output?");
  const results = h("div", {});
  container.append(heading, results);
  context.title("Why is it not in the output?");

  const show = async ({ application, query }: MissingRoute, signal: AbortSignal) => {
    replace(results, loading("Looking for the operation at which it ended …"));
    try {
      const missing = await answer(context.client, application, query, signal);
      if (signal.aborted) return;
      context.named(application, missing.name);
      replace(results, ...resultOf(missing));
      context.announce(`${count(missing.rows.length, "end")}`);
    } catch (error) {
      if (isAbort(error)) return;
      if (error instanceof Problem && (error.status === 404 || error.status === 422)) {
        replace(results, refusal(error));
      } else {
        showFailure(results, error, () => update({ view: "missing", application, query }));
      }
    }
  };
  const update = (route: MissingRoute) => {
    asking.abort();
    asking = new AbortController();
    void show(route, asking.signal);
  };
  update(first);
  return { update, close: () => asking.abort() };
}

const answer = (client: Client, application: string, query: URLSearchParams, signal: AbortSignal) =>
  client.missing(application, query, { signal });

function resultOf(missing: Missing): Child[] {
  const rows = new Map<string, { row: MissingRow | ReachedRow; ends: MissingRow[]; reached: ReachedRow[] }>();
  const entry = (row: MissingRow | ReachedRow) => {
    const key = JSON.stringify([row.application_id, row.node_id, row.record_id, row.path, row.row]);
    const known = rows.get(key) ?? { row, ends: [], reached: [] };
    rows.set(key, known);
    return known;
  };
  for (const row of missing.rows) entry(row).ends.push(row);
  for (const row of missing.reached) entry(row).reached.push(row);
  const present = missing.present ?? [];
  return [
    !missing.complete &&
      notice("caution", "The lineage is not complete: a row may be in an output that is not named here."),
    missing.warnings.map((warning) => notice("caution", warning)),
    present.length > 0 && h("p", {}, `The output has ${count(present.length, "such row")}.`),
    missing.inputs !== undefined && missing.inputs !== null && inputsOf(missing.inputs),
    rows.size === 0 && notice("empty", "No input has such a row."),
    [...rows.values()].map(({ row, ends, reached }) =>
      h(
        "section",
        {},
        h("h2", {}, h("code", {}, textOf(row))),
        h("p", { class: "soft" }, placeOf(row), " · ", traceLink(row)),
        ends.map(endOf),
        reached.map(reachedOf),
      ),
    ),
    missing.truncated && notice("caution", "More rows fulfil the condition than are listed: narrow it."),
  ];
}

const inputsOf = (inputs: NonNullable<Missing["inputs"]>): Child => [
  h("h2", {}, "The inputs"),
  h(
    "ul",
    {},
    inputs.map((input) =>
      h(
        "li",
        {},
        h("a", { href: recordsHref(input.application_id, nodeNumber(input.node_id)) }, input.name),
        ` ${input.dataset}: `,
        input.condition === null
          ? "not asked"
          : `${input.matches === null ? "many rows" : count(input.matches, "row")} with ${input.condition}`,
        input.lacks.length > 0 && `, without ${input.lacks.join(", ")}`,
        input.note !== "" && h("span", { class: "warning" }, ` · ${input.note}`),
      ),
    ),
  ),
];

const textOf = (row: MissingRow | ReachedRow): string => readable(row.text ?? row.record_id ?? "");

const placeOf = (row: MissingRow | ReachedRow): string =>
  row.path === null || row.line === null ? (row.record_id ?? "") : `${filePlace(row.path)}, line ${row.line}`;

const traceLink = (row: MissingRow | ReachedRow): Child =>
  row.record_id !== null &&
  h(
    "a",
    { href: traceHref(row.application_id, { record: row.record_id, node: nodeNumber(row.node_id) }) },
    "its trace",
  );

const outputsOf = (outputs: MissingRow["outputs"]): Child =>
  outputs.map((output, index) => [
    index > 0 && ", ",
    h("a", { href: applicationHref(applicationOf(output.node_id)) }, `${output.name} (${nodeNumber(output.node_id)})`),
    output.description !== "" && ` ${output.description}`,
    !output.exact && h("span", { class: "warning" }, " · perhaps: an upper bound"),
  ]);

/** What is said of one end, with its name before it. */
const fact = (name: string, ...value: Child[]): Child => [h("dt", {}, name), h("dd", {}, value)];

function endOf(row: MissingRow): Child {
  const ends = row.ended === null ? row.candidates : [row.ended];
  return h(
    "section",
    { class: row.ended === null ? "end is-unsure" : "end" },
    h(
      "dl",
      {},
      fact("Not in", outputsOf(row.outputs)),
      ends.length > 0 &&
        fact(
          row.ended === null ? "It ended at one of these" : "It ended at",
          ends.map((end) => h("div", {}, operationOf(end))),
        ),
      row.reason !== "" && fact("Not exact", h("span", { class: "warning" }, `${row.reason}.`)),
    ),
  );
}

const operationOf = (end: RowEnd): Child => [
  h(
    "a",
    { href: recordsHref(applicationOf(end.node_id), nodeNumber(end.node_id)) },
    `${end.name} (${nodeNumber(end.node_id)})`,
  ),
  end.call_site !== "" && h("span", { class: "soft", title: end.call_site }, ` at ${callSite(end.call_site)}`),
  h("div", {}, h("code", {}, end.why)),
];

const reachedOf = (row: ReachedRow): Child =>
  h(
    "section",
    { class: "end is-there" },
    h(
      "dl",
      {},
      fact("In", outputsOf(row.outputs)),
      row.duplicates.map((duplicate) => fact("One of several at", ...duplicateOf(duplicate))),
    ),
  );

const duplicateOf = (duplicate: Duplicate): Child[] => {
  const others = duplicate.equal.map(({ record_id, source }) =>
    source === undefined || source === null ? record_id : `${filePlace(source.path)}, line ${source.line}`,
  );
  const more = duplicate.total - 1 - others.length;
  return [
    operationOf(duplicate),
    !duplicate.exact && h("span", { class: "warning" }, "Perhaps: an upper bound."),
    others.length > 0 &&
      h("div", { class: "soft" }, `The others: ${others.join("; ")}${more > 0 ? ` and ${more} more` : ""}`),
  ];
};
