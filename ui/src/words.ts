// Words of a command line of a shell. Pure.

import type { Start } from "./route";

export type Flags = { [name: string]: string | number | boolean | null | undefined };

/** A word of a shell (POSIX). */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return /["$`\\!]/.test(text) ? `'${text.replaceAll("'", "'\\''")}'` : `"${text}"`;
}

/** Those that hold something. */
export const filled = (flags: Flags): [string, string][] =>
  Object.entries(flags).flatMap(([name, value]): [string, string][] =>
    value === null || value === undefined || value === "" ? [] : [[name, String(value)]],
  );

/** A command of the product. */
export const lineOf = (words: readonly string[], flags: Flags): string => lineWith(words, filled(flags));

/** The same with flags that may be named several times. */
export const lineWith = (words: readonly string[], flags: readonly (readonly [string, string])[]): string =>
  ["lineage", ...words.map(shellWord), ...flags.flatMap(([name, value]) => [`--${name}`, shellWord(value)])].join(" ");

/** How a command names the start of a trace. Lines of a file count from 1 there. */
export function startWords(start: Start): { record: string[]; flags: Flags } {
  if ("record" in start) return { record: [start.record], flags: { node: start.node } };
  if ("path" in start) return { record: [`${start.path}:${start.row + 1}`], flags: {} };
  if ("key" in start) return { record: [], flags: { key: start.key, node: start.node } };
  if ("failure" in start) return { record: [], flags: { failure: start.failure } };
  if ("where" in start) return { record: ["--all"], flags: { where: start.where, node: start.node } };
  return { record: [`${start.partition}#${start.offset}`], flags: { node: start.node } };
}
