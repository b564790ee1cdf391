import { expect, test } from "vitest";
import { doneText, filePlace, readable, shortFile, shortPlace } from "./texts";

const PART = "part-00003-80251e05-72a5-49ec-87ba-035df2480eff";

test.each([
  [`${PART}.c000.snappy.parquet`, "part-00003….parquet"],
  [`${PART}-c000.csv`, "part-00003….csv"],
  [`${PART}-c000.csv.gz`, "part-00003….gz"],
  [`${PART}-c000`, "part-00003…"],
  ["part-00003", "part-00003"],
  ["part-00003.parquet", "part-00003.parquet"],
  ["orders.csv", "orders.csv"],
])("of the name of a part file, its number and its ending are shown: %s", (name, short) => {
  expect(shortFile(name)).toBe(short);
});

test("partition folders belong to the place of a file", () => {
  expect(filePlace(`/data/out/origin=EWR/${PART}.c000.snappy.parquet`)).toBe("origin=EWR/part-00003….parquet");
  expect(filePlace("/data/orders.csv")).toBe("orders.csv");
});

test("a row in JSON is read by its columns, with fractions rounded", () => {
  expect(readable('{"month": 2, "wind": 57.80517134990538, "before": null}')).toBe(
    "month 2 · wind 57.8052 · before null",
  );
  expect(readable("EWR,57.80517134990538,x")).toBe("EWR,57.8052,x");
});

test("of a long place, the line is still there", () => {
  expect(shortPlace("origin=EWR/part-00000….parquet:17", 20)).toBe("origin=EWR/part-…:17");
  expect(shortPlace("weather.csv:1011", 20)).toBe("weather.csv:1011");
  expect(shortPlace("x".repeat(30), 10)).toBe(`${"x".repeat(9)}…`);
});

test("what a statement did with a row is said in words, and an unknown word as it is", () => {
  expect(doneText("copy")).toBe("a row that the statement left as it was");
  expect(doneText("moved")).toBe("moved");
});
