"""Turns all records and flows of an application into the rows that a graph store applies. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lineage_service.graph import row_values
from lineage_service.graph.row_values import MAX_ID_BYTES, GraphDataError, Row, cleaned, identity
from spark_agent import contract

T = TypeVar("T")

__all__ = [
    "ApplicationGraph",
    "NodeRecords",
    "all_flows",
    "application_link_batches",
    "application_record_batches",
    "flows_on_request",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecords:
    """Records of one node, as columns of equal length; every flow id begins with the node's id.

    `files` and `lines` say which rows of files they are; empty where none is.
    """

    node: int
    flow_ids: Sequence[str]
    hash_ins: Sequence[str | None]
    vals: Sequence[str | None]
    files: Sequence[str | None] = ()
    lines: Sequence[int | None] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationGraph:
    """All records of an application, each once, and every flow from one to the next, each once.

    A link is (sources[k], targets[k]), two places in the columns one after the other; sorted by target.
    """

    columns: Sequence[NodeRecords]
    sources: Sequence[int]
    targets: Sequence[int]
    is_exact: bool

    @property
    def records(self) -> int:
        return sum(len(column.flow_ids) for column in self.columns)


def all_flows(graph: ApplicationGraph) -> Row:
    """What a LineageApplication says once all its flows are in the graph. None takes a property away."""
    return {
        "flows": "all",
        "flowRecords": graph.records,
        "flowLinks": len(graph.targets),
        "flowsExact": graph.is_exact,
        "flowsBudget": None,
    }


def flows_on_request(records: int, max_flows: int) -> Row:
    """What a LineageApplication says that has more than `max_flows` flows."""
    return {
        "flows": "on request",
        "flowRecords": records,
        "flowLinks": None,
        "flowsExact": None,
        "flowsBudget": max_flows,
    }


def application_record_batches(application_id: str, graph: ApplicationGraph) -> Iterator[list[Row]]:
    """Columns of at most BATCH_ROWS records and BATCH_CHARACTERS of values together, in its order.

    Raises GraphDataError, before the first batch.
    """
    for column in graph.columns:
        prefix = contract.node_id(application_id, column.node) + "#"
        for flow_id in column.flow_ids:
            if len(flow_id) > MAX_ID_BYTES // 4 or not flow_id.isascii():
                identity(flow_id)
            if not flow_id.startswith(prefix):
                raise GraphDataError(f"record {flow_id!r} is not of node {column.node} of {application_id!r}")
    return _record_batches(application_id, graph)


def _record_batches(application_id: str, graph: ApplicationGraph) -> Iterator[list[Row]]:
    batch: list[Row] = []
    rows = characters = 0
    for column in graph.columns:
        node_id, start = contract.node_id(application_id, column.node), 0
        for end, val in enumerate(column.vals, start=1):
            rows += 1
            characters += 0 if val is None else len(val)
            if rows == row_values.BATCH_ROWS or characters >= row_values.BATCH_CHARACTERS:
                yield [*batch, _columns(node_id, column, start, end)]
                batch, rows, characters, start = [], 0, 0, end
        if start < len(column.flow_ids):
            batch.append(_columns(node_id, column, start, len(column.flow_ids)))
    if batch:
        yield batch


def _columns(node_id: str, column: NodeRecords, start: int, end: int) -> Row:
    return {
        "nodeId": node_id,
        "flowIds": list(column.flow_ids[start:end]),
        "hashIns": _none_if_empty(list(column.hash_ins[start:end])),
        "vals": _none_if_empty(cleaned(column.vals[start:end])),
        "files": _none_if_empty(cleaned(column.files[start:end])),
        "lines": _none_if_empty(list(column.lines[start:end])),
    }


def _none_if_empty(column: list[T | None]) -> list[T | None] | None:
    """A column in which nothing is known need not travel."""
    return column if any(value is not None for value in column) else None


def application_link_batches(graph: ApplicationGraph, element_ids: Sequence[str]) -> Iterator[Row]:
    """At most BATCH_ROWS links together, by target; `element_ids` says what the database calls a record."""
    for start in range(0, len(graph.targets), row_values.BATCH_ROWS):
        end = start + row_values.BATCH_ROWS
        yield {
            "targets": [element_ids[target] for target in graph.targets[start:end]],
            "sources": [element_ids[source] for source in graph.sources[start:end]],
        }
