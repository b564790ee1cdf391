// Formats numbers, times, ids and errors for people. Pure.

import type { Application, NodeError } from "./api";

// Without Intl: its first use makes the browser read its tables, which blocks it for some 40 ms.

const withThousands = (decimal: string): string => {
  const [whole = "", ...rest] = decimal.split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, ","), ...rest].join(".");
};

/** "1,234". Up to three decimal places. */
export const number = (value: number): string => withThousands(String(Number(value.toFixed(3))));

/** For narrow places: 1,234 stays, 82,400,000 is 82.4M. */
export function short(value: number): string {
  if (value < 100_000) return number(value);
  const units = ["K", "M", "B", "T"];
  let [scaled, unit] = [value / 1000, 0];
  for (; scaled >= 999.95 && unit < units.length - 1; unit += 1) scaled /= 1000;
  return withThousands(String(Number(scaled.toFixed(1)))) + units[unit];
}

/** "1 record", "2,000 records". */
export const count = (value: number, word: string, words = `${word}s`): string =>
  `${number(value)} ${value === 1 ? word : words}`;

/** "50 of 100,000 records": how many are shown. */
export const share = (shown: number, total: number, word: string, words = `${word}s`): string =>
  shown >= total ? count(total, word, words) : `${number(shown)} of ${count(total, word, words)}`;

/** "12.3 per second". */
export const rate = (value: number): string =>
  `${value < 0.001 ? "0" : withThousands(String(Number(value.toPrecision(3))))} per second`;

export function duration(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const minutes = Math.floor((seconds + 0.5) / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds - minutes * 60)} s`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 60 / 24)} days ${Math.floor(minutes / 60) % 24} h`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Of Unix time in milliseconds, in the reader's time zone: "7 Nov 2026, 09:05:00". */
export function time(milliseconds: number): string {
  const date = new Date(milliseconds);
  return `${date.getDate()} ${MONTHS[date.getMonth()]} ${date.getFullYear()}, ${clock(milliseconds)}`;
}

/** Its time of day: "09:05:00". */
export function clock(milliseconds: number): string {
  const date = new Date(milliseconds);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

/** The number of a node id: `APPLICATION_ID#NUMBER`. */
export const nodeNumber = (nodeId: string): string => nodeId.slice(nodeId.lastIndexOf("#") + 1);

/** The application of a node id. */
export const applicationOf = (nodeId: string): string => nodeId.slice(0, nodeId.lastIndexOf("#"));

/** Name of a file without its folders. */
export const fileName = (path: string): string => path.slice(path.replace(/\/+$/, "").lastIndexOf("/") + 1);

/** The places of a call site, each file without its folders. */
export const callSite = (places: string): string => places.split(", ").map(fileName).join(", ");

/** The description of an operation; empty if it repeats the name or the path. */
export function expressionText({ name, description, dataset }: Described): string {
  return description === name || description === dataset?.name ? "" : description;
}

interface Described {
  name: string;
  description: string;
  dataset: { name: string } | null;
}

export interface Completeness {
  state: Application["state"];
  complete: boolean;
  missing_blocks: number;
  counters: { [name: string]: number };
}

/** Whether the lineage of an application is complete, and why not. */
export function completeness({ state, complete, missing_blocks: missing, counters }: Completeness): string {
  if (complete) return "complete";
  const { dropped = 0, spooled = 0, missing_runs: runs = 0, missing_events: events = 0 } = counters;
  const { gaps = 0, lost_rows: lost = 0 } = counters;
  const lacks = [
    missing > spooled && `${count(missing - spooled, "block")} missing`,
    spooled > 0 && `${count(spooled, "block")} to be delivered`,
    runs > 0 && `${count(runs, "run")} missing`,
    events > 0 && `${count(events, "event")} missing`,
    dropped > 0 && `${number(dropped)} dropped`,
    gaps > 0 && `${count(gaps, "part")} not followed`,
    lost > 0 && `${count(lost, "row")} lost by the flow store`,
  ].filter((lack) => lack !== false);
  if (lacks.length > 0) return `incomplete: ${lacks.join(", ")}`;
  return state === "running" ? "incomplete: still running" : "incomplete: some lineage has not arrived";
}

/** The state of an application, and how long it took. */
export function stateText({ state, started, ended }: Pick<Application, "state" | "started" | "ended">): string {
  if (state === "lost") return "lost";
  return ended === null ? "running" : `${state} after ${duration((ended - started) / 1000)}`;
}

/** The class that gives a state its colour. */
export const colourOf = (state: Application["state"]): string | null =>
  state === "failed" || state === "lost" ? `is-${state}` : null;

/** Type, message and line of an error, as far as they are known. */
export function errorText({ type, message, frame }: NodeError): string {
  const text = [type, message].filter((part) => part !== "").join(": ") || "it is not known why";
  return frame === null ? text : `${text} (${fileName(frame)})`;
}
