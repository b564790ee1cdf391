"""A replay of DataFrames on some rows of files gives what stock PySpark gives on files of these rows."""

from __future__ import annotations

import json
import random
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from tests.support.spark.replay_bench import ReplayBench, replay_bench

pytestmark = pytest.mark.thorough

ROWS = 60
#: File -> the line of its first row.
FIRST_LINES = {
    "orders.csv": 2,
    "more/a.csv": 1,
    "more/b.csv": 1,
    "events.json": 1,
    "words.txt": 1,
    "items.parquet": 1,
    "parts/day=1/rows.parquet": 1,
    "parts/day=2/rows.parquet": 1,
    "stock.orc": 1,
}
JOB = """
import sys

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.config("spark.sql.shuffle.partitions", 3)
    .config("spark.sql.files.maxPartitionBytes", int([*sys.argv, 300][1]))
    .config("spark.sql.files.openCostInBytes", 1)
    .getOrCreate()
)
orders = spark.read.csv("orders.csv", header=True, schema="id int, item int, amount int")
more = spark.read.csv("more", schema="id int, item int, amount int")
events = spark.read.json("events.json", schema="item int, kind string")
items = spark.read.parquet("items.parquet")
parts = spark.read.parquet("parts")
stock = spark.read.orc("stock.orc")


def save(frame, name):
    frame.selectExpr("to_json(struct(*)) AS value").write.text("out/" + name)


save(orders.where("amount > 20").groupBy("item").sum("amount"), "sums")
save(orders.union(more).where("item < 5"), "union")
save(items.where("price > 30").join(orders, "item").groupBy("label").count(), "joined")
save(parts.where("day = 2 and value > 10"), "one_day")
save(parts.groupBy("day").sum("value"), "days")
save(stock.alias("a").join(stock.alias("b"), "item").selectExpr("a.item", "b.left"), "self_join")
save(spark.read.text("words.txt").selectExpr("explode(split(value, ' ')) AS w").groupBy("w").count(), "words")
kept = events.where("kind = 'x'").cache()
save(kept.groupBy("item").count(), "cached")
save(kept.join(items, "item").select("item", "label"), "cached_join")
spark.sql("SELECT 1").collect()
"""
SINKS = ("sums", "union", "joined", "one_day", "days", "self_join", "words", "cached", "cached_join")


def lines(make: Callable[[int], str]) -> list[Any]:
    return [make(at) for at in range(ROWS)]


CONTENTS: dict[str, list[Any]] = {
    "orders.csv": lines(lambda at: f"{at},{at % 7},{at * 3 % 50}"),
    "more/a.csv": lines(lambda at: f"{at + 100},{at % 5},{at}"),
    "more/b.csv": lines(lambda at: f"{at + 200},{at % 3},{at}"),
    "events.json": lines(lambda at: json.dumps({"item": at % 9, "kind": "xyz"[at % 3]})),
    "words.txt": lines(lambda at: f"the word {at % 4} of {at % 6}"),
    "items.parquet": [{"item": at % 11, "price": at * 7 % 60, "label": f"l{at % 4}"} for at in range(ROWS)],
    "parts/day=1/rows.parquet": [{"value": at} for at in range(ROWS)],
    "parts/day=2/rows.parquet": [{"value": at * 2} for at in range(ROWS)],
    "stock.orc": [{"item": at % 8, "left": at} for at in range(ROWS)],
}
SCHEMAS = {
    "items.parquet": pa.schema([("item", pa.int32()), ("price", pa.int32()), ("label", pa.string())]),
    "parts/day=1/rows.parquet": pa.schema([("value", pa.int32())]),
    "parts/day=2/rows.parquet": pa.schema([("value", pa.int32())]),
    "stock.orc": pa.schema([("item", pa.int32()), ("left", pa.int32())]),
}


