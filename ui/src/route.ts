// What an address of this page means, and back. Pure. Every state that one may want to send to a colleague is in here:
//   #/                               datasets, all of them
//   #/datasets?text=&cursor=         datasets, those that match
//   #/dataset?name=&namespace=&...   one dataset; where=: its rows that fulfil this condition
//   #/history?dataset=&where=&...   the versions of a row of a table (the API's parameters)
//   #/compare?dataset=&key=&...      what changed between two runs (the API's parameters)
//   #/applications?text=&state=&...  applications; #/?state=... means the same
//   #/app/APP?open=&at=              an application's graph
//   #/app/APP/nodes/NODE?...         records of a node (the API's parameters)
//   #/app/APP/trace?...              the trace of a record (the API's parameters)
//   #/app/APP/missing?path=&row=...  why rows are not in the output (the API's parameters)
//   #/app/APP/absence?node=&key=     why an operation has no record with a key
//   #/app/APP/failures               which records made tasks fail
//   #/app/APP/suspects?bad=&good=... who behaves oddly, and what bad outputs share
//   #/app/APP/explanation?...        the few input rows that decided what a record is
//   #/app/APP/rowset?...             which input rows a record was made of
//   #/app/APP/replays                its replays; #/app/APP/replays/ID: one of them
//   #/app/APP/why?...                why a record is as it is
//   #/jobs?text=                     jobs, by the name that they are asked about
//   #/job/JOB?waves=                 one job: what was decided, and what that saved
//   #/lag                            the lag
// Parameters that a view does not know are left alone: old links keep working.

export type Direction = "both" | "backward" | "forward";

/** Where a trace starts; exactly one of these. */
export type Start =
  | { record: string; node?: string }
  | { node: string; partition: number; offset: number }
  | { node: string; key: string }
  | { node: string; where: string }
  | { path: string; row: number }
  | { failure: number };

export interface DatasetsRoute {
  view: "datasets";
  query: URLSearchParams;
}

export interface DatasetRoute {
  view: "dataset";
  name: string;
  /** Empty where the name alone tells which. */
  namespace: string;
  /** The other parameters of the address, which belong to the view. */
  query: URLSearchParams;
}

/** The versions of a row of a table. */
export interface HistoryRoute {
  view: "history";
  dataset: string;
  /** The other parameters of the address, which belong to the view. */
  query: URLSearchParams;
}

export interface ComparisonRoute {
  view: "comparison";
  query: URLSearchParams;
}

export interface ApplicationsRoute {
  view: "applications";
  query: URLSearchParams;
}

export interface ApplicationRoute {
  view: "application";
  application: string;
  query: URLSearchParams;
}

export interface RecordsRoute {
  view: "records";
  application: string;
  node: string;
  query: URLSearchParams;
}

export interface TraceRoute {
  view: "trace";
  application: string;
  start: Start;
  direction: Direction;
  whole: boolean;
  /** The other parameters of the address, which belong to the view. */
  query: URLSearchParams;
}

export interface MissingRoute {
  view: "missing";
  application: string;
  query: URLSearchParams;
}

export interface AbsenceRoute {
  view: "absence";
  application: string;
  node: string;
  key: string;
}

export interface FailuresRoute {
  view: "failures";
  application: string;
}

export interface SuspectsRoute {
  view: "suspects";
  application: string;
  query: URLSearchParams;
}

export interface ExplanationRoute {
  view: "explanation";
  application: string;
  start: Start;
  /** The other parameters of the address, which belong to the view. */
  query: URLSearchParams;
}

export interface RowSetRoute {
  view: "rowset";
  application: string;
  start: Start;
  /** The other parameters of the address, which belong to the view. */
  query: URLSearchParams;
}

export interface ReplaysRoute {
  view: "replays";
  application: string;
  /** One of them; null: all. */
  replay: string | null;
}

export interface WhyRoute {
  view: "why";
  application: string;
  start: Start;
  /** The other parameters of the address, which belong to the view. */
  query: URLSearchParams;
}

export interface JobsRoute {
  view: "jobs";
  query: URLSearchParams;
}

export interface JobRoute {
  view: "job";
  job: string;
  query: URLSearchParams;
}

export interface LagRoute {
  view: "lag";
}

/** An address that leads nowhere; `why` is for people. */
export interface NoRoute {
  view: "nowhere";
  reason: string;
}

export type Route =
  | DatasetsRoute
  | DatasetRoute
  | HistoryRoute
  | ComparisonRoute
  | ApplicationsRoute
  | ApplicationRoute
  | RecordsRoute
  | TraceRoute
  | MissingRoute
  | AbsenceRoute
  | FailuresRoute
  | SuspectsRoute
  | ExplanationRoute
  | RowSetRoute
  | ReplaysRoute
  | WhyRoute
  | JobsRoute
  | JobRoute
  | LagRoute
  | NoRoute;

