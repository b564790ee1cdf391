// The form that finds rows of a dataset by a condition, and the rows to choose from. A row leads to its trace.

import type { Choice, DatasetSummary } from "../api";
import { isAbort, Problem } from "../client";
import { copyLine } from "../copy";
import { type Child, h, replace } from "../dom";
import { applicationOf, count, nodeNumber, number } from "../format";
import { applicationHref, datasetHref, type DatasetRoute, missingHref, queryOf, traceHref } from "../route";
import { loading, notice, refusal, showFailure } from "../states";
import type { ViewContext } from "../view";
import { choicePlace, choiceTable, historyColumn } from "./choices";
import {
  commandLine,
  completed,
  curlLine,
  exampleOf,
  historyLine,
  namedColumns,
  type Suggestion,
  type Suggestions,
  suggestionsAt,
} from "./conditions";
import { conditionField, versionField } from "./fields";
import { type Matches, matchesOf } from "./matches";

/** Rows at which one trace may start. */
const MOST_STARTS = 10_000;
/** The formats of tables that keep versions. */
const TABLES = new Set(["delta", "iceberg"]);

export interface Finder {
  readonly element: HTMLElement;
  /** What the form asks of. */
  about(dataset: DatasetSummary): void;
  /** Finds what the address asks for, unless it is shown already. */
  update(route: DatasetRoute): void;
  close(): void;
}

export function makeFinder(context: ViewContext, first: DatasetRoute): Finder {
  let route = first;
  let dataset: DatasetSummary | null = null;
  let columns: Suggestion[] = [];
  let asking = new AbortController();
  let asked = "";
  const condition = conditionField({ "aria-describedby": "where-help" });
  const version = versionField();
  const ofTable = h("label", { hidden: true }, h("span", {}, "In version"), version);
  const helps = h("p", { class: "small soft", id: "where-help" });
  const suggested = h("div", { class: "suggestions", role: "group", "aria-label": "What may come next" });
  const results = h("div", { class: "found" });
  const suggest = () => {
    const caret = condition.selectionStart ?? condition.value.length;
    const suggestions = suggestionsAt(condition.value, caret, columns);
    replace(
      suggested,
      suggestions.items.map(({ text, note }) =>
        h(
          "button",
          { type: "button", click: () => complete(suggestions, caret, text) },
          text,
          note !== "" && [" ", h("small", {}, note)],
        ),
      ),
    );
  };
  const complete = (suggestions: Suggestions, caret: number, text: string) => {
    const next = completed(condition.value, caret, suggestions, text);
    condition.value = next.condition;
    condition.focus();
    condition.setSelectionRange(next.caret, next.caret);
    suggest();
  };
  for (const event of ["input", "keyup", "click"]) condition.addEventListener(event, suggest);

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const query = new URLSearchParams(route.query);
    query.delete("rows");
    if (condition.value.trim() === "") query.delete("where");
    else query.set("where", condition.value.trim());
    if (version.value.trim() === "") query.delete("version");
    else query.set("version", version.value.trim());
    asked = ""; // asked again, also if it is the same
    if (query.toString() === route.query.toString()) find();
    else context.navigate({ ...route, query });
  };
  const element = h(
    "section",
    { "aria-label": "Find rows" },
    h("h2", {}, "Find rows"),
    h(
      "form",
      { class: "fields", role: "search", submit },
      h("label", { class: "wide" }, h("span", {}, "Rows for which"), condition),
      ofTable,
      h("button", { type: "submit" }, "Find rows"),
    ),
    suggested,
    helps,
    results,
  );

  const find = () => {
    if (dataset === null) return;
    const [where, cursor] = [route.query.get("where") ?? "", route.query.get("rows")];
    const inVersion = route.query.get("version");
    const key = JSON.stringify([where, inVersion, cursor]);
    if (key === asked) return;
    asked = key;
    asking.abort();
    asking = new AbortController();
    condition.value = where;
    version.value = inVersion ?? "";
    suggest();
    if (where === "") replace(results);
    else void show(dataset, where, inVersion, cursor, asking.signal);
  };
  const show = async (
    about: DatasetSummary,
    where: string,
    version: string | null,
    cursor: string | null,
    signal: AbortSignal,
  ) => {
    replace(results, loading("Looking at the rows …"));
    try {
      const parameters = { dataset: about.path, where, version, columns: "*", cursor };
      const matches = matchesOf(await context.client.rows(parameters, { signal }));
      if (signal.aborted) return;
      replace(
        results,
        resultOf(matches, where, route, about),
        commandsOf(about, where, version, matches.total !== 1, context),
      );
      context.announce(foundText(matches));
    } catch (error) {
      if (isAbort(error)) return;
      if (error instanceof Problem && (error.status === 422 || error.status === 404)) {
        replace(results, refusal(error), error.status === 404 && whyNot(about, where));
      } else {
        showFailure(results, error, () => {
          asked = "";
          find();
        });
      }
    }
  };
  return {
    element,
    about(summary) {
      dataset = summary;
      columns = namedColumns(summary.schema, summary.partitions, summary.format);
      condition.placeholder = exampleOf(columns);
      ofTable.hidden = !TABLES.has(summary.format);
      replace(
        helps,
        columns.length === 0 && "The columns are not known yet: use the names of the file's own columns. ",
        "Compare columns with values: ",
        h("code", {}, "= != < <= > >= in like between is null"),
        ", joined by ",
        h("code", {}, "and or not"),
        ". Texts stand in single quotes.",
      );
      suggest();
      find();
    },
    update(next) {
      route = next;
      find();
    },
    close: () => asking.abort(),
  };
}

