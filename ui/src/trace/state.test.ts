import { expect, test } from "vitest";
import { FIRST_STATE, FIRST_TABLE, readState, stateQuery } from "./state";

test.each([
  "",
  "up=3&down=2&more=app%2312%3A24",
  "unfold=app%233&list=app%230&sort=wind&desc=1&filter=wind+%3E+40&column=wind&column=a%2Cb&full=1",
])("what an address says of a trace is written as it was read: %s", (address) => {
  expect(stateQuery(readState(new URLSearchParams(address))).toString()).toBe(address);
});

test("without a table, the address says nothing of how it is shown", () => {
  const state = { ...FIRST_STATE, table: { ...FIRST_TABLE, sort: "wind" } };
  expect(stateQuery(state).toString()).toBe("");
});
