// What a view shows, as a command line and for curl. Pure.

import type { DatasetRoute, MissingRoute, RecordsRoute, Route, Start, TraceRoute } from "./route";

export interface Command {
  /** What it gives, where a view has several: "Where it came from". */
  name: string;
  terminal: string;
  /** Below the address of the service; null of what only a terminal does. */
  path: string | null;
  parameters: readonly (readonly [string, string])[];
}

type Parameters = { [name: string]: string | number | null | undefined };

/** A word of a shell (POSIX). */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return /["$`\\!]/.test(text) ? `'${text.replaceAll("'", "'\\''")}'` : `"${text}"`;
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

const filled = (parameters: Parameters): [string, string][] =>
  Object.entries(parameters).flatMap(([name, value]): [string, string][] =>
    value === null || value === undefined || value === "" ? [] : [[name, String(value)]],
  );

const lineOf = (words: readonly string[], flags: Parameters): string =>
  [
    "lineage",
    ...words.map(shellWord),
    ...filled(flags).flatMap(([name, value]) => [`--${name}`, shellWord(value)]),
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
    case "failures":
      return [
        {
          name: "",
          terminal: lineOf(["failures", route.application], {}),
          path: pathOf(route.application, "failures"),
          parameters: [],
        },
      ];
    case "lag":
      return [{ name: "", terminal: "lineage status", path: "api/lag", parameters: [] }];
    default:
      return [];
  }
}

const pathOf = (application: string, ...more: string[]): string =>
  ["api/applications", ...[application, ...more].map(encodeURIComponent)].join("/");

/** The dataset; and the rows of it that are looked for. */
function datasetCommands({ name, namespace, query }: DatasetRoute): Command[] {
  const where = query.get("where");
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
    terminal: lineOf(["trace", path], { where }),
    path: "api/trace",
    parameters: filled({ dataset: path, where }),
  };
  return [rows, dataset];
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
  return directions.includes("backward") ? [...commands, ...replayCommand(application, start)] : commands;
}

/** A record of an output can be made again, by the command of its job. */
function replayCommand(application: string, start: Start): Command[] {
  if (!("record" in start) || !/(^|#)write#/.test(start.record)) return [];
  const { record, flags } = startWords(start);
  const terminal = `${lineOf(["replay", application, ...record], flags)} -- YOUR COMMAND`;
  return [{ name: "Run the job again on these rows only", terminal, path: null, parameters: [] }];
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

/** How the command line names the start of a trace. Lines of a file count from 1 there. */
function startWords(start: Start): { record: string[]; flags: Parameters } {
  if ("record" in start) return { record: [start.record], flags: { node: start.node } };
  if ("path" in start) return { record: [`${start.path}:${start.row + 1}`], flags: {} };
  if ("key" in start) return { record: [], flags: { key: start.key, node: start.node } };
  if ("failure" in start) return { record: [], flags: { failure: start.failure } };
  if ("where" in start) return { record: ["--all"], flags: { where: start.where, node: start.node } };
  return { record: [`${start.partition}#${start.offset}`], flags: { node: start.node } };
}
