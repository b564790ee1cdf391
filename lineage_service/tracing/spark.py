"""The trace of `Questions` as Spark SQL over the same Delta tables, for what outgrows one machine.

    from lineage_service.tracing.spark import trace

    answer = trace(spark, "s3://lineage/flows", "app-20261122-0001", TraceQuery(direction="backward", ...))

The same question gives the same answer. Needs PySpark, which nothing else of the service does, and executors
that can read the store. What is read of the files that people's records stand in is read on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lineage_service.answers import (
    Flow,
    InvalidQueryError,
    NotFoundError,
    Record,
    Trace,
    TracedNode,
    TraceQuery,
)
from lineage_service.flow_store import DeltaFlowStore
from lineage_service.tracing.engine import Position
from lineage_service.tracing.places import Places
from lineage_service.tracing.spark_engine import Walked, reached_at, walk_in_spark
from lineage_service.tracing.spark_sets import BROADCAST_RECORDS, HELD_RECORDS, Frontier
from lineage_service.tracing.spark_steps import SparkWalk
from lineage_service.tracing.spark_store import SparkSnapshot, StoreInSpark, open_in_spark
from lineage_service.tracing.topology import TopologyNode
from spark_agent import contract

__all__ = ["SparkTracing", "local_session", "trace"]


def trace(
    spark: SparkSession,
    store: StoreInSpark | str,
    application_id: str,
    query: TraceQuery,
    *,
    location: str | None = None,
    is_reliable: bool = False,
) -> Trace:
    """One trace. `store` is a flow store, or its folder or URL; see SparkTracing for the rest."""
    opened = DeltaFlowStore(store) if isinstance(store, str) else store
    return SparkTracing(spark, opened, location=location, is_reliable=is_reliable).trace(
        application_id, query
    )


class SparkTracing:
    """Traces over one flow store in one Spark session. An application is read once for each version."""

    def __init__(
        self,
        spark: SparkSession,
        store: StoreInSpark,
        *,
        location: str | None = None,
        is_reliable: bool = False,
        held_records: int = HELD_RECORDS,
        broadcast_records: int = BROADCAST_RECORDS,
    ) -> None:
        """`location` is the store's folder or URL as the executors know it, where that is another.

        `is_reliable` keeps the sets of a walk in the session's checkpoint folder, so that they outlive
        executors. A set of at most `held_records` is held by the driver; one of at most `broadcast_records`
        is sent to the flows, a larger one is shuffled.
        """
        self._spark = spark
        self._store = store
        self._location = location
        self._is_reliable = is_reliable
        self._held_records = held_records
        self._broadcast_records = broadcast_records
        self._places = Places()
        self._opened: tuple[str, object, SparkSnapshot] | None = None

    def trace(self, application_id: str, query: TraceQuery) -> Trace:
        """Raises NotFoundError, InvalidQueryError."""
        snapshot = self._open(application_id)
        skip = _skip_of(query.cursor)
        main, side = self._walk(snapshot), self._walk(snapshot, has_origins=True)
        node, start = self._start(snapshot, main, query)
        walked = walk_in_spark(
            main,
            side,
            query.direction,
            node.number,
            start,
            limit=query.limit,
            skip=skip,
            depth=query.depth,
            to=_node(snapshot, query.to).number if query.to else None,
        )
        shown = reached_at(main, node.number, start, 0, query.limit).positions
        return self._answer(snapshot, query, node, shown, walked, skip + query.limit)

    def _walk(self, snapshot: SparkSnapshot, *, has_origins: bool = False) -> SparkWalk:
        return SparkWalk(
            snapshot,
            has_origins=has_origins,
            is_reliable=self._is_reliable,
            held_records=self._held_records,
            broadcast_records=self._broadcast_records,
        )

    def _open(self, application_id: str) -> SparkSnapshot:
        version = self._store.version()
        if self._opened is None or self._opened[:2] != (application_id, version):
            snapshot = open_in_spark(self._spark, self._store, application_id, self._location)
            self._opened = (application_id, version, snapshot)
        return self._opened[2]

    # -- where it begins -----------------------------------------------------------------------------

    def _start(
        self, snapshot: SparkSnapshot, main: SparkWalk, query: TraceQuery
    ) -> tuple[TopologyNode, Frontier]:
        """The node and the records, in the runs that hold them, that a query names."""
        if query.path is not None:
            number, split, offset = self._places.find(snapshot.topology, query.path, query.row or 0)
            node = snapshot.topology.nodes[number]
        elif query.key is not None and query.node is not None:
            node = _node(snapshot, query.node)
            return node, _by_key(snapshot, main, node, query)
        elif query.record is not None:
            node, split, offset = _parse_record(snapshot, query.record, query.node)
        elif query.node is not None and query.partition is not None and query.offset is not None:
            node, split, offset = _node(snapshot, query.node), query.partition, query.offset
        else:
            raise InvalidQueryError(
                "say where the trace begins: record, or node with partition and offset, or node with key, "
                "or path with row"
            )
        counts = {
            run.number: snapshot.count(node.number, run.number)
            for run in snapshot.holders_of(node.number, split, query.direction)
        }
        held = [(run, offset) for run, count in counts.items() if offset < count]
        if not held:
            raise NotFoundError(
                f"node {node.number} ({node.name}) has {max(counts.values(), default=0)} records in "
                f"partition {split}; offset {offset} is not there (offsets count from 0)"
            )
        return node, main.held(held)

    # -- what is shown -------------------------------------------------------------------------------

    def _answer(
        self,
        snapshot: SparkSnapshot,
        query: TraceQuery,
        node: TopologyNode,
        start: Sequence[Position],
        walked: Walked,
        after: int,
    ) -> Trace:
        topology = snapshot.topology
        application_id, nodes = topology.application_id, topology.nodes
        texts = _texts(
            snapshot,
            [*start, *(position for each in walked.reached for position in each.positions)],
            ("key", "value") if query.values else ("key",),
        )
        return Trace(
            direction=query.direction,
            start=self._show(node, start, texts),
            start_node=contract.node_id(application_id, node.number),
            complete=snapshot.is_complete,
            exact=walked.is_exact
            and all(
                nodes[each.node].exact or nodes[each.node].relation == contract.PARTITION
                for each in walked.reached
            ),
            truncated=any(each.total > len(each.positions) for each in walked.reached),
            nodes=tuple(
                TracedNode(
                    node_id=contract.node_id(application_id, each.node),
                    name=nodes[each.node].name,
                    kind=nodes[each.node].kind,
                    exact=snapshot.is_exact(each.node),
                    total=each.total,
                    records=self._show(nodes[each.node], each.positions, texts),
                )
                for each in walked.reached
            ),
            flows=tuple(
                Flow(
                    hash_in=_flow_end(application_id, nodes[source.node], source),
                    hash_out=_flow_end(application_id, nodes[target.node], target),
                    node_id=contract.node_id(application_id, target.node),
                )
                for source, target in walked.flows
            ),
            next=str(after) if any(each.total > after for each in walked.reached) else None,
        )

    def _show(self, node: TopologyNode, positions: Sequence[Position], texts: _Texts) -> tuple[Record, ...]:
        rows = self._places.rows_of(node, [(each.split, each.offset) for each in positions])
        return tuple(
            Record(
                record_id=contract.record_id(node.kind, each.split, each.offset),
                partition=each.split,
                offset=each.offset,
                key=texts.get((node.number, each.run, each.offset, "key"), _NO_TEXT)[1],
                value=texts.get((node.number, each.run, each.offset, "value"), _NO_TEXT)[1],
                value_type=texts.get((node.number, each.run, each.offset, "value"), _NO_TEXT)[0],
                source=rows.get((each.split, each.offset)),
            )
            for each in positions
        )


_Texts = dict[tuple[int, int, int, str], tuple[str, str]]
"""(node, run, offset, kind) -> (type, text)."""
_NO_TEXT = (None, None)


def _node(snapshot: SparkSnapshot, text: str) -> TopologyNode:
    """A node by its id or its number. Raises NotFoundError."""
    topology = snapshot.topology
    application_id, _, number = text.rpartition("#")
    if number.isascii() and number.isdigit() and application_id in ("", topology.application_id):
        found = topology.nodes.get(int(number))
        if found is not None:
            return found
    raise NotFoundError(f"application {topology.application_id} has no node {text}")


def _parse_record(snapshot: SparkSnapshot, text: str, node: str | None) -> tuple[TopologyNode, int, int]:
    """A record id, alone where it is not ambiguous, or behind its node's id (a flow id)."""
    parts = text.split("#")
    if node is None and len(parts) >= 4 and parts[0] == snapshot.topology.application_id:
        node, text = f"{parts[0]}#{parts[1]}", "#".join(parts[2:])
    try:
        kind, split, offset = contract.parse_record_id(text)
    except contract.ContractError as error:
        raise InvalidQueryError(str(error)) from None
    if node is not None:
        return _node(snapshot, node), split, offset
    if kind is None:
        raise InvalidQueryError(f"record {text} stands at many nodes; give node too")
    nodes = [
        each
        for each in snapshot.topology.nodes.values()
        if each.kind == kind and snapshot.holders_of(each.number, split, "forward")
    ]
    if len(nodes) == 1:
        return nodes[0], split, offset
    if not nodes:
        raise NotFoundError(f"no {kind} of this application has a partition {split}")
    named = ", ".join(f"{each.number} ({each.name} {each.description})".strip() for each in nodes)
    raise InvalidQueryError(f"record {text} stands at several {kind}s: {named}; give node too")


