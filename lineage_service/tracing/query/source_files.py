"""The input files of an application, for whoever runs it again or takes rows out of them.

Which they are and whether they are still as they were read; the texts of rows; which records rows are. Reads
files, and writes none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lineage_service.errors import InvalidQueryError, LineageError, NotFoundError
from lineage_service.lineage import RowSet, SourceRow
from lineage_service.tracing.files.decompression import Check, unlimited
from lineage_service.tracing.files.file_parts import normal_path, paths_of
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.input_texts import MOST_BYTES, MOST_ROWS, InputTexts, UnsureTextError
from lineage_service.tracing.files.own_files import own_files
from lineage_service.tracing.files.partition_states import file_states
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.scan_blocks import UnknownBlockError, blocks_of
from lineage_service.tracing.files.source_rows import change_of
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.row_sets import RowSets, sources_of
from lineage_service.tracing.walk.starts import no_such_line
from spark_agent.contract.row_sets import rows_in

__all__ = ["InputFile", "SourceBlocks", "SourceFiles", "SourceTexts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file that a source read. `changed` says why it is not what was read any more; None if it is.

    `size` in bytes and `modified` in Unix milliseconds are those of then, None where they are unknown.
    `is_own`: the application itself wrote it before all of its sources that read it.
    """

    node: int
    path: str
    size: int | None
    modified: int | None
    changed: str | None
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class SourceTexts:
    """The texts of the chosen rows of a source, by partition, in the order of positions.

    None where they are not surely what the job read: `why` says for which reason.
    """

    texts: Mapping[str, Sequence[str]] | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class SourceBlocks:
    """The blocks of files that a scan of a DataFrame read, with the chosen rows (`files.scan_blocks`).

    None where rows cannot be chosen by them: `why` says for which reason.
    """

    blocks: Sequence[Mapping[str, Any]] | None
    why: str = ""


class _Open(Protocol):
    """Opens an application; with `has_failed`, with the task runs that an error has ended."""

    def __call__(self, application_id: str, *, has_failed: bool = False) -> Opened: ...


