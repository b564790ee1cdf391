"""Turns the records and links of a trace into the rows that a graph store applies.

Rows are sorted by id, which is the order of locks. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from lineage_service.graph.row_values import GraphDataError, Row, batches, cleaned, identity
from spark_agent import contract

__all__ = ["GraphRecord", "link_batches", "record_batches"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRecord:
    """One record of a trace.

    `flow_id` is `applicationId#node#recordId`. `hash_in` is None where a record has no input or several
    (links say which), `val` is None where no value was captured. `file` and `line` are those of a row.
    """

    flow_id: str
    node: int
    hash_in: str | None
    hash_out: str
    val: str | None
    file: str | None = None
    line: int | None = None


def record_batches(application_id: str, records: Iterable[GraphRecord]) -> list[list[Row]]:
    """Columns of at most BATCH_ROWS records together, by node, sorted by id. Raises GraphDataError."""
    by_id: dict[str, GraphRecord] = {}
    for record in records:
        identity(record.flow_id)
        if not record.flow_id.startswith(contract.node_id(application_id, record.node) + "#"):
            raise GraphDataError(
                f"record {record.flow_id!r} is not of node {record.node} of application {application_id!r}: "
                f"its id must be applicationId#node#recordId"
            )
        by_id[record.flow_id] = _joined(by_id.get(record.flow_id), record)
    ordered = sorted(by_id.values(), key=lambda record: (record.node, record.flow_id))
    return [
        [
            _columns(contract.node_id(application_id, node), list(group))
            for node, group in groupby(batch, key=lambda record: record.node)
        ]
        for batch in batches(ordered)
    ]


def link_batches(records: Iterable[GraphRecord], links: Iterable[tuple[str, str]]) -> list[list[Row]]:
    """At most BATCH_ROWS links together, by target. Raises GraphDataError if an end is none of `records`."""
    flow_ids = {record.flow_id for record in records}
    pairs = sorted({(target, source) for source, target in links})
    for target, source in pairs:
        if source not in flow_ids or target not in flow_ids:
            raise GraphDataError(f"link {source!r} to {target!r}: both must be records of the same trace")
    return [
        [
            {"flowId": target, "sources": [source for _, source in group]}
            for target, group in groupby(batch, key=lambda pair: pair[0])
        ]
        for batch in batches(pairs)
    ]


def _joined(old: GraphRecord | None, new: GraphRecord) -> GraphRecord:
    """What two mentions of one record know together; where they differ, the later one."""
    if old is None:
        return new
    return GraphRecord(
        flow_id=new.flow_id,
        node=new.node,
        hash_in=old.hash_in if new.hash_in is None else new.hash_in,
        hash_out=new.hash_out,
        val=old.val if new.val is None else new.val,
        file=old.file if new.file is None else new.file,
        line=old.line if new.line is None else new.line,
    )


def _columns(node_id: str, records: Sequence[GraphRecord]) -> Row:
    return {
        "nodeId": node_id,
        "flowIds": [record.flow_id for record in records],
        "hashIns": [None if record.hash_in is None else identity(record.hash_in) for record in records],
        "hashOuts": [identity(record.hash_out) for record in records],
        "vals": cleaned(record.val for record in records),
        "files": cleaned(record.file for record in records),
        "lines": [record.line for record in records],
    }
