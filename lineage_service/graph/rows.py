"""Turns events and traced records into the rows that a graph store applies.

A row says what shall be true, so rows may be applied twice and in any order: where two events tell of the
same thing, a revision decides, and it depends on the events alone. Rows are sorted by id, which is the order
of locks. What cannot stand in a graph is refused here, before a transaction begins. No I/O.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from lineage_service.errors import LineageError
from spark_agent import contract

T = TypeVar("T")

Row = dict[str, Any]
"""Parameters of a statement: what the statement's header describes."""

NodeCounts = Mapping[int, int]
"""Node -> how many records it has."""
EdgeCounts = Mapping[tuple[int, int], int]
"""(source, target) -> how many flows went from node to node."""

#: Rows of one statement, so of one transaction: enough to make its cost vanish, little enough for its memory.
#: In the heap of `lineage up`, 512 MB, a transaction of 15,000 records outlives young collections of garbage
#: and ends in full ones: half of the server's work. With up to 5,000 there are none (docs/neo4j.md, Writing).
BATCH_ROWS = 5_000
#: And at most so much text in one: Neo4j keeps a transaction in memory until its end.
BATCH_CHARACTERS = 8_000_000
#: Neo4j refuses index keys beyond 8,167 bytes, and the widest index holds two ids.
MAX_ID_BYTES = 4_000
MAX_INTEGER = (1 << 63) - 1


