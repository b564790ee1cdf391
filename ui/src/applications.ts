// All applications: a search, and a table whose rows lead to their graphs. Follows those that still run.

import type { Application, Applications } from "./api";
import { h } from "./dom";
import { colourOf, completeness, count, errorText, number, stateText, time } from "./format";
import { pageLinks } from "./pages";
import { listView, type SearchForm } from "./polled";
import { applicationHref, applicationsHref, type ApplicationsRoute, failuresHref, queryOf } from "./route";
import { notice } from "./states";
import { table } from "./table";
import type { MakeView } from "./view";

export const applicationsView: MakeView<ApplicationsRoute> = (container, context, route) =>
  listView<ApplicationsRoute, Applications>(container, context, route, {
    heading: "Applications",
    parameters: ["text", "state", "complete", "cursor", "limit"],
    interval: 5_000,
    form: searchForm,
    ask: (parameters, options) => context.client.applications(parameters, options),
    show: ({ applications, next }, query) => [
      applications.length > 0 ? tableOf(applications) : emptyNotice(query),
      h(
        "nav",
        { class: "pages", "aria-label": "Pages" },
        pageLinks(query, next, applicationsHref, { first: "Newest applications", next: "Older applications" }),
      ),
    ],
    announcement: ({ applications, next }) =>
      `${count(applications.length, "application")}${next === null ? "" : ", and older ones"}`,
  });

function searchForm(changed: (isTyped: boolean) => void): SearchForm {
  const text = h("input", { name: "text", type: "search", size: 28, input: () => changed(true) });
  const choice = (name: string, options: [string, string][]) =>
    h(
      "select",
      { name, change: () => changed(false) },
      options.map(([value, word]) => h("option", { value }, word)),
    );
  const state = choice("state", [
    ["", "any"],
    ["running", "running"],
    ["ended", "ended"],
    ["failed", "failed"],
    ["lost", "lost"],
  ]);
  const complete = choice("complete", [
    ["", "any"],
    ["true", "complete"],
    ["false", "incomplete"],
  ]);
  const fields = { text, state, complete };
  const element = h(
    "form",
    {
      class: "fields",
      role: "search",
      submit: (event: SubmitEvent) => {
        event.preventDefault();
        changed(false);
      },
    },
    h("label", {}, h("span", {}, "Name or id"), text),
    h("label", {}, h("span", {}, "State"), state),
    h("label", {}, h("span", {}, "Lineage"), complete),
  );
  return {
    element,
    query: () => queryOf(Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.value]))),
    set(query: URLSearchParams) {
      for (const [name, field] of Object.entries(fields)) {
        // What is being typed is newer than the address.
        if (field !== document.activeElement || field.tagName === "SELECT") field.value = query.get(name) ?? "";
      }
    },
  };
}

function tableOf(applications: Application[]): HTMLElement {
  const counter =
    (name: string) =>
    ({ counters }: Application) =>
      counters[name] === undefined ? "" : number(counters[name]);
  return table({
    caption: "Applications, newest first",
    rows: applications,
    key: ({ application_id }) => application_id,
    opens: true,
    columns: [
      {
        name: "Application",
        cell: ({ application_id: id, name }) => [
          h("a", { href: applicationHref(id) }, name),
          h("div", { class: "id" }, id),
        ],
      },
      {
        name: "Started",
        kind: "narrow",
        cell: ({ started }) => h("time", { datetime: new Date(started).toISOString() }, time(started)),
      },
      {
        name: "State",
        cell: (application) => [
          h("span", { class: colourOf(application.state) }, stateText(application)),
          application.error !== null && h("div", { class: "failed-text" }, errorText(application.error)),
        ],
      },
      {
        name: "Lineage",
        cell: (application) =>
          h(
            "span",
            { class: application.complete ? null : "warning", title: application.missing },
            completeness(application),
          ),
      },
      {
        name: "Failed tasks",
        kind: "count",
        isUsed: applications.some(({ counters }) => (counters.failed_runs ?? 0) > 0),
        cell: ({ application_id: id, counters }) =>
          (counters.failed_runs ?? 0) > 0 &&
          h("a", { class: "failed-text", href: failuresHref(id) }, number(counters.failed_runs ?? 0)),
      },
      { name: "Flows", kind: "count", cell: counter("flows") },
    ],
  });
}

const emptyNotice = (query: URLSearchParams) =>
  ["text", "state", "complete"].some((name) => query.get(name))
    ? notice("empty", "No application matches.")
    : notice(
        "empty",
        "No application has sent lineage yet. Run a job with ",
        h("code", {}, "--conf spark.lineage.enabled=true"),
        ".",
      );
