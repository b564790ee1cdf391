// Conditions while they are written: what may come next, and how they are quoted for a shell. Pure.
// The service alone decides what a condition means: a suggestion is only a help.

import { shellWord } from "../words";
import type { Column } from "../api";
import { flatColumns } from "./texts";

export interface Suggestion {
  /** What is put in the place of the word at the caret. */
  text: string;
  /** The type of a column; else empty. */
  note: string;
}

export interface Suggestions {
  /** Where the word at the caret begins: a suggestion replaces it. */
  from: number;
  items: Suggestion[];
}

const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|[\p{L}_][\p{L}\p{N}_.]*|[\d.]+|<>|[<>!]=|[=<>(),]|\S/gu;
const KEYWORDS = new Set("and or not in like ilike between is null true false date timestamp".split(" "));
const PLAIN = /^[\p{L}_][\p{L}\p{N}_]*$/u;
const WORD_AT_END = /[\p{L}_][\p{L}\p{N}_.]*$/u;
const MOST = 40;

type Kind = "text" | "number" | "boolean" | "time" | "other";

export function kindOf(type: string): Kind {
  if (/^(string|varchar|char)/.test(type)) return "text";
  if (/^(tinyint|smallint|int|bigint|float|double|decimal)/.test(type)) return "number";
  if (type === "boolean") return "boolean";
  return /^(date|timestamp)/.test(type) ? "time" : "other";
}

