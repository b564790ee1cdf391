// What a view shows, as a command line and for curl. Pure.

import { explainCommand, explanationParameters } from "./explanation/questions";
import { markOf, marksIn, marksQuery, startsOf } from "./marks";
import { isOutput, replayLine, rowsLine } from "./reruns";
import type {
  DatasetRoute,
  HistoryRoute,
  MissingRoute,
  RecordsRoute,
  Route,
  RowSetRoute,
  SuspectsRoute,
  TraceRoute,
  WhyRoute,
} from "./route";
import { filled, lineOf, lineWith, shellWord, startWords } from "./words";

export interface Command {
  /** What it gives, where a view has several: "Where it came from". */
  name: string;
  terminal: string;
  /** Below the address of the service; null of what only a terminal does. */
  path: string | null;
  parameters: readonly (readonly [string, string])[];
}

/** The line for curl; `base` is the address of the service. */
export const curlOf = (base: string, { path, parameters }: { path: string } & Pick<Command, "parameters">): string =>
  [
    parameters.length === 0 ? "curl" : "curl -G",
    shellWord(base + path),
    ...parameters.map(([name, value]) =>
      /^[\w.-]+$/.test(value) ? `-d ${name}=${value}` : `--data-urlencode ${shellWord(`${name}=${value}`)}`,
    ),
  ].join(" ");

/** What gives the same as a view; empty for an address that is none. */
export function commandsOf(route: Route): Command[] {
  switch (route.view) {
    case "datasets": {
      const text = route.query.get("text");
      return [
        {
          name: "",
          terminal: lineOf(["datasets", ...(text ? [text] : [])], {}),
          path: "api/datasets",
          parameters: filled({ text }),
        },
      ];
    }
    case "dataset":
      return datasetCommands(route);
    case "history":
      return historyCommand(route);
    case "comparison":
      return comparisonCommand(route.query);
    case "applications": {
      const [text, state, complete] = ["text", "state", "complete"].map((field) => route.query.get(field));
      return [
        {
          name: "",
          terminal: lineOf(["apps"], { name: text }),
          path: "api/applications",
          parameters: filled({ text, state, complete }),
        },
      ];
    }
    case "application":
      return [
        {
          name: "",
          terminal: lineOf(["graph", route.application], {}),
          path: pathOf(route.application, "graph"),
          parameters: [],
        },
      ];
    case "records":
      return [recordsCommand(route)];
    case "trace":
      return traceCommands(route);
    case "missing":
      return missingCommand(route);
    case "absence":
      return [
        {
          name: "",
          terminal: lineOf(["explain", route.application], { node: route.node, absent: route.key }),
          path: pathOf(route.application, "absence"),
          parameters: filled({ node: route.node, key: route.key }),
        },
      ];
    case "failures":
      return [
        {
          name: "",
          terminal: lineOf(["failures", route.application], {}),
          path: pathOf(route.application, "failures"),
          parameters: [],
        },
      ];
    case "suspects":
      return suspectsCommands(route);
    case "explanation":
      return [
        {
          name: "",
          terminal: explainCommand(route),
          path: pathOf(route.application, "explanation"),
          parameters: filled(explanationParameters(route)),
        },
      ];
    case "rowset":
      return [rowSetCommand(route)];
    case "replays":
      return [
        {
          name: "",
          terminal: "lineage apps --replays",
          path: pathOf(route.application, "replays"),
          parameters: [],
        },
      ];
    case "why":
      return whyCommands(route);
    case "job":
      return jobCommands(route.job);
    case "lag":
      return [{ name: "", terminal: "lineage status", path: "api/lag", parameters: [] }];
    default:
      return [];
  }
}

function jobCommands(job: string): Command[] {
  const path = `api/jobs/${encodeURIComponent(job)}`;
  return [
    { name: "The job", terminal: lineOf(["trigger", "show", job], {}), path, parameters: [] },
    { name: "Its waves", terminal: lineOf(["trigger", "waves", job], {}), path: `${path}/waves`, parameters: [] },
    terminalOnly("Whether to run it now", lineOf(["trigger", job], {})),
  ];
}

const pathOf = (application: string, ...more: string[]): string =>
  ["api/applications", ...[application, ...more].map(encodeURIComponent)].join("/");

/** The dataset; and the rows of it that are looked for. */
function datasetCommands({ name, namespace, query }: DatasetRoute): Command[] {
  const [where, version] = [query.get("where"), query.get("version")];
  const dataset: Command = {
    name: where ? "The dataset" : "",
    terminal: lineOf(["dataset", name], { namespace }),
    path: "api/dataset",
    parameters: filled({ name, namespace }),
  };
  if (!where) return [dataset];
  const path = namespace === "" || namespace === "file" ? name : `${namespace}/${name}`;
  const rows: Command = {
    name: "The rows",
    terminal: lineOf(["trace", path], { version, where }),
    path: "api/trace",
    parameters: filled({ dataset: path, where, version }),
  };
  return [rows, dataset];
}

