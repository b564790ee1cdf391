"""`lineage influence` on a job of several kinds of aggregations, against loops over the lines but one."""

from __future__ import annotations

import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark.replay_bench import ReplayBench, replay_bench, state_of

pytestmark = pytest.mark.thorough

JOB = """from operator import add

from pyspark import SparkContext

context = SparkContext(appName="Influences")
lines = context.textFile("numbers.txt", 3)
header = lines.first()
fields = lines.filter(lambda line: line != header).map(lambda line: line.split(","))
pairs = fields.map(lambda p: (p[0], float(p[1])))


def added(values, value):
    values.append(value)
    return values


def extended(values, others):
    values.extend(others)
    return values


def saved(rdd, name):
    rdd.map(lambda pair: f"{pair[0]};{pair[1]}").saveAsTextFile(name)


saved(pairs.reduceByKey(add), "sums")
lists = pairs.aggregateByKey([], added, extended)
saved(lists.mapValues(lambda values: sorted(values)[len(values) // 2]), "medians")
ranges = pairs.groupByKey(2).mapValues(lambda values: max(values) - min(values))
saved(ranges.filter(lambda pair: pair[1] > 1), "ranges")
saved(pairs.reduceByKey(add).map(lambda p: (p[0][0], p[1])).reduceByKey(max), "largest")
saved(pairs.filter(lambda p: p[0] == "aa").sortBy(lambda p: p[1]).reduceByKey(add), "sorted")
letters = fields.flatMap(lambda p: [(letter, float(p[1])) for letter in p[0]])
positive = letters.reduceByKey(add).filter(lambda pair: pair[1] > 0)
saved(positive.map(lambda pair: ("all", pair[1])).reduceByKey(max), "positive")
seen = context.accumulator(0)


def counted(pair):
    seen.add(1)
    return pair


saved(pairs.map(counted), "copies")
rows = seen.value
saved(pairs.reduceByKey(add).mapValues(lambda total: total / rows), "shares")
"""
FRAMES = """from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("Influences of frames").getOrCreate()
frame = spark.read.csv("numbers.txt", header=True, schema="key string, number double")
sums = frame.groupBy("key").agg(F.sum("number"))
sums.coalesce(1).write.csv("frame_sums", sep=";")
rows = frame.count()
sums.select("key", F.col("sum(number)") / rows).coalesce(1).write.csv("frame_shares", sep=";")
"""
HEADER = "key,number"
LINES = [f"{key},{number}" for key, number in zip(["aa", "ab", "b", "aa"] * 4, range(-3, 13), strict=True)]
Rows = dict[str, float]


def lists(lines: Sequence[str]) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        key, number = line.split(",")
        groups[key].append(float(number))
    return groups


def largest(lines: Sequence[str]) -> Rows:
    firsts: Rows = {}
    for key, numbers in lists(lines).items():
        firsts[key[0]] = max(firsts.get(key[0], float("-inf")), sum(numbers))
    return firsts


def positive(lines: Sequence[str]) -> Rows:
    sums: Counter[str] = Counter()
    for key, numbers in lists(lines).items():
        for letter in key:
            sums[letter] += sum(numbers)  # type: ignore[assignment]
    return {"all": max(total for total in sums.values() if total > 0)}


def shares(lines: Sequence[str]) -> Rows:
    return {key: sum(of) / len(lines) for key, of in lists(lines).items()}


#: Output -> (how it is computed, on all rows but one, what it is of some lines).
OUTPUTS: dict[str, tuple[str, bool, Callable[[Sequence[str]], Rows]]] = {
    "sums": ("folds", False, lambda lines: {key: sum(of) for key, of in lists(lines).items()}),
    "medians": (
        "folds", False, lambda lines: {key: sorted(of)[len(of) // 2] for key, of in lists(lines).items()},
    ),
    "ranges": (
        "folds",
        False,
        lambda lines: {k: max(of) - min(of) for k, of in lists(lines).items() if max(of) - min(of) > 1},
    ),
    "largest": ("folds", False, largest),
    "sorted": ("runs", False, lambda lines: {k: sum(of) for k, of in lists(lines).items() if k == "aa"}),
    "positive": ("folds", False, positive),
    "shares": ("runs", True, shares),
    "frame_sums": ("runs", False, lambda lines: {key: sum(of) for key, of in lists(lines).items()}),
    "frame_shares": ("runs", True, shares),
}  # fmt: skip


@pytest.fixture(scope="module")
def bench(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayBench]:
    with replay_bench(kafka, tmp_path_factory.mktemp("influences"), uuid.uuid4().hex[:12]) as made:
        (made.folder / "numbers.txt").write_text("".join(f"{line}\n" for line in [HEADER, *LINES]))
        (made.folder / "job.py").write_text(JOB)
        (made.folder / "frames.py").write_text(FRAMES)
        yield made


@pytest.fixture(scope="module")
def applications(bench: ReplayBench) -> dict[str, str]:
    return {script: bench.job(script) for script in ("job.py", "frames.py")}


def places(folder: Path) -> dict[str, str]:
    """FILE:LINE of each row, by its key."""
    return {
        row.partition(";")[0]: f"{part}:{line}"
        for part in sorted(folder.glob("part-*"))
        for line, row in enumerate(part.read_text().splitlines(), 1)
    }


@pytest.mark.parametrize("name", OUTPUTS)
def test_each_row_left_out_gives_what_the_job_gives_without_it(
    bench: ReplayBench, applications: dict[str, str], name: str
) -> None:
    way, is_of_all, job = OUTPUTS[name]
    script = "frames.py" if name.startswith("frame") else "job.py"
    before = state_of(bench.folder)
    key, place = sorted(places(bench.folder / name).items())[0]
    answer = bench.lineage("influence", applications[script], place, "--json", "--", sys.executable, script)
    assert answer.code == 0, (answer.out, answer.err)
    assert state_of(bench.folder) == before
    influence = answer.json
    print(name, influence["way"], influence["why"], influence["tests"], influence["seconds"])
    assert (influence["way"], influence["whole"], influence["exact"]) == (way, is_of_all, True), influence
    runs = influence["total"] + is_of_all if way == "runs" else 0
    assert influence["tests"] == 1 + runs
    assert influence["total"] == len(influence["inputs"]) > 0
    was = job(LINES)[key]
    assert influence["output"]["text"] == f"{key};{was}"
    changes = []
    for row in influence["inputs"]:
        number = row["row"] - 1
        assert row["text"] == LINES[number]
        expected = job(LINES[:number] + LINES[number + 1 :]).get(key)
        assert row["without"] == (None if expected is None else f"{key};{expected}"), row
        change = None if expected is None else abs(expected - was)
        assert row["change"] == (None if change is None else pytest.approx(change, abs=1e-12))
        changes.append(float("inf") if row["change"] is None else row["change"])
    assert changes == sorted(changes, reverse=True)
