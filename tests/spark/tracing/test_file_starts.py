"""A row of a file that an application wrote and read, many times and in any order: where its traces start.

Each trace is compared with what the job did, computed over the lines of its input.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.lineage import Direction, Trace
from lineage_service.queries import TraceQuery
from lineage_service.tracing.spark.api import SparkTracing, local_session
from tests.support.spark.application import Application, rows_at, run_application

# The first test of the module runs the job of all of them.
pytestmark = pytest.mark.timeout(1800)

LINES = [f"{n * 7 % 11},{n}" for n in range(24)]
READERS = 10


def job(folder: Path, context: SparkContext) -> None:
    spark = SparkSession(context)
    lines = context.textFile(f"{folder}/in.txt", 3)
    # Written twice in one place by the same names, and read after each: the first version has gone.
    kept = f"{folder}/kept"
    lines.filter(lambda line: int(line.split(",")[1]) % 2 == 0).saveAsTextFile(kept)
    early = context.textFile(f"{kept}/part-00000")
    assert context.textFile(f"{kept}/part-00000").map(str.upper).count()
    shutil.rmtree(kept)
    lines.filter(lambda line: int(line.split(",")[1]) % 3 == 0).saveAsTextFile(kept)
    early.map(str.lower).saveAsTextFile(f"{folder}/early")  # made before the file was, and run after
    for number in range(READERS):
        spark.read.text(f"{kept}/part-00000").selectExpr(f"concat(value, '+{number}')").coalesce(
            1
        ).write.text(f"{folder}/reader-{number}")
    # Joined with itself: one query, two scans of one file.
    pairs = spark.read.schema("k int, n int").csv(f"{kept}/part-00000")
    pairs.alias("a").join(pairs.alias("b"), "k").selectExpr("k", "a.n", "b.n as m").coalesce(1).write.csv(
        f"{folder}/pairs"
    )
    # Twice among what one operation reads.
    context.textFile(f"{folder}/in.txt,{folder}/in.txt", 2).saveAsTextFile(f"{folder}/doubled")
    # Read, and written back to the same place: what was read is another file than what is there now.
    again = context.textFile(f"{folder}/cycle/part-00000").map(lambda line: line + "!").collect()
    shutil.rmtree(folder / "cycle")
    context.parallelize(again, 1).saveAsTextFile(f"{folder}/cycle")
    spark.range(3).coalesce(1).write.mode("append").csv(f"{folder}/appended")
    spark.range(3, 5).coalesce(1).write.mode("append").csv(f"{folder}/appended")


class FileStarts:
    def __init__(self, application: Application, folder: Path) -> None:
        self.application, self.folder = application, folder

    def file(self, output: str) -> str:
        [file] = [path for path in (self.folder / output).glob("part-*") if path.stat().st_size]
        return str(file)

    def lines(self, output: str) -> list[tuple[str, int, str]]:
        """(file name, row, line) of all files of an output."""
        return [
            (path.name, row, line)
            for path in sorted((self.folder / output).glob("part-*"))
            for row, line in enumerate(path.read_text().splitlines())
        ]

    def trace(self, direction: Direction, path: Path | str, row: int, **query: Any) -> Trace:
        return self.application.trace(direction=direction, path=str(path), row=row, **query)

    def names(self, trace: Trace) -> list[str]:
        return [start.name for start in trace.starts]


@pytest.fixture(scope="module")
def job_done(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> FileStarts:
    folder = tmp_path_factory.mktemp("file-starts")
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    (folder / "cycle").mkdir()
    (folder / "cycle" / "part-00000").write_text("one\ntwo\n")
    _, application = run_application(
        kafka.bootstrap_servers, folder / "store", lambda context: job(folder, context)
    )
    assert application is not None
    return FileStarts(application, folder)


def kept_rows(job_done: FileStarts) -> list[str]:
    return Path(job_done.folder / "kept" / "part-00000").read_text().splitlines()


def test_backward_a_row_is_of_the_last_of_its_writers(job_done: FileStarts) -> None:
    path = job_done.folder / "kept" / "part-00000"
    for row, line in enumerate(kept_rows(job_done)):
        assert int(line.split(",")[1]) % 3 == 0
        trace = job_done.trace("backward", path, row)
        assert rows_at(trace, "source") == {("in.txt", LINES.index(line))}
        assert job_done.names(trace) == ["saveAsTextFile"]
        assert (trace.starts[0].node_id, trace.starts[0].records) == (trace.start_node, trace.start)
        assert trace.exact


def test_forward_it_starts_at_its_writer_and_at_all_that_read_that_version(job_done: FileStarts) -> None:
    path, rows = job_done.folder / "kept" / "part-00000", kept_rows(job_done)
    for row, line in enumerate(rows):
        for more in ({}, {"across": False}):
            trace = job_done.trace("forward", path, row, **more)
            names = job_done.names(trace)
            assert names[0] == "saveAsTextFile"
            # A join with itself scans once.
            assert sorted(names[1:]) == ["Scan csv"] + ["Scan text"] * READERS + ["textFile"]
            for start in trace.starts:
                assert [(record.source.row, record.source.text) for record in start.records] == [(row, line)]
            outputs = rows_at(trace, "sink")
            wanted = {("part-00000", row)}
            wanted |= {(name, at) for name, at, text in job_done.lines("early") if text == line}
            for number in range(READERS):
                wanted |= {
                    (name, at)
                    for name, at, text in job_done.lines(f"reader-{number}")
                    if text == f"{line}+{number}"
                }
            key, n = line.split(",")
            wanted |= {
                (name, at)
                for name, at, text in job_done.lines("pairs")
                if text.split(",")[0] == key and n in text.split(",")[1:]
            }
            assert outputs == wanted
            assert trace.exact


def test_the_reader_of_an_earlier_version_took_no_part(job_done: FileStarts) -> None:
    graph = job_done.application.questions.graph(job_done.application.application_id)
    [counted] = [node.node_id for node in graph.nodes if node.name == "count"]
    trace = job_done.trace("forward", job_done.folder / "kept" / "part-00000", 0)
    assert counted not in {node.node_id for node in trace.nodes}


def test_a_node_narrows(job_done: FileStarts) -> None:
    path = job_done.folder / "kept" / "part-00000"
    for start in job_done.trace("forward", path, 1).starts:
        trace = job_done.trace("forward", path, 1, node=start.node_id)
        assert [narrowed.node_id for narrowed in trace.starts] == [start.node_id]
        assert trace.start_node == start.node_id


def test_a_file_that_one_operation_read_twice_starts_at_both_of_its_records(job_done: FileStarts) -> None:
    doubled = job_done.lines("doubled")
    for row, line in enumerate(LINES):
        trace = job_done.trace("forward", job_done.folder / "in.txt", row, across=False)
        [start] = [start for start in trace.starts if start.total == 2]
        assert {record.source.row for record in start.records if record.source is not None} == {row}
        sink = next(node for node in trace.nodes if node.kind == "sink" and node.total == 2)
        assert {(record.source.path.rpartition("/")[2], record.source.row) for record in sink.records} == {
            (name, at) for name, at, text in doubled if text == line
        }
        backward = job_done.trace("backward", job_done.folder / "in.txt", row)
        assert [start.total for start in backward.starts] == [1]


def test_what_was_read_and_written_back_is_another_file(job_done: FileStarts) -> None:
    path = job_done.folder / "cycle" / "part-00000"
    trace = job_done.trace("backward", path, 1)
    assert (job_done.names(trace), trace.exact) == (["saveAsTextFile"], True)
    assert job_done.names(job_done.trace("forward", path, 1)) == ["saveAsTextFile"]


def test_each_file_of_an_append_is_of_its_own_writer(job_done: FileStarts) -> None:
    starts = set()
    for path in (job_done.folder / "appended").glob("part-*"):
        trace = job_done.trace("backward", path, 0)
        starts.add(trace.start_node)
        assert len(trace.starts) == 1
    assert len(starts) == 2


def test_pages_of_several_starts_make_up_the_whole(job_done: FileStarts) -> None:
    path = job_done.folder / "kept" / "part-00000"
    whole = job_done.trace("forward", path, 2)
    found: dict[str, list[str]] = {}
    cursor = None
    while True:
        page = job_done.trace("forward", path, 2, limit=1, cursor=cursor)
        assert [start.node_id for start in page.starts] == [start.node_id for start in whole.starts]
        for node in page.nodes:
            found.setdefault(node.node_id, []).extend(record.record_id for record in node.records)
        cursor = page.next
        if cursor is None:
            break
    assert found == {node.node_id: [record.record_id for record in node.records] for node in whole.nodes}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with local_session("local[2]", ()) as session:
        yield session


@pytest.mark.parametrize("direction", ["backward", "forward"])
@pytest.mark.thorough
def test_spark_starts_where_the_service_does(
    direction: Direction, job_done: FileStarts, spark: SparkSession
) -> None:
    store = job_done.application.store
    assert store is not None
    for path, row in ((job_done.folder / "kept" / "part-00000", 1), (job_done.folder / "in.txt", 5)):
        query = TraceQuery(direction=direction, path=str(path), row=row, limit=1_000)
        found = SparkTracing(spark, store).trace(job_done.application.application_id, query)
        local = job_done.trace(direction, path, row, limit=1_000)
        assert found.starts == local.starts
        assert {node.node_id: (node.total, node.records) for node in found.nodes} == {
            node.node_id: (node.total, node.records) for node in local.nodes
        }
