"""The rows of inputs that a query for missing rows names, and the outputs that it is about."""

from __future__ import annotations

from collections.abc import Iterable

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.queries import MissingQuery, TraceQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET, format_of, normal_path, paths_of
from lineage_service.tracing.files.path_patterns import PathPattern
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_finder import UnknownRowError
from lineage_service.tracing.missing.endings import RowStart
from lineage_service.tracing.model.elements import TopologyNode, in_words, is_below
from lineage_service.tracing.model.topology import Topology
from lineage_service.tracing.query.unread_rows import UnreadRows
from lineage_service.tracing.walk.starts import check_has_records, node_named, records_named

__all__ = ["outputs_named", "sources_before", "start_at", "starts_of"]

Opened = OpenedApplication[Snapshot]
_NAMED = 5


def starts_of(
    opened: Opened, locations: RecordLocations, query: MissingQuery, check: Check
) -> list[RowStart]:
    """The records that are one row. Raises NotFoundError, InvalidQueryError."""
    trace = TraceQuery(
        direction="forward",
        record=query.record,
        node=query.node,
        partition=query.partition,
        offset=query.offset,
        path=query.path,
        row=query.row,
    )
    try:
        named = records_named(opened.graph, locations, trace, check)
    except UnknownRowError:
        raise
    except NotFoundError:
        unread = _unread(opened, locations, query, set(), check)
        if not unread:
            raise
        return unread
    assert not isinstance(named, TopologyNode)  # only keys name a node alone
    inputs = [record for record in named if record[0].kind != "sink"]
    for node, _, _ in inputs:
        check_has_records(node)
    starts = [start_at(opened, node, partition, offset) for node, partition, offset in inputs]
    for start in starts:
        _check_is_there(opened, locations, start, check)
    others = {start.node.number for start in starts}
    starts += _unread(opened, locations, query, others, check)
    if not starts:
        sink = named[0][0]
        raise InvalidQueryError(
            f"it is a row of an output, node {sink.number} ({sink.name}): name a row of an input, or with "
            "where what the output should have"
        )
    return starts


def start_at(opened: Opened, node: TopologyNode, partition: int, offset: int) -> RowStart:
    graph = opened.graph
    runs = [
        run
        for run in graph.holders_of(node.number, partition, "forward")
        if offset < graph.count(node.number, run.number)
    ]
    return RowStart(node, (partition, offset), runs)


def _check_is_there(opened: Opened, locations: RecordLocations, start: RowStart, check: Check) -> None:
    """A row that no task has read may be none. Raises NotFoundError."""
    if start.runs or start.place is None:
        return
    rows = locations.rows_of(start.node, [start.place], check, ended=opened.application.ended)
    row = rows.get(start.place)
    if row is None:
        partition, offset = start.place
        raise NotFoundError(
            f"node {start.node.number} ({start.node.name}) has no record at offset {offset} of "
            f"partition {partition} (offsets count from 0)"
        )
    if row.text is None:
        raise NotFoundError(f"{row.path} has no row {row.row} (rows count from 0): {row.warning}")


def _unread(
    opened: Opened, locations: RecordLocations, query: MissingQuery, others: set[int], check: Check
) -> list[RowStart]:
    """A row of a file at scans that gave no record of it, since a condition was pushed into them."""
    if query.path is None or query.row is None:
        return []
    path = normal_path(query.path)
    only = None if query.node is None else node_named(opened.graph, query.node).number
    starts: list[RowStart] = []
    for number, node in opened.graph.topology.nodes.items():
        if number in others or only not in (None, number) or not _may_leave_out(node, path):
            continue
        row = UnreadRows(opened, locations, check).of_file(node, path, query.row)
        if row is not None:
            starts.append(RowStart(node, None, row=row))
    return starts


def _may_leave_out(node: TopologyNode, path: str) -> bool:
    """Does a scan read there, and may it leave rows out? Of Parquet single ones, else whole files."""
    is_scan = node.kind == "source" and node.by_id and node.exact  # else its records are no rows of files
    if not is_scan or node.location is None or not is_below(path, node.location):
        return False
    files = {normal_path(file) for info in node.partitions.values() for file in paths_of(info)}
    return format_of(node) == PARQUET or path not in files


def outputs_named(opened: Opened, text: str) -> list[int]:
    """Sinks by a node, or by what they wrote. Raises NotFoundError, InvalidQueryError."""
    topology = opened.graph.topology
    sinks = [node for node in topology.nodes.values() if node.kind == "sink"]
    if text.rpartition("#")[2].isdigit():
        node = node_named(opened.graph, text)
        if node.kind != "sink":
            raise InvalidQueryError(
                f"node {node.number} ({node.name}) is no output: name one of {_words(sinks)}"
            )
        return [node.number]
    written = [node.number for node in sinks if _wrote(node, PathPattern(text))]
    if written:
        return written
    raise NotFoundError(
        f"no output of application {topology.application_id} is {text}"
        + (f": it has {_words(sinks)}" if sinks else ": it has none")
    )


def _wrote(node: TopologyNode, pattern: PathPattern) -> bool:
    files = (normal_path(path) for info in node.partitions.values() for path in paths_of(info))
    if any(map(pattern.fits, files)):
        return True
    return node.location is not None and not pattern.is_glob and is_below(node.location, pattern.path)


def _words(nodes: list[TopologyNode]) -> str:
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return ", ".join(map(in_words, nodes[:_NAMED])) + more


def sources_before(topology: Topology, sinks: Iterable[int]) -> list[int]:
    """The sources that sinks may be made of."""
    seen, stack = set(sinks), list(sinks)
    while stack:
        number = stack.pop()
        nearby = (*topology.nodes[number].parents, *topology.id_sources.get(number, ()))
        for parent in nearby:
            if parent not in seen and parent in topology.nodes:
                seen.add(parent)
                stack.append(parent)
    return sorted(number for number in seen if topology.nodes[number].kind == "source")
