"""A program of DataFrames that runs several times in one process, each time on other rows of its files."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from spark_agent.contract.row_sets import ranges_of
from tests.support.spark.replays import program_environment, texts_in, write_silent_spec

PROGRAM = """import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = SparkSession.builder.appName("Sums").config("spark.sql.shuffle.partitions", 2).getOrCreate()
assert spark.conf.get("spark.sql.session.timeZone") != "Asia/Tokyo", "settings are new"
assert not spark.catalog.listTables(), "views are new"
assert not spark.sparkContext._jsc.getPersistentRDDs().size(), "nothing is persisted"
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
orders = spark.read.csv(f"{folder}/orders.csv", header=True, schema="item string, amount int")
orders.createOrReplaceTempView("orders")
items = spark.read.json(f"{folder}/items", schema="item string, kind string").cache()
sums = spark.sql("SELECT * FROM orders WHERE amount > 1").join(items, "item").groupBy("kind").sum("amount")
sums.selectExpr("concat(kind, ' ', `sum(amount)`) AS value").write.text(f"{folder}/sums")
orders.rdd.map(lambda row: f"{row.item}{row.amount}").saveAsTextFile(f"{folder}/pairs")
items.where("kind = 'x'").select("item").write.text(f"{folder}/kinds")
"""
ORDERS = [("a", 1), ("b", 2), ("a", 3), ("c", 5), ("b", 7), ("d", 9), ("a", 11)]
ITEMS = {"items/1.json": [("a", "x"), ("b", "y")], "items/2.json": [("c", "x"), ("d", "y"), ("a", "z")]}
Rows = dict[str, Any]
"""By file."""
ALL: Rows = {"orders.csv": range(7), "items/1.json": range(2), "items/2.json": range(3)}
FEW: Rows = {"orders.csv": [1, 2, 6], "items/1.json": [0, 1], "items/2.json": [0, 2]}
FEWER: Rows = {"orders.csv": [2], "items/1.json": [], "items/2.json": [2]}
OTHERS: Rows = {"orders.csv": range(7), "items/1.json": [], "items/2.json": [1, 2]}
#: The rows of each run, and those of which further runs keep others.
RUNS = [(FEWER, None), (FEWER, FEW), (FEW, FEW), (OTHERS, ALL), (FEWER, ALL)]
FORMATS = """import sys

from pyspark.sql import SparkSession

folder = sys.argv[1]
builder = SparkSession.builder.appName("Formats").config("spark.sql.shuffle.partitions", 2)
spark = builder.config("spark.sql.ansi.enabled", "true").getOrCreate()
prices = spark.read.parquet(f"{folder}/prices")
prices.where("price > 3 AND day = 2").selectExpr("concat(item, price)").write.text(f"{folder}/dear")
prices.groupBy("day").count().selectExpr("concat(day, ' ', count)").write.text(f"{folder}/days")
stock = spark.read.orc(f"{folder}/stock.orc")
pairs = stock.alias("a").join(stock.alias("b"), "item").selectExpr("concat(item, a.left, ' ', b.left)")
pairs.write.text(f"{folder}/pairs")
words = spark.read.text(f"{folder}/words.txt").selectExpr("input_file_name() AS file", "value")
words.selectExpr("concat(substring_index(file, '/', -1), ' ', value)").write.text(f"{folder}/files")
big = prices.where("price > (SELECT avg(price) FROM parquet.`" + folder + "/prices`)")
big.selectExpr("concat(item, price)").write.text(f"{folder}/big")
first = prices.agg({"code": "min"}).head()[0]
prices.where(prices.code == (first or "none")).selectExpr("concat(code, item)").write.text(f"{folder}/first")
with open(f"{folder}/limit") as file:
    limited = prices.where(f"10 div (price - {file.read()}) > 1")
