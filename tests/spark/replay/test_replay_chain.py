"""Two applications, of which the second reads what the first wrote, replayed one after the other."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.spark.replay_bench import Answer, ReplayBench, replay_bench, row_of, state_of

pytestmark = pytest.mark.thorough

FIRST = """from pyspark import SparkContext

context = SparkContext(appName="Sums")
rows = context.textFile("sales.csv", 3).map(lambda line: line.split(","))
sums = rows.map(lambda row: (row[0], int(row[1]))).reduceByKey(lambda one, other: one + other)
sums.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile("sums")
context.stop()
"""
SECOND = """from pyspark import SparkContext

context = SparkContext(appName="Countries")
sums = context.textFile("sums", 2).map(lambda line: tuple(line.split(",")))
countries = context.textFile("countries.csv", 2).map(lambda line: tuple(line.split(",")))
joined = sums.join(countries).map(lambda pair: (pair[1][1], int(pair[1][0])))
totals = joined.reduceByKey(lambda one, other: one + other)
totals.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile("totals")
context.stop()
"""
OF_FRAMES = """from pyspark.sql import SparkSession

session = SparkSession.builder.appName("Frame").getOrCreate()
session.read.csv("sums", schema="town string, amount int").where("amount > 3").write.parquet("large")
session.stop()
"""
TOWNS = ("Graz", "Linz", "Wien", "Bonn", "Köln")
SALES = "".join(f"{TOWNS[at % 5]},{at}\n" for at in range(40))
COUNTRIES = "".join(f"{town},{country}\n" for town, country in zip(TOWNS, "AAADD", strict=True))


class Chain(NamedTuple):
    bench: ReplayBench
    first: str
    second: str
    frame: str

    def replay(self, start: str, *jobs: tuple[str, str]) -> Answer:
        words = [
            word
            for application, script in jobs
            for word in ("--job", application, "--", sys.executable, script)
        ]
        return self.bench.lineage("replay", start, "--json", *words)


@pytest.fixture(scope="module")
def chain(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with replay_bench(kafka, tmp_path_factory.mktemp("chain"), uuid.uuid4().hex[:12]) as bench:
        (bench.folder / "sales.csv").write_text(SALES)
        (bench.folder / "countries.csv").write_text(COUNTRIES)
        for name, script in (("first.py", FIRST), ("second.py", SECOND), ("frame.py", OF_FRAMES)):
            (bench.folder / name).write_text(script)
        yield Chain(bench, *(bench.job(name) for name in ("first.py", "second.py", "frame.py")))


def test_what_the_first_wrote_stands_in_for_what_the_second_read(chain: Chain) -> None:
    folder = chain.bench.folder
    before = state_of(folder)
    row = row_of(folder / "totals", "D,")
    answer = chain.replay(row, (chain.first, "first.py"), (chain.second, "second.py"))
    assert answer.code == 0, (answer.out, answer.err)
    first, second = answer.json["replays"]
    assert (answer.json["verdict"], first["verdict"], second["verdict"]) == ("reproduced",) * 3
    # Two of five towns: 16 of the 40 sales, and 2 of the 5 countries.
    assert (first["rows"], first["of"], len(first["outputs"])) == (16, 40, 2)
    assert (second["rows"], second["of"]) == (2, 5)
    [whole] = [used for used in second["used"] if used["rows"] is None]
    assert whole["why"].startswith(f"it was read from {first['sandbox']}/out/")
    assert state_of(folder) == before


def test_queries_read_stand_ins_too(chain: Chain) -> None:
    [file] = sorted((chain.bench.folder / "large").glob("*.parquet"))[:1]
    answer = chain.replay(f"{file}:1", (chain.first, "first.py"), (chain.frame, "frame.py"))
    assert answer.code == 0, (answer.out, answer.err)
    first, second = answer.json["replays"]
    assert (first["rows"], second["verdict"]) == (8, "reproduced")


def test_applications_that_do_not_hang_together_are_refused(chain: Chain) -> None:
    row = row_of(chain.bench.folder / "sums", "Graz,")
    answer = chain.replay(row, (chain.second, "second.py"), (chain.first, "first.py"))
    assert answer.code == 1
    assert f"{chain.first} read nothing that {chain.second} wrote and that is still there" in answer.err


def test_a_first_job_that_fails_ends_the_chain(chain: Chain) -> None:
    row = row_of(chain.bench.folder / "totals", "A,")
    answer = chain.replay(row, (chain.first, "nothing.py"), (chain.second, "second.py"))
    assert answer.code == 3
    assert len(answer.json["replays"]) == 1