const START_PARAMETERS = ["record", "node", "partition", "offset", "key", "where", "path", "row", "failure"];
const TRACE_PARAMETERS = [...START_PARAMETERS, "direction", "whole"];

/** The route of `location.hash`. */
export function parse(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  const query = new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1));
  let parts: string[];
  try {
    parts = (mark < 0 ? text : text.slice(0, mark)).split("/").map(decodeURIComponent);
  } catch {
    return { view: "nowhere", reason: "This address is not percent-encoded UTF-8." };
  }
  const [word = "", application = "", place = "", node = "", ...more] = parts;
  if (more.length === 0) {
    // A search without a place is one of applications: the list was there once, and old links keep working.
    if (word === "") return { view: query.size === 0 ? "datasets" : "applications", query };
    if (application === "" && (word === "datasets" || word === "applications")) return { view: word, query };
    if (application === "" && word === "dataset") return datasetRoute(query);
    if (application === "" && word === "history") return historyRoute(query);
    if (application === "" && word === "compare") return { view: "comparison", query };
    if (word === "lag" && application === "") return { view: "lag" };
    if (word === "jobs" && application === "") return { view: "jobs", query };
    if (word === "job" && application !== "" && place === "") return { view: "job", job: application, query };
    if (word === "app" && application !== "") {
      if (place === "" && node === "") return { view: "application", application, query };
      if (place === "nodes" && node !== "") return { view: "records", application, node, query };
      if (place === "trace" && node === "") return traceRoute(application, query);
      if (place === "missing" && node === "") return { view: "missing", application, query };
      if (place === "failures" && node === "") return { view: "failures", application };
      return debuggingRoute(application, place, node, query);
    }
  }
  return NO_VIEW;
}

const NO_VIEW: NoRoute = { view: "nowhere", reason: "This page has no such view." };

/** Of what says why an output is wrong. */
function debuggingRoute(application: string, place: string, name: string, query: URLSearchParams): Route {
  if (place === "replays") return { view: "replays", application, replay: name === "" ? null : name };
  if (name !== "") return NO_VIEW;
  if (place === "suspects") return { view: "suspects", application, query };
  if (place === "absence") return absenceRoute(application, query);
  if (place !== "explanation" && place !== "rowset" && place !== "why") return NO_VIEW;
  const start = startOf(query);
  if (start === null) return { view: "nowhere", reason: "This address does not name a record." };
  return { view: place, application, start, query: withoutThese(query, START_PARAMETERS) };
}

const withoutThese = (query: URLSearchParams, names: readonly string[]): URLSearchParams =>
  new URLSearchParams([...query].filter(([name]) => !names.includes(name)));

function datasetRoute(query: URLSearchParams): DatasetRoute | NoRoute {
  const [name, namespace] = [query.get("name") ?? "", query.get("namespace") ?? ""];
  if (name === "") return { view: "nowhere", reason: "This address of a dataset does not name it." };
  return { view: "dataset", name, namespace, query: withoutThese(query, ["name", "namespace"]) };
}

function historyRoute(query: URLSearchParams): HistoryRoute | NoRoute {
  const dataset = query.get("dataset") ?? "";
  if (dataset === "") return { view: "nowhere", reason: "This address of the history of a row does not name a table." };
  return { view: "history", dataset, query: withoutThese(query, ["dataset"]) };
}

function absenceRoute(application: string, query: URLSearchParams): AbsenceRoute | NoRoute {
  const [node, key] = [query.get("node") ?? "", query.get("key") ?? ""];
  if (node === "" || key === "")
    return { view: "nowhere", reason: "This address does not name an operation and a key." };
  return { view: "absence", application, node, key };
}

function traceRoute(application: string, query: URLSearchParams): TraceRoute | NoRoute {
  const start = startOf(query);
  if (start === null) {
    return { view: "nowhere", reason: "This address of a trace does not name the record at which it starts." };
  }
  // A record that made a task fail went into nothing.
  const requested = "failure" in start ? "backward" : query.get("direction");
  const direction = requested === "backward" || requested === "forward" ? requested : "both";
  const rest = withoutThese(query, TRACE_PARAMETERS);
  return { view: "trace", application, start, direction, whole: query.get("whole") === "1", query: rest };
}

function startOf(query: URLSearchParams): Start | null {
  const node = query.get("node");
  const [partition, offset, row] = [position(query, "partition"), position(query, "offset"), position(query, "row")];
  const [record, key, path] = [query.get("record"), query.get("key"), query.get("path")];
  const [where, failure] = [query.get("where"), position(query, "failure")];
  if (record !== null) return node === null ? { record } : { record, node };
  if (node !== null && partition !== null && offset !== null) return { node, partition, offset };
  if (node !== null && key !== null) return { node, key };
  if (node !== null && where !== null) return { node, where };
  if (path !== null && row !== null) return { path, row };
  if (failure !== null) return { failure };
  return null;
}

