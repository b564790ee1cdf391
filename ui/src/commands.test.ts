import { expect, test } from "vitest";
import { commandsOf, curlOf } from "./commands";
import { parse } from "./route";
import { shellWord } from "./words";

const linesOf = (address: string) =>
  commandsOf(parse(address)).flatMap(({ path, terminal, parameters }) =>
    path === null ? [terminal] : [terminal, curlOf("localhost:8080/", { path, parameters })],
  );

test("words are quoted for a shell", () => {
  expect(["/data/x", "a = 'b'", 'a = "b"', "it's $5"].map(shellWord)).toEqual([
    "/data/x",
    `"a = 'b'"`,
    `'a = "b"'`,
    `'it'\\''s $5'`,
  ]);
});

test.each([
  ["#/", ["lineage datasets", "curl localhost:8080/api/datasets"]],
  [
    "#/datasets?text=a%20b",
    ['lineage datasets "a b"', 'curl -G localhost:8080/api/datasets --data-urlencode "text=a b"'],
  ],
  [
    "#/dataset?name=/out&namespace=file",
    [
      "lineage dataset /out --namespace file",
      "curl -G localhost:8080/api/dataset --data-urlencode name=/out -d namespace=file",
    ],
  ],
  [
    "#/applications?text=nightly&state=failed",
    ["lineage apps --name nightly", "curl -G localhost:8080/api/applications -d text=nightly -d state=failed"],
  ],
  ["#/jobs", []],
  [
    "#/job/air%20quality",
    [
      'lineage trigger show "air quality"',
      "curl localhost:8080/api/jobs/air%20quality",
      'lineage trigger waves "air quality"',
      "curl localhost:8080/api/jobs/air%20quality/waves",
      'lineage trigger "air quality"',
    ],
  ],
  ["#/app/local-1/failures", ["lineage failures local-1", "curl localhost:8080/api/applications/local-1/failures"]],
  [
    "#/app/local-1/trace?failure=2",
    [
      "lineage trace local-1 backward --failure 2 --depth 1",
      "curl -G localhost:8080/api/applications/local-1/trace -d direction=backward -d failure=2 -d depth=1",
    ],
  ],
  [
    "#/app/local-1/suspects?limit=5",
    ["lineage suspects local-1 --limit 5", "curl -G localhost:8080/api/applications/local-1/suspects -d limit=5"],
  ],
  [
    "#/app/a/suspects?bad=8%23write%230%233&bad=/out/p:4&bad-where=x%20%3C%200&good=8%23write%230%231&failures=1",
    [
      'lineage suspects a --bad "8#write#0#3" --bad /out/p:4 --bad-where "x < 0" --good "8#write#0#1"',
      `curl -G localhost:8080/api/applications/a/suspects --data-urlencode 'bad=[{"record":"8#write#0#3"},{"path":"/out/p","row":3},{"where":"x < 0"}]' --data-urlencode 'good=[{"record":"8#write#0#1"}]'`,
      'lineage contrast a --bad "8#write#0#3" --bad /out/p:4 --bad-where "x < 0" --good "8#write#0#1" --failures',
      `curl -G localhost:8080/api/applications/a/contrast --data-urlencode 'bad=[{"record":"8#write#0#3"},{"path":"/out/p","row":3},{"where":"x < 0"}]' --data-urlencode 'good=[{"record":"8#write#0#1"}]' -d failures=true`,
    ],
  ],
  [
    "#/app/a/rowset?record=write%230%233&node=8&limit=200",
    [
      'lineage rows a "write#0#3" --node 8',
      'curl -G localhost:8080/api/applications/a/rowset --data-urlencode "record=write#0#3" -d node=8 -d limit=200',
    ],
  ],
  [
    "#/app/a/rowset?node=8&where=x%20%3C%200",
    [
      'lineage rows a --where "x < 0" --node 8',
      'curl -G localhost:8080/api/applications/a/rowset -d node=8 --data-urlencode "where=x < 0"',
    ],
  ],
  [
    "#/app/a/explanation?record=write%230%233&node=8",
    [
      'lineage explain a "write#0#3" --node 8',
      'curl -G localhost:8080/api/applications/a/explanation --data-urlencode "record=write#0#3" -d node=8',
    ],
  ],
  [
    "#/app/a/explanation?path=/out/p&row=3&same=/out/q:1",
    [
      "lineage explain a --same /out/p:4 /out/q:1",
      `curl -G localhost:8080/api/applications/a/explanation --data-urlencode 'starts=[{"path":"/out/p","row":3},{"path":"/out/q","row":0}]' -d same=true`,
    ],
  ],
  [
    "#/app/a/absence?node=8&key=A%20B",
    [
      'lineage explain a --node 8 --absent "A B"',
      'curl -G localhost:8080/api/applications/a/absence -d node=8 --data-urlencode "key=A B"',
    ],
  ],
  ["#/app/a/replays/3", ["lineage apps --replays", "curl localhost:8080/api/applications/a/replays"]],
  [
    "#/app/a/why?failure=2",
    [
      "lineage rows a --failure 2",
      "curl -G localhost:8080/api/applications/a/rowset -d failure=2",
      "lineage suspects a",
      "curl localhost:8080/api/applications/a/suspects",
      "lineage contrast a --failures",
      "curl -G localhost:8080/api/applications/a/contrast -d failures=true",
    ],
  ],
  ["#/app/local-1", ["lineage graph local-1", "curl localhost:8080/api/applications/local-1/graph"]],
  [
    "#/app/local-1/nodes/3?text=Graz",
    [
      "lineage show local-1 3 --text Graz",
      "curl -G localhost:8080/api/applications/local-1/nodes/3/records -d text=Graz",
    ],
  ],
  [
    "#/app/local-1/nodes/3?where=city%20%3D%20%27Graz%27&full=1",
    [
      `lineage show local-1 3 --where "city = 'Graz'"`,
      `curl -G localhost:8080/api/applications/local-1/nodes/3/records --data-urlencode "where=city = 'Graz'"`,
    ],
  ],
  [
    "#/dataset?name=/out&where=x%20%3E%201",
    [
      'lineage trace /out --where "x > 1"',
      'curl -G localhost:8080/api/trace --data-urlencode dataset=/out --data-urlencode "where=x > 1"',
      "lineage dataset /out",
      "curl -G localhost:8080/api/dataset --data-urlencode name=/out",
    ],
  ],
  [
    "#/app/a/missing?path=/in.csv&row=4",
    [
      "lineage missing a /in.csv:5",
      "curl -G localhost:8080/api/applications/a/missing --data-urlencode path=/in.csv -d row=4",
    ],
  ],
  [
    "#/app/a/missing?where=x%20%3E%201&path=/in&direction=forward",
    [
      'lineage missing a /in --where "x > 1" --input',
      'curl -G localhost:8080/api/applications/a/missing --data-urlencode path=/in --data-urlencode "where=x > 1" -d direction=forward',
    ],
  ],
  [
    "#/app/a/missing?node=3&partition=1&offset=7",
    [
      'lineage missing a "1#7" --node 3',
      "curl -G localhost:8080/api/applications/a/missing -d node=3 -d partition=1 -d offset=7",
    ],
  ],
  ["#/app/a/missing", []],
  [
    "#/app/a/trace?record=write%230%233&node=8&direction=backward",
    [
      'lineage trace a backward "write#0#3" --node 8 --depth 1',
      'curl -G localhost:8080/api/applications/a/trace -d direction=backward --data-urlencode "record=write#0#3" -d node=8 -d depth=1',
      'lineage replay a "write#0#3" --node 8 -- YOUR COMMAND',
    ],
  ],
  [
    "#/history?dataset=sales.orders&where=id+%3D+42&version=7",
    [
      'lineage history sales.orders --version 7 --where "id = 42"',
      'curl -G localhost:8080/api/history -d dataset=sales.orders --data-urlencode "where=id = 42" -d version=7',
    ],
  ],
  [
    "#/history?dataset=/t&where=a&at=1795860831123",
    [
      "lineage history /t --at 2026-11-28T10:13:51.123Z --where a",
      "curl -G localhost:8080/api/history --data-urlencode dataset=/t -d where=a -d at=1795860831123",
    ],
  ],
  ["#/history?dataset=/t&at=1e9", []],
  [
    "#/compare?dataset=%2Fout&key=city",
    ["lineage compare /out --key city", "curl -G localhost:8080/api/compare --data-urlencode dataset=/out -d key=city"],
  ],
  ["#/compare?before=a&after=b", ["lineage compare a b", "curl -G localhost:8080/api/compare -d before=a -d after=b"]],
  ["#/compare", []],
  ["#/lag", ["lineage status", "curl localhost:8080/api/lag"]],
  ["#/nowhere", []],
])("%s", (address, lines) => {
  expect(linesOf(address)).toEqual(lines);
});

test("both directions of a whole trace are two commands; lines of a file count from 1", () => {
  expect(commandsOf(parse("#/app/a/trace?path=/in.csv&row=4&whole=1")).map(({ terminal }) => terminal)).toEqual([
    "lineage trace a backward /in.csv:5",
    "lineage trace a forward /in.csv:5",
  ]);
  const where = commandsOf(parse("#/app/a/trace?node=3&where=x%20%3E%201&whole=1&direction=forward"));
  expect(where[0]?.terminal).toBe('lineage trace a forward --all --where "x > 1" --node 3');
});
