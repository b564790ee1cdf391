import { expect, test } from "vitest";
import type { Absence, KeyHolder, MissingRow } from "../api";
import { absenceText, endTexts, hasText, operationText, reasonsOf, totalText } from "./sentences";

const join = { node_id: "app#12", name: "join", call_site: "/jobs/report.py:31" };
const end = { ...join, description: "", why: "join: no match on the other side for the key 9913" };
const row = (more: Partial<MissingRow> = {}): MissingRow =>
  ({ ended: end, candidates: [], exact: true, reason: "", ...more }) as MissingRow;
const holder = (ended: MissingRow[], records: number): KeyHolder => ({
  ...join,
  node_id: "app#7",
  name: "reduceByKey",
  total: records,
  records: Array.from({ length: records }, (_, at) => ({ record_id: `2#${at}`, partition: 2, offset: at })),
  ended,
  other_sides: [],
  became: [],
  became_total: 0,
});
const absence = (more: Partial<Absence> = {}): Absence => ({
  application_id: "app",
  name: "report",
  asked: join,
  key: "9913",
  holders: [],
  without: [],
  exact: true,
  complete: true,
  reasons: [],
  ...more,
});

test("the operation, and who has the key", () => {
  expect(absenceText(absence())).toBe("join (12) at report.py:31 has no record with the key");
  expect(operationText({ ...join, call_site: "" })).toBe("join (12)");
  expect(totalText(holder([], 1))).toBe("has the key: 1 record");
});

test("where records ended, each place once, and that it is not sure", () => {
  const text = "Ended at join (12) at report.py:31: join: no match on the other side for the key 9913";
  expect(endTexts(holder([row(), row()], 2))).toEqual([text]);
  expect(endTexts(holder([row()], 2))).toEqual([`${text} (1 of them)`]);
  expect(endTexts(holder([row({ exact: false })], 1))).toEqual([`May have e${text.slice(1)}`]);
  expect(endTexts(holder([row({ ended: null, candidates: [end] })], 1))).toEqual([`May have e${text.slice(1)}`]);
  expect(endTexts(holder([row({ ended: null, reason: "an upper bound" })], 1))).toEqual([
    "Ended, and it is not known where: an upper bound",
  ]);
});

test("whether the other side has the key", () => {
  const has = [true, false, null].map((has_key) => hasText({ ...join, has_key }));
  expect(has).toEqual(["has the key", "does not have the key", "its keys are not known"]);
});

test("reasons, each once", () => {
  const unsure = row({ reason: "an upper bound" });
  expect(reasonsOf(absence({ reasons: ["an upper bound"], holders: [holder([unsure, row()], 2)] }))).toEqual([
    "an upper bound",
  ]);
});
