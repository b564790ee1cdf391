// The state in a trace's address beside its start: how far it is drawn, and of what more is shown. Everything
// that is not as at first is in the address, so that what one sees can be sent to a colleague.

/** Records of each operation that the API is asked for. */
export const FIRST_LIMIT = 50;
export const MAX_LIMIT = 200;
const MIN_LIMIT = 6;
const MAX_TOTAL = 4000;
const MAX_HOPS = 10_000;

/** How the table of one operation's records is shown. */
export interface TableState {
  /** The column that orders all of its rows. */
  readonly sort: string | null;
  readonly isDescending: boolean;
  /** The condition that listed records fulfil. */
  readonly filter: string | null;
  /** Those columns of rows that are shown; null: all. */
  readonly columns: readonly string[] | null;
  /** Nothing is rounded or cut. */
  readonly isFull: boolean;
}

export const FIRST_TABLE: TableState = { sort: null, isDescending: false, filter: null, columns: null, isFull: false };

export interface TraceState {
  /** Operations to follow in each direction, unless the whole trace is shown. */
  readonly up: number;
  readonly down: number;
  /** Records to draw, by node id. */
  readonly more: ReadonlyMap<string, number>;
  /** The operation whose records are listed as a table, by its id. */
  readonly list: string | null;
  readonly table: TableState;
  /** Operations that stand for others in a long trace, and of which each is drawn. */
  readonly unfolded: ReadonlySet<string>;
}

export const FIRST_STATE: TraceState = {
  up: 1,
  down: 1,
  more: new Map(),
  list: null,
  table: FIRST_TABLE,
  unfolded: new Set(),
};

export function readState(query: URLSearchParams): TraceState {
  const more = new Map<string, number>();
  for (const entry of query.getAll("more")) {
    const [, node = "", count = ""] = /^(.+):(\d{1,4})$/.exec(entry) ?? [];
    if (node !== "") more.set(node, Math.min(MAX_LIMIT, Number(count)));
  }
  return {
    up: hops(query.get("up")),
    down: hops(query.get("down")),
    more,
    list: query.get("list"),
    table: readTable(query),
    unfolded: new Set(query.getAll("unfold")),
  };
}

function readTable(query: URLSearchParams): TableState {
  const columns = query.getAll("column");
  return {
    sort: query.get("sort"),
    isDescending: query.get("desc") === "1",
    filter: query.get("filter"),
    columns: columns.length === 0 ? null : columns,
    isFull: query.get("full") === "1",
  };
}

export function stateQuery(state: TraceState): URLSearchParams {
  const query = new URLSearchParams();
  if (state.up !== FIRST_STATE.up) query.set("up", String(state.up));
  if (state.down !== FIRST_STATE.down) query.set("down", String(state.down));
  for (const [node, count] of state.more) query.append("more", `${node}:${count}`);
  for (const node of state.unfolded) query.append("unfold", node);
  if (state.list !== null) {
    query.set("list", state.list);
    writeTable(state.table, query);
  }
  return query;
}

function writeTable({ sort, isDescending, filter, columns, isFull }: TableState, query: URLSearchParams): void {
  if (sort !== null) query.set("sort", sort);
  if (sort !== null && isDescending) query.set("desc", "1");
  if (filter !== null) query.set("filter", filter);
  for (const column of columns ?? []) query.append("column", column);
  if (isFull) query.set("full", "1");
}

function hops(text: string | null): number {
  return text !== null && /^\d{1,5}$/.test(text) ? Math.min(MAX_HOPS, Math.max(1, Number(text))) : 1;
}

/**
 * How many records of each operation to ask for, so that those to draw are among them; `operations` is how many the
 * result may have. A result stays small, however long the trace.
 */
export function limitOf(state: TraceState, operations: number): number {
  const largest = Math.max(FIRST_LIMIT, ...state.more.values());
  return Math.min(MAX_LIMIT, largest, Math.max(MIN_LIMIT, Math.floor(MAX_TOTAL / Math.max(1, operations))));
}
