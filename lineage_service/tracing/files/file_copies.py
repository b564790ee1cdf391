"""Copies rows of one input file into a file of the same shape: its format, header, schema and compression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

from lineage_service.tracing.files.chosen_rows import ChosenRows
from lineage_service.tracing.files.columnar_copies import copy_rows
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import parts_of
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.line_copies import compressed, copy_lines
from lineage_service.tracing.files.record_lines import BLANKS
from lineage_service.tracing.files.row_formats import RowFormat, row_format_of
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["CopiedFile", "FileCopies", "copied_file"]

Shape = Literal["whole", "bytes", "lines", "records", "columns"]
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """What is meant of a file. `rows` are numbers of what its shape consists of; None: all of it."""

    path: str
    format: RowFormat
    shape: Shape
    rows: frozenset[int] | None
    record_length: int = 0

    def joined(self, other: CopiedFile) -> CopiedFile:
        """What either of two sources means of one file. Raises UnreadableError."""
        rows = None if self.rows is None or other.rows is None else self.rows | other.rows
        first = self if self.format.has_header else other
        if rows is not None and (self.shape, self.record_length) != (other.shape, other.record_length):
            raise UnreadableError("the job read it in two ways, in which its rows are not the same")
        return CopiedFile(self.path, first.format, first.shape, rows, first.record_length)


def copied_file(
    node: TopologyNode, info: Mapping[str, Any], path: str, rows: Iterable[int] | None
) -> CopiedFile | None:
    """A file of a partition; None where some of its rows cannot be copied."""
    format = row_format_of(node)
    length = int(info.get("record_length") or 0)
    shape: Shape | None = None
    if rows is None or "files" in info:
        shape = "whole"
    elif length:
        shape = "bytes"
    elif format.has_several:
        shape = "records"
    elif format.has_lines and (parts_of(node, info) or node.is_text):
        shape = "lines"
    elif format.is_columnar:
        shape = "columns"
    chosen = None if rows is None or shape == "whole" else frozenset(rows)
    return None if shape is None else CopiedFile(path, format, shape, chosen, length)


class FileCopies:
    """What takes a check raises what it raises, and UnreadableError."""

    def __init__(self, rows: FileRows) -> None:
        self._rows, self._files = rows, rows.files

    def copy(self, file: CopiedFile, target: BinaryIO, check: Check, *, is_without: bool) -> int | None:
        """Copy its rows, or with `is_without` all others: how many; None of a whole file."""
        if file.rows is None:
            self._copy_all(file.path, target, check)
            return None
        chosen = ChosenRows.of(file.rows)
        copied = self._copy_chosen(
            file, target, chosen.others if is_without else chosen, check, has_header=not is_without
        )
        if copied < len(file.rows) and not is_without:
            raise UnreadableError("the file has fewer rows than the job read: put the one back that it read")
        return copied

    def _copy_chosen(
        self, file: CopiedFile, target: BinaryIO, chosen: ChosenRows, check: Check, *, has_header: bool
    ) -> int:
        """`has_header`: the line of the header is none of the rows, and is copied too."""
        if file.shape == "columns":
            return copy_rows(self._files, file.format.name, file.path, target, chosen, check)
        if file.shape == "records":
            return self._copy_records(file, target, chosen, check)
        if file.shape == "bytes":
            return self._copy_bytes(file, target, chosen, check)
        header = self._header(file, check) if has_header else None
        if header is not None:
            chosen = ChosenRows.of((*(file.rows or ()), header))
        return copy_lines(self._files, file.path, target, chosen, check) - (header is not None)

    def _copy_all(self, path: str, target: BinaryIO, check: Check) -> None:
        with self._files.opened(path, at_length=True) as file:
            while data := file.read(_PIECE):
                check()
                target.write(data)

    def _copy_bytes(self, file: CopiedFile, target: BinaryIO, chosen: ChosenRows, check: Check) -> int:
        """Records of one length."""
        length, copied = file.record_length, 0
        with self._files.opened(file.path, at_length=True) as source:
            records = -(-self._files.state(file.path).size // length)
            for first, end in chosen.within(0, records):
                source.seek(first * length)
                for _ in range(first, end):
                    check()
                    target.write(source.read(length))
                    copied += 1
        return copied

    def _copy_records(self, file: CopiedFile, target: BinaryIO, chosen: ChosenRows, check: Check) -> int:
        """Of CSV and JSON, records that may have several lines."""
        several = self._rows.several(file.format, file.path, check)
        texts = [several.texts[number] for number in chosen.numbers_within(0, len(several.texts))]
        if file.format.is_json:
            text = "[\n" + ",\n".join(texts) + "\n]\n"
        else:
            header = [] if several.header is None else [several.header]
            text = "".join(f"{record}\n" for record in (*header, *texts))
        if "\ufffd" in text:
            raise UnreadableError("its rows cannot be copied (some are not valid in its encoding)")
        with compressed(file.path, target) as copy:
            copy.write(text.encode(file.format.encoding))
        return len(texts)

    def _header(self, file: CopiedFile, check: Check) -> int | None:
        """The line of the header: the first that is neither blank nor a comment."""
        if not file.format.has_header:
            return None
        comment = file.format.dialect.comment.encode(file.format.encoding, "replace")
        index = self._rows.indexes.of(file.path, self._files.state(file.path))
        with index.rows_from(0, check) as rows:
            for line, data in rows:
                if data.strip(BLANKS) and not (comment and data.lstrip(BLANKS).startswith(comment)):
                    return line
        return None
