import { describe, expect, test } from "vitest";
import { adjacencyOf } from "./adjacency";
import { continuesBeyond, endpointsOf } from "./endpoints";
import { flow, node, record, trace } from "./fixture";
import { directedTraceOf, lineageOf } from "./model";
import { pictureOf } from "./picture";
import * as sentences from "./sentences";
import { FIRST_STATE, limitOf, readState, stateQuery, type TraceState } from "./state";
import { filePlace, placeOf, readable, shortened, textOf } from "./texts";

const row = (text: string | null, line = 4) => ({
  path: "/data/in/weather.csv",
  row: line - 1,
  line,
  text,
  warning: null,
});

describe("a record is called", () => {
  test("by its row, else its value, else its key, else its id", () => {
    expect(textOf(record(0, 1, { source: row("EWR,12"), value: "v", key: "k" }))).toBe("EWR,12");
    expect(textOf(record(0, 1, { source: row(null), value: "v", key: "k" }))).toBe("v");
    expect(textOf(record(0, 1, { value: "v", key: "k" }))).toBe("v");
    expect(textOf(record(0, 1, { key: "k" }))).toBe("k");
    expect(textOf(record(0, 1))).toBe("0#1");
  });

  test("by its file and line", () => {
    expect(placeOf(record(0, 3, { source: row("EWR,12") }))).toBe("weather.csv:4");
    expect(placeOf(record(2, 3))).toBe("2#3");
  });

  test("in whole characters, on one line", () => {
    expect(shortened("a\n b\tc", 9)).toBe("a b c");
    expect(shortened("🌧️".repeat(30), 5).endsWith("…")).toBe(true);
    expect([...shortened("x".repeat(1_000_000), 27)]).toHaveLength(27);
  });
});

describe("the address", () => {
  const states: TraceState[] = [
    FIRST_STATE,
    {
      ...FIRST_STATE,
      up: 3,
      more: new Map([
        ["app#12", 25],
        ["local-1:2#3", 45],
      ]),
      list: "app#0",
    },
  ];
  test.each(states)("says all that is shown: %j", (state) => {
    expect(readState(new URLSearchParams(stateQuery(state).toString()))).toEqual(state);
  });

  test("of anything else is the first state", () => {
    expect(readState(new URLSearchParams("up=-1&down=x&more=:::&more=app&limit=7"))).toEqual(FIRST_STATE);
    expect(stateQuery(FIRST_STATE).toString()).toBe("");
  });

  test("never asks for more than can be read at once", () => {
    const greedy = readState(new URLSearchParams("more=app%231:9999"));
    expect(limitOf(greedy, 3)).toBe(200);
    expect(limitOf(greedy, 500)).toBe(8);
    expect(limitOf(FIRST_STATE, 5)).toBe(50);
    expect(limitOf(FIRST_STATE, 100_000)).toBe(6);
  });
});

test("a row of a partitioned dataset stands below its partition folders", () => {
  expect(filePlace("/out/monthly/origin=EWR/day=1/part-0.parquet")).toBe("origin=EWR/day=1/part-0.parquet");
  expect(filePlace("/out/monthly/part-0.parquet")).toBe("part-0.parquet");
  expect(filePlace("part-0")).toBe("part-0");
  expect(filePlace("a=b/part-0")).toBe("a=b/part-0");
});

