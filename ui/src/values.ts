// Values of rows by their columns: which columns rows have, with types, and how a value is shown. Fractions are rounded
// for reading, long texts are cut; all of a value is shown on demand. Pure.

import type { Column } from "./api";

export type Values = { [name: string]: unknown };

export interface ShownValue {
  text: string;
  /** All of it, where the text has less. */
  full: string | null;
  isNull: boolean;
  isNumber: boolean;
}

/** A column of rows; its type is empty where it is not known. */
export interface RowColumn {
  name: string;
  type: string;
  isNumber: boolean;
}

const DIGITS = 6;
/** Of a text in a table. */
const MOST_CHARACTERS = 160;
/** From here on, a number is written with an exponent. */
const LARGE = 1e15;
const NUMBERS = /^(tinyint|smallint|int|bigint|float|double|decimal)/;

/** A value for a cell. */
export function shownValue(value: unknown): ShownValue {
  const isNumber = typeof value === "number";
  if (value === null || value === undefined) return { text: "null", full: null, isNull: true, isNumber: false };
  const full = typeof value === "object" ? JSON.stringify(value) : String(value);
  const text = isNumber && !Number.isInteger(value) ? rounded(value) : cut(full);
  return { text, full: text === full ? null : full, isNull: false, isNumber };
}

/** Six digits, or those before the point and two. */
export function rounded(value: number): string {
  const size = Math.abs(value);
  if (size < 1 || size >= LARGE) return String(Number(value.toPrecision(DIGITS)));
  const before = String(Math.trunc(size)).length;
  return String(Number(value.toFixed(Math.max(DIGITS - before, 2))));
}

const cut = (text: string): string => {
  if (text.length <= MOST_CHARACTERS) return text;
  return `${[...text.slice(0, MOST_CHARACTERS)].slice(0, -1).join("")}…`;
};

/** Columns that any of the rows has, in the order of the first that has them. */
export function columnsOf(
  rows: readonly (Values | null | undefined)[],
  schema: readonly Column[] | null | undefined = null,
): RowColumn[] {
  const types = new Map((schema ?? []).map(({ name, type }) => [name, type]));
  const names = new Set(rows.flatMap((row) => Object.keys(row ?? {})));
  return [...names].map((name) => {
    const type = types.get(name) ?? "";
    const present = rows.map((row) => row?.[name]).filter((value) => value !== null && value !== undefined);
    const isNumber = type === "" ? present.length > 0 && present.every(isNumeric) : NUMBERS.test(type);
    return { name, type, isNumber };
  });
}

const isNumeric = (value: unknown): boolean => typeof value === "number";

/** Whether anything of these rows is rounded or cut. */
export const isShortened = (rows: readonly (Values | null | undefined)[]): boolean =>
  rows.some((row) => Object.values(row ?? {}).some((value) => shownValue(value).full !== null));

/** Names of columns as the API takes them: one with a comma or a quote stands in quotes. */
export const columnNames = (names: readonly string[]): string =>
  names.map((name) => (/[",\n]|^\s|\s$/.test(name) ? `"${name.replaceAll('"', '""')}"` : name)).join(",");
