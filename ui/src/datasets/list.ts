// The first page: all datasets of all applications, with a search. Rows lead to the page of a dataset.

import type { Datasets, DatasetSummary } from "../api";
import type { Problem } from "../client";
import { type Child, h, replace } from "../dom";
import { count, number, share, time } from "../format";
import { poll, type Polling } from "../poll";
import { applicationHref, applicationsHref, datasetHref, type DatasetsRoute, datasetsHref, queryOf } from "../route";
import { loading, notice, showFailure } from "../states";
import { table } from "../table";
import type { View, ViewContext } from "../view";
import { failures, folderOf, shortName, stateColour, stateOf } from "./texts";

const PAGE = 100;
const POLL_MS = 10_000;
/** After the last key, before a search is sent. */
const TYPING_PAUSE_MS = 250;
/** Those of this view's parameters that the API knows. */
const PARAMETERS = ["text", "cursor", "limit"];

export function datasetsView(container: HTMLElement, context: ViewContext, first: DatasetsRoute): View<DatasetsRoute> {
  let route = first;
  let polling: Polling | null = null;
  let shownText = "";
  let typing: ReturnType<typeof setTimeout> | undefined;
  const list = h("div", {}, loading());
  const found = h("span", { class: "soft" });
  const search = (isTyped: boolean) => {
    clearTimeout(typing);
    typing = setTimeout(
      () => context.navigate({ view: "datasets", query: queryOf({ text: text.value }) }, { replace: true }),
      isTyped ? TYPING_PAUSE_MS : 0,
    );
  };
  const text = h("input", { name: "text", type: "search", size: 44, input: () => search(true) });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    search(false);
  };
  const form = h(
    "form",
    { class: "fields", role: "search", submit },
    h("label", {}, h("span", {}, "Path, table or topic"), text),
    found,
  );
  context.title("Datasets");
  replace(container, h("h1", { tabindex: -1 }, "Datasets"), form, list);

  const show = (page: Datasets) => {
    const content = JSON.stringify(page);
    if (content === shownText) return; // nothing new: the reader keeps focus and marked text
    shownText = content;
    const focused = document.activeElement?.closest("tr")?.dataset.key;
    const { datasets, total, unread_applications: unread } = page;
    replace(found, total > 0 && share(datasets.length, total, "dataset"));
    replace(
      list,
      unread > 0 && notice("caution", `The events of ${count(unread, "application")} cannot be read now.`),
      datasets.length > 0 ? tableOf(datasets) : emptyNotice(route),
      pages(route, page.next),
    );
    if (focused !== undefined) {
      list.querySelector<HTMLElement>(`tr[data-key="${CSS.escape(focused)}"] a`)?.focus({ preventScroll: true });
    }
    context.announce(share(datasets.length, total, "dataset"));
  };
  const start = () => {
    polling?.stop();
    shownText = "";
    if (text !== document.activeElement) text.value = route.query.get("text") ?? "";
    const parameters = new URLSearchParams([...route.query].filter(([name]) => PARAMETERS.includes(name)));
    if (!parameters.has("limit")) parameters.set("limit", String(PAGE));
    polling = poll(
      async (signal) => show(await context.client.datasets(parameters, { signal })),
      POLL_MS,
      (problem: unknown) => {
        shownText = "";
        if ((problem as Problem).status === 401) polling?.stop();
        showFailure(list, problem, () => polling?.now());
      },
    );
  };
  start();
  return {
    update(next) {
      route = next;
      start();
    },
    close() {
      clearTimeout(typing);
      polling?.stop();
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

const emptyNotice = ({ query }: DatasetsRoute) =>
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

function pages({ query }: DatasetsRoute, next: string | null): HTMLElement {
  const to = (cursor: string | null) => {
    const changed = new URLSearchParams(query);
    if (cursor === null) changed.delete("cursor");
    else changed.set("cursor", cursor);
    return datasetsHref(changed);
  };
  return h(
    "nav",
    { class: "pages", "aria-label": "Pages" },
    query.has("cursor") && h("a", { href: to(null) }, "First page"),
    next !== null && h("a", { href: to(next), rel: "next" }, "More datasets"),
  );
}
