// All applications: a search, and a table whose rows lead to their graphs. Follows those that still run.

import type { Application, Applications } from "./api";
import type { Problem } from "./client";
import { h, replace } from "./dom";
import { colourOf, completeness, count, errorText, number, stateText, time } from "./format";
import { poll, type Polling } from "./poll";
import { applicationHref, applicationsHref, type ApplicationsRoute, queryOf } from "./route";
import { loading, notice, showFailure } from "./states";
import { table } from "./table";
import type { View, ViewContext } from "./view";

const PAGE = 100;
const POLL_MS = 5_000;
/** After the last key, before a search is sent. */
const TYPING_PAUSE_MS = 250;
/** Those of this view's parameters that the API knows. */
const PARAMETERS = ["text", "state", "complete", "cursor", "limit"];

export function applicationsView(
  container: HTMLElement,
  context: ViewContext,
  first: ApplicationsRoute,
): View<ApplicationsRoute> {
  let route = first;
  let polling: Polling | null = null;
  let shownText = "";
  let typing: ReturnType<typeof setTimeout> | undefined;
  const list = h("div", {}, loading());
  const form = searchForm((isTyped) => {
    clearTimeout(typing);
    typing = setTimeout(
      () => context.navigate({ view: "applications", query: form.query() }, { replace: true }),
      isTyped ? TYPING_PAUSE_MS : 0,
    );
  });
  context.title("Applications");
  replace(container, h("h1", { tabindex: -1 }, "Applications"), form.element, list);

  const show = (page: Applications) => {
    const text = JSON.stringify(page);
    if (text === shownText) return; // nothing new: the reader keeps focus and marked text
    shownText = text;
    const focused = document.activeElement?.closest("tr")?.dataset.key;
    replace(
      list,
      page.applications.length > 0 ? tableOf(page.applications) : emptyNotice(route),
      pages(route, page.next),
    );
    if (focused !== undefined) {
      list.querySelector<HTMLElement>(`tr[data-key="${CSS.escape(focused)}"] a`)?.focus({ preventScroll: true });
    }
    context.announce(
      `${count(page.applications.length, "application")}${page.next === null ? "" : ", and older ones"}`,
    );
  };
  const start = () => {
    polling?.stop();
    shownText = "";
    form.set(route.query);
    const parameters = new URLSearchParams([...route.query].filter(([name]) => PARAMETERS.includes(name)));
    if (!parameters.has("limit")) parameters.set("limit", String(PAGE));
    polling = poll(
      async (signal) => show(await context.client.applications(parameters, { signal })),
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

function searchForm(changed: (isTyped: boolean) => void) {
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
      { name: "Flows", kind: "count", cell: counter("flows") },
      { name: "Runs", kind: "count", cell: counter("runs") },
      { name: "Blocks", kind: "count", cell: counter("blocks") },
    ],
  });
}

const isFiltered = ({ query }: ApplicationsRoute) => ["text", "state", "complete"].some((name) => query.get(name));

const emptyNotice = (route: ApplicationsRoute) =>
  isFiltered(route)
    ? notice("empty", "No application matches.")
    : notice(
        "empty",
        "No application has sent lineage yet. Run a job with ",
        h("code", {}, "--conf spark.lineage.enabled=true"),
        ".",
      );

function pages({ query }: ApplicationsRoute, next: string | null): HTMLElement {
  const to = (cursor: string | null) => {
    const changed = new URLSearchParams(query);
    if (cursor === null) changed.delete("cursor");
    else changed.set("cursor", cursor);
    return applicationsHref(changed);
  };
  return h(
    "nav",
    { class: "pages", "aria-label": "Pages" },
    query.has("cursor") && h("a", { href: to(null) }, "Newest applications"),
    next !== null && h("a", { href: to(next), rel: "next" }, "Older applications"),
  );
}
