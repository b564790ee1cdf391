import { expect, test } from "vitest";
import { commandsOf, curlOf, shellWord } from "./commands";
import { parse } from "./route";

const linesOf = (address: string) =>
  commandsOf(parse(address)).flatMap((command) => [command.terminal, curlOf("localhost:8080/", command)]);

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
  ["#/app/local-1", ["lineage graph local-1", "curl localhost:8080/api/applications/local-1/graph"]],
  [
    "#/app/local-1/nodes/3?text=Graz",
    [
      "lineage show local-1 3 --text Graz",
      "curl -G localhost:8080/api/applications/local-1/nodes/3/records -d text=Graz",
    ],
  ],
  [
    "#/app/a/trace?record=write%230%233&node=8&direction=backward",
    [
      'lineage trace a backward "write#0#3" --node 8 --depth 1',
      'curl -G localhost:8080/api/applications/a/trace -d direction=backward --data-urlencode "record=write#0#3" -d node=8 -d depth=1',
    ],
  ],
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
