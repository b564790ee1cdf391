// One dataset: what is known of it, its rows, what is before and behind it, which runs wrote and read it when, its columns.

import type { DatasetPage, DatasetSummary } from "../api";
import { type Child, h, replace } from "../dom";
import { count, number, time } from "../format";
import { applicationHref, comparisonHref, type DatasetRoute, queryOf } from "../route";
import { loading, notice, showFailure } from "../states";
import type { View, ViewContext } from "../view";
import { makeFinder } from "./finder";
import { historyOf } from "./history";
import { makeNeighbours } from "./neighbours";
import { schemaOf } from "./schema";
import { failures, stateColour, stateOf } from "./texts";

export function datasetView(container: HTMLElement, context: ViewContext, first: DatasetRoute): View<DatasetRoute> {
  let route = first;
  let asking = new AbortController();
  const heading = h("h1", { tabindex: -1 }, first.name);
  const about = h("div", {}, loading());
  const finder = makeFinder(context, first);
  const neighbours = makeNeighbours(context);
  const history = h("div");
  const columns = h("div");
  const body = h("div", { hidden: true }, finder.element, neighbours.element, history, columns);
  context.title(first.name);
  replace(container, heading, about, body);

  const load = async () => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const { name, namespace, query } = route;
    try {
      const page = await context.client.dataset({ name, namespace, cursor: query.get("cursor") }, { signal });
      if (signal.aborted) return;
      await show(page);
    } catch (error) {
      showFailure(about, error, () => void load());
    }
  };
  const show = async (page: DatasetPage) => {
    const { dataset, unread_applications: unread } = page;
    replace(heading, dataset.path);
    context.title(dataset.path);
    replace(
      about,
      unread > 0 && notice("caution", `The events of ${count(unread, "application")} cannot be read now.`),
      dataset.remark !== "" && notice("caution", `${dataset.remark}.`),
      factsOf(dataset),
    );
    replace(history, h("h2", {}, "History"), dataset.runs > 1 && comparisonLink(dataset), historyOf(page, route));
    replace(columns, h("h2", {}, "Columns"), schemaOf(dataset));
    body.hidden = false;
    context.announce(`${dataset.path}: ${count(page.total, "write or read", "writes and reads")}`);
    finder.about(dataset);
    await neighbours.show(page.graph);
  };
  void load();
  return {
    update(next) {
      const isPaged = next.query.get("cursor") !== route.query.get("cursor");
      route = next;
      finder.update(next);
      if (isPaged) void load();
    },
    close() {
      asking.abort();
      finder.close();
      neighbours.close();
    },
  };
}

const comparisonLink = ({ path }: DatasetSummary): HTMLElement =>
  h("p", {}, h("a", { href: comparisonHref(queryOf({ dataset: path })) }, "Compare what its last two runs wrote"));

function factsOf(dataset: DatasetSummary): HTMLElement {
  const { written } = dataset;
  const facts: [string, Child][] = [
    ["Format", dataset.format || "unknown"],
    ["Where", dataset.namespace],
    ["Also called", dataset.aliases.join(", ")],
    ["In folders by", dataset.partitions.join(", ")],
    [
      "Last written",
      written === null
        ? "never: it was only read"
        : [
            h("time", { datetime: new Date(written.at).toISOString() }, time(written.at)),
            " by ",
            h("a", { href: applicationHref(written.application_id) }, written.name),
            written.state !== "complete" && [", ", h("span", { class: stateColour(written) }, stateOf(written))],
          ],
    ],
    ["Rows", written?.rows == null ? "" : number(written.rows)],
    ["Written by", dataset.writers > 0 && count(dataset.writers, "job")],
    ["Read by", dataset.readers > 0 && count(dataset.readers, "job")],
    ["Failed runs", dataset.failed_runs > 0 && h("span", { class: "is-failed" }, failures(dataset))],
  ];
  return h(
    "dl",
    { class: "facts" },
    facts
      .filter(([, value]) => value !== "" && value !== false)
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}
