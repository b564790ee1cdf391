"""From a row of a file to the record that it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.lineage import Direction
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_nodes import FileHolder, nodes_meant
from lineage_service.tracing.files.file_parts import (
    FilePart,
    first_record,
    normal_path,
    parts_of,
    paths_of,
    plain_path,
)
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.missing_files import only_file_below
from lineage_service.tracing.files.row_formats import RowFormat, row_format_of
from lineage_service.tracing.model.elements import PartitionInfo, TopologyNode, in_words
from lineage_service.tracing.model.topology import Topology

__all__ = ["RowFinder", "UnknownRowError", "holders_of"]


class UnknownRowError(NotFoundError):
    """Which record of a node a row of a file is cannot be said, though it may be one."""


class RowFinder:
    """Finds records by the rows of files that they are. What takes a check raises what it raises."""

    def __init__(self, rows: FileRows) -> None:
        self._rows = rows
        #: Rows of one application are asked for one after the other.
        self._last: _Files | None = None

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

        Several only forward, see `nodes_meant`: of several nodes, or of one that read the file several times.
        Raises NotFoundError, InvalidQueryError.
        """
        nodes = self._nodes_with(topology, path)
        infos_of, file = nodes.infos_of, nodes.file
        if not infos_of:
            below = only_file_below(topology, path)
            return self.find(topology, below, row, check, direction, node)
        if node is not None and node not in infos_of:
            raise NotFoundError(
                f"node {node} neither read nor wrote the file {file.name}; who did: "
                f"{_nodes(topology, infos_of)}"
            )
        records: list[tuple[int, int, int]] = []
        missing: list[NotFoundError] = []
        for number in nodes.meant(direction) if node is None else [node]:
            try:
                places = self._in_node(nodes, number, row, check)
                records += ((number, *place) for place in places)
            except UnknownRowError as error:
                if len(infos_of) == 1:
                    raise
                raise UnknownRowError(f"{error} (who has the file: {_nodes(topology, infos_of)})") from None
            except NotFoundError as error:  # it read another part of the file
                missing.append(error)
            if records and direction == "backward":
                return records[:1]
        if not records:
            raise missing[0]
        return records

    def _nodes_with(self, topology: Topology, path: str) -> _FileNodes:
        last = self._last
        if last is None or last.topology is not topology:
            last = self._last = _Files(topology)
        return last.nodes_with(path)

    def _in_node(self, nodes: _FileNodes, number: int, row: int, check: Check) -> list[tuple[int, int]]:
        """[(partition, offset)] of a row of a file in a node.

        There are several where one node read the file several times.
        """
        file, node, infos = nodes.file, nodes.topology.nodes[number], nodes.infos_of[number]
        if "files" in infos[0]:
            return [
                (int(info["split"]), offset)
                for info in infos
                for offset, path in enumerate(paths_of(info))
                if file.is_at(path)
            ]
        parts = nodes.parts_of(number)
        if parts:
            return self._in_parts(row_format_of(node), parts, row, check)
        partition, offset = self._in_ranges(node, nodes.ranges_of(number), file, row, check)
        start = next(info["start"] for info in infos if int(info["split"]) == partition)
        return [(int(info["split"]), offset) for info in infos if info["start"] == start]

    def _in_ranges(
        self, node: TopologyNode, infos: Sequence[PartitionInfo], file: _File, row: int, check: Check
    ) -> tuple[int, int]:
        """(partition, offset) of a row of a file, of which the partitions are byte ranges, in their order."""
        if "record_length" in infos[0]:
            return _of_one_length(infos, file, row)
        if len(infos) == 1:
            return int(infos[0]["split"]), row
        partitions = {int(info["split"]) for info in infos}
        for partition, rows in node.file_rows.items():
            if row in rows and partition in partitions:
                return partition, row - rows.start
        return self._partition_of(infos, row, check)

    def _in_parts(
        self, format: RowFormat, parts: Sequence[tuple[int, FilePart]], row: int, check: Check
    ) -> list[tuple[int, int]]:
        """[(partition, offset)] of a row of a file, of which the parts are pieces, maybe several times."""
        path = parts[0][1].path
        once = list({(part.start, part.row): (split, part) for split, part in reversed(parts)}.values())
        try:
            piece, behind = self._piece_with(format, path, once, row, check)
        except UnreadableError as error:
            raise UnknownRowError(f"{path}: {error}; or give node, partition and offset") from None
        places = [
            (split, part.first + behind)
            for split, part in parts
            if (part.start, part.row) == (piece.start, piece.row)
            and behind >= 0
            and (part.last is None or part.first + behind < part.last)
        ]
        if not places:
            raise NotFoundError(f"row {row} of {path} is none of the records that were read or written")
        return places

    def _piece_with(
        self, format: RowFormat, path: str, parts: Sequence[tuple[int, FilePart]], row: int, check: Check
    ) -> tuple[FilePart, int]:
        """The piece of a file that a row is in, and how many records of the piece are before it."""
        pieces = [part for _, part in parts]
        if len(pieces) == 1 and format.is_text and not pieces[0].start:  # the file need not be read
            return pieces[0], row - (pieces[0].row or 0)
        if all(part.row is not None for part in pieces):
            number = self._record_in(format, path, 0, row, check) if format.is_cut else row
            candidates = [part for part in pieces if (part.row or 0) <= number]
            piece = max(candidates, key=lambda part: part.row or 0, default=pieces[0])
            return piece, number - (piece.row or 0)
        if format.has_several and len(pieces) == 1:  # such files are never split
            return pieces[0], self._record_in(format, path, 0, row, check)
        if format.has_lines:
            in_parts = [{**part.as_partition(), "split": at} for at, part in enumerate(pieces)]
            in_parts.sort(key=lambda info: int(info["start"]))
            at, line = self._partition_of(in_parts, row, check)
            return pieces[at], self._record_in(format, path, pieces[at].start, line, check)
        raise UnknownRowError(
            f"{path}: which record row {row} became is not known; give node, partition and offset"
        )

    def _record_in(self, format: RowFormat, path: str, start: int, line: int, check: Check) -> int:
        """Which record of a file or a partition of it a line is."""
        if format.is_text:
            return line
        records = self._rows.record_lines(format, path, start, check).records_of(line, check)
        if not records:
            raise NotFoundError(f"{path}: the row is no record: it is blank, a header, or not there")
        if len(records) > 1:
            raise InvalidQueryError(
                f"{path}: the row holds {len(records)} records, which begin with record "
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
                    f"{path} has {index.count_rows(check)} rows; row {row} is not there: it would be line "
                    f"{row + 1}"
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


class _Files:
    """The files of an application. Threads may share it."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._infos: dict[str, dict[int, list[PartitionInfo]]] = {}
        for number, node in topology.nodes.items():
            for info in node.partitions.values():
                for name in dict.fromkeys(map(normal_path, paths_of(info))):
                    self._infos.setdefault(name, {}).setdefault(number, []).append(info)
        self._last: _FileNodes | None = None

    def nodes_with(self, path: str) -> _FileNodes:
        """Rows of one file are asked for one after the other."""
        last = self._last
        if last is None or last.file.path != path:
            file = _File(path, normal_path(path))
            last = self._last = _FileNodes(self.topology, file, self._infos.get(file.name, {}))
        return last


class _FileNodes:
    """What the nodes of an application have of a file. Threads may share it."""

    def __init__(
        self, topology: Topology, file: _File, infos_of: Mapping[int, Sequence[PartitionInfo]]
    ) -> None:
        """`infos_of` has the partitions with the file, by node."""
        self.topology, self.file, self.infos_of = topology, file, infos_of
        self._parts: dict[int, list[tuple[int, FilePart]]] = {}
        self._ranges: dict[int, list[PartitionInfo]] = {}
        self._meant: dict[Direction, list[int]] = {}

    def meant(self, direction: Direction) -> list[int]:
        """The nodes to begin at; see `nodes_meant`."""
        if direction not in self._meant:
            self._meant[direction] = nodes_meant(self.holders, direction)
        return self._meant[direction]

    def ranges_of(self, number: int) -> list[PartitionInfo]:
        """Of partitions that are byte ranges of the file: in their order, each range once."""
        if number not in self._ranges:
            once = {int(info["start"]): info for info in reversed(self.infos_of[number])}
            self._ranges[number] = [once[start] for start in sorted(once)]
        return self._ranges[number]

    @cached_property
    def holders(self) -> dict[int, FileHolder]:
        nodes = self.topology.nodes
        return {number: _holder(nodes[number], infos, self.file) for number, infos in self.infos_of.items()}

    def parts_of(self, number: int) -> list[tuple[int, FilePart]]:
        """(partition, part) where the partitions of a node are made of parts of the file."""
        if number not in self._parts:
            node = self.topology.nodes[number]
            self._parts[number] = [
                (int(info["split"]), part)
                for info in self.infos_of[number]
                for part in parts_of(node, info)
                if self.file.is_at(part.path)
            ]
        return self._parts[number]


def holders_of(
    topology: Topology, path: str, infos_of: Mapping[int, Sequence[PartitionInfo]]
) -> dict[int, FileHolder]:
    """What nodes know of a file, by their partitions with it; `path` is its one name."""
    file = _File(path, path)
    return {number: _holder(topology.nodes[number], infos, file) for number, infos in infos_of.items()}


def _of_one_length(infos: Sequence[PartitionInfo], file: _File, number: int) -> tuple[int, int]:
    """(partition, offset) of a record of a file of records of one length."""
    firsts = [first_record(info) for info in infos]
    at = sum(first <= number for first in firsts) - 1
    if at < 0:
        raise NotFoundError(f"record {number} of {file.name} is none of those that were read")
    return int(infos[at]["split"]), number - firsts[at]


def _nodes(topology: Topology, numbers: Iterable[int]) -> str:
    return ", ".join(in_words(topology.nodes[number]) for number in sorted(numbers))


def _holder(node: TopologyNode, infos: Sequence[PartitionInfo], file: _File) -> FileHolder:
    """A node with a file, as far as it says in which state that was.

    A query says so behind its end, when another operation may have written the file anew.
    """
    if node.by_id and node.kind == "source":
        return FileHolder(node.kind)
    [(size, modified), *others] = {
        (entry.get("size"), entry.get("modified")) for entry in _entries(infos, file)
    }
    if others or size is None or modified is None:
        return FileHolder(node.kind)
    return FileHolder(node.kind, (int(size), int(modified)))


def _entries(infos: Sequence[PartitionInfo], file: _File) -> Iterator[Mapping[str, Any]]:
    """What partitions say of a file."""
    for info in infos:
        entries = info.get("files") or info.get("parts") or [info]
        yield from (entry for entry in entries if file.is_at(plain_path(str(entry["path"]))))
