"""Which rows of an input went into which outputs of an execution: one walk forward, with the rows as origins.

Each row of the input's files travels with its number, so all of them are walked at once and the outputs of
each are known. What no walk can say is answered with a sentence, never with a smaller relation: lineage that
is not complete, formats whose records are not known by number, files that are not as they were read.

Of an execution with too many pairs, a sample of rows is walked, which a hash of their keys chooses: the same
rows each time. What is known of outputs is then known of the sample.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from lineage_service.errors import InvalidQueryError
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import FilePart, normal_path, paths_of, row_parts_of
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.row_formats import RowFormat, row_format_of
from lineage_service.tracing.model.elements import TopologyNode, is_below
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.forward import ForwardSteps
from lineage_service.tracing.walk.frontiers import Frontiers, TooManyError
from lineage_service.tracing.walk.result import nodes_before
from lineage_service.tracing.walk.starts import has_records
from lineage_service.triggering.changes.changed_elements import Flags
from lineage_service.triggering.dependence.read_rows import NOT_KEPT, Integers, ReadRows, chosen_by_key
from spark_agent import contract

__all__ = ["Relation", "relation_of", "rows_of_outputs"]

#: Records of one node that are walked together.
MOST_TOGETHER = 1 << 23
#: The least sample that is tried.
_LEAST_SAMPLED = 1 << 10
#: A place that is several.
_PATTERN = re.compile(r"[*?\[{,]")


@dataclass(frozen=True, slots=True)
class Relation:
    """Pairs (`row`, `output`), each once. Outputs are numbered by sink, partition and offset.

    `walked`: of which rows the pairs are. `exact`: false where an operation on the way has only an upper
    bound, so that some of the pairs may be none.
    """

    rows: int
    outputs: int
    row: Integers
    output: Integers
    walked: Flags
    exact: bool = True

    @property
    def is_sampled(self) -> bool:
        return not bool(self.walked.all())


class _UnknownError(Exception):
    """What is not known; the text says why."""


def relation_of(
    opened: Opened, sinks: Collection[int], rows: ReadRows, files: FileRows, check: Check
) -> Relation | str:
    """Of the input whose files `rows` are, to the records of these sinks. A text says why it is not known.

    Raises what `check` raises, and StoreUnavailableError.
    """
    try:
        return _relation(opened, sinks, rows, files, check)
    except _UnknownError as error:
        return str(error)
    except InvalidQueryError as error:  # all records of an operation, which are too many
        return str(error)


def _relation(
    opened: Opened, sinks: Collection[int], rows: ReadRows, files: FileRows, check: Check
) -> Relation:
    if not opened.application.complete:
        raise _UnknownError("the lineage of the last execution is not complete")
    nodes = opened.graph.topology.nodes
    for sink in sinks:
        if not has_records(nodes[sink]) or not nodes[sink].exact:
            raise _UnknownError(f"the records of {nodes[sink].name} are not known. {nodes[sink].reason}")
    starts = list(_starts(opened, rows, files, check))
    numbered, count = _numbered(opened, sinks)
    most = len(rows)
    while most >= min(_LEAST_SAMPLED, len(rows)):
        walked = np.zeros(len(rows), bool)
        walked[chosen_by_key(rows.keys, max(most, 1))] = True
        walked &= rows.keys != NOT_KEPT
        try:
            return _walked(opened, numbered, count, starts, walked, check)
        except TooManyError:
            most //= 8
    raise _UnknownError("its rows went into more outputs than are followed")


def _walked(
    opened: Opened,
    outputs: Mapping[int, Mapping[int, int]],
    count: int,
    starts: Collection[tuple[int, int, Integers]],
    walked: Flags,
    check: Check,
) -> Relation:
    """Raises TooManyError."""
    graph = opened.graph
    frontiers = Frontiers(graph, MOST_TOGETHER)
    frontiers.check = check
    for node, run, row_of in starts:
        offsets = np.flatnonzero(walked[row_of] & (row_of >= 0))
        frontiers.add(node, run, row_of[offsets], offsets)
    on_the_way = nodes_before(graph.topology, outputs)
    frontiers.towards = on_the_way
    steps, done = ForwardSteps(opened.snapshot, frontiers), dict[int, int]()
    while pending := [
        node for node in frontiers.nodes() & on_the_way if frontiers.added(node) != done.get(node)
    ]:
        node = min(pending)
        steps.step(node)
        done[node] = frontiers.added(node)
    exact = frontiers.is_exact and all(
        graph.topology.nodes[node].exact or graph.topology.nodes[node].relation == contract.PARTITION
        for node in done
    )
    row, output = _pairs(opened, outputs, frontiers, count)
    return Relation(len(walked), count, row, output, walked, exact)


def _pairs(
    opened: Opened, outputs: Mapping[int, Mapping[int, int]], frontiers: Frontiers, count: int
) -> tuple[Integers, Integers]:
    rows, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    holders = set()
    is_repeated = False
    for sink, firsts in outputs.items():
        for run, (origins, positions) in frontiers.at(sink).items():
            assert origins is not None
            partition = opened.graph.topology.runs[run].partition
            is_repeated |= (sink, partition) in holders
            holders.add((sink, partition))
            rows.append(origins)
            places.append(positions + firsts[partition])
    row, output = np.concatenate(rows), np.concatenate(places)
    if is_repeated:  # several runs hold a partition
        row, output = np.divmod(np.unique(row * np.int64(count) + output), np.int64(max(count, 1)))
    return row, output


def _numbered(opened: Opened, sinks: Collection[int]) -> tuple[dict[int, dict[int, int]], int]:
    """By sink and partition the number of the first record there; how many records there are."""
    numbered: dict[int, dict[int, int]] = {}
    count = 0
    for sink in sorted(sinks):
        numbered[sink] = {}
        for partition, records in _counts(opened, sink).items():
            numbered[sink][partition] = count
            count += records
    return numbered, count


def _counts(opened: Opened, node: int) -> dict[int, int]:
    """How many records each partition of a node has."""
    counts: dict[int, int] = {}
    for run in opened.graph.runs_of(node):
        partition = opened.graph.topology.runs[run].partition
        counts[partition] = max(counts.get(partition, 0), opened.graph.count(node, run))
    return dict(sorted(counts.items()))


# -- records as rows ---------------------------------------------------------------------------------


def rows_of_outputs(
    opened: Opened, sinks: Collection[int], written: ReadRows, files: FileRows, check: Check
) -> Integers | None:
    """Of each output the row of the written files that it is, -1 where it is in none of them.

    None where rows of an output's files are not known by number. Raises what `check` raises.
    """
    numbered, count = _numbered(opened, sinks)
    row_of = np.full(count, -1, np.int64)
    try:
        for sink, firsts in numbered.items():
            node, counts = opened.graph.topology.nodes[sink], _counts(opened, sink)
            for partition, first in firsts.items():
                info = node.partitions.get(partition)
                if info is not None:
                    records = counts[partition]
                    row_of[first : first + records] = _rows_of(node, info, records, written, files, check)
    except _UnknownError:
        return None
    return row_of


def _starts(
    opened: Opened, rows: ReadRows, files: FileRows, check: Check
) -> Iterator[tuple[int, int, Integers]]:
    """(source, run, the row of each of its records, -1 for rows of other inputs). Raises _UnknownError."""
    graph = opened.graph
    is_read = False
    for node in graph.topology.nodes.values():
        if node.kind != "source":
            continue
        infos = [
            info
            for info in node.partitions.values()
            if any(rows.file(path) is not None for path in paths_of(info))
        ]
        if (infos or _may_have_read(node, rows)) and not (has_records(node) and node.exact):
            raise _UnknownError(f"the records of {node.name} are not known. {node.reason}")
        for info in infos:
            is_read = True
            for run in graph.holders_of(node.number, int(info["split"]), "forward"):
                check()
                count = graph.count(node.number, run.number)
                yield node.number, run.number, _rows_of(node, info, count, rows, files, check)
    if not is_read:
        raise _UnknownError("no source of the last execution has read these files")


def _may_have_read(node: TopologyNode, rows: ReadRows) -> bool:
    """By the place that the program named, where it is not known which files it read."""
    if node.partitions:
        return False
    place = node.location
    if place is None or _PATTERN.search(place):
        return place is not None
    return any(is_below(path, normal_path(place)) for path in rows.paths)


def _rows_of(
    node: TopologyNode, info: Mapping[str, object], count: int, rows: ReadRows, files: FileRows, check: Check
) -> Integers:
    row_of = np.full(count, -1, np.int64)
    parts = row_parts_of(node, info)
    if not parts:
        raise _UnknownError(f"the records of {node.name} are no rows of files")
    for part in parts:
        place = rows.file(part.path)
        end = count if part.last is None else min(part.last, count)
        if place is None or end <= part.first:
            continue
        first, size = place
        before = _before(node, info, part, files, check)
        if before + end - part.first > size:
            raise _UnknownError(f"{part.path} has other rows than those that were read")
        row_of[part.first : end] = np.arange(first + before, first + before + end - part.first)
    return row_of


def _is_as_read(part: FilePart, files: FileRows) -> bool:
    """Another file in its place has other rows before a part."""
    try:
        state = files.files.state(part.path)
    except UnreadableError:
        return False
    return (state.size, state.modified) == (part.size, part.modified)


def _before(
    node: TopologyNode, info: Mapping[str, object], part: FilePart, files: FileRows, check: Check
) -> int:
    """How many rows of its file are before those of a part. Raises _UnknownError."""
    format: RowFormat = row_format_of(node)
    if part.row is not None:
        return part.row
    if format.has_lines:
        partition = int(str(info["split"]))
        if format.is_text and partition in node.file_rows:
            return node.file_rows[partition].start
        before = None
        if not part.start or _is_as_read(part, files):
            before = files.rows_before(part.path, part.start, check, format=format)
        if before is not None:
            return before
    raise _UnknownError(f"which rows of {part.path} the records of {node.name} are is not known")