/** A name as a condition takes it. */
export function columnName(name: string): string {
  return PLAIN.test(name) && !KEYWORDS.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** Columns that a condition may name: with the fields of structs, and with those that are in names of folders only. */
export function namedColumns(schema: readonly Column[], partitions: readonly string[], format: string): Suggestion[] {
  const columns = flatColumns(schema).map(({ column, path }) => ({
    text:
      path.split(".").length > 1 && column.name !== path ? path.split(".").map(columnName).join(".") : columnName(path),
    note: column.type,
  }));
  const known = new Set(columns.map(({ text }) => text));
  const folders = partitions.map((name) => ({ text: columnName(name), note: "string" }));
  const all = [...columns, ...folders.filter(({ text }) => !known.has(text))];
  return all.length === 0 && format === "text" ? [{ text: "value", note: "string" }] : all;
}

/** What may come at the caret. */
export function suggestionsAt(condition: string, caret: number, columns: readonly Suggestion[]): Suggestions {
  const before = condition.slice(0, caret);
  if (isWithinText(before)) return { from: caret, items: [] };
  const word = WORD_AT_END.exec(before)?.[0] ?? "";
  const from = caret - word.length;
  const tokens = before.slice(0, from).match(TOKEN) ?? [];
  const items = followers(tokens, columns).filter(
    ({ text }) => word === "" || unquoted(text).startsWith(unquoted(word)),
  );
  const isComplete = items.length === 1 && items[0]?.text === word;
  return { from, items: isComplete ? [] : items.slice(0, MOST) };
}

const unquoted = (text: string): string => text.replace(/^["`]/, "").toLowerCase();

const isWithinText = (text: string): boolean =>
  (text.replace(/"[^"]*"|`[^`]*`/g, "").match(/'/g) ?? []).length % 2 === 1;

const words = (...texts: string[]): Suggestion[] => texts.map((text) => ({ text, note: "" }));

function followers(tokens: readonly string[], columns: readonly Suggestion[]): Suggestion[] {
  const last = tokens.at(-1) ?? "";
  const [lower, previous] = [last.toLowerCase(), (tokens.at(-2) ?? "").toLowerCase()];
  if (last === "" || lower === "and" || lower === "or") {
    return isRange(tokens) ? valuesFor(columnBefore(tokens, columns)) : [...columns, ...words("not")];
  }
  if (last === "(") return previous === "in" ? valuesFor(columnBefore(tokens, columns)) : [...columns, ...words("not")];
  if (lower === "is") return words("null", "not null");
  if (lower === "not") {
    if (columnOf(previous, columns) !== undefined) return words("in (", "like", "between");
    return previous === "is" ? words("null") : columns.slice();
  }
  if (/^(=|!=|<>|<=?|>=?|,|between|like|ilike)$/.test(lower)) return valuesFor(columnBefore(tokens, columns));
  if (lower === "in") return words("(");
  const column = columnOf(lower, columns);
  if (column !== undefined) return words(...operatorsFor(kindOf(column.note)));
  return words("and", "or");
}

/** Whether the last `and` belongs to a `between`. */
function isRange(tokens: readonly string[]): boolean {
  const lower = tokens.map((token) => token.toLowerCase());
  return lower.at(-1) === "and" && lower.lastIndexOf("between") > lower.slice(0, -1).lastIndexOf("and");
}

const columnOf = (token: string, columns: readonly Suggestion[]): Suggestion | undefined =>
  columns.find(({ text }) => text.toLowerCase() === token.toLowerCase());

/** The last column that the condition names. */
function columnBefore(tokens: readonly string[], columns: readonly Suggestion[]): Suggestion | undefined {
  for (const token of tokens.toReversed()) {
    const column = columnOf(token, columns);
    if (column !== undefined) return column;
  }
  return undefined;
}

function operatorsFor(kind: Kind): string[] {
  if (kind === "boolean") return ["=", "is null", "is not null"];
  const equal = ["=", "!=", "in (", "is null", "is not null"];
  if (kind === "text") return [...equal, "like", "<", ">"];
  return [...equal, "<", "<=", ">", ">=", "between"];
}

function valuesFor(column: Suggestion | undefined): Suggestion[] {
  const kind = kindOf(column?.note ?? "");
  if (kind === "boolean") return words("true", "false");
  if (kind === "text") return words("''");
  if (kind === "time") return words(column?.note.startsWith("date") ? "date ''" : "timestamp ''");
  return [];
}

/** The condition with the suggestion in the place of the word at the caret, and where the caret is then. */
export function completed(condition: string, caret: number, { from }: Suggestions, text: string) {
  const [before, after] = [condition.slice(0, from), condition.slice(caret)];
  const space = before === "" || /[\s(]$/.test(before) ? "" : " ";
  const isText = text.endsWith("''");
  const end = isText || text.endsWith("(") || after.startsWith(" ") ? "" : " ";
  const inserted = `${before}${space}${text}${end}`;
  return { condition: inserted + after, caret: inserted.length - (isText ? 1 : 0) };
}

/** What a column may be asked, as an example. */
export function exampleOf(columns: readonly Suggestion[]): string {
  const [first] = columns;
  if (first === undefined) return "";
  switch (kindOf(first.note)) {
    case "number":
      return `${first.text} > 40`;
    case "boolean":
      return `${first.text} = true`;
    case "time":
      return `${first.text} >= '2026-01-31'`;
    case "text":
      return `${first.text} like '%storm%'`;
    case "other":
      return `${first.text} is not null`;
  }
}

/** The command line that asks the same. */
export const commandLine = (dataset: string, where: string, version: string | null, all: boolean): string =>
  [
    `lineage trace ${shellWord(dataset)}`,
    ...(version === null ? [] : [`--version ${shellWord(version)}`]),
    `--where ${shellWord(where)}`,
    ...(all ? ["--all"] : []),
  ].join(" ");

/** The versions of the row of a table, at a terminal. */
export const historyLine = (table: string, where: string, version: string | null): string =>
  commandLine(table, where, version, false).replace("lineage trace", "lineage history");

/** The same for curl; `base` is the address of the service. */
export const curlLine = (base: string, dataset: string, where: string, version: string | null, all: boolean): string =>
  [
    `curl -G ${shellWord(`${base}api/trace`)}`,
    `--data-urlencode ${shellWord(`dataset=${dataset}`)}`,
    `--data-urlencode ${shellWord(`where=${where}`)}`,
    ...(version === null ? [] : [`-d version=${shellWord(version)}`]),
    ...(all ? ["-d all=true"] : []),
  ].join(" ");
