"""The records of files of CSV and JSON that may have several lines: where each of them begins, and its text.

Spark reads such a file as a whole, in one partition, so record n of the file is row n of the scan. The first
line of a record stands for it. Files of more than 100 MB are not read.
"""

from __future__ import annotations

import json
import re
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import chain
from sys import getsizeof

import numpy as np

from lineage_service.tracing.files.csv_lines import record_ends
from lineage_service.tracing.files.decompression import Check, FileBytes
from lineage_service.tracing.files.file_systems import FileState, FileSystems, UnreadableError
from lineage_service.tracing.files.row_formats import RowFormat

__all__ = ["MultiLineRecords", "MultiLineRecordsOfFiles", "json_spans"]

_MOST_BYTES = 100_000_000
#: Files that are kept, and how many bytes of memory their texts take together.
_MOST_KEPT, _MOST_KEPT_BYTES = 256, 200_000_000
_PIECE = 1 << 20
#: Records between two looks at the time.
_STEP = 10_000
_ROW_END = re.compile(r"\r\n|\r|\n")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class MultiLineRecords:
    """Of one state of a file. Threads may share it: it does not change."""

    def __init__(
        self, texts: Sequence[str], lines: Sequence[int], last_lines: Sequence[int], header: str | None
    ) -> None:
        """`lines` are those in which records begin, `last_lines` those in which they end."""
        self.texts = texts
        self.header = header
        self.size = sum(map(getsizeof, texts))
        self._lines, self._last_lines = lines, last_lines

    def line_of(self, record: int, check: Check | None = None) -> int | None:
        """The line that a record begins in; None where there are fewer."""
        return self._lines[record] if record < len(self._lines) else None

    def records_of(self, line: int, check: Check | None = None) -> range:
        """The records of which a part stands in a line."""
        return range(bisect_left(self._last_lines, line), bisect_right(self._lines, line))

    def records_before(self, line: int, check: Check | None = None) -> int:
        """How many records begin in the lines before that one."""
        return bisect_left(self._lines, line)

    def matching(self, text: str, first: int, last: int, check: Check) -> Iterator[tuple[int, bool]]:
        """(record, True) of those that hold the text, in any case; between them (record, False)."""
        folded = text.casefold()
        for record in range(first, min(last, len(self.texts))):
            if folded in self.texts[record].casefold():
                yield record, True
            elif not record % _STEP:
                check()
                yield record, False


class MultiLineRecordsOfFiles:
    """By file and format, for as long as the file stays as it is; the least used go first."""

    def __init__(self, files: FileSystems) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[RowFormat, str, FileState], MultiLineRecords] = OrderedDict()

    def of(self, format: RowFormat, path: str, state: FileState, check: Check) -> MultiLineRecords:
        """Raises UnreadableError, and what the check raises."""
        key = format, path, state
        with self._lock:
            records = self._kept.get(key)
        if records is None:
            records = _read_records(format, path, self._files, check)
        with self._lock:
            self._kept[key] = records
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and (
                len(self._kept) > _MOST_KEPT
                or sum(kept.size for kept in self._kept.values()) > _MOST_KEPT_BYTES
            ):
                self._kept.popitem(last=False)
        return records


def _read_records(format: RowFormat, path: str, files: FileSystems, check: Check) -> MultiLineRecords:
    """Raises UnreadableError, and what the check raises."""
    text = _read(path, files, check).decode(format.encoding, "replace")
    spans = json_spans(text) if format.is_json else _csv_spans(text, format)
    begins, ends = _checked(spans, check)
    starts = np.fromiter(chain((0,), (end.end() for end in _ROW_END.finditer(text))), np.int64)
    lines = (np.searchsorted(starts, begins, "right") - 1).tolist()
    last_lines = (np.searchsorted(starts, np.maximum(begins, np.array(ends) - 1), "right") - 1).tolist()
    texts = [text[begin:end] for begin, end in zip(begins, ends, strict=True)]
    if not format.is_json:
        texts = [_normal(record, text) for record in texts]
    has_header = format.has_header and bool(texts)
    first = int(has_header)
    return MultiLineRecords(
        texts[first:], lines[first:], last_lines[first:], texts[0] if has_header else None
    )


