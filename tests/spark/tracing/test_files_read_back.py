"""Rows of files that several operations of one application read or wrote can be asked for by their file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.errors import NotFoundError
from lineage_service.lineage import Direction, Trace
from lineage_service.queries import TraceQuery
from lineage_service.tracing.spark.api import SparkTracing, local_session
from tests.support.spark.application import Application, rows_at, run_application

# The first test of the module runs the job of all of them.
pytestmark = pytest.mark.timeout(1800)

LINES = ["7", "3", "5", "1", "9"]
MOST = "3"
#: Rows of LINES that are larger.
LARGE = [0, 2, 4]


def job(folder: Path, context: SparkContext) -> None:
    spark = SparkSession(context)
    lines = spark.read.text(f"{folder}/in.txt")
    lines.where(f"value > {MOST}").coalesce(1).write.text(f"{folder}/large")
    lines.selectExpr("upper(value)").coalesce(1).write.text(f"{folder}/all")
    spark.read.text(f"{folder}/large").selectExpr("value * 2").write.csv(f"{folder}/twice")
    assert spark.read.text(f"{folder}/large").count() == len(LARGE)
    context.textFile(f"{folder}/large").saveAsTextFile(f"{folder}/again")


class ReadBack:
    def __init__(self, application: Application, folder: Path) -> None:
        self.application, self.folder = application, folder

    def file(self, output: str) -> str:
        """The one file with rows of an output."""
        [file] = [path for path in (self.folder / output).glob("part-*") if path.stat().st_size]
        return str(file)

    def numbers(self, *names: str) -> list[int]:
        """Of the nodes that have the file of the output `large`, by their names."""
        nodes = self.application.questions.graph(self.application.application_id).nodes
        return [
            node.node
            for node in nodes
            if node.name in names and node.dataset is not None and node.dataset.name.endswith("/large")
        ]

    def trace(self, direction: Direction, path: str, row: int, **query: Any) -> Trace:
        return self.application.trace(direction=direction, path=path, row=row, **query)


@pytest.fixture(scope="module")
def read_back(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> ReadBack:
    folder = tmp_path_factory.mktemp("read-back")
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    _, application = run_application(
        kafka.bootstrap_servers, folder / "store", lambda context: job(folder, context)
    )
    assert application is not None
    return ReadBack(application, folder)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with local_session("local[2]", ()) as session:
        yield session


def node_of(trace: Trace) -> int:
    return int(trace.start_node.rpartition("#")[2])


def test_backward_a_row_is_of_the_sink_that_wrote_it(read_back: ReadBack) -> None:
    for row, source in enumerate(LARGE):
        trace = read_back.trace("backward", read_back.file("large"), row)
        assert [node_of(trace)] == read_back.numbers("text")
        assert rows_at(trace, "source") == {("in.txt", source)}


def test_forward_it_goes_on_to_all_that_read_it(read_back: ReadBack) -> None:
    for more in ({}, {"across": False}):
        trace = read_back.trace("forward", read_back.file("large"), 1, **more)
        assert [node_of(trace)] == read_back.numbers("text")
        assert [record.source.row for record in trace.start if record.source is not None] == [1]
        assert {node.name for node in trace.nodes if node.kind == "sink"} == {
            *("text", "csv", "count", "saveAsTextFile")
        }
        reached = rows_at(trace, "sink")
        assert len(reached) == 3  # in `large`, `twice` and `again`
        assert trace.exact


def test_forward_a_row_that_two_queries_read_reaches_what_both_made(read_back: ReadBack) -> None:
    path = str(read_back.folder / "in.txt")
    trace = read_back.trace("forward", path, 2, across=False)
    assert rows_at(trace, "sink") == {
        (Path(read_back.file("large")).name, LARGE.index(2)),
        (Path(read_back.file("all")).name, 2),
    }
    assert len([node for node in trace.nodes if node.kind == "source"]) == 2
    left_out = read_back.trace("forward", path, 3, across=False)
    assert rows_at(left_out, "sink") == {(Path(read_back.file("all")).name, 3)}


def test_towards_one_node_all_ways_to_it_are_kept(read_back: ReadBack) -> None:
    [sink] = [
        node.node
        for node in read_back.application.sinks()
        if node.name == "text" and node.description.endswith("/all")
    ]
    trace = read_back.trace("forward", str(read_back.folder / "in.txt"), 2, to=str(sink))
    assert rows_at(trace, "sink") == {(Path(read_back.file("all")).name, 2)}
    assert str(sink) in {node.node_id.rpartition("#")[2] for node in trace.nodes}


def test_a_node_says_which_is_meant(read_back: ReadBack) -> None:
    for number in read_back.numbers("text", "Scan text", "textFile"):
        trace = read_back.trace("forward", read_back.file("large"), 1, node=str(number))
        assert node_of(trace) == number


def test_a_node_without_the_file_is_told_who_has_it(read_back: ReadBack) -> None:
    [other] = [node.node for node in read_back.application.sinks() if node.name == "csv"]
    with pytest.raises(NotFoundError) as refused:
        read_back.trace("backward", read_back.file("large"), 0, node=str(other))
    for number in read_back.numbers("text", "Scan text"):
        assert f"{number} (" in str(refused.value)
    assert " at test_files_read_back.py:" in str(refused.value)


@pytest.mark.thorough
@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_spark_answers_the_same(direction: Direction, read_back: ReadBack, spark: SparkSession) -> None:
    store = read_back.application.store
    assert store is not None
    for path, row in ((read_back.file("large"), 1), (str(read_back.folder / "in.txt"), 2)):
        query = TraceQuery(direction=direction, path=path, row=row, limit=1_000)
        found = SparkTracing(spark, store).trace(read_back.application.application_id, query)
        local = read_back.trace(direction, path, row, limit=1_000)
        assert found.start_node == local.start_node
        assert found.start == local.start
        assert {node.node_id: (node.total, node.records) for node in found.nodes} == {
            node.node_id: (node.total, node.records) for node in local.nodes
        }
