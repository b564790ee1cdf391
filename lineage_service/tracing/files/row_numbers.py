"""From records to the rows of files that they are, by number alone: no text of a row is kept.

The inverse of `row_finder`. Where a number follows from what the job reported, no file is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import FilePart, first_record, parts_of, plain_path
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.row_formats import RowFormat, row_format_of
from lineage_service.tracing.model.elements import PartitionInfo, TopologyNode

__all__ = ["NumberedRows", "Numbers", "RowNumbers"]

Numbers = npt.NDArray[np.int64]
"""Ascending."""


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """Rows of one file. `rows` None: their numbers are not known, and `why` says for which reason.

    `records` counts records that may have several lines. `is_partial`: a line holds other records, too.
    """

    path: str
    size: int | None
    modified: int | None
    rows: Numbers | None
    why: str = ""
    records: Numbers | None = None
    is_partial: bool = False


class RowNumbers:
    """Of the sources and sinks of an application. What takes a check raises what it raises."""

    def __init__(self, rows: FileRows) -> None:
        self._rows = rows

    def of_partition(
        self, node: TopologyNode, info: PartitionInfo, offsets: Numbers, check: Check
    ) -> Iterator[NumberedRows]:
        """The rows that the records at these offsets of a partition are; none where it has no files."""
        if "files" in info:
            yield from _whole_files(info["files"], offsets)
            return
        parts = parts_of(node, info)
        if parts:
            for part, mine in _by_part(parts, offsets):
                check()
                yield self._of_part(row_format_of(node), part, mine, check)
        elif "path" in info:
            yield self._of_range(node, info, offsets, check)

    def _of_range(
        self, node: TopologyNode, info: PartitionInfo, offsets: Numbers, check: Check
    ) -> NumberedRows:
        """Of a partition that is a piece of one file."""
        path, start = plain_path(str(info["path"])), int(info.get("start") or 0)
        state = info.get("size"), info.get("modified")
        if "record_length" in info:
            return NumberedRows(path, *state, offsets + first_record(info))
        if not node.is_text:
            return NumberedRows(path, *state, None, "which rows of the file its records are is not known")
        file_rows = node.file_rows.get(int(info["split"]))
        if file_rows is not None:
            return NumberedRows(path, *state, offsets + file_rows.start)
        try:
            return NumberedRows(path, *state, offsets + self._first_row(path, start, check))
        except UnreadableError as error:
            return NumberedRows(path, *state, None, str(error))

    def _of_part(self, format: RowFormat, part: FilePart, offsets: Numbers, check: Check) -> NumberedRows:
        file = part.path, part.size, part.modified
        records = offsets - part.first + (part.row or 0)
        start = part.start if part.row is None else 0
        try:
            if format.is_text:
                return NumberedRows(*file, records + self._first_row(part.path, start, check))
            if format.is_cut:
                return self._of_lines(format, part, start, records, check)
        except UnreadableError as error:
            return NumberedRows(*file, None, str(error))
        if part.row is None:
            return NumberedRows(*file, None, "which rows of the file its records are was not reported")
        return NumberedRows(*file, records)

    def _of_lines(
        self, format: RowFormat, part: FilePart, start: int, records: Numbers, check: Check
    ) -> NumberedRows:
        """By the lines that records begin in. A line may be several of them. Raises UnreadableError."""
        lines_of = self._rows.record_lines(format, part.path, start, check)
        line_of = [lines_of.line_of(record, check) for record in records.tolist()]
        lines = np.unique(np.array([line for line in line_of if line is not None], np.int64))
        if None in line_of:
            raise UnreadableError("the file has fewer rows than the job read: put the one back that it read")
        is_partial = False
        if format.is_json:
            in_lines = sum(len(lines_of.records_of(line, check)) for line in lines.tolist())
            is_partial = in_lines > len(records)
        return NumberedRows(
            part.path,
            part.size,
            part.modified,
            lines + (0 if format.has_several else self._first_row(part.path, start, check)),
            records=records if format.has_several else None,
            is_partial=is_partial,
        )

    def _first_row(self, path: str, start: int, check: Check) -> int:
        """Which row of a file the first one of the partition at a byte is."""
        if not start:
            return 0
        state = self._rows.files.state(path)
        return self._rows.first_row(path, state, self._rows.text_start(path, state, start, check), check)


def _whole_files(files: list[Mapping[str, Any]], offsets: Numbers) -> Iterator[NumberedRows]:
    """Records that are files: row 0 stands for the whole of each."""
    for offset in offsets.tolist():
        if offset < len(files):
            file = files[offset]
            state = file.get("size"), file.get("modified")
            yield NumberedRows(plain_path(str(file["path"])), *state, np.zeros(1, np.int64))


def _by_part(parts: list[FilePart], offsets: Numbers) -> Iterator[tuple[FilePart, Numbers]]:
    """The offsets that each part has, if any. A part of no rows has none."""
    firsts = np.array([part.first for part in parts], np.int64)
    at = np.searchsorted(firsts, offsets, "right") - 1
    for index in np.unique(at[at >= 0]).tolist():
        yield parts[index], offsets[at == index]
