"""Makes a result of what a trace has reached: nodes, records and flows as people see them. For both engines.

Knows nothing of how records were reached, nor where the texts of their keys and values came from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lineage_service.lineage import (
    ActionState,
    Application,
    Column,
    Direction,
    Flow,
    Record,
    Remark,
    Trace,
    TracedNode,
    TraceStart,
)
from lineage_service.queries import TraceQuery
from lineage_service.tracing.columns.application import AnySnapshot, OpenedApplication
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_columns import ColumnRequest
from lineage_service.tracing.model.elements import TopologyNode, have_files_in_common
from lineage_service.tracing.model.lineage_graph import LineageGraph
from lineage_service.tracing.model.topology import Topology
from lineage_service.tracing.query.missing_values import how_to_see
from lineage_service.tracing.walk import cursors
from lineage_service.tracing.walk.cross_application import CrossApplicationTrace
from lineage_service.tracing.walk.cursors import Page
from lineage_service.tracing.walk.linked_files import FileSplit
from lineage_service.tracing.walk.result import Position, Reached, Walked
from spark_agent import contract

__all__ = [
    "Operations",
    "ShownRecords",
    "Texts",
    "along",
    "is_exact",
    "nodes_of",
    "reason_of",
    "records_of",
    "start_of",
    "trace_of",
]

Texts = Mapping[tuple[int, int, int, str], tuple[str, str]]
"""(node, run, offset, kind) -> (type, text) of what was captured."""
Operations = Mapping[tuple[int, int], str]
"""(run, offset) -> what a statement of a table did with a record."""
Segment = tuple[OpenedApplication[AnySnapshot], Walked]
_NO_TEXT = (None, None)


def records_of(
    opened: OpenedApplication[AnySnapshot],
    node: TopologyNode,
    positions: Sequence[Position],
    texts: Texts,
    locations: RecordLocations,
    check: Check,
    columns: ColumnRequest | None = None,
    operations: Operations | None = None,
) -> tuple[Record, ...]:
    """With what was captured of them, and the rows of files that they are."""
    places = map(_place, positions)
    rows = locations.rows_of(node, places, check, ended=opened.application.ended, columns=columns)
    number, records = node.number, list[Record]()
    for position in positions:
        partition, offset = position.partition, position.offset
        maker = opened.graph.maker(number, position.run)
        _, key = texts.get((number, maker, offset, "key"), _NO_TEXT)
        value_type, value = texts.get((number, maker, offset, "value"), _NO_TEXT)
        records.append(
            Record(
                record_id=contract.record_id(node.kind, partition, offset),
                partition=partition,
                offset=offset,
                key=key,
                value=value,
                value_type=value_type,
                source=rows.get((partition, offset)),
                operation=(operations or {}).get((position.run, offset), node.operation_of_rows),
            )
        )
    return tuple(records)


@dataclass(frozen=True, slots=True)
class ShownRecords:
    """The listed records of a node, with what was asked for beside them."""

    records: tuple[Record, ...]
    schema: tuple[Column, ...] | None = None
    remarks: tuple[Remark, ...] | None = None
    remarks_of: int | None = None
    sample: tuple[str, ...] | None = None
    matches: int | None = None
    warnings: tuple[str, ...] | None = None


def reason_of(graph: LineageGraph, node: TopologyNode) -> str:
    """Why a node is not exact, why traces end at this source, or what became of the rows of this sink."""
    return "" if node.kind == "operator" and graph.is_exact(node.number) else node.reason


def state_of(node: TopologyNode) -> ActionState | None:
    """How an action ended; None of what is no action, and where it is not known."""
    return None if node.outcome is None else node.outcome.state


def unknown_reader(topology: Topology, node: int) -> str:
    """That a query which was not followed read the records of a node, and why it was not; else empty."""
    traced = topology.nodes[node]
    children = topology.children.get(node, ())
    for number in sorted(topology.unfollowed):
        reader = topology.nodes[number]
        is_behind = traced.kind == "source" or number > node
        if number in children or (
            reader.kind == "source" and is_behind and have_files_in_common(traced, reader)
        ):
            return f"a query read these records, and what became of them there is not known: {reader.reason}"
    return ""


def nodes_of(
    opened: OpenedApplication[AnySnapshot],
    walked: Walked,
    direction: Direction,
    show: Callable[[TopologyNode, Sequence[Position]], ShownRecords],
    unknown_beyond: Mapping[tuple[str, int], str],
) -> tuple[TracedNode, ...]:
    """What one application has on a page. `unknown_beyond` is that of the trace."""
    graph, topology, application = opened.graph, opened.graph.topology, opened.application

    def traced(node: TopologyNode, page: Reached) -> TracedNode:
        shown = show(node, page.positions)
        return TracedNode(
            node_id=contract.node_id(topology.application_id, node.number),
            application_id=application.application_id,
            application_name=application.name,
            name=node.name,
            kind=node.kind,
            exact=graph.is_exact(node.number),
            total=page.total,
            records=shown.records,
            reason=reason_of(graph, node)
            or (unknown_reader(topology, node.number) if direction == "forward" else "")
            or unknown_beyond.get((application.application_id, node.number), ""),
            state=state_of(node),
            schema=shown.schema,
            remarks=shown.remarks,
            remarks_of=shown.remarks_of,
            sample=shown.sample,
            matches=shown.matches,
            warnings=shown.warnings,
        )

    return tuple(traced(topology.nodes[page.node], page) for page in walked.reached)


def start_of(
    application: Application, node: TopologyNode, total: int, records: tuple[Record, ...]
) -> TraceStart:
    """A node at which a trace starts, with those of its records that are listed."""
    return TraceStart(
        node_id=contract.node_id(application.application_id, node.number),
        application_id=application.application_id,
        application_name=application.name,
        name=node.name,
        kind=node.kind,
        total=total,
        records=records,
    )


def trace_of(
    query: TraceQuery,
    starts: Sequence[TraceStart],
    trace: CrossApplicationTrace[Any, Any],
    segments: Sequence[Segment],
    shown: Sequence[tuple[TracedNode, ...]],
) -> Trace:
    """One page. `segments` begin with the application that the query names; `shown` are the nodes of each."""
    opened = segments[0][0]
    application_id = opened.application.application_id
    left = {
        contract.node_id(segment.application.application_id, number): place
        for segment, walked in segments
        for number, place in walked.left.items()
    }
    following = None
    if left or not trace.is_whole:
        page = Page(after=left if trace.is_whole else None)
        following = cursors.encode(cursors.digest(application_id, query), page)
    return Trace(
        direction=query.direction,
        start=starts[0].records,
        start_node=starts[0].node_id,
        starts=tuple(starts),
        complete=trace.is_complete
        and all(segment.application.complete for segment, _ in segments)
        and not (
            query.direction == "forward"
            and any(_is_unknown_beyond(segment, walked) for segment, walked in segments)
        ),
        exact=trace.is_exact and all(is_exact(segment, walked) for segment, walked in segments),
        truncated=not trace.is_whole
        or any(page.total > len(page.positions) for _, walked in segments for page in walked.reached),
        nodes=tuple(node for nodes in along(trace.shift_of_link, query.direction, shown) for node in nodes),
        flows=(
            *(
                flow
                for (_, walked), nodes in zip(segments, shown, strict=True)
                for flow in _flows(walked, nodes)
            ),
            *_dataset_link_flows(trace, segments),
        ),
        next=following,
        how=how_to_see(opened, shown[0]) if query.values else "",
    )


def along(
    links: Iterable[tuple[FileSplit, FileSplit]],
    direction: Direction,
    shown: Sequence[tuple[TracedNode, ...]],
) -> list[tuple[TracedNode, ...]]:
    """The nodes of each application in the order of the trace: one comes behind all that lead to it.

    `links` are (written, read). Where applications read from each other, they stay as they were reached.
    """
    nodes_of_application = {nodes[0].application_id: nodes for nodes in shown if nodes}
    leading: dict[str, set[str]] = defaultdict(set)
    for written, read in links:
        first, then = (read, written) if direction == "backward" else (written, read)
        leading[then.application_id].add(first.application_id)
    left, ordered = list(nodes_of_application), []
    while left:
        free = (name for name in left if not leading[name] & set(left) - {name})
        name = next(free, left[0])
        left.remove(name)
        ordered.append(nodes_of_application[name])
    return ordered


def _flows(walked: Walked, nodes: Sequence[TracedNode]) -> Iterator[Flow]:
    """`nodes` show what was reached."""
    ends = {
        (page.node, record.partition, record.offset): f"{node.node_id}#{record.record_id}"
        for page, node in zip(walked.reached, nodes, strict=True)
        for record in node.records
    }
    node_ids = {page.node: node.node_id for page, node in zip(walked.reached, nodes, strict=True)}
    for source, target in walked.flows:
        yield Flow(
            hash_in=ends[source.node, source.partition, source.offset],
            hash_out=ends[target.node, target.partition, target.offset],
            node_id=node_ids[target.node],
        )


def _dataset_link_flows(
    trace: CrossApplicationTrace[Any, Any], segments: Sequence[Segment]
) -> Iterator[Flow]:
    """From what one application wrote to what another read of it, where both are listed."""
    if not trace.shift_of_link:
        return
    listed: dict[tuple[str, int, int], dict[int, str]] = defaultdict(dict)  # partition -> offset -> flow end
    for opened, walked in segments:
        application_id, nodes = opened.application.application_id, opened.graph.topology.nodes
        for page in walked.reached:
            for position in page.positions:
                end = _flow_end(application_id, nodes[page.node], position)
                listed[application_id, page.node, position.partition][position.offset] = end
    for (written, read), shift in trace.shift_of_link.items():
        node_id = contract.node_id(read.application_id, read.node)
        rows = listed.get((written.application_id, written.node, written.partition), {})
        records = listed.get((read.application_id, read.node, read.partition), {})
        if read.record is not None:  # a whole file
            pairs = [(row, records[read.record]) for row in rows.values() if read.record in records]
        else:
            pairs = [
                (rows[at + shift], record)
                for at, record in records.items()
                if at + shift in rows and _is_in(read, at) and _is_in(written, at + shift)
            ]
        for row, record in pairs:
            yield Flow(hash_in=row, hash_out=record, node_id=node_id)


def _is_in(part: FileSplit, offset: int) -> bool:
    return part.first <= offset and (part.last is None or offset < part.last)


def _is_unknown_beyond(opened: OpenedApplication[AnySnapshot], walked: Walked) -> bool:
    topology = opened.graph.topology
    return any(unknown_reader(topology, reached.node) for reached in walked.reached)


def is_exact(opened: OpenedApplication[AnySnapshot], walked: Walked) -> bool:
    """Are the listed nodes all that the records came by, and no others?"""
    nodes = opened.graph.topology.nodes
    return walked.is_exact and all(_is_known(nodes[page.node]) for page in walked.reached)


def _is_known(node: TopologyNode) -> bool:
    """May a result that passes here be exact? The walk says where it took a partition as an upper bound."""
    return node.exact or node.relation == contract.PARTITION


def _flow_end(application_id: str, node: TopologyNode, position: Position) -> str:
    record = contract.record_id(node.kind, position.partition, position.offset)
    return f"{contract.node_id(application_id, node.number)}#{record}"


def _place(position: Position) -> tuple[int, int]:
    return position.partition, position.offset
