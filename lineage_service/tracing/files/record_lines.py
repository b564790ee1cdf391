"""Which lines of a CSV or JSON file are records: all that are not blank, but for a header and comments.

A line of JSON that is an array of objects is a record for each. Lines and records count from 0, from the
file's start or from that of a partition. What was looked at once is known: the lines that are not one record,
of which most files have none or one.
"""

from __future__ import annotations

import re
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable

from lineage_service.tracing.files.decompression import Check, unlimited
from lineage_service.tracing.files.file_systems import FileState, UnreadableError
from lineage_service.tracing.files.multi_line_records import json_spans
from lineage_service.tracing.files.row_ends import MAX_ROW_BYTES
from lineage_service.tracing.files.row_formats import RowFormat
from lineage_service.tracing.files.row_index import RowIndex
from lineage_service.tracing.files.row_indexes import RowIndexes

__all__ = ["BLANKS", "RecordLines", "RecordLinesOfFiles", "json_records"]

#: What Java's trim() takes away: a line of nothing else is blank.
BLANKS = bytes(range(33))
_OBJECTS = re.compile(rb"\s*\[\s*\{")


class RecordLines:
    """Of one state of a file, or of a partition of it. Threads may share it.

    What takes a check raises what it raises, and UnreadableError.
    """

    def __init__(
        self, index: RowIndex, *, has_header: bool, has_arrays: bool = False, comment: bytes = b""
    ) -> None:
        """`has_header`: the first line that is not blank is none. `has_arrays`: of JSON.

        `comment`: what lines begin with that are none; empty: nothing.
        """
        self._index = index
        self._is_header_next = has_header
        self._has_arrays = has_arrays
        self._comment = comment
        self._lines = array("q")  # those that are not one record
        self._before = array("q")  # how many records are before each of them
        self._behind = array("q")  # and how many when it is counted, too
        self._seen = 0  # lines that were looked at
        self._is_whole = False
        self._lock = threading.Lock()

    def line_of(self, record: int, check: Check = unlimited) -> int | None:
        """The line that a record stands in; None where there are fewer."""
        self._look(lambda: self._before_line(self._seen) > record, check)
        if self._before_line(self._seen) <= record:
            return None
        at = bisect_right(self._before, record) - 1
        if at < 0:
            return record
        return self._lines[at] + max(record - self._behind[at] + 1, 0)

    def records_of(self, line: int, check: Check = unlimited) -> range:
        """The records that stand in a line; none where it is not there, too."""
        self._look(lambda: self._seen > line, check)
        if line >= self._seen:
            return range(0)
        return range(self._before_line(line), self._before_line(line + 1))

    def records_before(self, line: int, check: Check = unlimited) -> int:
        """How many records stand in the lines before that one."""
        self._look(lambda: self._seen >= line, check)
        return self._before_line(min(line, self._seen))

    def _before_line(self, line: int) -> int:
        """Of one that was looked at, or the one behind those."""
        at = bisect_left(self._lines, line) - 1
        return line if at < 0 else self._behind[at] + line - self._lines[at] - 1

    def _look(self, is_enough: Callable[[], bool], check: Check) -> None:
        """Read on until that holds, or to the end."""
        while not (self._is_whole or is_enough()):
            if not self._lock.acquire(timeout=0.05):  # another query reads on
                check()
                continue
            try:
                self._read_on(is_enough, check)
            finally:
                self._lock.release()

    def _read_on(self, is_enough: Callable[[], bool], check: Check) -> None:
        if self._is_whole or is_enough():
            return
        with self._index.rows_from(self._seen, check) as rows:
            for line, data in rows:
                is_blank = not data.strip(BLANKS) or self._is_comment(data)
                count = 0 if is_blank or self._is_header_next else self._count(data)
                if count != 1:
                    before = self._before_line(line)
                    self._behind.append(before + count)  # before its line: it is looked up by lines
                    self._before.append(before)
                    self._lines.append(line)
                    self._is_header_next &= is_blank
                self._seen = line + 1
                if is_enough():
                    return
        self._is_whole = True

    def _is_comment(self, data: bytes) -> bool:
        if not self._comment:
            return False
        # Spark looks for the header behind blanks, too.
        return (data.lstrip(BLANKS) if self._is_header_next else data).startswith(self._comment)

    def _count(self, data: bytes) -> int:
        """How many records a line is that is not blank."""
        may_be_several = self._has_arrays and data.lstrip(BLANKS).startswith(b"[")
        return len(json_records(data)) if may_be_several else 1


def json_records(line: bytes, encoding: str = "utf-8") -> list[str]:
    """Those in a line of JSON that is not blank. Raises UnreadableError where they cannot be counted."""
    text = line.decode(encoding, "replace")
    if not line.lstrip(BLANKS).startswith(b"["):
        return [text]
    if len(line) > MAX_ROW_BYTES:
        raise UnreadableError("it has a line that is a long JSON array, whose records are not counted")
    try:
        return [text[begin:end] for begin, end in json_spans(text)]
    except UnreadableError:
        if _OBJECTS.match(line):  # Spark takes more for JSON, if it is configured so
            raise UnreadableError(
                "it has a line that may be several records, and cannot be counted"
            ) from None
        return [text]  # Spark has a row for what it cannot read, too


class RecordLinesOfFiles:
    """By file, start and header, for as long as the file stays as it is; the least used go first."""

    def __init__(self, indexes: RowIndexes, keep: int = 256) -> None:
        self._indexes, self._keep = indexes, keep
        self._lock = threading.Lock()
        self._record_lines: OrderedDict[tuple[str, FileState, int, bool, bool, bytes], RecordLines] = (
            OrderedDict()
        )

    def of(self, format: RowFormat, path: str, state: FileState, start: int) -> RecordLines:
        """Reads nothing. A partition that begins behind the start of its file has no header."""
        has_header, comment = format.has_header and not start, format.dialect.comment
        key = path, state, start, has_header, format.is_json, comment.encode(format.encoding, "replace")
        with self._lock:
            lines = self._record_lines.get(key)
            if lines is None:
                index = self._indexes.of(path, state, start)
                lines = self._record_lines[key] = RecordLines(
                    index, has_header=has_header, has_arrays=format.is_json, comment=key[5]
                )
                while len(self._record_lines) > self._keep:
                    self._record_lines.popitem(last=False)
            self._record_lines.move_to_end(key)
            return lines
