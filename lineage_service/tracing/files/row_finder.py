"""From a row of a file to the record that it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
from lineage_service.tracing.files.missing_files import only_file_below
from lineage_service.tracing.model.elements import PartitionInfo, TopologyNode, in_words
from lineage_service.tracing.model.topology import Topology

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
        """[(node, partition, offset)] of a row of a file: of `node`, or of the nodes that are meant.

        Several only forward, see `nodes_meant`. Raises NotFoundError, InvalidQueryError.
        """
        file = _File(path, normal_path(path))
        infos_of = _infos_with(topology, file)
        if not infos_of:
            below = only_file_below(topology, file.name)
            return self.find(topology, below, row, check, direction, node)
        if node is not None and node not in infos_of:
            raise NotFoundError(
                f"node {node} neither read nor wrote the file {file.name}; who did: "
                f"{_nodes(topology, infos_of)}"
            )
        kinds = {number: topology.nodes[number].kind for number in infos_of}
        records: list[tuple[int, int, int]] = []
        missing: list[NotFoundError] = []
        for number in nodes_meant(kinds, direction) if node is None else [node]:
            try:
                at = self._in_node(topology.nodes[number], infos_of[number], file, row, check)
                records.append((number, *at))
            except UnknownRowError as error:
                if len(infos_of) == 1:
                    raise
                raise UnknownRowError(f"{error} (who has the file: {_nodes(topology, infos_of)})") from None
            except NotFoundError as error:  # it read another part of the file
                missing.append(error)
            if records and direction == "backward":
                break
        if not records:
            raise missing[0]
        return records

    def _in_node(
        self, node: TopologyNode, infos: Sequence[PartitionInfo], file: _File, row: int, check: Check
    ) -> tuple[int, int]:
        """(partition, offset) of a row of a file, of which a node has these partitions."""
        if "files" in infos[0]:
            paths = enumerate(paths_of(infos[0]))
            return int(infos[0]["split"]), next(offset for offset, path in paths if file.is_at(path))
        parts = [
            (int(info["split"]), part)
            for info in infos
            for part in parts_of(node, info)
            if file.is_at(part.path)
        ]
        if parts:
            if node.kind == "source" and _are_read_again(part for _, part in parts):
                raise InvalidQueryError(
                    f"node {node.number} read {file.name} more than once; give node, partition and offset"
                )
            return self._in_parts(format_of(node), parts, row, check)
        in_order = sorted(infos, key=lambda info: int(info["start"]))
        if "record_length" in in_order[0]:
            return _of_one_length(in_order, file, row)
        if len(in_order) == 1:
            return int(in_order[0]["split"]), row
        partitions = {int(info["split"]) for info in in_order}
        for partition, rows in node.file_rows.items():
            if row in rows and partition in partitions:
                return partition, row - rows.start
        return self._partition_of(in_order, row, check)

    def _in_parts(
        self, format: str, parts: Sequence[tuple[int, FilePart]], row: int, check: Check
    ) -> tuple[int, int]:
        """(partition, offset) of a row of a file, of which the parts are pieces."""
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
        """Which record of a file or a partition of it a line is."""
        if format == TEXT:
            return line
        records = self._rows.record_lines(format, path, start, check).records_of(line, check)
        if not records:
            raise NotFoundError(f"{path}: the row is no record: it is blank, a header, or not there")
        if len(records) > 1:
            raise InvalidQueryError(
                f"{path}: the row is an array of {len(records)} records, which begin with record "
                f"{records[0]} of the file or of its partition; give node, partition and offset"
            )
        return records[0]

    def _partition_of(self, infos: Sequence[PartitionInfo], row: int, check: Check) -> tuple[int, int]:
        """(partition, offset) of a row of a file that was read in several."""
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
            # The row that begins at the first byte of a partition belongs to the partition before.
            candidates = [info for info in infos if begins[int(info["start"])] < begin] or [infos[0]]
            first = self._rows.first_row(path, state, begins[int(candidates[-1]["start"])], check)
        except UnreadableError as error:
            raise UnknownRowError(f"{path}: {error}; or give node, partition and offset") from None
        return int(candidates[-1]["split"]), row - first


@dataclass(frozen=True, slots=True)
class _File:
    """A file by the path that a query gives, and by its one name."""

    path: str
    name: str

    def is_at(self, path: str) -> bool:
        return path == self.path or normal_path(path) == self.name


def _infos_with(topology: Topology, file: _File) -> dict[int, list[PartitionInfo]]:
    """Node -> its partitions with a file."""
    infos_of: dict[int, list[PartitionInfo]] = {}
    for number, node in topology.nodes.items():
        infos = [info for info in node.partitions.values() if any(map(file.is_at, paths_of(info)))]
        if infos:
            infos_of[number] = infos
    return infos_of


def _of_one_length(infos: Sequence[PartitionInfo], file: _File, number: int) -> tuple[int, int]:
    """(partition, offset) of a record of a file of records of one length."""
    firsts = [first_record(info) for info in infos]
    at = sum(first <= number for first in firsts) - 1
    if at < 0:
        raise NotFoundError(f"record {number} of {file.name} is none of those that were read")
    return int(infos[at]["split"]), number - firsts[at]


def _nodes(topology: Topology, numbers: Iterable[int]) -> str:
    return ", ".join(in_words(topology.nodes[number]) for number in sorted(numbers))


def _are_read_again(parts: Iterable[FilePart]) -> bool:
    """Is a file among what was read twice, or a piece of one?"""
    starts = Counter((part.start, part.row) for part in parts)
    return max(starts.values()) > 1