function position(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  return text !== null && /^\d{1,16}$/.test(text) ? Number(text) : null;
}

/** The address of a route, to be an `href` of this page. */
export function href(route: Exclude<Route, NoRoute>): string {
  switch (route.view) {
    case "datasets":
      return hash(route.query.size === 0 ? [] : ["datasets"], route.query);
    case "dataset": {
      const query = queryOf({ name: route.name, namespace: route.namespace });
      for (const [name, value] of route.query) query.append(name, value);
      return hash(["dataset"], query);
    }
    case "history":
      return hash(["history"], new URLSearchParams([["dataset", route.dataset], ...route.query]));
    case "applications":
      return hash(["applications"], route.query);
    case "comparison":
      return hash(["compare"], route.query);
    case "lag":
      return hash(["lag"]);
    case "jobs":
      return hash(["jobs"], route.query);
    case "job":
      return hash(["job", route.job], route.query);
    case "missing":
      return hash(["app", route.application, "missing"], route.query);
    case "absence":
      return hash(["app", route.application, "absence"], queryOf({ node: route.node, key: route.key }));
    case "failures":
      return hash(["app", route.application, "failures"]);
    case "suspects":
      return hash(["app", route.application, "suspects"], route.query);
    case "replays":
      return hash(["app", route.application, "replays", ...(route.replay === null ? [] : [route.replay])]);
    case "explanation":
    case "rowset":
    case "why":
      return hash(["app", route.application, route.view], startQuery(route.start, route.query));
    case "application":
      return hash(["app", route.application], route.query);
    case "records":
      return hash(["app", route.application, "nodes", route.node], route.query);
    case "trace": {
      const query = startQuery(route.start);
      if (route.direction !== "both" && !("failure" in route.start)) query.set("direction", route.direction);
      if (route.whole) query.set("whole", "1");
      for (const [name, value] of route.query) query.append(name, value);
      return hash(["app", route.application, "trace"], query);
    }
  }
}

/** The parameters that name a start, and then the others. */
const startQuery = (start: Start, others = new URLSearchParams()): URLSearchParams =>
  new URLSearchParams([
    ...Object.entries(start).map(([name, value]): [string, string] => [name, String(value)]),
    ...others,
  ]);

function hash(parts: string[], query = new URLSearchParams()): string {
  const search = query.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${search === "" ? "" : `?${search}`}`;
}

/** A query with only those parameters that hold something. */
export function queryOf(parameters: { [name: string]: string | number | null | undefined }): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  return query;
}

export const datasetsHref = (query = new URLSearchParams()): string => href({ view: "datasets", query });

export const datasetHref = (
  { namespace, name }: { namespace: string; name: string },
  query = new URLSearchParams(),
): string => href({ view: "dataset", name, namespace, query });

export const historyHref = (dataset: string, query: URLSearchParams): string =>
  href({ view: "history", dataset, query });

export const comparisonHref = (query = new URLSearchParams()): string => href({ view: "comparison", query });

export const applicationsHref = (query = new URLSearchParams()): string => href({ view: "applications", query });

export const applicationHref = (application: string, query = new URLSearchParams()): string =>
  href({ view: "application", application, query });

export const recordsHref = (application: string, node: string | number, query = new URLSearchParams()): string =>
  href({ view: "records", application, node: String(node), query });

export const missingHref = (application: string, query: URLSearchParams): string =>
  href({ view: "missing", application, query });

export const absenceHref = (application: string, node: string, key: string): string =>
  href({ view: "absence", application, node, key });

export const failuresHref = (application: string): string => href({ view: "failures", application });

export const suspectsHref = (application: string, query = new URLSearchParams()): string =>
  href({ view: "suspects", application, query });

export const rowSetHref = (application: string, start: Start, query = new URLSearchParams()): string =>
  href({ view: "rowset", application, start, query });

export const explanationHref = (application: string, start: Start, query = new URLSearchParams()): string =>
  href({ view: "explanation", application, start, query });

export const replaysHref = (application: string, replay: string | null = null): string =>
  href({ view: "replays", application, replay });

export const whyHref = (application: string, start: Start, query = new URLSearchParams()): string =>
  href({ view: "why", application, start, query });

export const jobsHref = (): string => href({ view: "jobs", query: new URLSearchParams() });

export const jobHref = (job: string, query = new URLSearchParams()): string => href({ view: "job", job, query });

/** The address of a record's trace in both directions. */
export const traceHref = (application: string, start: Start, query = new URLSearchParams()): string =>
  href({ view: "trace", application, start, direction: "both", whole: false, query });
