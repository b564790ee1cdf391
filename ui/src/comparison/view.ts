// What changed between two runs of a job: the rows of their outputs that differ, and the input rows behind them.

import "./comparison.css";
import type { ComparedRun, Comparison } from "../api";
import { type Child, h, replace } from "../dom";
import { count, number, time } from "../format";
import { applicationHref, type ComparisonRoute } from "../route";
import { loading, notice, showFailure } from "../states";
import type { View, ViewContext } from "../view";
import { differencesOf } from "./differences";
import { makeForm } from "./form";
import { differenceTable } from "./table";

const LIMIT = 100;
/** Those parameters of the address that the API knows. */
const PARAMETERS = ["dataset", "before", "after", "key", "limit"];

export function comparisonView(
  container: HTMLElement,
  context: ViewContext,
  first: ComparisonRoute,
): View<ComparisonRoute> {
  let asking = new AbortController();
  const form = makeForm((query) => context.navigate({ view: "comparison", query }));
  const result = h("div");
  context.title("What changed");
  replace(container, h("h1", { tabindex: -1 }, "What changed"), form.element, result);

  const compare = async (query: URLSearchParams) => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    form.set(query);
    const parameters = new URLSearchParams([...query].filter(([name]) => PARAMETERS.includes(name)));
    if (parameters.size === 0) {
      replace(result, notice("empty", "Name a dataset: its last two complete runs are compared. Or name two runs."));
      return;
    }
    if (!parameters.has("limit")) parameters.set("limit", String(LIMIT));
    replace(result, loading("Comparing …"));
    try {
      const comparison = await context.client.compare(parameters, { signal });
      if (signal.aborted) return;
      replace(result, ...resultOf(comparison));
      context.announce(totalsOf(comparison));
    } catch (error) {
      showFailure(result, error, () => void compare(query));
    }
  };
  void compare(first.query);
  return {
    update: (next) => void compare(next.query),
    close: () => asking.abort(),
  };
}

function resultOf(comparison: Comparison): Child[] {
  const { runs, same, warnings, truncated } = comparison;
  const rows = differencesOf(comparison);
  const [was, is] = runs;
  return [
    h("div", { class: "runs" }, was && runOf(was, "Earlier run"), is && runOf(is, "Later run")),
    warnings.map((warning) => notice("caution", `${warning}.`)),
    runs
      .filter(({ complete }) => !complete)
      .map(({ name }) => notice("caution", `The lineage of ${name} is not complete: input rows may be missing.`)),
    same !== null &&
      h("p", {}, h("strong", {}, totalsOf(comparison)), truncated && ` ${number(rows.length)} are listed.`),
    rows.length > 0 && differenceTable(rows, runs),
  ];
}

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
    h("p", {}, h("a", { href: applicationHref(id) }, name), " ", h("span", { class: "id" }, id)),
    h(
      "p",
      {},
      h("time", { datetime: new Date(started).toISOString() }, time(started)),
      rows !== null && `, wrote ${count(rows, "row")}`,
    ),
    h("p", { class: "id" }, dataset),
  );