describe("in words", () => {
  const source = node(0, [record(0, 3, { source: row("EWR,12") })], {
    kind: "source",
    total: 100_000,
    name: "textFile",
  });
  const middle = node(1, [record(0, 0)]);
  const centre = node(2, [record(0, 0, { record_id: "write#0#0", source: row("EWR,2013-02", 2) })], {
    kind: "sink",
    name: "saveAsTextFile",
  });
  const flows = [flow("app#0#0#3", "app#1#0#0"), flow("app#1#0#0", "app#2#write#0#0")];
  const directed = directedTraceOf(trace("backward", [centre, middle, source], flows));
  const lineage = lineageOf([directed], []);
  const graph = {
    application_id: "app",
    edges: [],
    nodes: [
      {
        node_id: "app#0",
        node: 0,
        name: "textFile",
        description: "",
        kind: "source" as const,
        call_site: "",
        exact: true,
        reason: "",
        dataset: {
          namespace: "file",
          name: "/data/in/weather.csv",
          format: "text",
          partitions: [],
          symlinks: [],
          version: null,
        },
        records: 9,
        has_values: false,
        schema: [],
        schema_note: "",
        state: null,
        error: null,
      },
      {
        node_id: "app#1",
        node: 1,
        name: "mapPartitions",
        description: "",
        kind: "operator" as const,
        call_site: "",
        exact: false,
        reason: "any row of the partition",
        dataset: null,
        records: 9,
        has_values: false,
        schema: [],
        schema_note: "",
        state: null,
        error: null,
      },
    ],
  };
  const operations = sentences.operationsOf([graph]);

  test("its title is its text, and its subtitle the operation", () => {
    expect(sentences.title(lineage)).toBe("EWR,2013-02");
    expect(sentences.subtitle(lineage)).toBe("weather.csv:2, record write#0#0 of saveAsTextFile (2)");
  });

  test("each operation that has the row is named, if there are several", () => {
    const own = { application_id: "app", application_name: "Takings" };
    const read = { node_id: "app#5", ...own, name: "textFile", kind: "source", total: 1, records: [] };
    const several = trace("forward", [centre], []);
    const forward = directedTraceOf({ ...several, starts: [...several.starts, read] });
    expect(sentences.startsText([directed, forward])).toBe(
      "2 operations have this row, and the forward trace starts at each: saveAsTextFile (2), textFile (5).",
    );
    expect(sentences.startsText([directed])).toBe("");
  });

  test("a sample says of how many it is", () => {
    const picture = pictureOf(lineage, adjacencyOf(flows), { more: new Map(), further: new Set() });
    expect(sentences.drawn(picture)).toBe(
      "A sample is drawn: 3 of 100,002 records of 3 operations: some of the first of each.",
    );
  });

  test("the endpoints of a trace are counted, its operations and other applications too", () => {
    const endpoints = endpointsOf(directed);
    expect(sentences.endpointsText(endpoints)).toBe("From these, through 1 operation:");
    expect(endpoints.endpoints.map((endpoint) => sentences.endpointText(endpoint, operations))).toEqual([
      "100,000 rows of weather.csv",
    ]);
    const other = { ...source, node_id: "other#0", application_id: "other", application_name: "Nightly" };
    const foreign = directedTraceOf(trace("backward", [centre, other], []));
    expect(endpointsOf(foreign).applications).toEqual([{ id: "other", name: "Nightly" }]);
    expect(sentences.endpointsText(endpointsOf(directedTraceOf(trace("forward", [centre], []))))).toBe(
      "Nothing was made of it.",
    );
  });

  test("the reason why a result is not exact comes with the operation", () => {
    const weak = directedTraceOf(
      trace("backward", [centre, { ...middle, exact: false, name: "mapPartitions" }], [], {
        exact: false,
        complete: false,
      }),
    );
    const [incomplete, inexact] = sentences.cautions([weak], operations);
    expect(incomplete).toMatch(/^Incomplete: /);
    expect(inexact).toMatch(
      /^Not exact: the trace through mapPartitions \(1: any row of the partition\) is an upper bound/,
    );
    expect(sentences.cautions([directed], operations)).toEqual([]);
  });

  test("screen readers hear the record, its location and its inputs and outputs", () => {
    const tracedRecord = lineage.recordsByHash.get("app#1#0#0");
    expect(tracedRecord && sentences.spoken(tracedRecord, adjacencyOf(flows))).toBe(
      "0#0, map1 (1); 1 input, 1 output among the listed records",
    );
    const copied = tracedRecord && { ...tracedRecord, record: { ...tracedRecord.record, operation: "copy" } };
    expect(copied && sentences.spoken(copied, adjacencyOf(flows))).toBe(
      "0#0, map1 (1), a row that the statement left as it was; 1 input, 1 output among the listed records",
    );
  });

  test("a part of a trace continues if the whole has operations that it lacks", () => {
    const part = directedTraceOf(trace("backward", [centre, middle], []));
    expect(continuesBeyond(part, directed)).toBe(true);
    expect(continuesBeyond(directed, directed)).toBe(false);
    expect(continuesBeyond(part, null)).toBeNull();
    expect(continuesBeyond(directed, { ...directed, isPartial: true })).toBe(true);
  });
});

test("rows are shortened for reading: columns in place of JSON, fractions rounded, large integers as they are", () => {
  expect(readable('{"month": 2, "wind": 57.80517134990538, "before": null}')).toBe(
    "month 2 · wind 57.8052 · before null",
  );
  expect(readable("EWR,57.80517134990538,1.25")).toBe("EWR,57.8052,1.25");
  expect(readable('{"id": 12345678901234567890}')).toBe('{"id": 12345678901234567890}');
  expect(readable("{a set")).toBe("{a set");
  expect(readable("10.0.0.1234567 v1.2345678.9")).toBe("10.0.0.1234567 v1.2345678.9");
});
