"""Runs a job in this process with lineage on, takes its messages off Kafka and makes them answerable."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from pyspark import SparkConf, SparkContext

from lineage_service.completeness import Receipt, completeness
from lineage_service.decode import rows
from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.store import tables
from lineage_service.store.receipts import read_receipts
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.lineage_messages import undeclared_fields

#: What a node says whose query ran as it was.
UNFOLLOWED = "ran without its records being followed"

Row = tuple[str, int]
"""(file name, row number)."""


@dataclass
class ParquetStore:
    """The least of a flow store: Parquet files in a folder, one application."""

    folder: Path
    application_id: str
    event_rows: list[rows.EventRow]

    def version(self) -> int:
        return 0

    def versions(self, table: str) -> Mapping[str, object]:
        return {self.application_id: 0}

    def events(self, application_id: str) -> Sequence[Mapping[str, Any]]:
        return [row.event for row in self.event_rows if row.application_id == application_id]

    def events_of(
        self, application_ids: Sequence[str], types: Collection[str] | None = None
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        return {application_id: self.events(application_id) for application_id in application_ids}

    def latest(self) -> Mapping[str, int | None]:
        return {self.application_id: None}

    def blocks_of(self, application_ids: Sequence[str]) -> Mapping[str, Sequence[Receipt]]:
        return {
            application_id: read_receipts(self.files("blocks", application_id))
            for application_id in application_ids
        }

    def rows(self, application_id: str) -> Mapping[str, int]:
        return {
            table: sum(pq.read_metadata(path).num_rows for path in self.files(table, application_id))
            for table in ("flows", "records", "annotations")
        }

    def files(self, table: str, application_id: str) -> Sequence[str]:
        return [str(path) for path in sorted(self.folder.glob(f"{table}*.parquet"))]

    uris = files

    def bounds(self, application_id: str) -> Mapping[str, tables.Bounds]:
        return {}


@dataclass
class Application:
    """What a finished application answers."""

    application_id: str
    questions: LineageQueries
    events: list[dict[str, Any]]
    blocks: list[contract.Block]
    topics: Mapping[str, str] = field(default_factory=dict)
    store: ParquetStore | None = None
    gaps: tuple[str, ...] = ()  # what it says was not followed

    def trace(self, **query: Any) -> Trace:
        return self.questions.trace(self.application_id, TraceQuery(**{"limit": 100_000, **query}))

    def sinks(self) -> list[Any]:
        return [node for node in self.questions.graph(self.application_id).nodes if node.kind == "sink"]

    def sources_of(self, path: Path | str, row: int) -> frozenset[Row]:
        """The input rows of one row of an output file."""
        trace = self.trace(direction="backward", path=str(path), row=row)
        assert trace.exact
        return rows_at(trace, "source")

    def outputs_of(self, path: Path | str, row: int, *, output: Path | None = None) -> frozenset[Row]:
        """The output rows of one row of an input file, those in a folder or all."""
        sinks = [sink.node_id for sink in self.sinks() if output and sink.description == str(output)]
        trace = self.trace(direction="forward", path=str(path), row=row, to=sinks[0] if sinks else None)
        assert trace.exact
        return rows_at(trace, "sink")


def rows_at(trace: Trace, kind: str) -> frozenset[Row]:
    return frozenset(
        (Path(record.source.path).name, record.source.row)
        for node in trace.nodes
        if node.kind == kind
        for record in node.records
        if record.source is not None
    )


def run_application(
    bootstrap_servers: str,
    folder: Path,
    job: Callable[[SparkContext], Any],
    *,
    master: str = "local[2]",
    lineage: bool = True,
    **conf: str,
) -> tuple[Any, Application | None]:
    """(what the job gave, its lineage). Topics are the application's own."""
    prefix = uuid.uuid4().hex[:10]
    topics = {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}
    settings = {
        "spark.master": master,
        "spark.app.name": "test",
        "spark.ui.enabled": "false",
        "spark.default.parallelism": "3",
        "spark.lineage.enabled": str(lineage).lower(),
        "spark.lineage.kafka.bootstrap.servers": bootstrap_servers,
        "spark.lineage.delivery.timeout": "20",  # a machine that runs many tests is a slow broker
        "spark.lineage.topic.node": topics["node"],
        "spark.lineage.topic.flow": topics["flow"],
        **{name.replace("_", "."): value for name, value in conf.items()},
    }
    context = SparkContext(conf=SparkConf().setAll(list(settings.items())))
    context.setLogLevel("OFF")
    try:
        result = job(context)
    finally:
        context.stop()
    if not lineage:
        return result, None
    return result, read_application(bootstrap_servers, topics, folder)


def read_application(bootstrap_servers: str, topics: Mapping[str, str], folder: Path) -> Application:
    """All messages of one application whose end has been published."""
    nodes, flows = (messages_of(bootstrap_servers, topics[name]) for name in ("node", "flow"))
    application = application_of(nodes, flows, folder)
    application.topics = topics
    completed = completeness(application.events, [(block.run, block.seq) for block in application.blocks])
    application.gaps = completed.gaps
    assert replace(completed, gaps=()).is_complete, completed.describe()
    check_gaps(application)
    return application


