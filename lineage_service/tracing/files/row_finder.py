"""From a row of a file to the record that it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.lineage import Direction
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_nodes import nodes_meant
from lineage_service.tracing.files.file_parts import (
    LINES,
    TEXT,
    FilePart,
    first_record,
    format_of,
    normal_path,
    parts_of,
    paths_of,
)
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.model.elements import TopologyNode, in_words, is_below
from lineage_service.tracing.model.topology import Topology
from spark_agent import contract

__all__ = ["RowFinder", "UnknownRowError"]


class UnknownRowError(NotFoundError):
    """Which record of a node a row of a file is cannot be said, though it may be one."""


class RowFinder:
    """Finds records by the rows of files that they are. What takes a check raises what it raises."""

    def __init__(self, rows: FileRows) -> None:
        self._rows = rows

    def find(
        self,
        topology: Topology,
        path: str,
        row: int,
        check: Check,
        direction: Direction,
        node: int | None = None,
    ) -> list[tuple[int, int, int]]:
        """[(node, split, offset)] of a row of an input or output file: of `node`, or of those that are meant.

        Several only forward, see `nodes_meant`. Raises NotFoundError, InvalidQueryError.
        """
        name = normal_path(path)
        partitions_of: dict[int, list[Mapping[str, Any]]] = {}
        for number, reader in topology.nodes.items():
            for info in reader.partitions.values():
                if any(file == path or normal_path(file) == name for file in paths_of(info)):
                    partitions_of.setdefault(number, []).append(info)
        if not partitions_of and (why := _not_captured(topology, name)):
            raise NotFoundError(f"{name}: its records are not known. {why}")
        if not partitions_of:
            below = _files(topology, name)
            if len(below) == 1:
                return self.find(topology, below[0], row, check, direction, node)
            if below:
                raise InvalidQueryError(
                    f"{name} is a folder with {len(below):,} files: name one of them: {_named(below)}"
                )
            files = _files(topology)
            has = _without_files(topology, name) or (f"; it has {_named(files)}" if files else "")
            raise NotFoundError(f"no source or sink of this application has the file {name}{has}")
        if node is not None and node not in partitions_of:
            raise NotFoundError(
                f"node {node} neither read nor wrote the file {name}; who did: "
                f"{_nodes(topology, partitions_of)}"
            )
        if node is not None:
            meant = [node]
        else:
            meant = nodes_meant({number: topology.nodes[number].kind for number in partitions_of}, direction)
        places: list[tuple[int, int, int]] = []
        missing: list[NotFoundError] = []
        for number in meant:
            try:
                places.append(self._in_node(topology, number, partitions_of[number], path, row, check))
            except UnknownRowError as error:
                if len(partitions_of) == 1:
                    raise
                raise UnknownRowError(
                    f"{error} (who has the file: {_nodes(topology, partitions_of)})"
                ) from None
            except NotFoundError as error:  # it read another part of the file
                missing.append(error)
            if places and direction == "backward":
                break
        if not places:
            raise missing[0]
        return places

    def _in_node(
        self,
        topology: Topology,
        node_number: int,
        infos: Sequence[Mapping[str, Any]],
        path: str,
        row: int,
        check: Check,
    ) -> tuple[int, int, int]:
        """(node, split, offset) of a row of a file, of which a node has these partitions."""
        name = normal_path(path)
        if "files" in infos[0]:
            info = infos[0]
            at = next(
                at for at, file in enumerate(paths_of(info)) if file == path or normal_path(file) == name
            )
            return node_number, int(info["split"]), at
        parts = [
            (int(info["split"]), part)
            for info in infos
            for part in parts_of(topology.nodes[node_number], info)
            if part.path == path or normal_path(part.path) == name
        ]
        if parts:
            if topology.nodes[node_number].kind == "source" and _are_read_again(part for _, part in parts):
                raise InvalidQueryError(
                    f"node {node_number} read {name} more than once; give node, partition and offset"
                )
            return (
                node_number,
                *self._in_parts(format_of(topology.nodes[node_number]), parts, row, check),
            )
        infos = sorted(infos, key=lambda info: int(info["start"]))
        if "record_length" in infos[0]:
            firsts = [first_record(info) for info in infos]
            at = sum(first <= row for first in firsts) - 1
            if at < 0:
                raise NotFoundError(f"record {row} of {name} is none of those that were read")
            return node_number, int(infos[at]["split"]), row - firsts[at]
        if len(infos) == 1:
            return node_number, int(infos[0]["split"]), row
        for partition, rows in topology.nodes[node_number].file_rows.items():
            if row in rows and any(info["split"] == partition for info in infos):
                return node_number, partition, row - rows.start
        partition, offset = self._partition_of(infos, row, check)
        return node_number, partition, offset

    def _in_parts(
        self, format: str, parts: Sequence[tuple[int, FilePart]], row: int, check: Check
    ) -> tuple[int, int]:
        """(split, offset) of a row of a file, of which the parts are pieces."""
        path = parts[0][1].path
        try:
            if len(parts) == 1 and format == TEXT and not parts[0][1].start:  # the file need not be read
                partition, part = parts[0]
                offset = part.first + row - (part.row or 0)
            elif all(part.row is not None for _, part in parts):
                number = row if format not in LINES else self._record_in(format, path, 0, row, check)
                candidates = [candidate for candidate in parts if (candidate[1].row or 0) <= number]
                partition, part = max(
                    candidates, key=lambda candidate: candidate[1].row or 0, default=parts[0]
                )
                offset = part.first + number - (part.row or 0)
            elif format in LINES:
                in_parts = [{**part.as_partition(), "split": at} for at, (_, part) in enumerate(parts)]
                in_parts.sort(key=lambda info: int(info["start"]))
                at, line = self._partition_of(in_parts, row, check)
                partition, part = parts[at]
                offset = part.first + self._record_in(format, path, part.start, line, check)
            else:
                raise UnknownRowError(
                    f"{path}: which record row {row} became is not known; give node, partition and offset"
                )
        except UnreadableError as error:
            raise UnknownRowError(f"{path}: {error}; or give node, partition and offset") from None
        if offset < part.first or (part.last is not None and offset >= part.last):
            raise NotFoundError(f"row {row} of {path} is none of the records that were read or written")
        return partition, offset

    def _record_in(self, format: str, path: str, start: int, line: int, check: Check) -> int:
        """Which record of a file or a split of it a line is."""
        if format == TEXT:
            return line
        records = self._rows.record_lines(format, path, start, check).records_of(line, check)
        if not records:
            raise NotFoundError(f"{path}: the row is no record: it is blank, a header, or not there")
        if len(records) > 1:
            raise InvalidQueryError(
                f"{path}: the row is an array of {len(records)} records, which begin with record "
                f"{records[0]} of the file or of its split; give node, partition and offset"
            )
        return records[0]

    def _partition_of(self, infos: Sequence[Mapping[str, Any]], row: int, check: Check) -> tuple[int, int]:
        """(split, offset) of a row of a file that was read in several."""
        path = str(infos[0]["path"])
        begins = {start: start for start in (int(info["start"]) for info in infos)}
        try:
            state = self._rows.files.state(path)
            if path.endswith(".bz2"):
                begins |= self._rows.indexes.text_starts(path, state, filter(None, begins), check)
            index = self._rows.indexes.of(path, state)
            begin = index.offset_of(row, check)
            if begin is None:
                raise NotFoundError(
                    f"{path} has {index.count_rows(check)} rows; row {row} is not there (rows count from 0)"
                )
            # The row that begins at the first byte of a split belongs to the split before.
            candidates = [info for info in infos if begins[int(info["start"])] < begin] or [infos[0]]
            first = self._rows.first_row(path, state, begins[int(candidates[-1]["start"])], check)
        except UnreadableError as error:
            raise UnknownRowError(f"{path}: {error}; or give node, partition and offset") from None
        return int(candidates[-1]["split"]), row - first


def _files(topology: Topology, folder: str = "/") -> list[str]:
    """The files of sources and sinks, all or those below a folder, in order."""
    prefix = folder.rstrip("/") + "/"
    every = {
        normal_path(path)
        for node in topology.nodes.values()
        for info in node.partitions.values()
        for path in paths_of(info)
    }
    return sorted(path for path in every if folder == "/" or path.startswith(prefix))


def _named(files: Sequence[str]) -> str:
    more = f" and {len(files) - _LISTED:,} more" if len(files) > _LISTED else ""
    return ", ".join(files[:_LISTED]) + more


#: So many files are named in a message.
_LISTED = 3


def _nodes(topology: Topology, numbers: Iterable[int]) -> str:
    return ", ".join(in_words(topology.nodes[number]) for number in sorted(numbers))


def _are_read_again(parts: Iterable[FilePart]) -> bool:
    """Is a file among what was read twice, or a split of one?"""
    starts = Counter((part.start, part.row) for part in parts)
    return max(starts.values()) > 1


def _not_captured(topology: Topology, path: str) -> str:
    """Why the records of a file are not known to an operation that read it or wrote it; "" if all are.

    Who wrote it last says so before who read it.
    """
    nodes = [
        node
        for node in topology.nodes.values()
        if node.relation == contract.CARRIED and not node.exact and _has_place(node, path)
    ]
    last = max(nodes, key=lambda node: (node.kind == "sink", node.number), default=None)
    return "" if last is None else last.reason


def _without_files(topology: Topology, path: str) -> str:
    """What to ask instead where operations have records below a folder, and nobody knows in which files."""
    nodes = [
        f"{node.number} ({node.name})"
        for node in topology.nodes.values()
        if node.relation != contract.CARRIED and _has_place(node, path) and not _has_files(node)
    ]
    if not nodes:
        return ""
    return (
        f"; records of node {', '.join(nodes)} are there, but which file holds which is not known: "
        "give node, partition and offset"
    )


def _has_files(node: TopologyNode) -> bool:
    return any(True for info in node.partitions.values() for _ in paths_of(info))


def _has_place(node: TopologyNode, path: str) -> bool:
    """Is a file, or a folder, below what a node read or wrote?"""
    return node.dataset is not None and is_below(path, node.dataset.name)