def _read(path: str, files: FileSystems, check: Check) -> bytes:
    pieces: list[bytes] = []
    size = 0
    with FileBytes(path, files).reading(0, check) as reader:
        while piece := reader.read(_PIECE):
            check()
            size += len(piece)
            if size > _MOST_BYTES:
                raise UnreadableError(
                    f"records of several lines are only told apart in files of up to {_MOST_BYTES:,} bytes: "
                    "write the file as one record in each line, or as Parquet"
                )
            pieces.append(piece)
    return b"".join(pieces)


def _checked(spans: Iterator[tuple[int, int]], check: Check) -> tuple[list[int], list[int]]:
    begins: list[int] = []
    ends: list[int] = []
    for begin, end in spans:
        if not len(begins) % _STEP:
            check()
        begins.append(begin)
        ends.append(end)
    return begins, ends


# -- CSV --------------------------------------------------------------------------------------------


def _csv_spans(text: str, format: RowFormat) -> Iterator[tuple[int, int]]:
    """Spark takes the first end of a line in a file for that of all its lines."""
    if text.startswith("\ufeff"):
        raise UnreadableError("the file begins with a byte order mark: write it without one")
    normal, end = _with_lf(text, text)
    if end == "\r":
        raise UnreadableError("its lines end with a lone CR: write it with LF")
    if format.dialect.comment and end == "\r\n" and text.count("\n") != text.count(end):
        raise UnreadableError("some of its lines end with CR LF and some with LF: write it with LF")
    pairs = [match.start() for match in re.finditer("\r\n", text)] if end == "\r\n" else []
    at = np.array(pairs, np.int64) - np.arange(len(pairs))  # where they stand as LF
    try:
        for begin, stop in record_ends(normal, format.dialect):
            yield begin + int(np.searchsorted(at, begin)), stop + int(np.searchsorted(at, stop))
    except ValueError as error:
        raise UnreadableError(f"its records cannot be told apart: {error}") from None


def _normal(record: str, text: str) -> str:
    return _with_lf(record, text)[0]


def _with_lf(record: str, text: str) -> tuple[str, str]:
    """A part of a text with LF for the end of its lines, and what that end is."""
    first = _ROW_END.search(text)
    end = "\n" if first is None else first.group()
    return record if end == "\n" else record.replace(end, "\n"), end


# -- JSON -------------------------------------------------------------------------------------------


def json_spans(text: str) -> Iterator[tuple[int, int]]:
    """The elements of an array of objects; else the value. What is behind it Spark leaves out.

    Raises UnreadableError.
    """
    begin = _behind_space(text, 0)
    if begin == len(text):
        return
    if text[begin] != "[":
        yield begin, _end_of_value(text, begin)
        return
    spans = list(_elements(text, begin))
    if all(text[at] == "{" for at, _ in spans):
        yield from spans
    else:
        yield begin, _end_of_value(text, begin)


def _elements(text: str, begin: int) -> Iterator[tuple[int, int]]:
    at = _behind_space(text, begin + 1)
    if text.startswith("]", at):
        return
    while True:
        end = _end_of_value(text, at)
        yield at, end
        at = _behind_space(text, end)
        if text.startswith("]", at):
            return
        if not text.startswith(",", at):
            raise _no_json(f"at character {at:,}")
        at = _behind_space(text, at + 1)


def _end_of_value(text: str, at: int) -> int:
    try:
        return _DECODER.raw_decode(text, at)[1]
    except (ValueError, RecursionError) as error:
        raise _no_json(str(error)) from None


def _behind_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _no_json(said: str) -> UnreadableError:
    return UnreadableError(
        f"the file is not JSON by its standard ({said}), so its records cannot be told apart"
    )
