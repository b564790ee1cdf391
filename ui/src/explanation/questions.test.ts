import { describe, expect, test } from "vitest";
import { parse } from "../route";
import {
  explainCommand,
  explanationParameters,
  hasPair,
  isAsked,
  questionsIn,
  questionsQuery,
  reproductionLines,
  startParameters,
} from "./questions";

const routeOf = (query: string) => {
  const route = parse(`#/app/a/explanation?${query}`);
  if (route.view !== "explanation") throw new Error(route.view);
  return route;
};

describe("questions of an address", () => {
  test.each([
    "",
    "same=%2Fout%2Fp%3A4",
    "with=%2Fin%3A7&with=%2Fin%3A9",
    "how=1",
    "compare=b&compare-start=3%23write%230%230",
    "same=x&with=%2Fin%3A7&how=1&compare=last",
  ])("come out as they went in: %s", (text) => {
    const questions = questionsIn(new URLSearchParams(text));
    expect(questionsQuery(questions).toString()).toBe(text);
    expect(isAsked(questions)).toBe(text !== "");
  });

  test("are none where nothing stands, and a record elsewhere needs the other run", () => {
    const questions = questionsIn(new URLSearchParams("same=%20&with=&how=0&compare-start=x"));
    expect(isAsked(questions)).toBe(false);
    expect(questionsQuery(questions).size).toBe(0);
  });
});

test("a second record is asked about beside one that is named, and beside a key", () => {
  const one = (query: string) => hasPair(routeOf(query).start);
  expect([one("path=/out/p&row=3"), one("record=write%230%233&node=8"), one("node=8&key=A")]).toEqual([
    true,
    true,
    true,
  ]);
  expect([one("failure=2"), one("node=8&where=x")]).toEqual([false, false]);
});

test("the API gets both records, rows as it names them, and nothing that was not asked", () => {
  expect(explanationParameters(routeOf("path=/out/p&row=3&limit=9"))).toEqual({
    path: "/out/p",
    row: 3,
    with: null,
    compare: null,
    compare_starts: null,
    how: null,
    limit: "9",
  });
  expect(startParameters(routeOf("node=8&key=A&same=B"))).toEqual({
    starts: '[{"node":"8","key":"A"},{"node":"8","key":"B"}]',
    same: true,
  });
  const all = "path=/out/p&row=3&same=/out/q:1&with=/in:7&with=0%23read%230%231&how=1&compare=b&compare-start=/out/r:2";
  expect(explanationParameters(routeOf(all))).toEqual({
    starts: '[{"path":"/out/p","row":3},{"path":"/out/q","row":0}]',
    same: true,
    with: '[{"path":"/in","row":6},{"record":"0#read#0#1"}]',
    compare: "b",
    compare_starts: '[{"path":"/out/r","row":1}]',
    how: true,
    limit: null,
  });
});

test.each([
  ["node=8&where=x%20%3C%200", 'lineage explain a --where "x < 0" --node 8'],
  ["record=write%230%233&node=8&same=/out/p:4", 'lineage explain a --same "8#write#0#3" /out/p:4'],
  ["node=8&key=A&same=B%20C&how=1", 'lineage explain a --node 8 --same A "B C" --how'],
  [
    "path=/out/p&row=3&with=/in:7&with=/in:9&compare=b&compare-start=/out/r:2",
    "lineage explain a /out/p:4 --with /in:7 --with /in:9 --compare b --compare-start /out/r:2",
  ],
])("a terminal asks the same: %s", (query, line) => {
  expect(explainCommand(routeOf(query))).toBe(line);
});

test("a reproduction has the demanded rows, and saves nothing without a run then", () => {
  const linesOf = (query: string) => reproductionLines(routeOf(query)).map(([, line]) => line);
  expect(linesOf("path=/out/p&row=3&how=1&compare=b")).toEqual([
    "lineage explain a /out/p:4 --sufficient --save repro -- YOUR COMMAND",
    "lineage explain a /out/p:4 --minimal --save repro -- YOUR COMMAND",
    "lineage explain a /out/p:4 --save repro -- YOUR COMMAND",
  ]);
  expect(linesOf("path=/out/p&row=3&with=/in:7")).toEqual([
    "lineage explain a /out/p:4 --with /in:7 --sufficient --save repro -- YOUR COMMAND",
    "lineage explain a /out/p:4 --with /in:7 --minimal --save repro -- YOUR COMMAND",
  ]);
});
