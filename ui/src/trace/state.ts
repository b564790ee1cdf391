// What the address of a way says beside where it begins: how far it is drawn, and of what more is shown. Everything
// that is not as at first is in the address, so that what one sees can be sent to a colleague.

/** Records of each operation that the API is asked for. */
export const FIRST_ASKED = 50;
export const MOST_ASKED = 200;
const LEAST_ASKED = 6;
const MOST_IN_ALL = 4000;
const MOST_HOPS = 10_000;

export interface WayState {
  /** Operations to follow in each direction, where not the whole way is wanted. */
  readonly up: number;
  readonly down: number;
  /** Records to draw, by node id. */
  readonly more: ReadonlyMap<string, number>;
  /** The operation whose records are listed as a table, by its id. */
  readonly list: string | null;
}

export const FIRST_STATE: WayState = { up: 1, down: 1, more: new Map(), list: null };

export function readState(query: URLSearchParams): WayState {
  const more = new Map<string, number>();
  for (const each of query.getAll("more")) {
    const [, node = "", count = ""] = /^(.+):(\d{1,4})$/.exec(each) ?? [];
    if (node !== "") more.set(node, Math.min(MOST_ASKED, Number(count)));
  }
  return { up: hops(query.get("up")), down: hops(query.get("down")), more, list: query.get("list") };
}

export function writtenState(state: WayState): URLSearchParams {
  const query = new URLSearchParams();
  if (state.up !== FIRST_STATE.up) query.set("up", String(state.up));
  if (state.down !== FIRST_STATE.down) query.set("down", String(state.down));
  for (const [node, count] of state.more) query.append("more", `${node}:${count}`);
  if (state.list !== null) query.set("list", state.list);
  return query;
}

function hops(text: string | null): number {
  return text !== null && /^\d{1,5}$/.test(text) ? Math.min(MOST_HOPS, Math.max(1, Number(text))) : 1;
}

/**
 * How many records of each operation to ask for, so that those to draw are among them; `operations` is how many the
 * answer may have. An answer stays small enough to be read in no time, however long the way.
 */
export function asked(state: WayState, operations: number): number {
  const most = Math.max(FIRST_ASKED, ...state.more.values());
  return Math.min(MOST_ASKED, most, Math.max(LEAST_ASKED, Math.floor(MOST_IN_ALL / Math.max(1, operations))));
}
