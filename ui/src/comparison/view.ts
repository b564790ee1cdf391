// What changed between two runs of a job: the rows of their outputs that differ, and the input rows behind them.

import "./comparison.css";
import type { ComparedRun, Comparison } from "../api";
import { Problem, save } from "../client";
import { type Child, h, replace } from "../dom";
import { count, number, time } from "../format";
import { applicationHref, comparisonHref, type ComparisonRoute } from "../route";
import { loading, notice, refusal, showFailure } from "../states";
import type { View, ViewContext } from "../view";
import { differencesOf } from "./differences";
import { makeForm } from "./form";
import { FIRST_LIMIT, KINDS, listedOf, nextLimit, pageOf } from "./pages";
import { differenceTable } from "./table";

/** Those parameters of the address that the API knows. */
const PARAMETERS = ["dataset", "before", "after", "key", "limit"];
/** What the API gives at most of each kind. */
const CSV_LIMIT = 10_000;

export function comparisonView(
  container: HTMLElement,
  context: ViewContext,
  first: ComparisonRoute,
): View<ComparisonRoute> {
  let asking = new AbortController();
  let compared: { key: string; comparison: Comparison } | null = null;
  const form = makeForm((query) => context.navigate({ view: "comparison", query }));
  const result = h("div");
  context.title("What changed");
  replace(container, h("h1", { tabindex: -1 }, "What changed"), form.element, result);

  const compare = async (query: URLSearchParams) => {
    form.set(query);
    const parameters = new URLSearchParams([...query].filter(([name]) => PARAMETERS.includes(name)));
    const key = parameters.toString();
    if (compared?.key === key) {
      show(compared.comparison, query); // another page of the same
      return;
    }
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    compared = null;
    if (parameters.size === 0) {
      replace(result, notice("empty", "Name a dataset: its last two complete runs are compared. Or name two runs."));
      return;
    }
    if (!parameters.has("limit")) parameters.set("limit", String(FIRST_LIMIT));
    replace(result, loading("Comparing …"));
    try {
      const comparison = await context.client.compare(parameters, { signal });
      if (signal.aborted) return;
      compared = { key, comparison };
      show(comparison, query);
      context.announce(totalsOf(comparison));
    } catch (error) {
      if (error instanceof Problem && (error.status === 404 || error.status === 422)) replace(result, refusal(error));
      else showFailure(result, error, () => void compare(query));
    }
  };
  const show = (comparison: Comparison, query: URLSearchParams) => {
    replace(result, ...resultOf(comparison), ...rowsOf(comparison, query, csvButton(comparison, query)));
  };

  /** All that the API gives, as a file. */
  const csvButton = (comparison: Comparison, query: URLSearchParams): HTMLElement => {
    const isAll = KINDS.every((kind) => (totalOf(comparison, kind) ?? 0) <= CSV_LIMIT);
    const label = isAll ? "All as CSV" : `The first ${number(CSV_LIMIT)} of each kind as CSV`;
    const parameters = new URLSearchParams([...query].filter(([name]) => PARAMETERS.includes(name)));
    parameters.set("limit", String(CSV_LIMIT));
    const download = async () => {
      button.disabled = true;
      button.textContent = "Comparing …";
      try {
        save(await context.client.compareCsv(parameters, { signal: asking.signal }), "comparison.csv");
        button.textContent = label;
      } catch (error) {
        button.textContent = "CSV failed: try again";
        button.title = error instanceof Error ? error.message : "";
      }
      button.disabled = false;
    };
    const button: HTMLButtonElement = h("button", { type: "button", click: () => void download() }, label);
    return button;
  };
  void compare(first.query);
  return {
    update: (next) => void compare(next.query),
    close: () => asking.abort(),
  };
}

function resultOf({ runs, warnings }: Comparison): Child[] {
  const [was, is] = runs;
  return [
    h("div", { class: "runs" }, was && runOf(was, "Earlier run"), is && runOf(is, "Later run")),
    warnings.map((warning) => notice("caution", `${warning}.`)),
    runs
      .filter(({ complete }) => !complete)
      .map(({ name }) => notice("caution", `The lineage of ${name} is not complete: input rows may be missing.`)),
  ];
}

/** The rows that differ, page by page, all or those of one kind. */
function rowsOf(comparison: Comparison, query: URLSearchParams, csv: HTMLElement): Child[] {
  const { same, runs } = comparison;
  if (same === null) return [];
  const all = differencesOf(comparison);
  const page = pageOf(query);
  const listed = listedOf(all, page);
  const hrefWith = (changes: { [name: string]: string | null }) => {
    const changed = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) changed.delete(name);
      else changed.set(name, value);
    }
    return comparisonHref(changed);
  };
  const tab = (name: string, kind: string | null) =>
    h("a", { href: hrefWith({ kind, page: null }), "aria-current": page.kind === kind ? "true" : null }, name);
  const more = nextLimit(comparison);
  return [
    h("p", {}, h("strong", {}, totalsOf(comparison))),
    all.length > 0 &&
      h(
        "nav",
        { class: "tools kinds", "aria-label": "Which rows" },
        tab("All", null),
        KINDS.map((kind) => tab(`${kind} ${number(totalOf(comparison, kind) ?? 0)}`, kind)),
        csv,
      ),
    all.length > 0 && listed.rows.length === 0 && notice("empty", "There is no such row."),
    listed.rows.length > 0 && differenceTable(listed.rows, runs),
    h(
      "nav",
      { class: "pages", "aria-label": "Pages of rows" },
      listed.number > 0 && h("a", { href: hrefWith({ page: String(listed.number) }) }, "Previous page"),
      listed.number + 1 < listed.pages &&
        h("a", { href: hrefWith({ page: String(listed.number + 2) }), rel: "next" }, "Next page"),
      listed.pages > 1 &&
        h(
          "span",
          { class: "soft" },
          `${number(listed.first + 1)} to ${number(listed.first + listed.rows.length)} of ${number(listed.total)}`,
        ),
      comparison.truncated &&
        h(
          "span",
          { class: "soft" },
          `Of each kind, the first ${number(query.has("limit") ? Number(query.get("limit")) : FIRST_LIMIT)} are listed.`,
        ),
      more !== null && h("a", { href: hrefWith({ limit: String(more) }) }, `List up to ${number(more)}`),
    ),
  ];
}

const totalOf = ({ changed_total, gone_total, new_total }: Comparison, kind: (typeof KINDS)[number]): number | null =>
  ({ changed: changed_total, gone: gone_total, new: new_total })[kind];

/** "3 rows changed, 1 gone, 2 new, 40 the same." */
function totalsOf({ changed_total: changed, gone_total: gone, new_total: added, same }: Comparison): string {
  if (changed === null || gone === null || added === null || same === null) return "Rows could not be compared.";
  return `${count(changed, "row")} changed, ${number(gone)} gone, ${number(added)} new, ${number(same)} the same.`;
}

const runOf = ({ name, application_id: id, started, dataset, rows }: ComparedRun, words: string): HTMLElement =>
  h(
    "section",
    { "aria-label": words },
    h("h2", {}, words),
    h("p", {}, h("a", { href: applicationHref(id) }, name), name !== id && [" ", h("span", { class: "id" }, id)]),
    h(
      "p",
      {},
      h("time", { datetime: new Date(started).toISOString() }, time(started)),
      rows !== null && `, wrote ${count(rows, "row")}`,
    ),
    h("p", { class: "id" }, dataset),
  );