class GraphDataError(LineageError):
    """An event or record cannot stand in the graph; trying again changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRecord:
    """One record of a trace.

    `flow_id` is `applicationId#node#recordId`. `hash_in` is None where a record has no input or several
    (links say which), `val` is None where no value was captured.
    """

    flow_id: str
    node: int
    hash_in: str | None
    hash_out: str
    val: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunColumn:
    """Records of one node, as columns of equal length; every flow id begins with the node's id."""

    node: int
    flow_ids: Sequence[str]
    hash_ins: Sequence[str | None]
    vals: Sequence[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun:
    """All records of an application, each once, and every way from one to the next, each once.

    A link is (sources[k], targets[k]), two places in the columns one after the other; sorted by target.
    """

    columns: Sequence[RunColumn]
    sources: Sequence[int]
    targets: Sequence[int]
    is_exact: bool

    @property
    def records(self) -> int:
        return sum(len(column.flow_ids) for column in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRows:
    """What some events say about the graph. `nodes` holds both ends of every link too, as placeholders."""

    applications: tuple[str, ...]
    started: tuple[Row, ...]
    ended: tuple[Row, ...]
    nodes: tuple[Row, ...]
    links: tuple[Row, ...]

    @property
    def registered(self) -> tuple[str, ...]:
        """Ids of the nodes that are more than placeholders."""
        return tuple(row["nodeId"] for row in self.nodes if row["properties"])


def event_rows(events: Iterable[Mapping[str, Any]]) -> EventRows:
    """The rows of decoded `lineage-node` events; partitions and runs say nothing about the graph.

    Raises GraphDataError.
    """
    started: dict[str, Row] = {}
    ended: dict[str, Row] = {}
    nodes: dict[str, Row] = {}
    ports: dict[tuple[str, str], set[int]] = defaultdict(set)
    applications: set[str] = set()
    for event in events:
        kind = event["type"]
        if kind not in _GRAPH_EVENTS or (kind == contract.LINK and event.get("ids")):
            continue  # a link of ids says how a trace goes, not what sends records to what
        application_id = _identity(event["application_id"])
        applications.add(application_id)
        if kind == contract.APPLICATION_STARTED:
            _keep_latest(started, application_id, _start_properties(event), "startRevision")
        elif kind == contract.APPLICATION_ENDED:
            _keep_latest(ended, application_id, _end_properties(event), "endRevision")
        elif kind == contract.NODE_REGISTERED:
            row = _touch(nodes, application_id, event["node"])
            _keep_latest(row, "properties", _node_properties(event), "revision")
        else:
            source = _touch(nodes, application_id, event["source"])
            target = _touch(nodes, application_id, event["target"])
            ports[target["nodeId"], source["nodeId"]].add(_natural(event["port"], "port"))
    return EventRows(
        applications=tuple(sorted(applications)),
        started=_application_rows(started),
        ended=_application_rows(ended),
        nodes=_sorted_rows(nodes),
        links=_links({pair: {"ports": sorted(numbers)} for pair, numbers in ports.items()}),
    )


def count_rows(
    application_id: str, records: NodeCounts, flows: EdgeCounts
) -> tuple[tuple[Row, ...], tuple[Row, ...], tuple[Row, ...]]:
    """(nodes touched, record counts, flow counts), from counts by node and by (source, target).

    Raises GraphDataError.
    """
    application_id = _identity(application_id)
    nodes: dict[str, Row] = {}
    counted: dict[str, Row] = {}
    for node, count in records.items():
        row = _touch(nodes, application_id, node)
        counted[row["nodeId"]] = {"nodeId": row["nodeId"], "records": _natural(count, "records")}
    edges: dict[tuple[str, str], Row] = {}
    for (source, target), count in flows.items():
        ends = (_touch(nodes, application_id, target), _touch(nodes, application_id, source))
        edges[ends[0]["nodeId"], ends[1]["nodeId"]] = {"flows": _natural(count, "flows")}
    return _sorted_rows(nodes), _sorted_rows(counted), _links(edges)


def record_batches(application_id: str, records: Iterable[GraphRecord]) -> list[list[Row]]:
    """Columns of at most BATCH_ROWS records together, by node, sorted by id. Raises GraphDataError."""
    known: dict[str, GraphRecord] = {}
    for record in records:
        _identity(record.flow_id)
        if not record.flow_id.startswith(contract.node_id(application_id, record.node) + "#"):
            raise GraphDataError(
                f"record {record.flow_id!r} is not of node {record.node} of application {application_id!r}: "
                f"its id must be applicationId#node#recordId"
            )
        known[record.flow_id] = _joined(known.get(record.flow_id), record)
    ordered = sorted(known.values(), key=lambda record: (record.node, record.flow_id))
    return [
        [
            _columns(contract.node_id(application_id, node), list(group))
            for node, group in groupby(batch, key=lambda record: record.node)
        ]
        for batch in _batches(ordered)
    ]


def link_batches(records: Iterable[GraphRecord], links: Iterable[tuple[str, str]]) -> list[list[Row]]:
    """At most BATCH_ROWS links together, by target. Raises GraphDataError if an end is none of `records`."""
    known = {record.flow_id for record in records}
    pairs = sorted({(target, source) for source, target in links})
    for target, source in pairs:
        if source not in known or target not in known:
            raise GraphDataError(f"link {source!r} to {target!r}: both must be records of the same trace")
    return [
        [
            {"flowId": target, "sources": [source for _, source in group]}
            for target, group in groupby(batch, key=lambda pair: pair[0])
        ]
        for batch in _batches(pairs)
    ]


def all_flows(run: WholeRun) -> Row:
    """What a LineageApplication says once all its flows are in the graph. None takes a property away."""
    return {
        "flows": "all",
        "flowRecords": run.records,
        "flowLinks": len(run.targets),
        "flowsExact": run.is_exact,
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


def run_batches(application_id: str, run: WholeRun) -> Iterator[list[Row]]:
    """Columns of at most BATCH_ROWS records and BATCH_CHARACTERS of values together, in the order of the run.

    Raises GraphDataError, before the first batch.
    """
    for column in run.columns:
        prefix = contract.node_id(application_id, column.node) + "#"
        for flow_id in column.flow_ids:
            if len(flow_id) > MAX_ID_BYTES // 4 or not flow_id.isascii():
                _identity(flow_id)
            if not flow_id.startswith(prefix):
                raise GraphDataError(f"record {flow_id!r} is not of node {column.node} of {application_id!r}")
    return _run_batches(application_id, run)


def _run_batches(application_id: str, run: WholeRun) -> Iterator[list[Row]]:
    batch: list[Row] = []
    rows = characters = 0
    for column in run.columns:
        node_id, start = contract.node_id(application_id, column.node), 0
        for end, val in enumerate(column.vals, start=1):
            rows += 1
            characters += 0 if val is None else len(val)
            if rows == BATCH_ROWS or characters >= BATCH_CHARACTERS:
                yield [*batch, _run_columns(node_id, column, start, end)]
                batch, rows, characters, start = [], 0, 0, end
        if start < len(column.flow_ids):
            batch.append(_run_columns(node_id, column, start, len(column.flow_ids)))
    if batch:
        yield batch


def _run_columns(node_id: str, column: RunColumn, start: int, end: int) -> Row:
    return {
        "nodeId": node_id,
        "flowIds": list(column.flow_ids[start:end]),
        "hashIns": _none_if_empty(list(column.hash_ins[start:end])),
        "vals": _none_if_empty([None if val is None else _clean(val) for val in column.vals[start:end]]),
    }


def _none_if_empty(column: list[str | None]) -> list[str | None] | None:
    """A column in which nothing is known need not travel."""
    return None if column.count(None) == len(column) else column


def run_link_batches(run: WholeRun, element_ids: Sequence[str]) -> Iterator[Row]:
    """At most BATCH_ROWS links together, by target; `element_ids` says what the database calls a record."""
    for start in range(0, len(run.targets), BATCH_ROWS):
        end = start + BATCH_ROWS
        yield {
            "targets": [element_ids[target] for target in run.targets[start:end]],
            "sources": [element_ids[source] for source in run.sources[start:end]],
        }


# -- what an event says -----------------------------------------------------------------------------

_GRAPH_EVENTS = frozenset(
    (contract.APPLICATION_STARTED, contract.APPLICATION_ENDED, contract.NODE_REGISTERED, contract.LINK)
)
#: Revision -> the property that holds the time of the event that it counts.
_TIME_OF = {"startRevision": "started", "endRevision": "ended", "revision": "registered"}


def _start_properties(event: Mapping[str, Any]) -> Row:
    return {
        "name": _clean(event["name"]),
        "detailed": event["detailed"],
        "sparkVersion": _text_or_none(event, "spark_version"),
        "master": _text_or_none(event, "master"),
        "user": _text_or_none(event, "user"),
        "started": _natural(event["time"], "time"),
    }


def _end_properties(event: Mapping[str, Any]) -> Row:
    try:
        counters = json.dumps(event["counters"], sort_keys=True, ensure_ascii=False)
    except RecursionError:
        raise GraphDataError("application_ended event has counters that are nested too deeply") from None
    is_failed = event.get("state") == contract.FAILED
    error = event.get("error") if is_failed else None
    return {
        "counters": _clean(counters),
        "ended": _natural(event["time"], "time"),
        "state": "failed" if is_failed else "ended",
        "error": None if error is None else _clean(f"{error['type']}: {error['message']}"),
    }


def _node_properties(event: Mapping[str, Any]) -> Row:
    dataset = event.get("dataset")
    if not isinstance(dataset, Mapping | None):
        raise GraphDataError("node_registered event has a field 'dataset' that is no object")
    place = dataset or {}
    operation = event.get("operation")
    return {
        "name": _clean(event["name"]),
        "description": _clean(event["description"]),
        "kind": _clean(event["kind"]),
        "step": event["kind"] == "step",
        "relation": _clean(event["relation"]),
        "exact": event["exact"],
        "reason": _text_or_none(event, "reason"),
        "callSite": _text_or_none(event, "call_site"),
        "operation": None if operation is None else _natural(operation, "operation"),
        "dataset": _text_or_none(place, "name"),
        "datasetNamespace": _text_or_none(place, "namespace"),
        "datasetFormat": _text_or_none(place, "format"),
        "registered": _natural(event["time"], "time"),
    }


def _keep_latest(rows: dict[str, Row], key: str, properties: Row, revision: str) -> None:
    """Put `properties` under `key` unless a later account of the same thing is there.

    Any order will do among accounts of the same millisecond, as long as everyone has the same: a digest of
    what they say ends the revision.
    """
    said = hashlib.sha256(json.dumps(properties, sort_keys=True).encode()).hexdigest()
    new = {**properties, revision: f"{properties[_TIME_OF[revision]]:019d}-{said[:12]}"}
    if rows.get(key, {}).get(revision, "") < new[revision]:
        rows[key] = new


# -- rows -------------------------------------------------------------------------------------------


def _touch(nodes: dict[str, Row], application_id: str, node: int) -> Row:
    node_id = contract.node_id(application_id, _natural(node, "node"))
    placeholder = {"nodeId": node_id, "applicationId": application_id, "node": node, "properties": {}}
    return nodes.setdefault(node_id, placeholder)


def _application_rows(properties: Mapping[str, Row]) -> tuple[Row, ...]:
    return tuple({"applicationId": key, "properties": properties[key]} for key in sorted(properties))


def _sorted_rows(rows: Mapping[str, Row]) -> tuple[Row, ...]:
    return tuple(rows[key] for key in sorted(rows))


def _links(links: Mapping[tuple[str, str], Row]) -> tuple[Row, ...]:
    """Grouped by target, from properties by (target, source)."""
    return tuple(
        {"nodeId": target, "sources": [{"nodeId": pair[1], **links[pair]} for pair in pairs]}
        for target, pairs in groupby(sorted(links), key=lambda pair: pair[0])
    )


def _batches(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[start : start + BATCH_ROWS] for start in range(0, len(rows), BATCH_ROWS))


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
    )


def _columns(node_id: str, records: Sequence[GraphRecord]) -> Row:
    return {
        "nodeId": node_id,
        "flowIds": [record.flow_id for record in records],
        "hashIns": [None if record.hash_in is None else _identity(record.hash_in) for record in records],
        "hashOuts": [_identity(record.hash_out) for record in records],
        "vals": [None if record.val is None else _clean(record.val) for record in records],
    }


# -- the door ---------------------------------------------------------------------------------------


def _identity(text: str) -> str:
    """An id that an index can hold, unchanged: a cleaned id would be another id."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise GraphDataError(f"id {text[:80]!r} is no Unicode text: it holds half a surrogate pair") from None
    if size > MAX_ID_BYTES:
        raise GraphDataError(f"id {text[:80]!r}... has {size} bytes; the graph takes {MAX_ID_BYTES}")
    return text


def _clean(text: str) -> str:
    """A text for people, with halves of surrogate pairs replaced: JSON can hold them, Neo4j cannot."""
    return text.encode("utf-8", "replace").decode()


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if not isinstance(value, str | None):
        raise GraphDataError(f"event has a field {name!r} that is no text")
    return _clean(value) if value else None


def _natural(value: object, name: str) -> int:
    if type(value) is not int or not 0 <= value <= MAX_INTEGER:
        raise GraphDataError(f"event has a field {name!r} that is no number from 0 to 2**63-1: {value!r:.80}")
    return value
