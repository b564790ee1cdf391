"""Where a trace begins: the nodes and records that people name, as nodes, partitions and task runs.

A name that fits nothing, or several things, is an error that says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.queries import TraceQuery
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import TaskRun, TopologyNode, in_words
from lineage_service.tracing.model.lineage_graph import LineageGraph
from spark_agent import contract

__all__ = [
    "Start",
    "check_has_records",
    "end_named",
    "has_records",
    "no_such_key",
    "no_such_line",
    "node_id_named",
    "node_named",
    "record_named",
    "records_named",
    "starts_named",
]


_RECORD = re.compile(
    r"(?:(?:(?P<application>.+)#)?(?P<node>[0-9]+)#)?(?P<record>(?:(?:read|write)#)?[0-9]+#[0-9]+)", re.DOTALL
)


def node_named(graph: LineageGraph, text: str) -> TopologyNode:
    """A node by its id or its number. Raises NotFoundError."""
    topology = graph.topology
    application_id, _, number = text.rpartition("#")
    if number.isascii() and number.isdigit() and application_id in ("", topology.application_id):
        node = topology.nodes.get(int(number))
        if node is not None:
            return node
    raise NotFoundError(f"application {topology.application_id} has no node {text}")


def end_named(graph: LineageGraph, text: str | None) -> int | None:
    """The number of the node at which a trace is to end. Raises NotFoundError, InvalidQueryError."""
    if not text:
        return None
    node = node_named(graph, text)
    check_has_records(node)
    return node.number


def node_id_named(graph: LineageGraph, name: str) -> str:
    """The id of a node of this application, by its number too, or of another one on the way.

    Raises NotFoundError.
    """
    application_id, _, _ = name.rpartition("#")
    if application_id not in ("", graph.topology.application_id):
        return name
    return contract.node_id(graph.topology.application_id, node_named(graph, name).number)


def record_named(graph: LineageGraph, text: str, node: str | None) -> tuple[TopologyNode, int, int]:
    """A record id, alone where it is not ambiguous, or behind its node's id (a flow id) or number.

    (node, partition, offset). Raises NotFoundError, InvalidQueryError.
    """
    application_id, number, text = _parts_of(text)
    if application_id not in ("", graph.topology.application_id):
        raise InvalidQueryError(
            f"record {text} of node {number} is of application {application_id}, and "
            f"{graph.topology.application_id} was asked for"
        )
    if number and node is not None and node_named(graph, node) is not node_named(graph, number):
        raise InvalidQueryError(f"the record id names node {number}, and node is {node}: give one of them")
    node = number or node
    try:
        kind, partition, offset = contract.parse_record_id(text)
    except contract.ContractError as error:
        raise InvalidQueryError(str(error)) from None
    if node is not None:
        return node_named(graph, node), partition, offset
    if kind is None:
        raise InvalidQueryError(f"record {text} stands at many nodes; give node too")
    nodes = [
        other
        for other in graph.topology.nodes.values()
        if other.kind == kind and graph.holders_of(other.number, partition, "forward")
    ]
    if len(nodes) == 1:
        return nodes[0], partition, offset
    if not nodes:
        raise NotFoundError(f"no {kind} of this application has a partition {partition}")
    several = ", ".join(map(in_words, nodes))
    raise InvalidQueryError(f"record {text} stands at several {kind}s: {several}; give node too")


def _parts_of(text: str) -> tuple[str, str, str]:
    """(application id, node number, record id) of `[[APPLICATION#]NODE#]RECORD`, empty where it has none."""
    match = _RECORD.fullmatch(text)
    if match is None:
        return "", "", text
    return match["application"] or "", match["node"] or "", match["record"]


def records_named(
    graph: LineageGraph, locations: RecordLocations, query: TraceQuery, check: Check
) -> list[tuple[TopologyNode, int, int]] | TopologyNode:
    """[(node, partition, offset)] of the record that a query names; of one that names a key, the node alone.

    There are several of a row of a file that several nodes read, the one to name first. Raises NotFoundError,
    InvalidQueryError.
    """
    if query.path is not None:
        node = None if query.node is None else node_named(graph, query.node).number
        records = locations.find(
            graph.topology, query.path, query.row or 0, check, direction=query.direction, node=node
        )
        return [(graph.topology.nodes[number], partition, offset) for number, partition, offset in records]
    if query.key is not None and query.node is not None:
        return node_named(graph, query.node)
    if query.record is not None:
        return [record_named(graph, query.record, query.node)]
    if query.node is not None and query.partition is not None and query.offset is not None:
        return [(node_named(graph, query.node), query.partition, query.offset)]
    raise InvalidQueryError(
        "say where the trace begins: record, or node with partition and offset, or node with key, "
        "or path with row"
    )


@dataclass(frozen=True, slots=True)
class Start:
    """A record, and the runs in which a trace from it begins."""

    node: TopologyNode
    partition: int
    offset: int
    runs: Sequence[TaskRun]


def starts_named(
    graph: LineageGraph, records: Sequence[tuple[TopologyNode, int, int]], query: TraceQuery
) -> list[Start]:
    """Starts at the records that a query names. Of several, those that are there.

    Raises NotFoundError, InvalidQueryError.
    """
    starts: list[Start] = []
    missing: list[NotFoundError] = []
    for node, partition, offset in records:
        try:
            runs = _runs_with(graph, node, partition, offset, query)
            starts.append(Start(node, partition, offset, runs))
        except NotFoundError as error:
            missing.append(error)
    if not starts:
        raise missing[0]
    return starts


def _runs_with(
    graph: LineageGraph, node: TopologyNode, partition: int, offset: int, query: TraceQuery
) -> list[TaskRun]:
    """The runs in which a trace from a record begins. Raises NotFoundError, InvalidQueryError."""
    check_has_records(node)
    counts = [
        (run, graph.count(node.number, run.number))
        for run in graph.holders_of(node.number, partition, query.direction)
    ]
    holders = [run for run, count in counts if offset < count]
    if not holders:
        count = max((count for _, count in counts), default=0)
        missing = (
            f"node {node.number} ({node.name}) has {count} records in partition {partition}; offset {offset} "
            "is not there (offsets count from 0)"
            if query.path is None
            else no_such_line(query.path, query.row or 0, node, count)
        )
        raise NotFoundError(missing + _failed_there(graph, node, partition))
    return holders


def no_such_line(path: str, row: int, node: TopologyNode, count: int) -> str:
    """That a row of a file is none of those that a node read or wrote there, which are so many."""
    did, done = ("wrote", "written") if node.kind == "sink" else ("read", "read")
    rows = "1 row" if count == 1 else f"{count:,} rows"
    return f"{path} has no line {row + 1} that was {done}: {in_words(node)} {did} {rows} there"


def _failed_there(graph: LineageGraph, node: TopologyNode, partition: int) -> str:
    """What to say of a record that only a task may have had that failed. Else empty."""
    topology = graph.topology
    failed = any(
        one.run.partition == partition and node.number in (one.run.input, *one.run.nodes)
        for number, one in topology.failed.items()
        if number not in topology.runs
    )
    if not failed:
        return ""
    return (
        ". A task failed there: what only it has read went into nothing that counts, and is in the trace of "
        "its failure alone (`lineage failures`)"
    )


def has_records(node: TopologyNode) -> bool:
    """False for an operator that rows only pass."""
    return node.relation != contract.CARRIED


def check_has_records(node: TopologyNode) -> None:
    """Raises InvalidQueryError."""
    if not has_records(node) and node.kind != "operator" and node.reason:
        raise InvalidQueryError(
            f"the records of node {node.number} ({node.name}) are not known. {node.reason}"
        )
    if not has_records(node):
        raise InvalidQueryError(
            f"node {node.number} ({node.name}) has no records of its own: rows pass it on their way from a "
            "source to an output; begin or end there"
        )


def no_such_key(node: TopologyNode, key: str | None) -> NotFoundError:
    return NotFoundError(f"node {node.number} ({node.name}) has no record with the key {key!r}")