/** Of what an application wrote: a question for the rows of its inputs. */
function whyNot({ written, path }: DatasetSummary, where: string): Child {
  if (written === null) return null;
  const query = queryOf({ where, path });
  return h("p", {}, h("a", { href: missingHref(written.application_id, query) }, "Why is there no such row?"));
}

function foundText({ total, version, rows, name }: Matches): string {
  const some = total === null ? `${number(rows.length)} rows, perhaps more,` : count(total, "row");
  return version === null ? `${some} of what ${name} wrote or read` : `${some} in version ${version}`;
}

function resultOf(matches: Matches, where: string, route: DatasetRoute, about: DatasetSummary): Child {
  const { application, name, total, version, rows, warnings, next } = matches;
  const pageHref = (cursor: string | null) => {
    const query = new URLSearchParams(route.query);
    if (cursor === null) query.delete("rows");
    else query.set("rows", cursor);
    return datasetHref(route, query);
  };
  return [
    h(
      "p",
      {},
      h("strong", {}, total === null ? `${number(rows.length)} rows, perhaps more` : count(total, "row")),
      " in ",
      version === null ? h("a", { href: applicationHref(application) }, name) : `version ${version}`,
      ". Choose one to see what it was made of and what became of it",
      rows.length > 1 && version === null && [", or ", allOf(matches, where)],
      ".",
    ),
    warnings.map((warning) => notice("caution", warning)),
    rowsTable(matches, where, about, route.query.get("version")),
    h(
      "nav",
      { class: "pages", "aria-label": "Pages of rows" },
      route.query.has("rows") && h("a", { href: pageHref(null) }, "First rows"),
      next !== null && h("a", { href: pageHref(next), rel: "next" }, "More rows"),
    ),
  ];
}

/** Links to the trace of all rows, one for each operation that has them. */
function allOf({ application, nodes, total }: Matches, where: string): Child {
  if (total !== null && total > MOST_STARTS) return `narrow the condition to ${number(MOST_STARTS)} rows to trace all`;
  return nodes.map((node, index) => [
    index > 0 && ", ",
    h(
      "a",
      { href: traceHref(application, { node: nodeNumber(node), where }) },
      nodes.length === 1 ? "trace all of these" : `trace all of operation ${nodeNumber(node)}`,
    ),
  ]);
}

function rowsTable({ rows, version }: Matches, where: string, about: DatasetSummary, asked: string | null) {
  const hrefOf = ({ node_id: node, record_id: record }: Choice) =>
    traceHref(applicationOf(node), { record, node: nodeNumber(node) });
  return choiceTable(rows, about.schema, [
    {
      name: "Row",
      kind: "narrow",
      cell: (row) => h("a", { href: hrefOf(row), "aria-label": `Trace ${choicePlace(row)}` }, "Trace"),
    },
    ...(TABLES.has(about.format) ? [historyColumn(about, { where, version: version ?? asked }, rows)] : []),
  ]);
}

/** The same query for a terminal and for curl. */
function commandsOf(
  { path: dataset, format }: DatasetSummary,
  where: string,
  version: string | null,
  isSeveral: boolean,
  context: ViewContext,
): Child {
  const base = new URL(".", location.href.split("#")[0]).href;
  const line = (name: string, text: string) => copyLine(name, text, context.announce);
  return h(
    "details",
    {},
    h("summary", {}, "The same as a command"),
    line("the command line", commandLine(dataset, where, version, false)),
    line("the line for curl", curlLine(base, dataset, where, version, false)),
    TABLES.has(format) && line("the command line of the row's history", historyLine(dataset, where, version)),
    isSeveral && [
      h("p", { class: "small soft" }, "For all of these rows:"),
      line("the command line for all", commandLine(dataset, where, version, true)),
      line("the line for curl for all", curlLine(base, dataset, where, version, true)),
    ],
  );
}
