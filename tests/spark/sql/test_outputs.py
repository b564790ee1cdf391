"""Where DataFrames end: files of each format, tables, and actions that give rows to the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from tests.support.lanes import sampled
from tests.support.spark import relational as r
from tests.support.spark.application import Application
from tests.support.spark.cases.outputs import (
    CASES,
)
from tests.support.spark.dataframe_oracle import (
    Ran,
    graph_of,
    records_of,
    rows_of_sources,
    upstream,
    without_lineage,
)

# The first test of the module runs the queries of all of them.
pytestmark = pytest.mark.timeout(1800)


PLAIN = without_lineage(CASES)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLAIN)
def test_spark_writes_what_the_oracle_says(name: str, plain: Ran) -> None:
    plain.check_rows(name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", sampled(CASES, 2))
def test_traces_equal_the_oracle(name: str, plain: Ran, traced: Ran) -> None:
    traced.check(name, plain)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["VALUES"])
def test_a_row_of_values_comes_from_a_record_of_its_own(name: str, traced: Ran) -> None:
    origins = []
    for (part, row), _ in traced.written(name):
        trace = traced.backward(traced.output(name) / part, row)
        origins += [
            record.record_id for node in trace.nodes if node.kind == "source" for record in node.records
        ]
    assert len(origins) == len(set(origins)) == 3


# -- actions: each reads a file of its own, which tells its sink --------------------------------------

NUMBERS = [3, -1, 4, 1, -5, 9, 2, 6, 5, 3]
EVEN = [row for row, n in enumerate(NUMBERS) if n % 2 == 0]
ALL = list(range(len(NUMBERS)))


def by_arrow(frame: DataFrame) -> DataFrame:
    frame.sparkSession.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    return frame.where("n > 3")


#: name -> (action, rows of the source that each record of its sink comes from, in order)
ACTIONS: dict[str, tuple[Callable[[DataFrame], Any], list[list[int]]]] = {
    "collect": (lambda f: [row.n for row in f.where("n % 2 = 0").collect()], [[row] for row in EVEN]),
    "collect, sorted": (
        lambda f: [row.n for row in f.orderBy("n", "i").collect()],
        [[row] for row in sorted(ALL, key=lambda row: (NUMBERS[row], row))],
    ),
    "take": (lambda f: [row.n for row in f.where("n > 1").take(3)], [[0], [2], [5]]),
    "first": (lambda f: f.where("n < 0").first().n, [[1]]),
    "head of a limit": (lambda f: [row.n for row in f.orderBy("i").limit(4).collect()], [[0], [1], [2], [3]]),
    "tail": (lambda f: [row.n for row in f.tail(2)], [[8], [9]]),
    "offset": (lambda f: [row.n for row in f.offset(7).collect()], [[7], [8], [9]]),
    "offset of a filter": (
        lambda f: [row.n for row in f.where("n > 1").offset(4).collect()],
        [[7], [8], [9]],
    ),
    "offset and limit": (lambda f: [row.n for row in f.offset(2).limit(3).collect()], [[2], [3], [4]]),
    "offset in a limit": (lambda f: [row.n for row in f.limit(6).offset(4).collect()], [[4], [5]]),
    "offset, sorted": (
        lambda f: [row.n for row in f.orderBy("n", "i").offset(8).collect()],
        [[row] for row in sorted(ALL, key=lambda row: (NUMBERS[row], row))[8:]],
    ),
    "count": (lambda f: f.where("n % 2 = 0").count(), [EVEN]),
    "collect of groups": (
        lambda f: [tuple(row) for row in f.groupBy(f.n % 2 == 0).count().orderBy("count").collect()],
        [EVEN, [row for row in ALL if row not in EVEN]],
    ),
    "toLocalIterator": (
        lambda f: [row.n for row in f.where("n > 3").toLocalIterator()],
        [[2], [5], [7], [8]],
    ),
    "toPandas": (lambda f: list(f.where("n > 3").toPandas()["n"]), [[2], [5], [7], [8]]),
    "toPandas by way of Arrow": (lambda f: list(by_arrow(f).toPandas()["n"]), [[2], [5], [7], [8]]),
    "toArrow": (lambda f: f.where("n > 3").toArrow().to_pydict(), [[2], [5], [7], [8]]),
    "foreach": (lambda f: f.where("n > 3").foreach(lambda row: None), [[2], [5], [7], [8]]),
    "foreachPartition": (lambda f: f.where("n > 3").foreachPartition(list), [[2], [5], [7], [8]]),
    "collect of rdd": (lambda f: f.where("n > 3").rdd.map(lambda row: row.n).collect(), [[2], [5], [7], [8]]),
}

#: Those that read rows, and say so, that they do not give: before what they give.
BOUNDS = [name for name in ACTIONS if name.startswith(("tail", "offset"))]


@pytest.fixture(scope="module")
def acted(
    kafka: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Application, dict[str, Any], dict[str, Any]]:
    """(lineage, what the actions gave with it, what they gave without)."""
    from tests.support.spark.application import run_application

    folder = tmp_path_factory.mktemp("actions")
    for at in range(len(ACTIONS)):
        (folder / str(at)).mkdir()
        numbers = pa.table({"i": pa.array(ALL, pa.int32()), "n": pa.array(NUMBERS, pa.int32())})
        pq.write_table(numbers, folder / str(at) / f"action-{at}.parquet", row_group_size=3)

    def job(context: SparkContext) -> dict[str, Any]:
        spark = SparkSession.builder.getOrCreate()
        return {
            name: action(spark.read.parquet(str(folder / str(at))))
            for at, (name, (action, _)) in enumerate(ACTIONS.items())
        }

    store = folder / "store"
    results, application = run_application(
        kafka.bootstrap_servers, store, job, spark_sql_shuffle_partitions="3"
    )
    assert application is not None
    plain, _ = run_application(
        kafka.bootstrap_servers, store, job, lineage=False, spark_sql_shuffle_partitions="3"
    )
    return application, results, plain


@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_gives_what_it_gives_without_lineage(name: str, acted: Any) -> None:
    _, results, plain = acted
    assert results[name] == plain[name]


@pytest.mark.parametrize("name", ACTIONS)
def test_each_row_that_an_action_gave_is_traced(name: str, acted: Any) -> None:
    application, _, _ = acted
    sink = sink_of(application, name)
    traced = [
        sorted(row for _, row in sources)
        for record in sorted(
            records_of(application, sink), key=lambda record: (record.partition, record.offset)
        )
        for sources in [sources_of(application, sink, record, is_exact=name not in BOUNDS)]
        if sources  # a count that is zero, of a partition without rows, comes from nothing
    ]
    expected = ACTIONS[name][1]
    # Some read more than they give: what was given is what counts.
    assert (traced[-len(expected) :] if name in BOUNDS else traced[: len(expected)]) == expected


@pytest.mark.parametrize("name", ["collect", "first", "toPandas", "toPandas by way of Arrow", "toArrow"])
def test_a_sink_is_called_what_the_program_called_and_where(name: str, acted: Any) -> None:
    application, _, _ = acted
    node_id = sink_of(application, name)
    [sink] = [sink for sink in application.sinks() if sink.node_id == node_id]
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.startswith(f'    "{name}": (lambda f')
    )
    assert (sink.name, sink.call_site) == (name.split()[0], f"{__file__}:{line}")


def sink_of(application: Application, name: str) -> str:
    """The sink behind the scan of the file of an action, the last one if there are several."""
    graph = graph_of(application)
    file = f"action-{list(ACTIONS).index(name)}.parquet"
    sinks = [
        sink.node_id
        for sink in application.sinks()
        for node in upstream(graph, sink.node_id)
        if node.kind == "source" and reads(application, node.node_id, file)
    ]
    assert sinks, f"no sink of {name}"
    return sinks[-1]


def reads(application: Application, source: str, file: str) -> bool:
    return any(
        record.source is not None and Path(record.source.path).name == file
        for record in records_of(application, source)
    )


def sources_of(application: Application, sink: str, record: Any, *, is_exact: bool = True) -> r.Sources:
    trace = application.trace(
        direction="backward", node=sink, partition=record.partition, offset=record.offset
    )
    assert trace.exact == is_exact
    return rows_of_sources(trace)


def test_show_prints_what_it_prints_without_lineage(
    kafka: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.support.spark.application import run_application

    pq.write_table(pa.table({"n": NUMBERS}), tmp_path / "shown.parquet")

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        spark.read.parquet(str(tmp_path / "shown.parquet")).where("n > 1").show(4)

    run_application(kafka.bootstrap_servers, tmp_path / "store", job, lineage=False)
    plain = capsys.readouterr().out
    _, application = run_application(kafka.bootstrap_servers, tmp_path / "store", job)
    assert capsys.readouterr().out == plain
    assert application is not None
    (sink,) = application.sinks()
    counts = Counter(
        sources_of(application, sink.node_id, record) for record in records_of(application, sink.node_id)
    )
    shown = [frozenset({("shown.parquet", row)}) for row in (0, 2, 5, 6)]
    assert set(shown) <= set(counts)
    assert max(counts.values()) == 1