limited.selectExpr("concat(item, price)").write.text(f"{folder}/limited")
"""
SECONDS = 120


class Reruns:
    """The program's process. Each run has a folder in the sandbox."""

    def __init__(self, program: str, folder: Path, sandbox: Path) -> None:
        self.folder, self._sandbox, self._count = folder, sandbox, 0
        (folder / "job.py").write_text(program)
        write_silent_spec(sandbox, [])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spark_agent.driver.replay.rerun", str(folder / "job.py"), str(folder)],
            cwd=sandbox,
            env={
                **program_environment({"spark.master": "local[2]"}),
                "LINEAGE_REPLAY": str(sandbox / "spec.json"),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, sources: list[dict[str, Any]]) -> dict[str, Any]:
        """Its report."""
        self._count += 1
        run = self._sandbox / "runs" / str(self._count)
        (run / "out").mkdir(parents=True)
        write_silent_spec(run, sources)
        until = time.monotonic() + SECONDS
        while not (run / "ended.json").exists():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        ended = json.loads((run / "ended.json").read_text())
        assert ended["exit_code"] == 0, ended["printed"][-3000:]
        report: dict[str, Any] = json.loads((run / "report.json").read_text())
        return report

    def end(self) -> int:
        (self._sandbox / "runs" / "over").touch()
        self.process.communicate(timeout=SECONDS)
        return self.process.returncode


@pytest.fixture(scope="module")
def reruns(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reruns]:
    folder, sandbox = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("sandbox")
    (folder / "orders.csv").write_text("item,amount\n" + "".join(f"{item},{n}\n" for item, n in ORDERS))
    (folder / "items").mkdir()
    for name, rows in ITEMS.items():
        lines = (json.dumps({"item": item, "kind": kind}) for item, kind in rows)
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    made = Reruns(PROGRAM, folder, sandbox)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()


def sources_on(
    rows: Rows, candidates: Rows | None, reported: list[dict[str, Any]], folder: Path
) -> list[dict[str, Any]]:
    """The sources that a run has reported, with these rows of their files."""
    files = {"Scan csv": ["orders.csv"], "Scan json": ["items/1.json", "items/2.json"]}
    return [
        {
            **{field: source[field] for field in ("node", "name", "call_site")},
            "whole": False,
            "blocks": [
                {
                    "path": str(folder / name),
                    "start": 0,
                    "length": (folder / name).stat().st_size,
                    "rows": ranges_of(rows[name]),
                    **({} if candidates is None else {"candidates": ranges_of(candidates[name])}),
                }
                for name in files[source["name"]]
            ],
        }
        for source in reported
    ]


def outputs_of(rows: Rows) -> dict[str, Counter[str]]:
    orders = [ORDERS[row] for row in rows["orders.csv"]]
    items = [pair for name, pairs in ITEMS.items() for row, pair in enumerate(pairs) if row in rows[name]]
    sums: Counter[str] = Counter()
    for item, amount in orders:
        for other, kind in items:
            if item == other and amount > 1:
                sums[kind] += amount
    return {
        "sums": Counter(f"{kind} {total}" for kind, total in sums.items()),
        "pairs": Counter(f"{item}{amount}" for item, amount in orders),
        "kinds": Counter(item for item, kind in items if kind == "x"),
    }


@pytest.mark.thorough
def test_each_run_gives_what_its_rows_give(reruns: Reruns) -> None:
    first = reruns.run([])
    assert {source["name"] for source in first["sources"]} == {"Scan csv", "Scan json"}, first
    assert written_in(first) == outputs_of(ALL)
    for rows, candidates in RUNS:
        if rows is FEWER and candidates is ALL:  # which the process has read by then
            orders = reruns.folder / "orders.csv"
            orders.write_text("?" * orders.stat().st_size)
        report = reruns.run(sources_on(rows, candidates, first["sources"], reruns.folder))
        assert written_in(report) == outputs_of(rows), (rows, candidates)
        assert [source["way"] for source in report["sources"]] == ["filter"] * len(first["sources"]), report
        assert report["differences"] == []
    assert reruns.end() == 0
    assert not list(reruns.folder.glob("sums")), "nothing is written where the job wrote"


def written_in(report: dict[str, Any]) -> dict[str, Counter[str]]:
    sinks = [sink for sink in report["sinks"] if sink["path"] is not None]
    return {Path(sink["path"]).name: texts_in(Path(sink["to"])) for sink in sinks}


