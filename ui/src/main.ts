// The shell: shows the view of the address and the header around it, and asks for the token if the service requires it.

import "./style.css";
import { makeClient, type Problem } from "./client";
import { commandsOf } from "./commands";
import { copyLines } from "./copy";
import { h, replace } from "./dom";
import { nodeNumber } from "./format";
import {
  applicationHref,
  applicationsHref,
  datasetHref,
  datasetsHref,
  href,
  jobsHref,
  parse,
  recordsHref,
  type Route,
} from "./route";
import { signIn } from "./signin";
import { pause } from "./slices";
import { loading, notice, showFailure, TokenNeeded, waysOn } from "./states";
import { startTheme } from "./theme";
import type { MakeView, View, ViewContext } from "./view";

type ViewRoute = Exclude<Route, { view: "nowhere" }>;

// Views are loaded when they are first shown: the list must not wait for Cytoscape.
const VIEWS: { [V in ViewRoute["view"]]: () => Promise<MakeView<Extract<ViewRoute, { view: V }>>> } = {
  datasets: async () => (await import("./datasets/list")).datasetsView,
  dataset: async () => (await import("./datasets/view")).datasetView,
  history: async () => (await import("./rowhistory/view")).historyView,
  comparison: async () => (await import("./comparison/view")).comparisonView,
  applications: async () => (await import("./applications")).applicationsView,
  application: async () => (await import("./graph/view")).graphView,
  records: async () => (await import("./records")).recordsView,
  trace: async () => (await import("./trace/view")).traceView,
  missing: async () => (await import("./missing")).missingView,
  absence: async () => (await import("./absence/view")).absenceView,
  failures: async () => (await import("./failures/view")).failuresView,
  suspects: async () => (await import("./suspects/view")).suspectsView,
  explanation: async () => (await import("./explanation/view")).explanationView,
  rowset: async () => (await import("./rowset/view")).rowSetView,
  replays: async () => (await import("./replays/view")).replaysView,
  why: async () => (await import("./why/view")).whyView,
  jobs: async () => (await import("./jobs/list")).jobsView,
  job: async () => (await import("./jobs/view")).jobView,
  lag: async () => (await import("./lag")).lagView,
};

const elementById = <T extends HTMLElement>(id: string): T => {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`index.html has no #${id}`);
  return element as T;
};

const main = elementById("view");
const breadcrumbs = elementById("trail");
const status = elementById("status");
const commandMenu = elementById<HTMLDetailsElement>("commands");

let current: { key: string; view: View } | null = null;
let openings = 0;
/** By id, those that a view has seen. */
const applicationNames = new Map<string, string>();

const context: ViewContext = {
  client: makeClient(),
  navigate(route, { replace: isReplaced = false } = {}) {
    const address = href(route);
    if (isReplaced) {
      history.replaceState(null, "", address);
      show(false);
    } else {
      location.hash = address; // the event of it shows the view
    }
  },
  announce(text) {
    status.textContent = text;
  },
  title(text) {
    document.title = `${text} · Lineage Master`;
  },
  commands: showCommands,
  named(application, name) {
    if (name === "" || applicationNames.get(application) === name) return;
    applicationNames.set(application, name);
    showBreadcrumbs(parse(location.hash));
  },
};

/** The same as what is shown, for a terminal and for curl. */
function showCommands(route: Route): void {
  const commands = commandsOf(route);
  commandMenu.hidden = commands.length === 0;
  const panel = commandMenu.querySelector(".commands");
  if (panel !== null) replace(panel, copyLines(commands, context.announce));
}

/** Shows the view of the address. `isMove`: the user navigated, so the view begins at its top. */
function show(isMove: boolean): void {
  const route = parse(location.hash);
  showBreadcrumbs(route);
  showCommands(route);
  if (isMove) commandMenu.open = false;
  if (route.view === "nowhere") {
    closeView();
    context.title("Not found");
    replace(main, h("h1", { tabindex: -1 }, "Not found"), h("p", {}, route.reason), waysOn());
    focusHeading(isMove);
    return;
  }
  const key = JSON.stringify([route.view, subjectOf(route)]);
  if (current?.key === key) {
    current.view.update(route);
    return;
  }
  void open(key, route, isMove);
}

