// The records of one node: what the node is, a search, and a table page by page. Each row leads to the record's trace.

import type { Application, Graph, Node as Operation, RecordPage } from "./api";
import { Problem, save } from "./client";
import { type Child, h, replace } from "./dom";
import { completeness, count, expressionText, nodeNumber, number } from "./format";
import { isPassThrough, neighbours, passedRows } from "./passthrough";
import { absenceHref, queryOf, recordsHref, type RecordsRoute, traceHref } from "./route";
import { loading, notice, refusal, showFailure } from "./states";
import { recordTable } from "./trace/rows";
import { isShortened } from "./values";
import type { View, ViewContext } from "./view";

const PAGE = 50;
const PARAMETERS = ["text", "where", "key", "partition", "offset", "cursor", "limit"];
const FILTERS = ["text", "where", "key", "partition"];
/** Rows in one file: what a spreadsheet takes. */
const CSV_ROWS = 1_000_000;

export function recordsView(container: HTMLElement, context: ViewContext, first: RecordsRoute): View<RecordsRoute> {
  let route = first;
  let requests = new AbortController();
  let saving: AbortController | null = null;
  const heading = h("h1", { tabindex: -1 }, `Operation ${nodeNumber(route.node)}`);
  const [about, resultList] = [h("div"), h("div", { class: "stale" }, loading())];
  const form = searchForm((query) => context.navigate({ ...route, query }));
  replace(container, heading, about, form.element, resultList);

  const parameters = () =>
    new URLSearchParams([...route.query].filter(([name, value]) => PARAMETERS.includes(name) && value !== ""));

  const describe = async () => {
    const { application, node } = route;
    const { signal } = requests;
    try {
      const [graph, applicationResult] = await Promise.all([
        context.client.graph(application, { signal }),
        context.client.application(application, { signal }),
      ]);
      const operation = operationOf(graph, node);
      if (operation === undefined) return; // the query for its records says so
      replace(heading, operation.name, " ", h("small", {}, `${operation.kind} ${operation.node}`));
      context.title(`${operation.name} (${operation.node})`);
      context.named(application, applicationResult.name);
      const isPassThroughOnly = isPassThrough(operation);
      form.element.hidden = resultList.hidden = isPassThroughOnly;
      replace(
        about,
        facts(operation),
        warnings(operation, applicationResult),
        isPassThroughOnly && passThroughFacts(application, graph, operation),
      );
    } catch (error) {
      if (!signal.aborted && about.childElementCount === 0) replace(about); // the records' failure says it
      void error;
    }
  };

  const show = async () => {
    requests.abort();
    requests = new AbortController();
    const { signal } = requests;
    form.set(route.query);
    container.setAttribute("aria-busy", "true");
    void describe();
    const query = parameters();
    if (!query.has("limit")) query.set("limit", String(PAGE));
    query.set("columns", "*");
    try {
      const page = await context.client.records(route.application, route.node, query, { signal });
      replace(resultList, ...resultsOf(page));
      context.announce(total(page));
    } catch (error) {
      if (error instanceof Problem && error.status === 422) replace(resultList, refusal(error));
      else showFailure(resultList, error, show);
    }
    if (!signal.aborted) container.removeAttribute("aria-busy");
  };

  const isFiltered = () => FILTERS.some((name) => route.query.get(name));

  const total = ({ total: all, records }: RecordPage) => {
    const onThisPage = records.length > 0 && records.length !== all ? `, ${number(records.length)} on this page` : "";
    if (all === null) return `${isFiltered() ? "Matches" : "Records"} not counted${onThisPage}`;
    return `${isFiltered() ? count(all, "match", "matches") : count(all, "record")}${onThisPage}`;
  };

  const resultsOf = (page: RecordPage): Child[] => [
    h("p", { class: "soft" }, total(page)),
    page.warnings.map((warning) => notice("caution", warning)),
    page.records.length > 0
      ? tableOf(page)
      : notice(
          "empty",
          page.next !== null
            ? "No match so far: the search continues on the next page."
            : isFiltered()
              ? page.warnings.length > 0
                ? "No match in what could be searched."
                : "No record matches."
              : "This operation has no records.",
        ),
    page.records.length === 0 && page.next === null && whyAbsent(),
    pages(page),
  ];

  const whyAbsent = (): Child => {
    const key = route.query.get("key");
    return (
      key &&
      h(
        "p",
        {},
        h(
          "a",
          { href: absenceHref(route.application, nodeNumber(route.node), key) },
          "Why is there no record with this key?",
        ),
      )
    );
  };

  const tableOf = (page: RecordPage): Child => {
    const node = nodeNumber(page.node_id);
    const isFull = route.query.get("full") === "1";
    const query = new URLSearchParams(route.query);
    if (isFull) query.delete("full");
    else query.set("full", "1");
    const isShort = isShortened(page.records.map(({ source }) => source?.columns));
    return [
      isShort &&
        h(
          "p",
          { class: "small" },
          h(
            "a",
            { href: recordsHref(route.application, route.node, query) },
            isFull ? "Round long values" : "Show whole values",
          ),
        ),
      recordTable({
        caption: "Records",
        records: page.records,
        schema: page.schema,
        keyOf: ({ record_id }) => record_id,
        hrefOf: ({ partition, offset }) => traceHref(route.application, { node, partition, offset }),
        isFull,
      }),
    ];
  };

  const pages = ({ next, records }: RecordPage) => {
    const to = (cursor: string | null) => {
      const query = new URLSearchParams(route.query);
      if (cursor === null) query.delete("cursor");
      else query.set("cursor", cursor);
      return recordsHref(route.application, route.node, query);
    };
    return h(
      "nav",
      { class: "pages", "aria-label": "Pages" },
      route.query.has("cursor") && h("a", { href: to(null) }, "First page"),
      next !== null && h("a", { href: to(next), rel: "next" }, "Next page"),
      csvButton(records.some(({ source }) => source?.columns != null)),
    );
  };

  const csvButton = (hasColumns: boolean) => {
    const button: HTMLButtonElement = h(
      "button",
      {
        type: "button",
        click: async () => {
          saving?.abort();
          saving = new AbortController();
          button.disabled = true;
          const query = parameters();
          query.delete("cursor");
          if (hasColumns) query.set("columns", "*");
          try {
            const { text, rows, isAll } = await context.client.csv(route.application, { node: route.node }, query, {
              signal: saving.signal,
              rows: CSV_ROWS,
              onRows: (savedRows) => {
                button.textContent = `CSV: ${number(savedRows)} rows …`;
              },
            });
            save(text, `${route.application}-${nodeNumber(route.node)}.csv`);
            button.textContent = isAll ? `CSV: all ${count(rows, "row")}` : `CSV: the first ${count(rows, "row")}`;
          } catch (error) {
            button.textContent = "CSV failed: try again";
            button.title = error instanceof Error ? error.message : "";
          }
          button.disabled = false;
        },
      },
      "CSV of all",
    );
    return button;
  };

  context.title(`Operation ${nodeNumber(route.node)}`);
  void show();
  return {
    update(nextRoute) {
      if (nextRoute.node !== route.node) replace(about);
      route = nextRoute;
      void show();
    },
    close() {
      requests.abort();
      saving?.abort();
    },
  };
}

