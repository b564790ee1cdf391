// The client of the API. Every failure is a Problem with a message for people; requests can be aborted.
// The service's token is stored for as long as the tab is open, and is sent in the header only.

import type {
  Absence,
  Application,
  Applications,
  Choices,
  Comparison,
  Contrast,
  DatasetPage,
  Datasets,
  Explanation,
  Failures,
  Problem as Details,
  Graph,
  Job,
  Jobs,
  Lag,
  Materialized,
  Missing,
  RecordPage,
  Replays,
  RowHistory,
  RowSet,
  Slow,
  Suspects,
  Trace,
  Values,
  Waves,
} from "./api";

const TOKEN_KEY = "lineage-token";

export type Parameters = { [name: string]: string | number | boolean | null | undefined } | URLSearchParams;

/** What went wrong; `message` is for people. `status` is 0 if there was no response. */
export class Problem extends Error {
  override readonly name = "Problem";
  constructor(
    readonly title: string,
    message: string,
    readonly status: number,
    /** Of a trace that exceeded its time budget (504): the cursor of what was found so far. */
    readonly next: string | null = null,
    /** Seconds to wait before asking again, where the service says so. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

/** Whether this error is an aborted request. */
export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";

export interface RequestOptions {
  signal?: AbortSignal | undefined;
}

export interface Client {
  datasets(parameters?: Parameters, options?: RequestOptions): Promise<Datasets>;
  dataset(parameters: Parameters, options?: RequestOptions): Promise<DatasetPage>;
  /** The rows of a dataset that fulfil a condition; the trace, if there is only one. */
  rows(parameters: Parameters, options?: RequestOptions): Promise<Trace | Choices>;
  /** The versions of the row of a table that fulfils a condition; the rows to choose from, if there are several. */
  history(parameters: Parameters, options?: RequestOptions): Promise<RowHistory | Choices>;
  /** What changed between two runs. */
  compare(parameters: Parameters, options?: RequestOptions): Promise<Comparison>;
  compareCsv(parameters: Parameters, options?: RequestOptions): Promise<Blob>;
  applications(parameters?: Parameters, options?: RequestOptions): Promise<Applications>;
  application(id: string, options?: RequestOptions): Promise<Application>;
  graph(id: string, options?: RequestOptions): Promise<Graph>;
  records(id: string, node: string | number, parameters?: Parameters, options?: RequestOptions): Promise<RecordPage>;
  trace(id: string, parameters: Parameters, options?: RequestOptions): Promise<Trace>;
  /** Why rows of inputs are not in an output. */
  missing(id: string, parameters: Parameters, options?: RequestOptions): Promise<Missing>;
  /** Why an operation has no record with a key. */
  absence(id: string, parameters: Parameters, options?: RequestOptions): Promise<Absence>;
  /** Which records made tasks fail. */
  failures(id: string, options?: RequestOptions): Promise<Failures>;
  /** The few input rows that decided what records are. */
  explanation(id: string, parameters: Parameters, options?: RequestOptions): Promise<Explanation>;
  /** Which input rows records were made of, as ranges. */
  rowSet(id: string, parameters: Parameters, options?: RequestOptions): Promise<RowSet>;
  /** Which tasks and operations behave oddly. */
  suspects(id: string, parameters: Parameters, options?: RequestOptions): Promise<Suspects>;
  /** What the input rows of bad outputs share. */
  contrast(id: string, parameters: Parameters, options?: RequestOptions): Promise<Contrast>;
  /** Which records took long. */
  slow(id: string, parameters?: Parameters, options?: RequestOptions): Promise<Slow>;
  /** What replays on the service's machine have given. */
  replays(id: string, options?: RequestOptions): Promise<Replays>;
  values(id: string, parameters: Parameters, options?: RequestOptions): Promise<Values>;
  /** Writes a trace to Neo4j. */
  materialize(id: string, parameters: Parameters, options?: RequestOptions): Promise<Materialized>;
  jobs(options?: RequestOptions): Promise<Jobs>;
  job(name: string, options?: RequestOptions): Promise<Job>;
  /** Every answer about a job. */
  waves(name: string, options?: RequestOptions): Promise<Waves>;
  /** Lets the next wave of a job be run. */
  runNext(name: string, options?: RequestOptions): Promise<Job>;
  /** Lets the training of a job begin anew. */
  retrain(name: string, options?: RequestOptions): Promise<Job>;
  lag(options?: RequestOptions): Promise<Lag>;
  /**
   * All pages of records or of a trace as one CSV text, at most `rows` rows (counting goes by pages, so it may be a
   * page more). `onRows` gets the number of rows so far.
   */
  csv(
    id: string,
    what: { node: string | number } | "trace",
    parameters: Parameters,
    options?: RequestOptions & { rows?: number; onRows?: (rows: number) => void },
  ): Promise<{ text: Blob; rows: number; isAll: boolean }>;
}

const CSV_PAGE = 10_000;

/** A client of the service that served this page: addresses are relative, so it works behind a path prefix. */
export function makeClient(): Client {
  const applicationPath = (id: string, ...segments: (string | number)[]) => ["api", "applications", id, ...segments];
  return {
    datasets: (parameters, options) => getJson(["api", "datasets"], parameters, options),
    dataset: (parameters, options) => getJson(["api", "dataset"], parameters, options),
    rows: (parameters, options) => getJson(["api", "trace"], parameters, options),
    history: (parameters, options) => getJson(["api", "history"], parameters, options),
    compare: (parameters, options) => getJson(["api", "compare"], parameters, options),
    compareCsv: async (parameters, options = {}) =>
      (await request(["api", "compare"], queryOf(parameters), "text/csv", options)).blob(),
    applications: (parameters, options) => getJson(["api", "applications"], parameters, options),
    application: (id, options) => getJson(applicationPath(id), {}, options),
    graph: (id, options) => getJson(applicationPath(id, "graph"), {}, options),
    records: (id, node, parameters, options) =>
      getJson(applicationPath(id, "nodes", node, "records"), parameters, options),
    trace: (id, parameters, options) => getJson(applicationPath(id, "trace"), parameters, options),
    missing: (id, parameters, options) => getJson(applicationPath(id, "missing"), parameters, options),
    absence: (id, parameters, options) => getJson(applicationPath(id, "absence"), parameters, options),
    failures: (id, options) => getJson(applicationPath(id, "failures"), {}, options),
    explanation: (id, parameters, options) => getJson(applicationPath(id, "explanation"), parameters, options),
    rowSet: (id, parameters, options) => getJson(applicationPath(id, "rowset"), parameters, options),
    suspects: (id, parameters, options) => getJson(applicationPath(id, "suspects"), parameters, options),
    contrast: (id, parameters, options) => getJson(applicationPath(id, "contrast"), parameters, options),
    slow: (id, parameters, options) => getJson(applicationPath(id, "slow"), parameters, options),
    replays: (id, options) => getJson(applicationPath(id, "replays"), {}, options),
    values: (id, parameters, options) => getJson(applicationPath(id, "values"), parameters, options),
    materialize: (id, parameters, options) =>
      getJson(applicationPath(id, "trace", "graph"), parameters, options, "POST"),
    jobs: (options) => getJson(["api", "jobs"], {}, options),
    job: (name, options) => getJson(["api", "jobs", name], {}, options),
    waves: (name, options) => getJson(["api", "jobs", name, "waves"], {}, options),
    runNext: (name, options) => getJson(["api", "jobs", name, "run-next"], {}, options, "POST"),
    retrain: (name, options) => getJson(["api", "jobs", name, "retrain"], {}, options, "POST"),
    lag: (options) => getJson(["api", "lag"], {}, options),
    csv: (id, what, parameters, options) =>
      csv(
        what === "trace" ? applicationPath(id, "trace") : applicationPath(id, "nodes", what.node, "records"),
        parameters,
        options,
      ),
  };
}

/** The parameters that have a value, as a query. */
function queryOf(parameters: Parameters): URLSearchParams {
  if (parameters instanceof URLSearchParams) return new URLSearchParams(parameters);
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  return query;
}

async function getJson<T>(
  parts: (string | number)[],
  parameters: Parameters = {},
  options: RequestOptions = {},
  method = "GET",
) {
  const response = await request(parts, queryOf(parameters), "application/json", options, method);
  return (await response.json()) as T;
}

async function request(
  parts: (string | number)[],
  query: URLSearchParams,
  accept: string,
  { signal }: RequestOptions,
  method = "GET",
): Promise<Response> {
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  const token = sessionStorage.getItem(TOKEN_KEY);
  const headers = { Accept: accept, ...(token === null ? {} : { Authorization: `Bearer ${token}` }) };
  let response: Response;
  try {
    response = await fetch(query.size > 0 ? `${path}?${query}` : path, { method, headers, signal: signal ?? null });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Problem("The service does not answer", "Is `lineage serve` still running?", 0);
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response: Response): Promise<Problem> {
  const body: Partial<Details> = await response.json().catch(() => ({}));
  const retryAfter = Number(response.headers.get("Retry-After") ?? Number.NaN);
  return new Problem(
    body.title ?? "The service failed",
    body.detail ?? `Its response was ${response.status} ${response.statusText}`.trim(),
    response.status,
    body.next ?? null,
    Number.isFinite(retryAfter) ? retryAfter : null,
  );
}

async function csv(
  parts: (string | number)[],
  parameters: Parameters,
  options: RequestOptions & { rows?: number; onRows?: (rows: number) => void } = {},
): Promise<{ text: Blob; rows: number; isAll: boolean }> {
  const maxRows = options.rows ?? Number.POSITIVE_INFINITY;
  const query = queryOf(parameters);
  query.set("limit", String(Math.min(CSV_PAGE, maxRows)));
  const pages: string[] = [];
  let rows = 0;
  for (;;) {
    const response = await request(parts, query, "text/csv", options);
    const page = await response.text();
    const headerEnd = page.indexOf("\n") + 1;
    pages.push(pages.length === 0 ? page : page.slice(headerEnd));
    rows += countRows(page.slice(headerEnd));
    options.onRows?.(rows);
    const next = response.headers.get("Lineage-Next");
    if (next === null || rows >= maxRows)
      return { text: new Blob(pages, { type: "text/csv" }), rows, isAll: next === null };
    query.set("cursor", next);
  }
}

/** Rows of a CSV text without its header (RFC 4180): line ends within quotes end none. */
export function countRows(text: string): number {
  let rows = 0;
  let isQuoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x22) isQuoted = !isQuoted;
    else if (code === 0x0a && !isQuoted) rows += 1;
  }
  return text === "" || text.endsWith("\n") ? rows : rows + 1;
}

/** Every later request carries this token. A header takes only visible ASCII; the service has no other tokens. */
export function storeToken(token: string): void {
  sessionStorage.setItem(TOKEN_KEY, token.replace(/[^\x21-\x7e]/g, ""));
}

/** Whether requests carry a token. */
export const hasToken = (): boolean => sessionStorage.getItem(TOKEN_KEY) !== null;

/** Saves a file in the browser. */
export function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // some browsers fetch it only after the click
}
