// The history of a row of a table: the versions that inserted, changed and deleted it, and who wrote each.

import "./rowhistory.css";
import type { Choices, Column, RowHistory } from "../api";
import { type Client, isAbort, Problem } from "../client";
import { choiceTable, historyColumn } from "../datasets/choices";
import { conditionField, versionField } from "../datasets/fields";
import { type Child, h, replace } from "../dom";
import { count, number } from "../format";
import { datasetHref, historyHref, type HistoryRoute, queryOf } from "../route";
import { loading, notice, refusal, showFailure } from "../states";
import type { View, ViewContext } from "../view";
import { byText, totalText } from "./sentences";
import { versionTable } from "./table";

/** Those parameters of the address that the API knows beside the table. */
const PARAMETERS = ["where", "version", "at", "cursor", "limit"];

export function historyView(container: HTMLElement, context: ViewContext, first: HistoryRoute): View<HistoryRoute> {
  let route = first;
  let asking = new AbortController();
  const heading = h("h1", { tabindex: -1 });
  const form = makeForm((query) => {
    if (query.toString() === route.query.toString()) update(route);
    else context.navigate({ ...route, query });
  });
  const results = h("div", { class: "found" });
  replace(container, heading, form.element, results);

  const show = async (signal: AbortSignal) => {
    const { dataset, query } = route;
    replace(heading, "History of a row of ", h("a", { href: datasetHref({ namespace: "", name: dataset }) }, dataset));
    context.title(`History of a row of ${dataset}`);
    form.set(query);
    if (!query.get("where")) {
      replace(results, notice("empty", "Say which row: a condition that it fulfils."));
      return;
    }
    replace(results, loading("Reading the log of the table …"));
    const known = [...query].filter(([name, value]) => PARAMETERS.includes(name) && value !== "");
    const parameters = new URLSearchParams([["dataset", dataset], ...known]);
    try {
      const answer = await context.client.history(parameters, { signal });
      if (signal.aborted) return;
      const isToChoose = "choices" in answer;
      const schema = isToChoose ? await schemaOf(context.client, dataset, signal) : [];
      if (signal.aborted) return;
      replace(results, ...(isToChoose ? choicesOf(answer, schema, route) : historyOf(answer)));
      context.announce(isToChoose ? choiceText(answer) : totalText(answer));
    } catch (error) {
      if (isAbort(error)) return;
      if (error instanceof Problem && [400, 404, 422].includes(error.status)) replace(results, refusal(error));
      else showFailure(results, error, () => update(route));
    }
  };
  const update = (next: HistoryRoute) => {
    route = next;
    asking.abort();
    asking = new AbortController();
    void show(asking.signal);
  };
  update(first);
  return { update, close: () => asking.abort() };
}

/** The types of the table's columns; none where they are not known. Without them, fewer rows are told apart. */
const schemaOf = (client: Client, name: string, signal: AbortSignal): Promise<readonly Column[]> =>
  client.dataset({ name, limit: 1 }, { signal }).then(
    ({ dataset }) => dataset.schema,
    () => [],
  );

function historyOf(history: RowHistory): Child[] {
  const { versions, complete, warnings } = history;
  return [
    h("p", {}, h("strong", {}, totalText(history)), "."),
    h("p", { class: "soft" }, byText(history), `. It was looked for in version ${history.version_name}.`),
    !complete && notice("caution", "Not complete: there may be more versions of the row than these."),
    warnings.map((warning) => notice("caution", warning)),
    versions.length > 0 && versionTable(versions),
  ];
}

const choiceText = ({ total, choices, version }: Choices): string => {
  const rows = total === null ? `${number(choices.length)} rows, perhaps more,` : count(total, "row");
  return `${rows} in version ${version ?? "?"} fulfil the condition`;
};

/** Several rows fulfil the condition: each leads to its own history. */
function choicesOf(answer: Choices, schema: readonly Column[], { dataset, query }: HistoryRoute): Child[] {
  const { choices, next, warnings, version } = answer;
  const asked = { where: query.get("where") ?? "", version: version ?? null };
  const hrefWith = (cursor: string | null) => {
    const changed = new URLSearchParams(query);
    if (cursor === null) changed.delete("cursor");
    else changed.set("cursor", cursor);
    return historyHref(dataset, changed);
  };
  return [
    h("p", {}, h("strong", {}, choiceText(answer)), ". Choose one, or narrow the condition."),
    warnings.map((warning) => notice("caution", warning)),
    choices.length > 0 && choiceTable(choices, schema, [historyColumn({ path: dataset, schema }, asked, choices)]),
    h(
      "nav",
      { class: "pages", "aria-label": "Pages of rows" },
      query.has("cursor") && h("a", { href: hrefWith(null) }, "First rows"),
      next !== null && h("a", { href: hrefWith(next), rel: "next" }, "More rows"),
    ),
  ];
}

/** Which row, and in which version it is looked for. */
function makeForm(search: (query: URLSearchParams) => void) {
  const condition = conditionField({ placeholder: "id = 42" });
  const version = versionField();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    search(queryOf({ where: condition.value.trim(), version: version.value.trim() }));
  };
  const element = h(
    "form",
    { class: "fields", role: "search", submit },
    h("label", { class: "wide" }, h("span", {}, "Row for which"), condition),
    h("label", {}, h("span", {}, "In version"), version),
    h("button", { type: "submit" }, "Show its history"),
  );
  return {
    element,
    set(query: URLSearchParams) {
      condition.value = query.get("where") ?? "";
      version.value = query.get("version") ?? "";
    },
  };
}
