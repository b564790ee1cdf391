import { expect, test } from "vitest";
import type { Influence, InfluentialRow, Sift } from "../api";
import { changeText, influencesOf, influenceText, siftsOf, siftText } from "./reruns";
import type { Way } from "./sentences";

const OUTPUT = { path: "/out/part-0", row: 3, line: 4, text: "x" };
const wayTo = (row: number) =>
  ({ record: { source: { path: "/out/part-0", row, line: row + 1, text: "x", warning: null } } }) as Way;

test("influences and sifts are those of the output row", () => {
  const influence = { output: OUTPUT } as Influence;
  const sift = { outputs: [{ ...OUTPUT, row: 1 }, OUTPUT] } as Sift;
  expect([influencesOf(wayTo(3), [influence]), siftsOf(wayTo(3), [sift])]).toEqual([[influence], [sift]]);
  expect([influencesOf(wayTo(4), [influence]), siftsOf(wayTo(4), [sift])]).toEqual([[], []]);
  expect(influencesOf({ record: null } as Way, [influence])).toEqual([]);
});

test("a change says what is known of it", () => {
  const row = (fields: Partial<InfluentialRow>) =>
    ({ change: null, estimated: false, failed: false, without: null, ...fields }) as InfluentialRow;
  const texts = [
    row({ change: 6.61543, without: "a,6.6" }),
    row({}),
    row({ failed: true }),
    row({ change: 3, estimated: true }),
    row({ without: "b" }),
  ].map(changeText);
  expect(texts).toEqual(["6.615", "gone", "the job failed", "about 3", "other words"]);
});

test("a sentence says how many rows, and what is not sure", () => {
  expect(influenceText({ total: 300, exact: true } as Influence)).toBe("without each of its 300 input rows:");
  expect(influenceText({ total: 1, exact: false } as Influence)).toBe("without each of its 1 input row (not exact):");
  const sift = { total: 1, of: 41, test: "a row that is wrong", minimal: true } as Sift;
  expect(siftText(sift)).toBe("1 of 41 input rows is enough for a row that is wrong:");
  expect(siftText({ ...sift, total: 2, minimal: false })).toBe(
    "2 of 41 input rows are enough for a row that is wrong (fewer may do):",
  );
});