def _by_key(snapshot: SparkSnapshot, main: SparkWalk, node: TopologyNode, query: TraceQuery) -> Frontier:
    splits = {snapshot.topology.runs[run].split for run in snapshot.runs_of(node.number)}
    allowed = {
        run.number for split in splits for run in snapshot.holders_of(node.number, split, query.direction)
    }
    of_key = (F.col("node") == node.number) & (F.col("kind") == "key") & (F.col("text") == query.key)
    found = main.counted(
        snapshot.among(snapshot.records.where(of_key), "run", allowed).select("run", "pos").distinct()
    )
    if not found.spread:
        raise NotFoundError(f"node {node.number} ({node.name}) has no record with the key {query.key!r}")
    return found


def _texts(snapshot: SparkSnapshot, positions: Sequence[Position], kinds: Sequence[str]) -> _Texts:
    """What was captured of these records."""
    wanted = {(each.node, each.run, each.offset) for each in positions if each.node in snapshot.keyed}
    if not wanted:
        return {}
    table = snapshot.table("node int, run bigint, pos bigint", sorted(wanted))
    columns = ["node", "run", "pos", "kind", "type", "text"]
    runs = snapshot.among(snapshot.records, "run", {run for _, run, _ in wanted})
    found: DataFrame = (
        snapshot.among(runs, "node", {node for node, _, _ in wanted})
        .where(F.col("kind").isin(*kinds))
        .join(F.broadcast(table), ["node", "run", "pos"])
        .select(*columns)
    )
    return {
        (node, run, pos, kind): (type_, text)
        for node, run, pos, kind, type_, text in map(tuple, found.collect())
    }


def _flow_end(application_id: str, node: TopologyNode, position: Position) -> str:
    record = contract.record_id(node.kind, position.split, position.offset)
    return f"{contract.node_id(application_id, node.number)}#{record}"


def _skip_of(cursor: str | None) -> int:
    """How many records of each node were listed before."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise InvalidQueryError(f"cursor {cursor!r} was not given by this question")
    return int(cursor)


@contextmanager
def local_session(master: str, conf: Sequence[str] = ()) -> Iterator[SparkSession]:
    """A Spark session of its own, without lineage and with `NAME=VALUE` of `conf`.

    Raises InvalidQueryError for a setting that has no value.
    """
    settings = {
        "spark.lineage.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
    }
    if master.startswith("local") and not master.startswith("local-cluster"):
        # Whatever this machine's name means, its address may not be one that it reaches itself by.
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for text in conf:
        name, separator, value = text.partition("=")
        if not separator:
            raise InvalidQueryError(f"--conf {text!r} is not NAME=VALUE")
        settings[name.strip()] = value.strip()
    builder = SparkSession.builder.master(master).appName("lineage trace")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()
