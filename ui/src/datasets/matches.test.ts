import { expect, test } from "vitest";
import type { Choice, Choices, Trace } from "../api";
import { matchesOf } from "./matches";

const choice = (columns: Choice["columns"]): Choice => ({
  node_id: "app#8",
  record_id: "write#0#3",
  path: "/data/out/part-0",
  row: 3,
  line: 4,
  columns,
  text: "x",
  warning: null,
});

test("several rows are those to choose from, and the only one is the start of its trace", () => {
  const choices = {
    application_id: "app",
    name: "Winds",
    nodes: ["app#8"],
    total: 2,
    version: "12",
    choices: [choice(null)],
    next: "c",
    warnings: ["w"],
  };
  expect(matchesOf(choices as unknown as Choices)).toMatchObject({
    application: "app",
    total: 2,
    version: "12",
    next: "c",
    warnings: ["w"],
  });
  const source = { path: "/data/out/part-0", row: 3, line: 4, text: "x", warning: null, columns: { a: 1 } };
  const start = {
    node_id: "app#8",
    application_id: "app",
    application_name: "Winds",
    total: 1,
    records: [{ record_id: "write#0#3", source }],
  };
  expect(matchesOf({ starts: [start] } as unknown as Trace)).toMatchObject({
    application: "app",
    name: "Winds",
    nodes: ["app#8"],
    total: 1,
    version: null,
    rows: [choice({ a: 1 })],
  });
});
