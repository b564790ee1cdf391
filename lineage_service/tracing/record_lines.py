"""Which lines of a CSV or JSON file are records: all that are not blank, but for a header.

Lines and records count from 0, from the file's start or from that of a split. What was looked at once is
known: the lines that are no records, of which most files have none or one.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable

from lineage_service.file_systems import FileState
from lineage_service.tracing.decompressed import Check, unlimited
from lineage_service.tracing.text_files import RowIndex, RowIndexes

__all__ = ["RecordLines", "RecordLinesOfFiles"]

#: What Java's trim() takes away: a line of nothing else is blank.
_BLANKS = bytes(range(33))


class RecordLines:
    """Of one state of a file, or of a split of it. Threads may share it.

    What takes a check raises what it raises, and UnreadableError.
    """

    def __init__(self, index: RowIndex, *, has_header: bool) -> None:
        """`has_header`: the first line that is not blank is none."""
        self._index = index
        self._is_header_next = has_header
        self._passed = array("q")  # the lines that are no records
        self._records = array("q")  # how many records are before each of them
        self._seen = 0  # lines that were looked at
        self._is_whole = False
        self._lock = threading.Lock()

    def line_of(self, record: int, check: Check = unlimited) -> int | None:
        """The line that a record stands in; None where there are fewer."""
        self._look(lambda: self._seen - len(self._passed) > record, check)
        if self._seen - len(self._passed) <= record:
            return None
        return record + bisect_right(self._records, record)

    def record_of(self, line: int, check: Check = unlimited) -> int | None:
        """The record that stands in a line; None where it is none, or not there."""
        self._look(lambda: self._seen > line, check)
        passed = bisect_left(self._passed, line)
        is_record = line < self._seen and self._passed[passed : passed + 1] != array("q", [line])
        return line - passed if is_record else None

    def records_before(self, line: int, check: Check = unlimited) -> int:
        """How many records stand in the lines before that one."""
        self._look(lambda: self._seen >= line, check)
        line = min(line, self._seen)
        return line - bisect_left(self._passed, line)

    def _look(self, is_enough: Callable[[], bool], check: Check) -> None:
        """Read on until that holds, or to the end."""
        while not (self._is_whole or is_enough()):
            if not self._lock.acquire(timeout=0.05):  # another question reads on
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
                is_blank = not data.strip(_BLANKS)
                if is_blank or self._is_header_next:
                    self._records.append(line - len(self._passed))
                    self._passed.append(line)
                    self._is_header_next &= is_blank
                self._seen = line + 1
                if is_enough():
                    return
        self._is_whole = True


class RecordLinesOfFiles:
    """By file, start and header, for as long as the file stays as it is; the least used go first."""

    def __init__(self, indexes: RowIndexes, keep: int = 256) -> None:
        self._indexes, self._keep = indexes, keep
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, FileState, int, bool], RecordLines] = OrderedDict()

    def of(self, path: str, state: FileState, start: int, *, has_header: bool) -> RecordLines:
        """Reads nothing. A split that begins behind the start of its file has no header."""
        key = path, state, start, has_header and not start
        with self._lock:
            found = self._held.get(key)
            if found is None:
                index = self._indexes.of(path, state, start)
                found = self._held[key] = RecordLines(index, has_header=key[-1])
                while len(self._held) > self._keep:
                    self._held.popitem(last=False)
            self._held.move_to_end(key)
            return found