const operationOf = (graph: Graph, name: string): Operation | undefined =>
  graph.nodes.find(({ node_id, node }) => name === node_id || name === String(node));

function facts(operation: Operation): Child {
  const { call_site, dataset, records, has_values } = operation;
  const entries: [string, string][] = [
    ["Operation", expressionText(operation)],
    ["Called at", call_site],
    [
      "Dataset",
      dataset === null ? "" : `${dataset.name} (${[dataset.format, dataset.namespace].filter(Boolean).join(", ")})`,
    ],
    ["Records", records === null ? "" : number(records)],
    ["Values", has_values ? "captured" : ""],
  ];
  const filled = entries.filter(([, value]) => value !== "");
  return h(
    "dl",
    { class: "facts" },
    filled.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** Of a pass-through operation: how many rows pass it, and where their traces can start. */
function passThroughFacts(application: string, graph: Graph, operation: Operation): Child {
  const rows = passedRows(graph).get(operation.node_id);
  const { before, after } = neighbours(graph, operation.node_id);
  const list = (title: string, operations: Operation[]): Child =>
    operations.length > 0 && [
      h("h2", {}, title),
      h(
        "ul",
        { class: "endpoints" },
        operations.map(({ node, name, records, dataset }) =>
          h(
            "li",
            {},
            h("a", { href: recordsHref(application, node) }, `${name} (${node})`),
            h("span", { class: "soft" }, ` · ${count(records ?? 0, "record")}`, dataset && ` · ${dataset.name}`),
          ),
        ),
      ),
    ];
  return [
    h(
      "p",
      {},
      rows === undefined ? "Its rows are not counted" : `${count(rows, "row")} came out of this operation`,
      ". They are not kept one by one here: choose a row where they come from or where they go, to trace it.",
    ),
    list("Where its rows come from", before),
    list("Where its rows go", after),
  ];
}

const warnings = (node: Operation, application: Application): Child => [
  !node.exact &&
    notice(
      "caution",
      `Not exact: ${node.reason}. Traces through this operation list every record that may have taken part.`,
    ),
  !application.complete &&
    notice(
      "caution",
      `This application's lineage is ${completeness(application)}${application.missing === "" ? "" : ` (${application.missing})`}. Records may be missing here.`,
    ),
];

function searchForm(search: (query: URLSearchParams) => void) {
  const field = (name: string, label: string, attributes = {}) => {
    const input = h("input", { name, ...attributes });
    return { input, label: h("label", {}, h("span", {}, label), input) };
  };
  const count = { type: "number", min: 0, step: 1, class: "short" };
  const fields = [
    field("text", "Text in the record", { type: "search", size: 24 }),
    field("where", "Rows for which", { type: "search", class: "code", size: 34, spellcheck: "false" }),
    field("key", "Exact key", { type: "search" }),
    field("partition", "Partition", count),
    field("offset", "From offset", count),
  ];
  const element = h(
    "form",
    {
      class: "fields",
      role: "search",
      submit: (event: SubmitEvent) => {
        event.preventDefault();
        search(queryOf(Object.fromEntries(fields.map(({ input }) => [input.name, input.value]))));
      },
    },
    fields.map(({ label }) => label),
    h("button", { type: "submit" }, "Search"),
  );
  return {
    element,
    set(query: URLSearchParams) {
      for (const { input } of fields) input.value = query.get(input.name) ?? "";
    },
  };
}
