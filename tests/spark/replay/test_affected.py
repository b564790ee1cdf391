"""`--without ROWS --affected` says what `--without ROWS` says, with a real Spark, or why it cannot."""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.spark.replay_bench import ReplayBench, replay_bench, state_of

pytestmark = pytest.mark.thorough

JOB = """from pyspark import SparkContext

context = SparkContext(appName="Words by count")
words = context.textFile("words.txt", 3).flatMap(str.split)
more = context.textFile("more.txt", 2).flatMap(str.split)
counts = words.union(more).map(lambda word: (word, 1)).reduceByKey(lambda one, other: one + other)
counts.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile("counts")
by_count = counts.filter(lambda pair: pair[1] < 4).map(lambda pair: (pair[1], 1))
histogram = by_count.reduceByKey(lambda one, other: one + other)
histogram.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile("histogram")
joined = words.map(lambda word: (word, 1)).join(more.map(lambda word: (word, 2)))
context.stop()
"""
JOINS = JOB.replace("context.stop()", "joined.map(str).saveAsTextFile('joined')\ncontext.stop()")
LISTS = JOB.replace(
    "reduceByKey(lambda one, other: one + other)\nhistogram.map", "groupByKey()\nhistogram.map"
)
WORDS = ["a b", "b c", "d", "e f", "g", "g h", "i", "j k", "l m", "n"]
MORE = ["h", "h g", "o", "p q"]


@pytest.fixture(scope="module")
def bench(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayBench]:
    with replay_bench(kafka, tmp_path_factory.mktemp("affected"), uuid.uuid4().hex[:12]) as made:
        (made.folder / "words.txt").write_text("".join(f"{line}\n" for line in WORDS))
        (made.folder / "more.txt").write_text("".join(f"{line}\n" for line in MORE))
        (made.folder / "job.py").write_text(JOB)
        yield made


def changed(replay: dict[str, Any]) -> dict[str, tuple[Counter[str], Counter[str], int]]:
    """By output what is gone, what is new, and how many rows are the same."""
    return {
        diff["path"].rpartition("/")[2]: (
            Counter(diff["gone"]) + Counter(row["was"] for row in diff["changed"]),
            Counter(diff["new"]) + Counter(row["is"] for row in diff["changed"]),
            diff["same"],
        )
        for diff in replay["diff"]
    }


def test_the_result_is_that_of_all_other_rows_by_fewer(bench: ReplayBench) -> None:
    application = bench.job("job.py")
    before = state_of(bench.folder)
    for rows in ("more.txt:2", "words.txt:3"):
        words = (application, "--without", f"{bench.folder}/{rows}", "--json")
        whole = bench.replay(*words, command=["job.py"])
        fewer = bench.replay(*words, "--affected", command=["job.py"])
        assert (whole.code, fewer.code) == (0, 0), (whole.err, fewer.err)
        assert changed(fewer.json) == changed(whole.json)
        assert (fewer.json["verdict"], fewer.json["mode"]) == (whole.json["verdict"], "without")
        assert fewer.json["rows"] == whole.json["rows"] == 1
        assert fewer.json["strategy"] == "rows"
    assert state_of(bench.folder) == before


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (JOINS, "--affected cannot be used: join (other.py:11) may change what no flow leads to"),
        (LISTS, "--affected cannot be used: the keys of groupByKey (other.py:9) are not known"),
    ],
)
def test_what_is_not_known_is_refused_by_name(bench: ReplayBench, program: str, why: str) -> None:
    (bench.folder / "other.py").write_text(program)
    for path in bench.folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    application = bench.job("other.py")
    words = ("--without", f"{bench.folder}/words.txt:3", "--affected")
    answer = bench.replay(application, *words, command=["other.py"])
    assert answer.code == 1
    assert why in answer.err
    assert "Leave it out, and the whole job is run" in answer.err