def check_gaps(application: Application) -> None:
    """There is a gap where a query was not followed, and a node that says why, and none elsewhere."""
    nodes = {
        event["node"]: event for event in application.events if event["type"] == contract.NODE_REGISTERED
    }
    gaps = [event for event in application.events if event["type"] == contract.GAP]
    ended = next(event for event in application.events if event["type"] == contract.APPLICATION_ENDED)
    unfollowed = [node for node in nodes.values() if UNFOLLOWED in (node.get("reason") or "")]
    assert bool(gaps) >= bool(unfollowed or ended["counters"]["queries_failed"]), unfollowed
    for gap in gaps:
        assert gap["node"] is None or nodes[gap["node"]]["reason"], gap


def application_of(nodes: Sequence[bytes], flows: Sequence[bytes], folder: Path) -> Application:
    """What can be asked when these messages of one application have been stored."""
    event_rows = [rows.row_of_event(message) for message in nodes]
    block_rows = [rows.rows_of_block(message) for message in flows]
    application_id = event_rows[0].application_id
    folder.mkdir(parents=True, exist_ok=True)
    for name, batches in (
        ("flows", list(tables.flow_batches(block_rows))),
        ("records", list(tables.record_batches(block_rows))),
        ("annotations", list(tables.annotation_batches(block_rows))),
        ("blocks", [tables.receipts_batch(block_rows)] if block_rows else []),
    ):
        if batches:
            pq.write_table(pa.Table.from_batches(batches), folder / f"{name}.parquet")
    store = ParquetStore(folder, application_id, event_rows)
    events = [dict(row.event) for row in event_rows]
    assert set().union(*map(undeclared_fields, events)) == set()
    return Application(
        application_id,
        LineageQueries(store, time_budget_s=60),
        events,
        [contract.decode_block(message) for message in flows],
        store=store,
    )


def fill_and_fail(context: SparkContext, cached: Any, splits: Sequence[int]) -> None:
    """Fill these partitions of a cache in which nothing is, each in a task that fails once it has read it."""

    def fails(records: Iterable[Any]) -> None:
        raise ValueError(list(records))

    def filled() -> int:
        return sum(info.numCachedPartitions() for info in context._jsc.sc().getRDDStorageInfo())

    for done, split in enumerate(splits):
        while filled() == done:  # a task may be ended before what it read is kept
            with contextlib.suppress(Exception):
                context.runJob(cached, fails, [split])


def without_kept(application: Application) -> Application:
    """The application as if no task had told of what it may have left in a cache."""
    assert application.store is not None
    events = [row for row in application.store.event_rows if row.type != contract.RUN_KEPT]
    assert len(events) < len(application.store.event_rows)
    store = replace(application.store, event_rows=events)
    return replace(application, store=store, questions=LineageQueries(store, time_budget_s=60))


def messages_of(bootstrap_servers: str, topic: str) -> list[bytes]:
    """Everything on a topic, to the end that each partition has now."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": uuid.uuid4().hex, "enable.auto.commit": False}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        ends = {number: _ends_of(consumer, TopicPartition(topic, number)) for number in partitions}
        left = {number: high - low for number, (low, high) in ends.items() if high > low}
        consumer.assign([TopicPartition(topic, number, ends[number][0]) for number in left])
        messages: list[bytes] = []
        deadline = time.monotonic() + 240
        while any(count > 0 for count in left.values()):
            assert time.monotonic() < deadline, f"{left} messages of {topic} did not come"
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                messages.append(message.value())
                left[message.partition()] -= 1
        return messages
    finally:
        consumer.close()


def _ends_of(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Its first and next offset. Of a topic that was made a moment ago the broker may not lead it yet."""
    deadline = time.monotonic() + 240
    while True:
        try:
            low, high = consumer.get_watermark_offsets(place, timeout=60)
            return low, high
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                raise


def part_rows(folder: Path) -> list[tuple[Path, int, str]]:
    """(file, row, text) of every row of a text output."""
    return [
        (part, row, text)
        for part in sorted(folder.glob("part-*"))
        for row, text in enumerate(part.read_text(encoding="utf-8").splitlines())
    ]


def check_against(
    application: Application,
    output: Path,
    inputs: Sequence[Path],
    expected: Counter[tuple[str, frozenset[Row]]],
) -> None:
    """Backward of each output row is `expected` (text, input rows); forward of input rows is its inverse.

    Every third input row is traced forward: a trace costs a good part of a second.
    """
    backward = {
        (part.name, row): (text, application.sources_of(part, row)) for part, row, text in part_rows(output)
    }
    traced = Counter(backward.values())
    assert traced == expected, f"only traced: {traced - expected}; only expected: {expected - traced}"
    for path in inputs:
        for row in range(0, len(path.read_text(encoding="utf-8").splitlines()), 3):
            reached = {place for place, (_, sources) in backward.items() if (path.name, row) in sources}
            assert application.outputs_of(path, row, output=output) == reached, f"{path.name} row {row}"
