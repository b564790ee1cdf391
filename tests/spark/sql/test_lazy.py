"""The level lazy: rows of outputs traced by running their queries again, and compared with plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_agent import agent
from spark_agent.sql.rerun.rerun import CannotRerunError
from tests.support.spark import relational as r
from tests.support.spark.application import Application, run_application
from tests.support.spark.cases import boundary, edges, groups, joins, operators, outputs, sources, subqueries
from tests.support.spark.dataframe_oracle import (
    Case,
    Place,
    Ran,
    check_bounds,
    check_sources,
    records_of,
    rows_of_sources,
    run_cases,
    written,
)

# The first test of the module runs the queries of all of them, and again for one row of each.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]

#: Those that differ in what a query must be like to be run again; all others run it in the same ways.
CASES: dict[str, Case] = {
    f"{module.__name__.rpartition('.')[2]}: {name}": module.CASES[name]
    for module, names in (
        (
            operators,
            "filter; orderBy and limit; limit over a filter; sample; repartition; posexplode_outer; "
            "words of text, counted; distinct over explode over groupBy; aggregate over limit",
        ),
        (
            groups,
            "groupBy of NaN and both zeros; groupBy whose keys are not shown; aggregates that keep objects; "
            "having; global aggregate; aggregate of aggregates; distinct; several count distincts; "
            "dropDuplicates; rollup; pivot; sum over a partition; row_number; the first of each partition; "
            "aggregate over a window; lag",
        ),
        (
            joins,
            "inner join, broadcast; left join, sort-merge; full join, sort-merge; semi join, broadcast; "
            "anti join, broadcast; non-equi full join; self-join; null-safe join; join of three tables; "
            "lateral join; union; union of a table with itself; intersect; intersectAll; exceptAll",
        ),
        (
            subqueries,
            "scalar subquery; correlated scalar subquery in select; NOT IN of nulls; EXISTS, or a condition; "
            "CTE, twice; join of aggregates, sort-merge, full; join of a table with its own aggregate; "
            "union of aggregates; limit of a join of a distinct",
        ),
        (
            outputs,
            "text; CSV; CSV with headers; JSON; ORC; nothing; several files of a task; partitionBy; "
            "buckets within partitions; overwrite; append; saveAsTable; INSERT INTO, twice; "
            "INSERT INTO a partition; INSERT OVERWRITE DIRECTORY; writeTo",
        ),
        (
            sources,
            "text, several files in a partition; CSV with headers, in splits; JSON; ORC, filtered; table; "
            "cache of an aggregate; cached table; Python UDF in a filter, under groupBy; mapInArrow; "
            "applyInArrow",
        ),
        (boundary, "localCheckpoint; toDF"),
        (
            edges,
            "key of a struct of a double; distinct of everything; exceptAll of unions; "
            "join with a folder for each key; limit under a join; limit of a limit; files with odd names; "
            "output with an odd name; output partitioned by odd values; compressed lines; key of a map; "
            "lines that end in several ways, in splits",
        ),
    )
    for name in names.split("; ")
}
CASES |= {  # where pandas is
    f"sources: {name}": case for name, case in sources.CASES.items() if name == "aggregate by a pandas UDF"
}
#: Why running a query again is refused.
REFUSED = {
    "operators: aggregate over limit": "GlobalLimit, below other operators, may choose other rows",
    "edges: limit under a join": "GlobalLimit, below other operators, may choose other rows",
    "boundary: localCheckpoint": "it reads LogicalRDD",
    "boundary: toDF": "it reads LogicalRDD",
    "edges: key of a map": "Aggregate by a column of type map<string,int> is not covered",
}
#: Two queries wrote to one place. The oracle has the rows of both, a file those of one.
OF_TWO_QUERIES = ("outputs: append", "outputs: INSERT INTO, twice")


@dataclass
class Asked:
    """A row, and what running its query again gave."""

    place: Place
    row: tuple[Any, ...]
    node: int = -1
    bound: str = ""
    error: str = ""


@dataclass
class Lazy:
    ran: Ran
    asked: Mapping[str, list[Asked]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def lazy(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Lazy:
    """The cases in one application, and for a row of each its query again."""
    asked: dict[str, list[Asked]] = {}

    def ask(name: str, output: Path) -> None:
        active = agent.active()
        assert active is not None
        active.spark_sessions.flush()
        rows = written(output, header=CASES[name].header)
        asked[name] = [Asked(*rows[len(rows) // 2])] if rows else []
        for row in asked[name]:
            file, at = row.place
            try:
                row.node, row.bound = active.spark_sessions.rerun(str(output / file), at)
            except CannotRerunError as error:
                row.error = str(error)

    conf = {
        "spark_lineage_dataframes_level": "lazy",
        "spark_sql_codegen_wholeStage": "false",  # else most of the time goes into compiling each query twice
    }
    folder = tmp_path_factory.mktemp("lazy")
    ran = run_cases(kafka.bootstrap_servers, folder, CASES, lineage=True, after=ask, **conf)
    return Lazy(ran, asked)


@pytest.mark.parametrize("name", CASES)
def test_a_row_is_traced_by_running_its_query_again(name: str, lazy: Lazy) -> None:
    case, application = CASES[name], lazy.ran.application
    assert application is not None
    lazy.ran.check_rows(name)
    if name in REFUSED:
        assert lazy.asked[name]
        assert all(REFUSED[name] in rerun.error for rerun in lazy.asked[name]), lazy.asked[name]
        return
    least = case.oracle(lazy.ran.shop)
    for rerun in lazy.asked[name]:
        assert not rerun.error, rerun.error
        expected = [(row, sources) for row, sources in least if repr(row) == repr(rerun.row)]
        expected = expected[:1] if name in OF_TWO_QUERIES else expected
        traced = sources_found(application, rerun, None if case.exact is None else case.exact)
        assert bool(rerun.bound) == (len(traced) > 1)
        if case.bound is None:
            check_sources([(repr(rerun.row), sources) for sources in traced], expected)
        else:
            check_bounds([(repr(rerun.row), sources) for sources in traced], least, case.bound(lazy.ran.shop))


def sources_found(application: Application, asked: Asked, is_exact: bool | None) -> list[r.Sources]:
    """The sources of each row that has the values of the one that was asked for."""
    node, sources = f"{application.application_id}#{asked.node}", []
    for record in records_of(application, node):
        trace = application.trace(
            direction="backward", node=node, partition=record.partition, offset=record.offset
        )
        assert trace.complete
        if is_exact is not None:
            assert trace.exact == (is_exact and not asked.bound)
        sources.append(rows_of_sources(trace))
    return sources


# -- inputs of several tasks ---------------------------------------------------------------------------

FILES, LINES = 4, 10_000
QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "filtered": lambda words: words.where("word not like '%-8'").groupBy("word").count().where("count > 0"),
    "left": lambda words: (
        words.join(
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
}
#: Rows that are asked for, by their first column.
WORDS = ("once-2-4321", "few-1-7", "often-3")
#: The same of counts, with the one word that is there so often.
COUNTS = {"100": "left", "200": "twin"}


def words_of(file: int, at: int) -> list[str]:
    """Some are everywhere, others in neighbouring lines of two files, others in one line."""
    words = [f"often-{at % 20}", f"few-{file % 2}-{at // 100}", f"once-{file}-{at}"]
    if file == 1 and at // 100 == 7:
        words += ["left", "twin"]
    return [*words, "twin"] if file == 1 and at // 100 == 90 else words


def lines_with(word: str) -> frozenset[tuple[str, int]]:
    return frozenset(
        (f"{file}.txt", at) for file in range(FILES) for at in range(LINES) if word in words_of(file, at)
    )


@pytest.fixture(scope="module")
def spread(
    kafka: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Application, dict[tuple[str, str], Asked]]:
    """Rows that were asked for by their words, of queries whose files are read in several splits."""
    folder, asked = tmp_path_factory.mktemp("spread"), {}
    (folder / "lines").mkdir()
    for file in range(FILES):
        lines = (" ".join(words_of(file, at)) for at in range(LINES))
        (folder / "lines" / f"{file}.txt").write_text("".join(f"{line}\n" for line in lines))

    def job(context: SparkContext) -> None:
        spark, active = SparkSession.builder.getOrCreate(), agent.active()
        assert active is not None
        words = spark.read.text(str(folder / "lines")).select(F.explode(F.split("value", " ")).alias("word"))
        for name, query in QUERIES.items():
            query(words).write.csv(str(folder / name))
        active.spark_sessions.flush()
        for name in QUERIES:
            for (file, at), (line,) in written(folder / name):
                word = line.partition(",")[0]
                if word in WORDS or word in COUNTS:
                    node, bound = active.spark_sessions.rerun(str(folder / name / file), at)
                    asked[name, word] = Asked((file, at), (line,), node, bound)

    conf = {"spark_lineage_dataframes_level": "lazy", "spark_sql_files_maxPartitionBytes": "150000"}
    _, application = run_application(kafka.bootstrap_servers, folder / "store", job, **conf)
    assert application is not None
    return application, asked


@pytest.mark.parametrize("name", QUERIES)
def test_a_row_of_several_splits_has_all_its_records(
    name: str, spread: tuple[Application, dict[tuple[str, str], Asked]]
) -> None:
    application, asked = spread
    for row, word in (COUNTS if name == "count of counts" else dict(zip(WORDS, WORDS, strict=True))).items():
        (sources,) = sources_found(application, asked[name, row], True)
        assert sources == lines_with(word)