class SourceFiles:
    """Of one flow store."""

    def __init__(self, open_application: _Open, locations: RecordLocations, sets: RowSets) -> None:
        self._open, self._locations, self._sets = open_application, locations, sets
        self._texts = InputTexts(locations.file_rows)

    def input_files(
        self, application_id: str, nodes: Iterable[int] | None = None, check: Check = unlimited
    ) -> tuple[InputFile, ...]:
        """Each file of these sources once, of all sources by default."""
        opened = self._open(application_id)
        chosen = None if nodes is None else set(nodes)
        own = own_files(opened.graph.topology.nodes, opened.application.ended)
        files: dict[str, InputFile] = {}
        for node in sources_of(opened):
            if chosen is not None and node.number not in chosen:
                continue
            for path, info in file_states(node, opened.application.ended):
                if path not in files:
                    check()
                    files[path] = InputFile(
                        node=node.number,
                        path=path,
                        size=info.get("size"),
                        modified=info.get("modified"),
                        changed=self._change(path, info),
                        is_own=normal_path(path) in own,
                    )
        return tuple(files.values())

    def _change(self, path: str, info: Mapping[str, Any]) -> str | None:
        try:
            return change_of(self._locations.file_rows.files.state(path), info)
        except UnreadableError as error:
            return str(error)

    def output_paths(self, application_id: str) -> tuple[str, ...]:
        """Files and folders that the application wrote."""
        nodes = self._open(application_id).graph.topology.nodes.values()
        sinks = [node for node in nodes if node.kind == "sink"]
        paths = dict.fromkeys(node.location for node in sinks if node.location)
        for node in sinks:
            paths |= dict.fromkeys(path for info in node.partitions.values() for path in paths_of(info))
        return tuple(paths)

    # -- rows ----------------------------------------------------------------------------------------

    def named(
        self,
        application_id: str,
        rows: Iterable[tuple[str, int]],
        limit: int = 0,
        check: Check = unlimited,
    ) -> RowSet:
        """Rows of input files, (path, row), as a row set of the sources that read them.

        Raises NotFoundError where one is no row of a source, InvalidQueryError.
        """
        opened = self._open(application_id)
        places: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        readers: dict[str, list[TopologyNode]] = {}
        for path, row in rows:
            check()
            if path not in readers:
                readers[path] = _readers(opened, path)
            for node, split, offset in self._records(opened, readers[path], path, row, check):
                places[node][split].add(offset)
        sources = [
            self._sets.source(
                opened,
                node,
                {
                    split: np.array(sorted(offsets), np.int64)
                    for split, offsets in places[node.number].items()
                },
                limit,
                check,
            )
            for node in sources_of(opened)
            if node.number in places
        ]
        return RowSet(
            application=opened.application.application_id,
            sources=tuple(sources),
            asked=(),
            exact=True,
            complete=True,
            how=None,
        )

    def _records(
        self, opened: Opened, readers: Iterable[TopologyNode], path: str, row: int, check: Check
    ) -> list[tuple[int, int, int]]:
        """Of each source that read the file. Raises LineageError."""
        topology = opened.graph.topology
        records: list[tuple[int, int, int]] = []
        missing: LineageError | None = None
        for node in readers:
            try:
                places = self._locations.find(
                    topology, path, row, check, direction="forward", node=node.number
                )
                for _, split, offset in places:
                    _check_is_read(opened, node, split, offset, path, row)
                records += places
            except LineageError as error:  # it read another part of the file, say
                missing = error
        if missing is not None and not records:
            raise missing
        return records

    def texts(
        self, application_id: str, sources: Iterable[Mapping[str, Any]], check: Check = unlimited
    ) -> dict[int, SourceTexts]:
        """Of sources of a row set in JSON, by their nodes: the texts of the rows that they name.

        Together at most 100,000 rows of 64 MB.
        """
        opened = self._open(application_id)
        rows_left, bytes_left = MOST_ROWS, MOST_BYTES
        texts: dict[int, SourceTexts] = {}
        for source in sources:
            number = int(source["node"])
            try:
                of_source = self._of_source(opened, source, rows_left, bytes_left, check)
            except UnsureTextError as error:
                texts[number] = SourceTexts(None, str(error))
                continue
            rows_left -= sum(map(len, of_source.values()))
            bytes_left -= sum(len(text.encode()) for lines in of_source.values() for text in lines)
            texts[number] = SourceTexts(of_source)
        return texts

    def _of_source(
        self, opened: Opened, source: Mapping[str, Any], rows_left: int, bytes_left: int, check: Check
    ) -> dict[str, list[str]]:
        """By partition. Raises UnsureTextError."""
        if source["whole"]:
            raise UnsureTextError("all of its rows are meant")
        node = opened.graph.topology.nodes[int(source["node"])]
        texts: dict[str, list[str]] = {}
        for split in source.get("splits", ()):
            number = int(split["split"])
            rows_left -= sum(count for _, count in split["positions"])
            if rows_left < 0:
                raise UnsureTextError(f"more than {MOST_ROWS:,} rows are meant")
            positions = list(rows_in(split["positions"]))
            lines = self._texts.of_partition(node, number, positions, opened.application.ended, check)
            bytes_left -= sum(len(line.encode()) for line in lines)
            if bytes_left < 0:
                raise UnsureTextError(f"the rows that are meant are more than {MOST_BYTES:,} bytes")
            texts[str(number)] = lines
        return texts

    def blocks(self, application_id: str, source: Mapping[str, Any]) -> SourceBlocks | None:
        """Of a source of a row set in JSON; None if it is no scan of a DataFrame, or meant as a whole."""
        splits = {int(split["split"]): split["positions"] for split in source.get("splits", ())}
        node = self._read_node(self._open(application_id), int(source["node"]), splits)
        if not node.by_id or source["whole"]:
            return None
        if source.get("why"):  # which rows of its files its records are is not known of all
            return SourceBlocks(None, str(source["why"]))
        try:
            return SourceBlocks(blocks_of(node.partitions, splits))
        except UnknownBlockError as error:
            return SourceBlocks(None, str(error))

    def _read_node(self, opened: Opened, number: int, splits: Iterable[int]) -> TopologyNode:
        """A source with the files of these partitions, also where only tasks have read them that failed."""
        node = opened.graph.topology.nodes[number]
        are_known = all(node.partitions.get(split, {}).get("parts") for split in splits)
        if not node.by_id or are_known or not opened.graph.topology.failed:
            return node
        application_id = opened.application.application_id
        return self._open(application_id, has_failed=True).graph.topology.nodes[number]

    def row_texts(
        self, application_id: str, node: int, split: int, positions: Sequence[int], check: Check = unlimited
    ) -> dict[int, str]:
        """The texts of some records of a source, by position; of those that can be read."""
        rows = self.rows(application_id, node, split, positions, check)
        return {position: row.text for position, row in rows.items() if row.text is not None}

    def rows(
        self, application_id: str, node: int, split: int, positions: Sequence[int], check: Check = unlimited
    ) -> dict[int, SourceRow]:
        """The rows of files that some records of a source are, by position; none of other sources."""
        opened = self._open(application_id)
        rows = self._locations.rows_of(
            self._read_node(opened, node, [split]),
            [(split, position) for position in positions],
            check,
            ended=opened.application.ended,
        )
        return {position: row for (_, position), row in rows.items()}


def _check_is_read(opened: Opened, node: TopologyNode, split: int, offset: int, path: str, row: int) -> None:
    """Raises NotFoundError for a line behind those that were read. Where only tasks failed none is known."""
    graph = opened.graph
    holders = graph.holders_of(node.number, split, "forward")
    counts = [graph.count(node.number, run.number) for run in holders]
    if counts and offset >= max(counts):
        raise NotFoundError(no_such_line(path, row, node, max(counts)))


def _readers(opened: Opened, path: str) -> list[TopologyNode]:
    """The sources that read a file. Raises InvalidQueryError."""
    name = normal_path(path)
    readers = [node for node in sources_of(opened) if _has_read(node, name)]
    if not readers:
        raise InvalidQueryError(
            f"no source of {opened.application.application_id} read the file {name}: give a row of one "
            f"of its inputs ({', '.join(_first_paths(opened)) or 'it has none that are files'})"
        )
    return readers


def _has_read(node: TopologyNode, name: str) -> bool:
    return any(normal_path(path) == name for info in node.partitions.values() for path in paths_of(info))


def _first_paths(opened: Opened) -> list[str]:
    paths = dict.fromkeys(
        path for node in sources_of(opened) for info in node.partitions.values() for path in paths_of(info)
    )
    return list(paths)[:3]
