"""Real jobs that read what other jobs wrote: both engines trace through the files as brute force says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import add
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from lineage_service.tracing.spark.api import SparkTracing, local_session
from tests.support.lanes import sampled, selected
from tests.support.lineage_messages import messages
from tests.support.spark.application import messages_of, part_rows, rows_at, run_application

# The first test of the module runs the jobs of all of them.
pytestmark = pytest.mark.timeout(2700)

LINES = ["a b", "b c a", "c", "a", "d d b", "e a"]
#: A word says its line, so that what a file of words holds says which lines it is made of.
TOLD = [" ".join(f"{word}.{row}" for word in line.split()) for row, line in enumerate(LINES)]


def words(context: SparkContext, source: Path, output: Path) -> None:
    context.textFile(str(source), 2).flatMap(str.split).repartition(3).saveAsTextFile(str(output))


def counts(context: SparkContext, source: Path, output: Path) -> None:
    pairs = context.textFile(str(source), 4).filter(lambda word: word != "e").map(lambda word: (word, 1))
    pairs.reduceByKey(add, 2).saveAsTextFile(str(output))


def kinds(context: SparkContext, source: Path, output: Path) -> None:
    """Of the words of each file, as one record: which there are."""
    files = context.wholeTextFiles(str(source), 2).map(lambda file: file[1])
    found = files.flatMap(lambda text: sorted({word[0] for word in text.split()}))
    found.map(lambda word: (word, 1)).reduceByKey(add, 2).saveAsTextFile(str(output))


def names(context: SparkContext, source: Path, output: Path) -> None:
    context.binaryFiles(str(source), 2).map(lambda file: Path(file[0]).name).saveAsTextFile(str(output))


def rows_between(format: str) -> list[Callable[[SparkContext, Path], None]]:
    """`words` and `counts` as DataFrames, with files of a format between them."""

    def written(context: SparkContext, folder: Path) -> None:
        lines = SparkSession(context).read.text(str(folder / "in.txt"))
        found = lines.selectExpr("explode(split(value, ' ')) as word").repartition(2)
        found.write.format(format).save(str(folder / "words"))

    def read(context: SparkContext, folder: Path) -> None:
        found = SparkSession(context).read.format(format).schema("word string").load(str(folder / "words"))
        counted = found.where("word <> 'e'").groupBy("word").count()
        counted.rdd.map(tuple).saveAsTextFile(str(folder / "counts"))

    return [written, read]


@dataclass
class Between:
    """Applications of one store, in the order in which they ran, and the files that they left."""

    folder: Path
    store: DeltaFlowStore
    applications: list[str]

    def trace(self, application: int, **query: Any) -> Trace:
        questions = LineageQueries(self.store, time_budget_s=60)
        return questions.trace(self.applications[application], TraceQuery(**query))

    def backward(self, output: str) -> Iterator[tuple[str, Trace]]:
        """The text of each output row of the last application, and what it was made of."""
        for part, row, text in part_rows(self.folder / output):
            yield text, self.trace(-1, direction="backward", path=str(part), row=row)

    def forward(self) -> Iterator[tuple[int, Trace]]:
        """Each line that the first application read, and what became of it."""
        for row in range(len(LINES)):
            yield row, self.trace(0, direction="forward", path=str(self.folder / "in.txt"), row=row)

    def texts(self, trace: Trace, output: str) -> set[str]:
        """The output rows of a trace that are in a folder."""
        return {
            record.source.text or ""
            for node in trace.nodes
            for record in node.records
            if node.kind == "sink" and record.source is not None and f"/{output}/" in record.source.path
        }


Job = Callable[[SparkContext, Path], None]
JOBS: dict[str, tuple[Sequence[str], list[Job]]] = {
    "in one application": (
        LINES,
        [
            lambda context, folder: (
                words(context, folder / "in.txt", folder / "words"),
                counts(context, folder / "words", folder / "counts"),
            )[-1]
        ],
    ),
    "in two": (
        LINES,
        [
            lambda context, folder: words(context, folder / "in.txt", folder / "words"),
            lambda context, folder: counts(context, folder / "words", folder / "counts"),
        ],
    ),
    **{f"in two, as {format}": (LINES, rows_between(format)) for format in ("orc", "parquet", "csv")},
    "whole files": (
        TOLD,
        [
            lambda context, folder: words(context, folder / "in.txt", folder / "words"),
            lambda context, folder: (
                kinds(context, folder / "words", folder / "kinds"),
                names(context, folder / "words", folder / "names"),
            )[-1],
        ],
    ),
}


@pytest.fixture(scope="module")
def ran(
    request: pytest.FixtureRequest, kafka: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Between]:
    found = {}
    for name, (lines, jobs) in {**selected(request, JOBS), "whole files": JOBS["whole files"]}.items():
        folder = tmp_path_factory.mktemp("between")
        (folder / "in.txt").write_text("".join(f"{line}\n" for line in lines))
        store = DeltaFlowStore(folder / "flows")
        found[name] = Between(folder, store, [])
        for number, job in enumerate(jobs):
            _, application = run_application(
                kafka.bootstrap_servers,
                folder / f"app-{number}",
                lambda context, job=job, folder=folder: job(context, folder),
            )
            assert application is not None
            found[name].applications.append(application.application_id)
            for table, write, batch in (
                ("node", store.write_events, event_batch),
                ("flow", store.write_flows, flow_batch),
            ):
                sent = messages_of(kafka.bootstrap_servers, application.topics[table])
                write(batch(f"{number}/{table}", messages(*sent)))  # type: ignore[operator]
    return found


@pytest.fixture(scope="module")
def spark(ran: object) -> Iterator[SparkSession]:
    """After the jobs: there is one SparkContext at a time."""
    conf = ["spark.sql.shuffle.partitions=2", "spark.sql.adaptive.enabled=false"]
    with local_session("local[2]", conf) as session:
        yield session


@pytest.mark.parametrize("name", sampled([name for name in JOBS if name.startswith("in ")], 3))
def test_a_count_is_traced_to_the_lines_that_its_words_were_in(name: str, ran: dict[str, Between]) -> None:
    between = ran[name]
    expected = defaultdict(set)
    for row, line in enumerate(LINES):
        for word in set(line.split()) - {"e"}:
            expected[word].add(("in.txt", row))
    found = {}
    for text, trace in between.backward("counts"):
        assert trace.exact
        found[text.split("'")[1]] = {place for place in rows_at(trace, "source") if place[0] == "in.txt"}
    assert found == expected
    for row, trace in between.forward():
        texts = between.texts(trace, "counts")
        assert {text.split("'")[1] for text in texts} == set(LINES[row].split()) - {"e"}


def test_a_record_that_is_a_file_is_made_of_all_rows_that_were_written_there(ran: dict[str, Between]) -> None:
    between = ran["whole files"]
    lines = {
        part.name: {int(word.partition(".")[2]) for word in part.read_text().split()}
        for part in sorted((between.folder / "words").glob("part-*"))
    }
    kinds_in = {
        part.name: {word[0] for word in part.read_text().split()}
        for part in sorted((between.folder / "words").glob("part-*"))
    }
    expected: dict[str, set[int]] = defaultdict(set)
    for name, rows in lines.items():
        for told in [*kinds_in[name], name]:
            expected[told] |= rows
    found = {}
    for output in ("kinds", "names"):
        for text, trace in between.backward(output):
            assert trace.exact
            told = text.split("'")[1] if output == "kinds" else text
            found[told] = {row for name, row in rows_at(trace, "source") if name == "in.txt"}
    assert found == expected
    for row, trace in between.forward():
        assert trace.exact
        into = [name for name, rows in lines.items() if row in rows]
        texts = between.texts(trace, "kinds")
        assert {text.split("'")[1] for text in texts} == set().union(*(kinds_in[name] for name in into))
        assert between.texts(trace, "names") == set(into)


@pytest.mark.thorough
def test_a_row_leads_to_the_record_that_is_its_file(ran: dict[str, Between]) -> None:
    between = ran["whole files"]
    trace = between.trace(0, direction="forward", path=str(between.folder / "in.txt"), row=1)
    second = between.applications[1]
    into = {flow.hash_in.rpartition("#write")[0] for flow in trace.flows if flow.node_id.startswith(second)}
    (sink,) = [node for node in trace.nodes if node.kind == "sink" and second not in node.node_id]
    assert sink.node_id in into
    listed = {f"{sink.node_id}#{record.record_id}" for record in sink.records}
    assert listed <= {flow.hash_in for flow in trace.flows}


@pytest.mark.thorough
@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("across", [True, False], ids=["across", "within"])
def test_both_engines_go_the_same_way(
    name: str, across: bool, ran: dict[str, Between], spark: SparkSession
) -> None:
    between = ran[name]
    tracing = SparkTracing(spark, between.store)
    part, row, _ = part_rows(between.folder / ("kinds" if name == "whole files" else "counts"))[0]
    starts: list[tuple[int, dict[str, Any]]] = [
        (-1, {"direction": "backward", "path": str(part), "row": row}),
        (0, {"direction": "forward", "path": str(between.folder / "in.txt"), "row": 1}),
    ]
    for application, start in starts:
        query = TraceQuery(**start, across=across)
        expected = between.trace(application, **start, across=across)
        assert tracing.trace(between.applications[application], query) == expected
        applications = {node.node_id.partition("#")[0] for node in expected.nodes}
        assert len(applications) == (len(set(between.applications)) if across else 1)


@pytest.mark.thorough
def test_both_engines_page_through_two_applications_alike(
    ran: dict[str, Between], spark: SparkSession
) -> None:
    between = ran["in two"]
    tracing = SparkTracing(spark, between.store, held_records=0, broadcast_records=0)
    part, row, _ = part_rows(between.folder / "counts")[0]
    start: dict[str, Any] = {"direction": "backward", "path": str(part), "row": row, "limit": 2}
    cursor, pages = None, 0
    while pages == 0 or cursor is not None:
        expected = between.trace(-1, **start, cursor=cursor)
        assert tracing.trace(between.applications[-1], TraceQuery(**start, cursor=cursor)) == expected
        cursor, pages = expected.next, pages + 1
    assert pages > 1