def write(folder: Path, contents: dict[str, list[Any]]) -> None:
    for name, rows in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in SCHEMAS:
            table = pa.Table.from_pylist(rows, SCHEMAS[name])
            if name.endswith(".orc"):
                pyarrow.orc.write_table(table, path)
            else:
                pyarrow.parquet.write_table(table, path, row_group_size=25)
        else:
            header = ["id,item,amount"] if name == "orders.csv" else []
            path.write_text("".join(f"{line}\n" for line in header + rows))


def outputs(folder: Path) -> dict[str, Counter[str]]:
    return {
        name: Counter(
            line for path in (folder / name).glob("part-*") for line in path.read_text().splitlines()
        )
        for name in SINKS
    }


@pytest.fixture(scope="module")
def bench(kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayBench]:
    with replay_bench(kafka, tmp_path_factory.mktemp("frames"), uuid.uuid4().hex[:12]) as bench:
        write(bench.folder, CONTENTS)
        (bench.folder / "job.py").write_text(JOB)
        yield bench


@pytest.fixture(scope="module")
def application(bench: ReplayBench) -> str:
    return bench.job("job.py")


def on_stock(bench: ReplayBench, folder: Path, contents: dict[str, list[Any]]) -> dict[str, Counter[str]]:
    """What the job gives on files of these rows, without lineage."""
    write(folder, contents)
    shutil.copy(bench.folder / "job.py", folder)
    ended = bench.run(
        "-c",
        f"import os; os.chdir({str(folder)!r}); exec(open('job.py').read())",
        environment=bench.environment(has_lineage=False),
    )
    assert ended.code == 0, ended.err
    return outputs(folder / "out")


@pytest.mark.parametrize(("mode", "seed"), [("only", 1), ("without", 2)])
def test_outputs_are_those_of_stock_pyspark_on_the_rows(
    bench: ReplayBench, application: str, tmp_path: Path, mode: str, seed: int
) -> None:
    randomness = random.Random(seed)
    chosen = {name: sorted(randomness.sample(range(ROWS), 23)) for name in CONTENTS}
    named = ",".join(
        f"{bench.folder / name}:{row + FIRST_LINES[name]}" for name, rows in chosen.items() for row in rows
    )
    answer = bench.replay(application, f"--{mode}", named, "--keep", "--json", command=["job.py"])
    assert answer.out, answer.err
    assert not [note for note in answer.json["notes"] if "whole" in note], answer.json["notes"]
    sandbox = bench.home / "replays" / answer.json["replay"]
    report = json.loads((sandbox / "report.json").read_text())
    assert {source["way"] for source in report["sources"]} == {"filter"}, report
    kept = {
        name: [row for at, row in enumerate(rows) if (at in chosen[name]) == (mode == "only")]
        for name, rows in CONTENTS.items()
    }
    written = {Path(sink["path"]).name: Path(sink["to"]) for sink in report["sinks"] if sink["path"]}
    expected = on_stock(bench, tmp_path, kept)
    for name in SINKS:
        lines_of = Counter(
            line for path in written[name].glob("part-*") for line in path.read_text().splitlines()
        )
        assert lines_of == expected[name], name
    assert any(expected.values())


def test_files_that_are_cut_in_another_way_end_the_replay(bench: ReplayBench, application: str) -> None:
    rows = f"{bench.folder}/orders.csv:3"
    answer = bench.replay(application, "--only", rows, "--keep", "--json", command=["job.py", "100"])
    assert any("the command ended with exit code 1" in note for note in answer.json["notes"])
    said = (bench.home / "replays" / answer.json["replay"] / "stderr").read_text()
    assert f"the replay reads {bench.folder}/orders.csv in other pieces than the original" in said


def test_a_row_of_an_output_comes_out_again_from_its_rows(bench: ReplayBench, application: str) -> None:
    part = next(
        path for path in sorted((bench.folder / "out" / "sums").glob("part-*")) if path.stat().st_size
    )
    answer = bench.replay(application, f"{part}:1", "--json", command=["job.py"])
    assert answer.code == 0, (answer.out, answer.err)
    assert answer.json["verdict"] == "reproduced"
    assert answer.json["rows"] < ROWS / 2
