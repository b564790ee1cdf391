// The first page: all datasets of all applications, with a search. Rows lead to the page of a dataset.

import type { Datasets, DatasetSummary } from "../api";
import { type Child, h, replace } from "../dom";
import { count, number, share, time } from "../format";
import { pageLinks } from "../pages";
import { listView, type SearchForm } from "../polled";
import { applicationHref, applicationsHref, datasetHref, type DatasetsRoute, datasetsHref, queryOf } from "../route";
import { notice } from "../states";
import { table } from "../table";
import type { MakeView } from "../view";
import { failures, folderOf, shortName, stateColour, stateOf } from "./texts";

export const datasetsView: MakeView<DatasetsRoute> = (container, context, route) => {
  const extent = h("span", { class: "soft" });
  return listView<DatasetsRoute, Datasets>(container, context, route, {
    heading: "Datasets",
    parameters: ["text", "cursor", "limit"],
    interval: 10_000,
    form: (search) => searchForm(search, extent),
    ask: (parameters, options) => context.client.datasets(parameters, options),
    show({ datasets, total, next, unread_applications: unread }, query) {
      replace(extent, total > 0 && share(datasets.length, total, "dataset"));
      return [
        unread > 0 && notice("caution", `The events of ${count(unread, "application")} cannot be read now.`),
        datasets.length > 0 ? tableOf(datasets) : emptyNotice(query),
        h(
          "nav",
          { class: "pages", "aria-label": "Pages" },
          pageLinks(query, next, datasetsHref, { first: "First page", next: "More datasets" }),
        ),
      ];
    },
    announcement: ({ datasets, total }) => share(datasets.length, total, "dataset"),
  });
};

function searchForm(search: (isTyped: boolean) => void, extent: HTMLElement): SearchForm {
  const text = h("input", { name: "text", type: "search", size: 44, input: () => search(true) });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    search(false);
  };
  const element = h(
    "form",
    { class: "fields", role: "search", submit },
    h("label", {}, h("span", {}, "Path, table or topic"), text),
    extent,
  );
  return {
    element,
    query: () => queryOf({ text: text.value }),
    set(query) {
      if (text !== document.activeElement) text.value = query.get("text") ?? "";
    },
  };
}

function tableOf(datasets: DatasetSummary[]): HTMLElement {
  return table<DatasetSummary>({
    caption: "Datasets, those written last first",
    rows: datasets,
    key: ({ namespace, name }) => `${namespace} ${name}`,
    opens: true,
    columns: [
      {
        name: "Dataset",
        cell: (dataset) => [
          h("a", { href: datasetHref(dataset) }, shortName(dataset)),
          h("div", { class: "id" }, folderOf(dataset)),
          dataset.aliases.length > 0 && h("div", { class: "id" }, `also ${dataset.aliases.join(", ")}`),
          dataset.remark !== "" && h("div", { class: "warning" }, dataset.remark),
        ],
      },
      { name: "Format", cell: ({ format }) => format },
      { name: "Last written", kind: "narrow", cell: writtenAt },
      {
        name: "By",
        cell: ({ written }) =>
          written === null
            ? h("span", { class: "soft" }, "only read")
            : [
                h("a", { href: applicationHref(written.application_id) }, written.name),
                !written.complete &&
                  written.state !== "running" &&
                  h("div", { class: "warning" }, "its lineage is incomplete"),
              ],
      },
      { name: "Rows", kind: "count", cell: ({ written }) => (written?.rows == null ? "" : number(written.rows)) },
      { name: "Read by", kind: "count", cell: ({ readers }) => (readers === 0 ? "" : count(readers, "job")) },
      {
        name: "Failed runs",
        kind: "count",
        cell: (dataset) => h("span", { class: "is-failed" }, failures(dataset)),
        isUsed: datasets.some(({ failed_runs: failed }) => failed > 0),
      },
    ],
  });
}

function writtenAt({ written }: DatasetSummary): Child {
  if (written === null) return "";
  return [
    h("time", { datetime: new Date(written.at).toISOString() }, time(written.at)),
    written.state !== "complete" && h("div", { class: stateColour(written) }, stateOf(written)),
  ];
}

const emptyNotice = (query: URLSearchParams) =>
  query.get("text")
    ? notice(
        "empty",
        "No dataset has this text in its path or name. Try a shorter part of it, or look at the ",
        h("a", { href: applicationsHref() }, "applications"),
        ".",
      )
    : notice(
        "empty",
        "No application has written or read anything yet. Run a job with ",
        h("code", {}, "--conf spark.lineage.enabled=true"),
        ", and keep ",
        h("code", {}, "lineage consume"),
        " running.",
      );