/** What a view is about: another one needs another view. */
function subjectOf(route: ViewRoute): string[] {
  if (route.view === "dataset") return [route.namespace, route.name];
  if (route.view === "job") return [route.job];
  return "application" in route ? [route.application] : [];
}

async function open(key: string, route: ViewRoute, isMove: boolean): Promise<void> {
  closeView();
  openings += 1;
  const opening = openings;
  const container = h("div", { class: `view ${route.view}` });
  replace(main, loading());
  try {
    // The table's entry and the route are of one kind, which TypeScript cannot see through the index.
    const make = (await VIEWS[route.view]()) as MakeView<Route>;
    await pause(); // what draws took a while to be read; the view is the next piece of work
    if (opening !== openings) return;
    replace(main, container);
    current = { key, view: make(container, context, route) };
  } catch (error) {
    if (opening === openings) showFailure(main, error, () => location.reload());
    return;
  }
  focusHeading(isMove);
}

function focusHeading(isMove: boolean): void {
  if (!isMove) return;
  scrollTo(0, 0);
  main.querySelector("h1")?.focus({ preventScroll: true });
}

function closeView(): void {
  openings += 1; // whatever is being fetched comes too late
  current?.view.close();
  current = null;
}

const MAIN_VIEWS = ["datasets", "applications", "jobs", "lag"];

/** The address of the main view that a view belongs to. */
function placeOf({ view }: Route): string {
  if (view === "lag") return "#/lag";
  if (view === "jobs" || view === "job") return jobsHref();
  if (view === "nowhere") return "";
  return ["datasets", "dataset", "history", "comparison"].includes(view) ? datasetsHref() : applicationsHref();
}

/** The links from the list to this view, and which of the main views it belongs to. */
function showBreadcrumbs(route: Route): void {
  const links: [string, string][] = [];
  if (placeOf(route) === datasetsHref() && route.view !== "datasets") links.push(["Datasets", datasetsHref()]);
  if (route.view === "history") links.push([route.dataset, datasetHref({ namespace: "", name: route.dataset })]);
  if (route.view === "job") links.push(["Jobs", jobsHref()]);
  if ("application" in route) {
    links.push(["Applications", applicationsHref()]);
    if (route.view !== "application")
      links.push([applicationNames.get(route.application) ?? route.application, applicationHref(route.application)]);
    if (route.view === "trace" && "node" in route.start && route.start.node !== undefined) {
      links.push([
        `Operation ${nodeNumber(route.start.node)}`,
        recordsHref(route.application, nodeNumber(route.start.node)),
      ]);
    }
  }
  replace(breadcrumbs, ...links.map(([name, address]) => h("a", { href: address }, name)));
  const place = placeOf(route);
  for (const link of document.querySelectorAll("#places a")) {
    const isCurrent = link.getAttribute("href") === place;
    link.toggleAttribute("data-current", isCurrent);
    if (isCurrent && MAIN_VIEWS.includes(route.view)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function askForToken(problem: Problem): void {
  closeView();
  context.title("Token");
  context.announce("This service requires a token");
  signIn(main, problem, () => show(true));
}

document.addEventListener("token-needed", (event) => {
  if (event instanceof TokenNeeded) askForToken(event.problem);
});
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault(); // its address would be a route
  main.focus();
});
commandMenu.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  commandMenu.open = false;
  commandMenu.querySelector("summary")?.focus();
});
addEventListener("click", ({ target }) => {
  if (target instanceof Node && !commandMenu.contains(target)) commandMenu.open = false;
});
addEventListener("hashchange", () => show(true));
addEventListener("unhandledrejection", ({ reason }) => {
  if (!(reason instanceof DOMException && reason.name === "AbortError"))
    main.prepend(notice("failure", String(reason)));
});
startTheme(elementById<HTMLButtonElement>("theme"));
show(false);