function historyCommand({ dataset, query }: HistoryRoute): Command[] {
  const [where, version, at] = ["where", "version", "at"].map((field) => query.get(field));
  if (!where) return [];
  const time = at && /^\d{1,15}$/.test(at) ? new Date(Number(at)).toISOString() : null;
  return [
    {
      name: "",
      terminal: lineOf(["history", dataset], { version, at: time, where }),
      path: "api/history",
      parameters: filled({ dataset, where, version, at }),
    },
  ];
}

function recordsCommand({ application, node, query }: RecordsRoute): Command {
  const [text, where, key, partition, offset] = ["text", "where", "key", "partition", "offset"].map((field) =>
    query.get(field),
  );
  const flags = { text, where, key, partition, offset };
  return {
    name: "",
    terminal: lineOf(["show", application, node], flags),
    path: pathOf(application, "nodes", node, "records"),
    parameters: filled(flags),
  };
}

function traceCommands(route: TraceRoute): Command[] {
  const { application, start, whole, query } = route;
  const directions = route.direction === "both" ? (["backward", "forward"] as const) : [route.direction];
  const commands = directions.map((direction): Command => {
    const depth = whole ? null : (query.get(direction === "backward" ? "up" : "down") ?? 1);
    const { record, flags } = startWords(start);
    return {
      name: direction === "backward" ? "Where it came from" : "What became of it",
      terminal: lineOf(["trace", application, direction, ...record], { ...flags, depth }),
      path: pathOf(application, "trace"),
      parameters: filled({ direction, ...start, depth }),
    };
  });
  if (!directions.includes("backward") || !isOutput(start)) return commands;
  return [...commands, terminalOnly("Run the job again on these rows only", replayLine(application, start))];
}

const terminalOnly = (name: string, terminal: string): Command => ({ name, terminal, path: null, parameters: [] });

function suspectsCommands({ application, query }: SuspectsRoute): Command[] {
  const marks = marksIn(query);
  const flags = marks.map(({ kind, isCondition, name }): [string, string] => [
    isCondition ? `${kind}-where` : kind,
    name,
  ]);
  const hasFailures = query.get("failures") === "1";
  const hasBad = hasFailures || marks.some(({ kind }) => kind === "bad");
  const [method, limit] = [query.get("method"), query.get("limit")];
  const outputs = { bad: startsOf(marks, "bad"), good: startsOf(marks, "good") };
  const suspects: Command = {
    name: hasBad ? "Who behaves oddly" : "",
    terminal: lineWith(["suspects", application], [...flags, ...filled({ method, limit })]),
    path: pathOf(application, "suspects"),
    parameters: filled({ ...outputs, method, limit }),
  };
  if (!hasBad) return [suspects];
  const contrast: Command = {
    name: "What bad outputs share",
    terminal: `${lineWith(["contrast", application], flags)}${hasFailures ? " --failures" : ""}`,
    path: pathOf(application, "contrast"),
    parameters: filled({ ...outputs, failures: hasFailures ? "true" : null }),
  };
  return [suspects, contrast];
}

const rowSetCommand = ({
  application,
  start,
  query,
}: Pick<RowSetRoute, "application" | "start" | "query">): Command => ({
  name: "",
  terminal: rowsLine(application, start),
  path: pathOf(application, "rowset"),
  parameters: filled({ ...start, limit: query.get("limit") }),
});

/** The questions that the view asks, each by itself. */
function whyCommands(route: WhyRoute): Command[] {
  const { application, start, query } = route;
  const outputs = "failure" in start ? new URLSearchParams({ failures: "1" }) : marksOf(route);
  for (const good of query.getAll("good")) outputs.append("good", good);
  return [
    { ...rowSetCommand({ application, start, query: new URLSearchParams() }), name: "The input rows" },
    ...suspectsCommands({ view: "suspects", application, query: outputs }),
  ];
}

/** The record itself as a bad output, where it has a short name. */
function marksOf({ start }: WhyRoute): URLSearchParams {
  const mark = markOf("bad", start);
  return marksQuery(mark === null ? [] : [mark]);
}

function missingCommand({ application, query }: MissingRoute): Command[] {
  const [path, row, record, node, partition, offset, where, direction, output] = MISSING.map((name) => query.get(name));
  const parameters = filled(Object.fromEntries(MISSING.map((name) => [name, query.get(name)])));
  if (parameters.length === 0) return [];
  const isPosition = partition != null && offset != null;
  const start = isPosition ? `${partition}#${offset}` : (record ?? (path && row ? `${path}:${Number(row) + 1}` : path));
  const line = lineOf(["missing", application, ...(start ? [start] : [])], { where, node, output });
  return [
    {
      name: "",
      terminal: direction === "forward" ? `${line} --input` : line,
      path: pathOf(application, "missing"),
      parameters,
    },
  ];
}

const MISSING = ["path", "row", "record", "node", "partition", "offset", "where", "direction", "output"] as const;

function comparisonCommand(query: URLSearchParams): Command[] {
  const [dataset, before, after, key] = ["dataset", "before", "after", "key"].map((field) => query.get(field) ?? "");
  const isOfRuns = before && after;
  if (!isOfRuns && !dataset) return [];
  const terminal = isOfRuns
    ? lineOf(["compare", before, after], { dataset, key })
    : lineOf(["compare", dataset ?? ""], { key });
  return [{ name: "", terminal, path: "api/compare", parameters: filled({ before, after, dataset, key }) }];
}
