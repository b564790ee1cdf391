"""Rows of the files of a source that are no records of it: no task has read them, or its scan left them out.

The files are read as if each was a partition of its own, from its first row to its last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lineage_service.conditions.filters import Where
from lineage_service.lineage import SourceRow
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import normal_path, plain_path
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_formats import row_format_of
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.requested_columns import request_of

__all__ = ["UnreadRows", "has_rows_of_files"]

Opened = OpenedApplication[Snapshot]
_EVERY = 1 << 53


def has_rows_of_files(node: TopologyNode) -> bool:
    """Are the records of a source rows that can be looked for in its files?"""
    infos = node.partitions.values()
    is_by_row = not any("files" in info or "record_length" in info for info in infos)
    format = row_format_of(node)
    is_readable = format.is_cut or format.is_columnar
    return node.kind == "source" and is_by_row and any(_files(node)) and is_readable


class UnreadRows:
    """Of one application."""

    def __init__(self, opened: Opened, locations: RecordLocations, check: Check) -> None:
        self._opened, self._locations, self._check = opened, locations, check

    def matching(
        self, node: TopologyNode, paths: set[str] | None, where: Where, warnings: dict[str, None]
    ) -> Iterator[tuple[TopologyNode, int, int]]:
        """(the source with whole files, file, record of the file) of each that fulfils a condition.

        Raises InvalidQueryError.
        """
        whole = _whole(node, [file for file in _files(node) if paths is None or file["path"] in paths])
        with self._locations.search(whole, where, ended=self._opened.application.ended) as search:
            for file in whole.partitions:
                self._check()
                for at, is_match in search.matching(file, first=0, last=_EVERY, check=self._check):
                    if is_match:
                        yield whole, file, at
            warnings.update(search.warnings)

    def at(self, whole: TopologyNode, file: int, at: int) -> SourceRow | None:
        """What a record of a file says; None where it is not there."""
        ended, columns = self._opened.application.ended, request_of(whole)
        place = file, at
        rows = self._locations.rows_of(whole, [place], self._check, ended=ended, columns=columns)
        row = rows.get(place)
        return row if row is not None and row.text is not None else None

    def of_file(self, node: TopologyNode, path: str, row: int) -> SourceRow | None:
        """What a row of a file says that a source may have read; None where it is not there.

        Raises NotFoundError, InvalidQueryError where it is no record.
        """
        listed = [file for file in _files(node) if normal_path(file["path"]) == path]
        whole = _whole(node, listed[:1] or [{"path": path}])
        topology = replace(self._opened.graph.topology, nodes={node.number: whole})
        ((_, file, at),) = self._locations.find(
            topology, path, row, self._check, direction="forward", node=node.number
        )
        return self.at(whole, file, at)


def _files(node: TopologyNode) -> list[dict[str, Any]]:
    """Each once, with the state that the source knows of it."""
    files: dict[str, dict[str, Any]] = {}
    for info in node.partitions.values():
        for part in info.get("parts") or [info]:
            if "path" in part:
                path = plain_path(str(part["path"]))
                state = {name: part[name] for name in ("size", "modified") if part.get(name) is not None}
                files.setdefault(path, {"path": path, **state})
    return [files[path] for path in sorted(files)]


def _whole(node: TopologyNode, files: list[dict[str, Any]]) -> TopologyNode:
    partitions: Mapping[int, Mapping[str, Any]] = {
        at: {"split": at, "parts": [{**file, "first": 0, "row": 0}]} for at, file in enumerate(files)
    }
    return replace(node, partitions=partitions, file_rows={})
