// Which of the rows that differ are listed: those of one kind, a page of them. Pure.

import type { Comparison } from "../api";
import type { Difference } from "./differences";

export const KINDS = ["changed", "gone", "new"] as const;
export type Kind = (typeof KINDS)[number];

export const PAGE_SIZE = 50;
/** Rows of each kind that the API is asked for, and how many it gives at most. */
export const FIRST_LIMIT = 100;
const LIMITS = [FIRST_LIMIT, 1_000, 10_000];

/** The page that an address asks for. */
export interface Page {
  kind: Kind | null;
  /** From 0. */
  number: number;
}

export function pageOf(query: URLSearchParams): Page {
  const kind = KINDS.find((name) => name === query.get("kind")) ?? null;
  const text = query.get("page") ?? "";
  return { kind, number: /^\d{1,6}$/.test(text) ? Math.max(0, Number(text) - 1) : 0 };
}

export interface Listed {
  rows: Difference[];
  /** From 0; the last one where the address asks for one behind it. */
  number: number;
  pages: number;
  /** Of the first row, from 0, among those of this kind. */
  first: number;
  /** Rows of this kind that are there. */
  total: number;
}

export function listedOf(all: readonly Difference[], { kind, number }: Page): Listed {
  const chosen = all.filter((row) => kind === null || row.kind === kind);
  const pages = Math.max(1, Math.ceil(chosen.length / PAGE_SIZE));
  const shown = Math.min(number, pages - 1);
  const first = shown * PAGE_SIZE;
  return { rows: chosen.slice(first, first + PAGE_SIZE), number: shown, pages, first, total: chosen.length };
}

/** How many rows of each kind to ask for, where `limit` was too few; null if there are no more to have. */
export function nextLimit({ truncated, gone, new: added, changed }: Comparison): number | null {
  if (!truncated) return null;
  const most = Math.max(gone.length, added.length, changed.length);
  return LIMITS.find((limit) => limit > most) ?? null;
}
