"""Writes rows of input files into files of the same shape below a new folder: a fixture, or a cleaned copy.

1. Nothing is begun unless the folder is new or empty, is no input, and the inputs are as the job read them.
2. All copies are written into a folder beside it.
3. That folder takes its name at the end. So a copy that fails leaves nothing behind, and nothing is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lineage_service.errors import InvalidQueryError, LineageError
from lineage_service.tracing.files.copy_places import CopyPlaces
from lineage_service.tracing.files.decompression import Check, unlimited
from lineage_service.tracing.files.file_copies import CopiedFile, FileCopies, copied_file
from lineage_service.tracing.files.file_parts import normal_path, paths_of
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.new_folders import check_is_new, new_file, new_folder
from lineage_service.tracing.files.partition_states import file_states
from lineage_service.tracing.files.path_patterns import PathPattern
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.source_rows import change_of
from lineage_service.tracing.model.elements import PartitionInfo, TopologyNode, in_words
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.row_sets import sources_of
from spark_agent.contract.row_sets import rows_in

__all__ = ["Extracted", "Extraction", "RowExtraction"]

#: Files that are meant as a whole are copied up to this size in all.
_MOST_WHOLE_BYTES = 1 << 30
_TOO_MUCH = f"it is meant as a whole, and more than {_MOST_WHOLE_BYTES >> 30} GiB are not copied"
_MOST_SAID = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """A copy: of which file, where, and how many of its rows; None: all of the file."""

    path: str
    target: str
    rows: int | None


@dataclass(slots=True)
class Extraction:
    """What was copied, and what was not: file or source -> why."""

    files: list[Extracted] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def reasons(self) -> str:
        return "; ".join(f"{what}: {why}" for what, why in list(self.left_out.items())[:_MOST_SAID])


class RowExtraction:
    """Of one flow store."""

    def __init__(self, open_application: Callable[[str], Opened], locations: RecordLocations) -> None:
        self._open, self._locations = open_application, locations
        self._copies = FileCopies(locations.file_rows)

    def check_folder(self, application_id: str, folder: Path) -> None:
        """Raises InvalidQueryError where `extract` would for such a folder."""
        _check_folder(folder.absolute(), self._open(application_id))

    def extract(
        self,
        row_set: Mapping[str, Any],
        folder: Path,
        *,
        is_without: bool = False,
        takes_changed: bool = False,
        check: Check = unlimited,
    ) -> Extraction:
        """Copy the rows of a row set in JSON. With `is_without`, all others of the sources that have some.

        Raises InvalidQueryError, LineageError.
        """
        opened = self._open(str(row_set["application"]))
        folder = folder.absolute()
        _check_folder(folder, opened)
        extraction, places = Extraction(), CopyPlaces()
        files = self._files(opened, row_set, places, extraction, check, is_without=is_without)
        if not takes_changed:
            self._check_unchanged(opened, files)
        if not files:
            raise InvalidQueryError(f"there are no rows of files to write. {extraction.reasons()}".strip())
        with new_folder(folder) as beside:
            for file in files.values():
                check()
                target = beside / places.of(file.path)
                try:
                    with new_file(target) as copy:
                        rows = self._copies.copy(file, copy, check, is_without=is_without)
                except UnreadableError as error:
                    target.unlink(missing_ok=True)
                    extraction.left_out[file.path] = str(error)
                    continue
                place = str(folder / places.of(file.path))
                extraction.files.append(Extracted(path=file.path, target=place, rows=rows))
            if not extraction.files:
                raise LineageError(f"no file was written. {extraction.reasons()}")
        return extraction

    # -- what is to be copied ------------------------------------------------------------------------

    def _files(
        self,
        opened: Opened,
        row_set: Mapping[str, Any],
        places: CopyPlaces,
        extraction: Extraction,
        check: Check,
        *,
        is_without: bool,
    ) -> dict[str, CopiedFile]:
        """By path. Of a file of several sources, the rows of all."""
        by_number = {node.number: node for node in sources_of(opened)}
        files: dict[str, CopiedFile] = {}
        for source in row_set["sources"]:
            node = by_number.get(int(source["node"]))
            if node is None or (is_without and (source["whole"] or not source.get("splits"))):
                continue
            infos = _infos_by_path(node)
            if not infos:
                extraction.left_out[in_words(node)] = str(source.get("why") or "it has no files")
                continue
            places.add(node.location, infos)
            for path, file in self._of_source(node, source, infos, check, is_without=is_without):
                try:
                    if not isinstance(file, str):
                        files[path] = files[path].joined(file) if path in files else file
                    else:
                        extraction.left_out[path] = file
                except UnreadableError as error:
                    extraction.left_out[path] = str(error)
        return {path: file for path, file in files.items() if path not in extraction.left_out}

    def _of_source(
        self,
        node: TopologyNode,
        source: Mapping[str, Any],
        infos: Mapping[str, PartitionInfo],
        check: Check,
        *,
        is_without: bool,
    ) -> Iterator[tuple[str, CopiedFile | str]]:
        """(path, what is to be copied of it, or why nothing is)."""
        if source["whole"]:
            yield from self._whole(node, infos)
            return
        paths: set[str] = set()
        for path, file in self._with_rows(node, source, check):
            paths.add(path)
            if not (is_without and not isinstance(file, str) and file.shape == "whole"):
                yield path, file
        # Without some rows a table has its other files, too. Of no rows a job wants to find one file.
        others = [path for path in infos if path not in paths]
        for path in others if is_without else others[: not paths]:
            other = copied_file(node, infos[path], path, None if is_without else ())
            if other is not None and (is_without or other.shape != "whole"):
                yield path, other

    def _with_rows(
        self, node: TopologyNode, source: Mapping[str, Any], check: Check
    ) -> Iterator[tuple[str, CopiedFile | str]]:
        for split in source.get("splits", ()):
            info = node.partitions.get(int(split["split"]))
            if info is None:
                yield in_words(node), f"which files partition {split['split']} has was not reported"
                continue
            offsets = np.fromiter(rows_in(split["positions"]), np.int64)
            for numbered in self._locations.numbers.of_partition(node, info, offsets, check):
                rows = numbered.rows if numbered.records is None else numbered.records
                if rows is None:
                    yield numbered.path, numbered.why
                elif numbered.is_partial and numbered.records is None:
                    yield numbered.path, "a line of it holds several records, of which only some are meant"
                else:
                    file = copied_file(node, info, numbered.path, rows.tolist())
                    yield numbered.path, file or "rows of files of its format are not copied"

    def _whole(
        self, node: TopologyNode, infos: Mapping[str, PartitionInfo]
    ) -> Iterator[tuple[str, CopiedFile | str]]:
        size = 0
        for path, info in infos.items():
            try:
                size += self._locations.file_rows.files.state(path).size
            except UnreadableError as error:
                yield path, str(error)
                continue
            file = copied_file(node, info, path, None)
            yield path, _TOO_MUCH if file is None or size > _MOST_WHOLE_BYTES else file

    def _check_unchanged(self, opened: Opened, files: Mapping[str, CopiedFile]) -> None:
        """Raises LineageError."""
        for node in sources_of(opened):
            for path, info in file_states(node, opened.application.ended):
                if path not in files:
                    continue
                try:
                    changed = change_of(self._locations.file_rows.files.state(path), info)
                except UnreadableError as error:
                    raise LineageError(f"{path}: {error}") from None
                if changed is not None:
                    raise LineageError(f"{path}: {changed}. --anyway copies the rows that are there now")


def _infos_by_path(node: TopologyNode) -> dict[str, PartitionInfo]:
    """The files of a source, each with a partition that has it."""
    infos: dict[str, PartitionInfo] = {}
    for _, info in sorted(node.partitions.items()):
        for path in paths_of(info):
            infos.setdefault(path, info)
    return infos


def _check_folder(folder: Path, opened: Opened) -> None:
    """Raises InvalidQueryError where a job would read the copies as its input, or something is there."""
    check_is_new(folder)
    names = {normal_path(str(folder)), normal_path(str(folder.resolve()))}
    for node in opened.graph.topology.nodes.values():
        if node.location is not None and any(map(PathPattern(node.location).fits, names)):
            does = "reads: the copies would be its input" if node.kind == "source" else "writes"
            raise InvalidQueryError(f"{folder} is in {node.location}, which the job {does}")
