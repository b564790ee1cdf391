// The shell: finds the view of the address, keeps what stands around it, and asks for the token where the service does.

import "./style.css";
import { makeClient, type Problem } from "./client";
import { h, replace } from "./dom";
import { applicationHref, applicationsHref, href, parse, type Route, recordsHref } from "./route";
import { signIn } from "./signin";
import { fail, loading, notice, TokenNeeded } from "./states";
import { pause } from "./slices";
import { startTheme } from "./theme";
import type { MakeView, View, ViewContext } from "./view";
import { nodeNumber } from "./format";

type Shown = Exclude<Route, { view: "nowhere" }>;

// Views are fetched when they are first shown: the list must not wait for what draws.
const VIEWS: { [V in Shown["view"]]: () => Promise<MakeView<Extract<Shown, { view: V }>>> } = {
  applications: async () => (await import("./applications")).applicationsView,
  application: async () => (await import("./graph/view")).graphView,
  records: async () => (await import("./records")).recordsView,
  trace: async () => (await import("./trace/view")).traceView,
  lag: async () => (await import("./lag")).lagView,
};

const found = <T extends HTMLElement>(id: string): T => {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`index.html has no #${id}`);
  return element as T;
};

const main = found("view");
const trail = found("trail");
const status = found("status");

let current: { of: string; view: View } | null = null;
let steps = 0;

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
};

/** Shows what the address says. `isMove`: the reader went somewhere, so the view begins at its top. */
function show(isMove: boolean): void {
  const route = parse(location.hash);
  trailOf(route);
  if (route.view === "nowhere") {
    clear();
    context.title("Not there");
    replace(main, h("h1", { tabindex: -1 }, "Not there"), h("p", {}, route.why));
    arrive(isMove);
    return;
  }
  const of = JSON.stringify([route.view, "application" in route ? route.application : null]);
  if (current?.of === of) {
    current.view.update(route);
    return;
  }
  void open(of, route, isMove);
}

async function open(of: string, route: Shown, isMove: boolean): Promise<void> {
  clear();
  steps += 1;
  const step = steps;
  const place = h("div", { class: `view ${route.view}` });
  replace(main, loading());
  try {
    // The table's entry and the route are of one kind, which TypeScript cannot see through the index.
    const make = (await VIEWS[route.view]()) as MakeView<Route>;
    await pause(); // what draws took a while to be read; the view is the next piece of work
    if (step !== steps) return;
    replace(main, place);
    current = { of, view: make(place, context, route) };
  } catch (error) {
    if (step === steps) fail(main, error, () => location.reload());
    return;
  }
  arrive(isMove);
}

function arrive(isMove: boolean): void {
  if (!isMove) return;
  scrollTo(0, 0);
  main.querySelector("h1")?.focus({ preventScroll: true });
}

function clear(): void {
  steps += 1; // whatever is being fetched comes too late
  current?.view.close();
  current = null;
}

/** The way from the list to here, and which place of the page this is. */
function trailOf(route: Route): void {
  const way: [string, string][] = [];
  if (route.view === "application" || route.view === "records" || route.view === "trace") {
    way.push(["Applications", applicationsHref()]);
    if (route.view !== "application") way.push([route.application, applicationHref(route.application)]);
    if (route.view === "trace" && "node" in route.start && route.start.node !== undefined) {
      way.push([`Node ${nodeNumber(route.start.node)}`, recordsHref(route.application, nodeNumber(route.start.node))]);
    }
  }
  replace(trail, ...way.map(([name, address]) => h("a", { href: address }, name)));
  for (const link of document.querySelectorAll("#places a")) {
    const isHere = link.getAttribute("href") === (route.view === "lag" ? "#/lag" : "#/");
    link.toggleAttribute("data-here", isHere);
    if ((route.view === "lag" || route.view === "applications") && isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function askForToken(problem: Problem): void {
  clear();
  context.title("Token");
  context.announce("This service asks for its token");
  signIn(main, problem, () => show(true));
}

document.addEventListener("token-needed", (event) => {
  if (event instanceof TokenNeeded) askForToken(event.problem);
});
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault(); // its address would be a route
  main.focus();
});
addEventListener("hashchange", () => show(true));
addEventListener("unhandledrejection", ({ reason }) => {
  if (!(reason instanceof DOMException && reason.name === "AbortError"))
    main.prepend(notice("failure", String(reason)));
});
startTheme(found<HTMLButtonElement>("theme"));
show(false);
