// Numbers, times and sentences as people read them. Pure.

const NUMBER = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const RATE = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const number = (value: number): string => NUMBER.format(value);

/** For narrow places: 1,234 stays, 82,400,000 is 82.4M. */
export const short = (value: number): string => (value < 100_000 ? NUMBER.format(value) : SHORT.format(value));

/** "1 record", "2,000 records". */
export const count = (value: number, word: string, words = `${word}s`): string =>
  `${number(value)} ${value === 1 ? word : words}`;

/** "50 of 100,000 records": what of it is shown. */
export const share = (shown: number, total: number, word: string, words = `${word}s`): string =>
  shown >= total ? count(total, word, words) : `${number(shown)} of ${count(total, word, words)}`;

/** "12.3 a second". */
export const rate = (value: number): string => `${RATE.format(value)} a second`;

export function duration(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const minutes = Math.floor((seconds + 0.5) / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds - minutes * 60)} s`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 60 / 24)} days ${Math.floor(minutes / 60) % 24} h`;
}

const WHEN = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** Of Unix time in milliseconds, in the reader's time zone. */
export const time = (milliseconds: number): string => WHEN.format(new Date(milliseconds));

/** The number of a node id: `APPLICATION_ID#NUMBER`. */
export const nodeNumber = (nodeId: string): string => nodeId.slice(nodeId.lastIndexOf("#") + 1);

/** The application of a node id. */
export const applicationOf = (nodeId: string): string => nodeId.slice(0, nodeId.lastIndexOf("#"));

/** Name of a file without its folders. */
export const fileName = (path: string): string => path.slice(path.replace(/\/+$/, "").lastIndexOf("/") + 1);

export interface Completeness {
  state: "running" | "ended";
  complete: boolean;
  missing_blocks: number;
  counters: { [name: string]: number };
}

/** Whether all lineage of an application is there, in few words. */
export function completeness({ state, complete, missing_blocks: missing, counters }: Completeness): string {
  if (complete) return "complete";
  const { dropped = 0, missing_runs: runs = 0, missing_events: events = 0 } = counters;
  const lacks = [
    missing > 0 && `${count(missing, "block")} missing`,
    runs > 0 && `${count(runs, "run")} missing`,
    events > 0 && `${count(events, "event")} missing`,
    dropped > 0 && `${number(dropped)} dropped`,
  ].filter((each) => each !== false);
  if (lacks.length > 0) return `incomplete: ${lacks.join(", ")}`;
  return state === "running" ? "incomplete: still running" : "incomplete: not all has arrived";
}

/** What must be known of an answer before one relies on it; empty where nothing. */
export function reservations(answer: { complete?: boolean; exact?: boolean; truncated?: boolean }): string[] {
  return [
    answer.complete === false && "Incomplete: some lineage has not arrived, so records may be missing here.",
    answer.exact === false &&
      "Not exact: the way passes an operation that only has a bound, so records may be listed that took no part.",
    answer.truncated === true &&
      "Truncated: not all records that were reached are listed here; the totals count them all.",
  ].filter((each) => each !== false);
}
