"""The level index: rows of outputs traced by the blocks of the input that they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_agent import agent
from tests.spark import test_dataframe_sources
from tests.spark.test_dataframe_lazy import (
    CASES as LAZY_CASES,
)
from tests.spark.test_dataframe_lazy import (
    OF_TWO_QUERIES,
    REFUSED,
    Asked,
    Lazy,
    run_and_ask,
    sources_found,
)
from tests.support.spark.application import Application, run_application
from tests.support.spark.dataframe_oracle import check_bounds, written

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]

#: Of the level lazy, those in which bitmaps meet, and files whose rows have to be found.
CASES = {
    name: case
    for name, case in LAZY_CASES.items()
    if name.startswith(("groups: ", "joins: ", "subqueries: "))
    or name.partition(": ")[2]
    in (
        "words of text, counted",
        "posexplode_outer",
        "aggregate over limit",
        "CSV with headers",
        "several files of a task",
        "partitionBy",
        "buckets within partitions",
        "append",
        "CSV with headers, in splits",
        "ORC, filtered",
        "cache of an aggregate",
        "cached table",
        "Python UDF in a filter, under groupBy",
        "join with a folder for each key",
        "output partitioned by odd values",
        "lines that end in several ways, in splits",
    )
}
CASES |= {  # where pandas is
    name: case for name, case in test_dataframe_sources.CASES.items() if name == "aggregate by a pandas UDF"
}


@pytest.fixture(scope="module")
def indexed(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Lazy:
    return run_and_ask(kafka.bootstrap_servers, tmp_path_factory.mktemp("index"), CASES, "index")


@pytest.mark.parametrize("name", CASES)
def test_a_row_is_traced_by_its_blocks(name: str, indexed: Lazy) -> None:
    case, application = CASES[name], indexed.ran.application
    assert application is not None
    indexed.ran.check_rows(name)
    if name in REFUSED:
        assert indexed.asked[name]
        assert all(REFUSED[name] in each.error for each in indexed.asked[name]), indexed.asked[name]
        return
    least = case.oracle(indexed.ran.shop)
    for each in indexed.asked[name]:
        assert not each.error, each.error
        found = sources_found(application, each, None if case.exact is None else case.exact)
        assert bool(each.bound) == (len(found) > 1)
        if case.bound is not None:
            check_bounds(
                [(repr(each.row), sources) for sources in found], least, case.bound(indexed.ran.shop)
            )
            continue
        # Of rows with the same values the blocks may tell which one it is; the oracle cannot.
        wanted = Counter(sources for row, sources in least if repr(row) == repr(each.row))
        assert found
        assert not Counter(found) - wanted
        if len(found) > 1 and name not in OF_TWO_QUERIES:
            assert Counter(found) == wanted


# -- inputs of many blocks -------------------------------------------------------------------------------

FILES, LINES = 4, 30_000


def words_of(file: int, at: int) -> list[str]:
    """The first are everywhere, the others in neighbouring lines of two files, and in one line.

    `twin` is wherever `left` is, and in as many lines of another block of the same part.
    """
    words = [f"often-{at % 20}", f"few-{file % 2}-{at // 100}", f"once-{file}-{at}"]
    if file == 1 and at // 100 == 7:
        words += ["left", "twin"]
    return [*words, "twin"] if file == 1 and at // 100 == 90 else words


def lines_with(word: str) -> frozenset[tuple[str, int]]:
    return frozenset(
        (f"{file}.txt", at) for file in range(FILES) for at in range(LINES) if word in words_of(file, at)
    )


@dataclass
class Many:
    """Rows that were asked for by their words, and how many lines each query read again for them."""

    folder: Path
    application: Application | None = None
    asked: dict[tuple[str, str], Asked] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)


def write_lines(folder: Path) -> None:
    folder.mkdir(parents=True)
    for file in range(FILES):
        lines = (" ".join(words_of(file, at)) for at in range(LINES))
        (folder / f"{file}.txt").write_text("".join(f"{line}\n" for line in lines))


QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "count": lambda words: words.groupBy("word").count(),
    "shortest": lambda words: words.groupBy("word").agg(F.max(F.lit("word")).alias("said")),
    "filtered": lambda words: words.where("word not like '%-8'").groupBy("word").count().where("count > 0"),
    "joined": lambda words: words.groupBy("word").count().join(words.select("word").distinct(), "word"),
    "left": lambda words: (
        words.where("word not like '%-8'")
        .join(
            words.withColumnRenamed("word", "other").where("other like 'once%1'"),
            F.col("word") == F.col("other"),
            "left",
        )
        .groupBy("word")
        .count()
    ),
    "union": lambda words: words.union(words.where("word like 'few%'")).distinct(),
    "count of counts": lambda words: (
        words.groupBy("word")
        .count()
        .where("word in ('left', 'twin')")
        .groupBy("count")
        .agg(F.max(F.lit("word")).alias("said"))
    ),
    "counts alone": lambda words: (
        words.where("word in ('left', 'twin')").groupBy("word").count().select("count")
    ),
}
WORDS = ("once-2-12345", "few-1-7", "often-3")


@pytest.fixture(scope="module")
def many(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Many:
    many = Many(tmp_path_factory.mktemp("many"))
    write_lines(many.folder / "lines")

    def job(context: SparkContext) -> None:
        spark, active = SparkSession.builder.getOrCreate(), agent.active()
        assert active is not None
        seen = context.accumulator(0)

        @F.udf("string", useArrow=False)
        def counted(line):  # type: ignore[no-untyped-def] # with types Spark takes it for one of Arrow
            seen.add(1)
            return line

        lines = spark.read.text(str(many.folder / "lines")).select(counted("value").alias("value"))
        words = lines.select(F.explode(F.split("value", " ")).alias("word"))
        for name, query in QUERIES.items():
            query(words).write.csv(str(many.folder / name))
        active.spark_sessions.settle()
        for name in QUERIES:
            for (file, at), (line,) in written(many.folder / name):
                word = line.partition(",")[0]
                if word in WORDS or name in ("count of counts", "counts alone"):
                    asked, before = Asked((file, at), (line,)), seen.value
                    path = str(many.folder / name / file)
                    asked.node, asked.bound = active.spark_sessions.run_again(path, at)
                    many.asked[name, word] = asked
                    many.lines[name, word] = seen.value - before

    conf = {"spark_lineage_dataframes_level": "index", "spark_sql_files_maxPartitionBytes": "400000"}
    _, many.application = run_application(kafka.bootstrap_servers, many.folder / "store", job, **conf)
    return many


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    "name", [name for name in QUERIES if not name.startswith("count") or name == "count"]
)
def test_a_row_of_few_blocks_has_all_its_records(many: Many, name: str, word: str) -> None:
    assert many.application is not None
    asked = many.asked[name, word]
    (found,) = sources_found(many.application, asked, True)
    assert found == lines_with(word)


@pytest.mark.parametrize(("word", "most"), [("once-2-12345", 1 / 2), ("few-1-7", 3 / 4)])
def test_only_the_blocks_of_a_row_are_read(many: Many, word: str, most: float) -> None:
    """It is in one block of some twenty, or in two; others may have the same bits by chance."""
    assert 0 < many.lines["count", word] < most * FILES * LINES


def test_a_row_of_all_blocks_reads_all(many: Many) -> None:
    assert many.lines["count", "often-3"] == FILES * LINES


@pytest.mark.parametrize(("count", "word"), [("100", "left"), ("200", "twin")])
def test_groups_of_groups_are_read_whole(many: Many, count: str, word: str) -> None:
    """In the block of `left` alone, `twin` is there as often: it would be one of its group."""
    assert many.application is not None
    (found,) = sources_found(many.application, many.asked["count of counts", count], True)
    assert found == lines_with(word)
    assert many.lines["count of counts", count] == FILES * LINES


def test_what_looks_like_the_row_in_its_blocks_alone_is_told_from_it(many: Many) -> None:
    """There are two rows of 100 in the block of `left`, and one in all of the input."""
    assert many.application is not None
    (found,) = sources_found(many.application, many.asked["counts alone", "100"], True)
    assert found == lines_with("left")
    assert many.lines["counts alone", "100"] > FILES * LINES
