import { expect, test } from "vitest";
import type { Comparison } from "../api";
import type { Difference } from "./differences";
import { listedOf, nextLimit, pageOf } from "./pages";

const rows = (kind: Difference["kind"], count: number): Difference[] =>
  Array.from({ length: count }, () => ({ kind, was: null, is: null, because: null, note: "" }));
const all = [...rows("changed", 120), ...rows("gone", 3)];

test("rows come in pages, those of one kind by themselves", () => {
  expect(listedOf(all, { kind: null, number: 2 })).toMatchObject({ number: 2, pages: 3, first: 100, total: 123 });
  expect(listedOf(all, { kind: "gone", number: 0 }).rows.map(({ kind }) => kind)).toEqual(["gone", "gone", "gone"]);
  expect(listedOf(all, { kind: "new", number: 0 })).toMatchObject({ rows: [], number: 0, pages: 1 });
});

test("an address beyond the last page means the last page", () => {
  expect(listedOf(all, { kind: null, number: 77 })).toMatchObject({ number: 2, first: 100 });
  expect(pageOf(new URLSearchParams("page=3&kind=gone"))).toEqual({ kind: "gone", number: 2 });
  expect(pageOf(new URLSearchParams("page=x&kind=y"))).toEqual({ kind: null, number: 0 });
});

test("more rows are asked for as long as there are more", () => {
  const comparison = (truncated: boolean, length: number) =>
    ({ truncated, gone: { length }, new: [], changed: [] }) as unknown as Comparison;
  expect([nextLimit(comparison(true, 100)), nextLimit(comparison(true, 1_000))]).toEqual([1_000, 10_000]);
  expect([nextLimit(comparison(true, 10_000)), nextLimit(comparison(false, 3))]).toEqual([null, null]);
});
