"""Where the rows of text files begin, by their partitions, and which of them hold a text.

`row_index` does the reading; what a partition is made of, others know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from lineage_service.tracing.files.decompression import Check, is_cut, unlimited
from lineage_service.tracing.files.file_parts import FilePart
from lineage_service.tracing.files.file_systems import FileState, UnreadableError
from lineage_service.tracing.files.multi_line_records import MultiLineRecords, MultiLineRecordsOfFiles
from lineage_service.tracing.files.record_lines import BLANKS, RecordLines, RecordLinesOfFiles
from lineage_service.tracing.files.row_formats import TEXT_LINES, RowFormat
from lineage_service.tracing.files.row_indexes import RowIndexes

__all__ = ["FileRows"]

#: More than any file has.
_NO_LINE = 1 << 62


class FileRows:
    """What takes a check raises what it raises, and UnreadableError. Threads may share it."""

    def __init__(self, indexes: RowIndexes) -> None:
        self.indexes, self.files = indexes, indexes.files
        self._lines = RecordLinesOfFiles(indexes)
        self._several = MultiLineRecordsOfFiles(indexes.files)

    def text_start(self, path: str, state: FileState, start: int, check: Check) -> int:
        """The byte of the text that a partition begins at; the end of it all where it has no text."""
        if not start or not path.endswith(".bz2"):
            return start
        return self.indexes.text_starts(path, state, [start], check)[start]

    def first_row(self, path: str, state: FileState, start: int, check: Check) -> int:
        # Spark's text input: a later partition begins after the row that its first byte is in.
        return self.indexes.of(path, state).rows_starting_up_to(start, check) if start > 0 else 0

    def of_partition(
        self,
        path: str,
        state: FileState,
        start: int,
        rows: Collection[int],
        check: Check,
        first: int | None = None,
    ) -> tuple[dict[int, bytes], str | None, int]:
        """Rows of a partition, what is wrong with missing ones, and which row of the file its row 0 is.

        To know that, unless `first` says it, all before the partition was read once. Where that shows where
        its rows are, they are not looked for again.
        """
        whole = self.indexes.of(path, state)
        if first is None:
            first = self.first_row(path, state, start, check)
        if start and whole.are_near(first + row for row in rows):
            texts = whole.read_bytes((first + row for row in rows), check)
            return {row: texts[first + row] for row in rows if first + row in texts}, None, first
        index = self.indexes.of(path, state, start)
        try:
            return index.read_bytes(rows, check), None, first
        except UnreadableError as error:  # it breaks off before some of them
            whole_rows = index.known_rows
            if not whole_rows:
                raise
            return index.read_bytes((row for row in rows if row < whole_rows), check), str(error), first

    def rows_before(
        self, path: str, start: int, check: Check = unlimited, *, format: RowFormat = TEXT_LINES
    ) -> int | None:
        """How many rows of a file are before the first one of the partition at `start`; None if unknown."""
        if not start:
            return 0
        try:
            state = self.files.state(path)
            lines = self.first_row(path, state, self.text_start(path, state, start, check), check)
            if format.is_text:
                return lines
            return self.record_lines(format, path, 0, check).records_before(lines, check)
        except UnreadableError:
            return None

    def rows_in(self, path: str, start: int, length: int, check: Check = unlimited) -> int | None:
        """How many rows the partition of a text file has that is those bytes of it; None if unknown."""
        if is_cut(path):
            first = self.rows_before(path, start, check)
            end = self.rows_before(path, start + length, check)
            return None if first is None or end is None else end - first
        try:
            return self.indexes.of(path, self.files.state(path)).count_rows(check)
        except UnreadableError:
            return None

    def record_lines(
        self, format: RowFormat, path: str, start: int, check: Check
    ) -> RecordLines | MultiLineRecords:
        """Which lines of a file, or of the partition of it at `start`, the records are."""
        if format.has_several:
            return self.several(format, path, check)
        state = self.files.state(path)
        return self._lines.of(format, path, state, self.text_start(path, state, start, check))

    def several(self, format: RowFormat, path: str, check: Check) -> MultiLineRecords:
        """The records of a file that may have several lines."""
        return self._several.of(format, path, self.files.state(path), check)

    def first_records(self, format: RowFormat, path: str, count: int, check: Check) -> list[str]:
        """So many of a file of CSV or JSON, with its header, if it has one."""
        if format.has_several:
            several = self.several(format, path, check)
            return [*(() if several.header is None else (several.header,)), *several.texts[:count]]
        comment = format.dialect.comment
        with self.indexes.of(path, self.files.state(path)).rows_from(0, check) as rows:
            lines = (data.decode(format.encoding, "replace") for _, data in rows if data.strip(BLANKS))
            records = (line for line in lines if not (comment and line.strip().startswith(comment)))
            return list(islice(records, count))

    # -- search -------------------------------------------------------------------------------------

    def matching_parts(
        self, format: RowFormat, parts: Sequence[FilePart], text: str, first: int, last: int, check: Check
    ) -> Iterator[tuple[int, bool]]:
        for part in parts:
            end = last if part.last is None else min(part.last, last)
            begin = max(part.first, first)
            if not format.is_cut or begin >= end:
                continue
            more = part.first - (part.row or 0)
            start = part.start if part.row is None else 0
            for number, is_match in self._matching_records(
                format, part.path, start, text, begin - more, end - more, check
            ):
                yield number + more, is_match

    def _matching_records(
        self, format: RowFormat, path: str, start: int, text: str, first: int, last: int, check: Check
    ) -> Iterator[tuple[int, bool]]:
        if format.has_several:
            yield from self.several(format, path, check).matching(text, first, last, check)
            return
        state = self.files.state(path)
        index = self.indexes.of(path, state, self.text_start(path, state, start, check))
        if format.is_text:
            yield from index.matching(text, first, last, check)
            return
        lines = self.record_lines(format, path, start, check)
        line = lines.line_of(first, check)
        if line is None:
            return
        for match, is_match in index.matching(text, line, _NO_LINE, check, format.encoding):
            before = lines.records_before(match, check)
            records = lines.records_of(match, check) if is_match else range(before, before + 1)
            for record in records:
                if record >= last:
                    return
                if record >= first:
                    yield record, is_match