PRICES = {
    f"prices/day={day}/part.parquet": [
        {"item": "abc"[at % 3], "price": day * at % 7, "code": f"A#{at}"} for at in range(20)
    ]
    for day in (1, 2)
}
STOCK = {"stock.orc": [{"item": "ab"[at % 2], "left": at} for at in range(6)]}
WORDS = {"words.txt": ["one", "two", "three", "four"]}


@pytest.mark.thorough
def test_each_format_gives_what_its_rows_give(jar: Path, tmp_path: Path) -> None:
    folder, sandbox = tmp_path / "data", tmp_path / "sandbox"
    folder.mkdir()
    sandbox.mkdir()
    for name, rows in {**PRICES, **STOCK}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name in STOCK:
            pyarrow.orc.write_table(pa.Table.from_pylist(rows), folder / name)
        else:
            pyarrow.parquet.write_table(pa.Table.from_pylist(rows), folder / name, row_group_size=6)
    (folder / "words.txt").write_text("".join(f"{word}\n" for word in WORDS["words.txt"]))
    contents: dict[str, list[Any]] = {**PRICES, **STOCK, **WORDS}
    every = {name: list(range(len(rows))) for name, rows in contents.items()}
    reruns = Reruns(FORMATS, folder, sandbox)
    randomness = random.Random(5)
    try:
        (folder / "limit").write_text("1000")
        first = reruns.run([])
        assert written_in(first) == of_formats(contents, limit=1000)
        (folder / "limit").write_text("3")
        for count in (0, 1, 4, 2, 9):
            chosen = {name: sorted(randomness.sample(of, min(count, len(of)))) for name, of in every.items()}
            for name, rows in PRICES.items():  # a row that is dropped ends in no error
                chosen[name] = [row for row in chosen[name] if rows[row]["price"] != 3]
            sources = [blocks_of(source, chosen, every, folder) for source in first["sources"]]
            report = reruns.run(sources)
            kept = {name: [contents[name][row] for row in of] for name, of in chosen.items()}
            assert written_in(report) == of_formats(kept, limit=3), chosen
            assert {source["way"] for source in report["sources"]} == {"filter"}, report
        assert reruns.end() == 0
    finally:
        reruns.process.kill()
        reruns.process.wait()


def blocks_of(source: dict[str, Any], rows: Rows, every: Rows, folder: Path) -> dict[str, Any]:
    """A source that a run has reported, with these rows of its files. Parquet knows rows by index."""
    names = {"Scan parquet": [*PRICES], "Scan orc": [*STOCK], "Scan text": [*WORDS]}[source["name"]]
    return {
        **{field: source[field] for field in ("node", "name", "call_site")},
        "whole": False,
        "blocks": [
            {
                "path": str(folder / name),
                "start": 0,
                "length": (folder / name).stat().st_size,
                "row": 0,
                "rows": ranges_of(rows[name]),
                "candidates": ranges_of(every[name]),
            }
            for name in names
        ],
    }


def of_formats(rows: dict[str, list[Any]], *, limit: int) -> dict[str, Counter[str]]:
    prices = [(day, row) for day in (1, 2) for row in rows[f"prices/day={day}/part.parquet"]]
    stock = rows["stock.orc"]
    mean = sum(row["price"] for _, row in prices) / len(prices) if prices else 0
    code = min((row["code"] for _, row in prices), default="none")
    return {
        "dear": Counter(
            f"{row['item']}{row['price']}" for day, row in prices if row["price"] > 3 and day == 2
        ),
        "days": Counter(f"{day} {n}" for day, n in Counter(day for day, _ in prices).items()),
        "pairs": Counter(
            f"{one['item']}{one['left']} {other['left']}"
            for one in stock
            for other in stock
            if one["item"] == other["item"]
        ),
        "files": Counter(f"words.txt {word}" for word in rows["words.txt"]),
        "big": Counter(f"{row['item']}{row['price']}" for _, row in prices if row["price"] > mean),
        "first": Counter(f"{row['code']}{row['item']}" for _, row in prices if row["code"] == code),
        "limited": Counter(
            f"{row['item']}{row['price']}" for _, row in prices if int(10 / (row["price"] - limit)) > 1
        ),
    }
