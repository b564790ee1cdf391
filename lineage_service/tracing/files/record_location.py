"""Between records and physical rows: which row of which file a source or sink record is, and back.

A file that is gone, unreadable or another one by now is told in the row's warning, never an error: lineage
outlives the data. Looks by itself at what it needs of a file only; `row_index` does the reading.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import datetime, timezone
from typing import Any

from lineage_service.lineage import Direction, SourceRow
from lineage_service.tracing.files import columnar_rows, whole_files
from lineage_service.tracing.files.decompression import Check, unlimited
from lineage_service.tracing.files.file_parts import (
    LINES,
    ORC,
    PARQUET,
    TEXT,
    FilePart,
    by_part,
    first_record,
    format_of,
    parts_of,
    paths_of,
)
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import FileState, FileSystems, UnreadableError, is_local
from lineage_service.tracing.files.row_ends import shown
from lineage_service.tracing.files.row_finder import RowFinder
from lineage_service.tracing.files.row_index import RowIndexes
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.topology import Topology

#: Remote files that are read at the same time, for one question.
_AT_ONCE = 8
#: How far the clocks of a store and of a driver may be apart.
_CLOCKS_MS = 60_000
_FROM_SPLIT = "; rows count from the split"
_NO_TEXT = {
    "pickle": "a pickle file holds no rows of text, and is never unpickled here",
    "hadoop": "a file of a Hadoop format (such as a SequenceFile) holds no rows of text",
}
_ELSE_VALUES = ": run the job with --conf spark.lineage.detailed=true to see its records' values"


_FORMATS = {PARQUET: "Parquet", ORC: "ORC", "avro": "Avro", "hadoop": "Hadoop", "pickle": "pickle"}


class RecordLocations:
    """Looks rows up in the files of one application's sources and sinks.

    What takes a check raises what it raises, while much is read.
    """

    def __init__(self, indexes: RowIndexes | None = None) -> None:
        self._rows = FileRows(indexes or RowIndexes(FileSystems()))
        self._files = self._rows.files
        self._finder = RowFinder(self._rows)

    def rows_of(
        self,
        node: TopologyNode,
        places: Iterable[tuple[int, int]],
        check: Check = unlimited,
        *,
        ended: int | None = None,
    ) -> dict[tuple[int, int], SourceRow]:
        """Where the records (split, offset) of a node stand; empty where its partitions are not files.

        `ended` is the end of the application in Unix milliseconds: it read nothing that was written later.
        """
        by_partition: dict[int, list[int]] = defaultdict(list)
        for partition, offset in places:
            by_partition[partition].append(offset)
        sizes = _sizes(node) if by_partition else {}

        def rows_of_partition(partition: int) -> dict[int, SourceRow]:
            check()
            info = _as_it_was(node.partitions.get(partition, {}), sizes, ended)
            parts = parts_of(node, info)
            if parts:
                return self._rows_of_parts(node, parts, by_partition[partition], ended, check)
            return self._rows_of_partition(node, info, by_partition[partition], check)

        # A remote file is waited for, and one does not wait for another.
        is_remote = any(
            not is_local(path) for partition in by_partition for path in _paths_of(node, partition)
        )
        workers = min(len(by_partition), _AT_ONCE) if is_remote else 1
        with ThreadPoolExecutor(workers) if workers > 1 else nullcontext() as pool:
            rows_by_partition = (pool.map if pool is not None else map)(rows_of_partition, by_partition)
            return {
                (partition, offset): row
                for partition, rows in zip(by_partition, rows_by_partition, strict=True)
                for offset, row in rows.items()
            }

    def _rows_of_partition(
        self, node: TopologyNode, info: Mapping[str, Any], offsets: Sequence[int], check: Check
    ) -> dict[int, SourceRow]:
        if "files" in info:
            return self._whole_files(node, info, offsets, check)
        if "path" not in info:
            return {}
        path = str(info["path"])
        if "record_length" in info:
            return self._records_of_one_length(path, info, offsets)
        if not node.is_text:
            warning = self._about_no_text(node, path, info)
            return {offset: _row(path, offset, None, warning) for offset in offsets}
        file_rows = node.file_rows.get(int(info["split"]))
        return self._rows_of_file(path, info, offsets, check, None if file_rows is None else file_rows.start)

    def _rows_of_parts(
        self,
        node: TopologyNode,
        parts: Sequence[FilePart],
        offsets: Sequence[int],
        ended: int | None,
        check: Check,
    ) -> dict[int, SourceRow]:
        format, rows = format_of(node), dict[int, SourceRow]()
        for part, mine in by_part(parts, offsets).items():
            check()
            info = part.as_partition(ended if part.size is None else None)
            # Which they are of the file, or of the split of it.
            numbers = {offset: offset - part.first + (part.row or 0) for offset in mine}
            if format == TEXT:
                source_rows = self._rows_of_file(part.path, info, list(numbers.values()), check)
            elif format in LINES:
                source_rows = self._rows_of_records(format, part, info, numbers.values(), check)
            elif format in (PARQUET, ORC) and part.row is not None:
                source_rows = self._rows_in_columns(format, part.path, info, list(numbers.values()), check)
            else:
                warning = self._about_no_text(node, part.path, info)
                if part.row is None:
                    warning = f"which row of the file this is, is not known{_FROM_SPLIT}; {warning}"
                source_rows = {row: _row(part.path, row, None, warning) for row in numbers.values()}
            rows |= {offset: source_rows[number] for offset, number in numbers.items()}
        return rows

    def _rows_of_records(
        self, format: str, part: FilePart, info: Mapping[str, Any], records: Iterable[int], check: Check
    ) -> dict[int, SourceRow]:
        """Of files in which not every line is a record."""
        path, start = part.path, int(info["start"])
        try:
            lines = self._rows.record_lines(format, path, start, check)
            line_of = {record: lines.line_of(record, check) for record in records}
        except UnreadableError as error:
            warning = f"{error}{_FROM_SPLIT}" if start else str(error)
            return {record: _row(path, record, None, warning) for record in records}
        rows = self._rows_of_file(path, info, [line for line in line_of.values() if line is not None], check)
        missing = "the file has no such row: put the one back that the job read"
        return {
            record: _row(path, record, None, missing) if line is None else rows[line]
            for record, line in line_of.items()
        }

    def _rows_in_columns(
        self, format: str, path: str, info: Mapping[str, Any], rows: Sequence[int], check: Check
    ) -> dict[int, SourceRow]:
        try:
            changed = _changed(self._files.state(path), info)
            texts = columnar_rows.read_rows(self._files, format, path, rows, check)
        except UnreadableError as error:
            return {row: _row(path, row, None, str(error)) for row in rows}
        source_rows = {}
        for row in rows:
            missing = None if row in texts else "the file has no such row: put the one back that the job read"
            notes = [note for note in (changed, missing) if note]
            source_rows[row] = _row(path, row, texts.get(row), "; ".join(notes) or None)
        return source_rows

    def _rows_of_file(
        self,
        path: str,
        info: Mapping[str, Any],
        offsets: Sequence[int],
        check: Check,
        first: int | None = None,
    ) -> dict[int, SourceRow]:
        """`first` is which row of the file the first one of the partition is, if that is known."""
        start = int(info["start"])
        try:
            state = self._files.state(path)
            begin = self._rows.text_start(path, state, start, check)
            texts, problem, first = self._rows.of_partition(path, state, begin, offsets, check, first)
        except UnreadableError as error:
            warning = f"{error}{_FROM_SPLIT}" if start and first is None else str(error)
            return {offset: _row(path, (first or 0) + offset, None, warning) for offset in offsets}
        changed = _changed(state, info)
        missing = problem or "the file has no such row" + (
            " any more: put the old one back" if changed is not None else ""
        )
        rows = {}
        for offset in offsets:
            data = texts.get(offset)
            notes = [changed] if changed is not None else []
            if data is None:
                notes.append(missing)
            elif not _is_utf8(data):
                notes.append("the row is not all UTF-8: what is not is shown as \ufffd, as the job read it")
            text = None if data is None else shown(data)
            rows[offset] = _row(path, first + offset, text, "; ".join(notes) or None)
        return rows

    def _about_no_text(self, node: TopologyNode, path: str, info: Mapping[str, Any]) -> str:
        format = node.dataset.format if node.dataset is not None else "hadoop"
        warning = _NO_TEXT.get(format, f"a file of the format {format} holds no rows of text") + _ELSE_VALUES
        try:
            changed = _changed(self._files.state(path), info)
        except UnreadableError as error:
            changed = str(error)
        return warning if changed is None else f"{changed}; {warning}"

    def _whole_files(
        self, node: TopologyNode, info: Mapping[str, Any], offsets: Sequence[int], check: Check
    ) -> dict[int, SourceRow]:
        """Records that are files: row 0 stands for the whole of each, its beginning is shown."""
        rows = {}
        files = info["files"]
        for offset in offsets:
            if offset >= len(files):
                continue
            path = str(files[offset]["path"])
            check()
            try:
                changed = _changed(self._files.state(path), {"ended": info.get("ended"), **files[offset]})
                is_decompressed = node.name != "binaryFiles"
                text, note = whole_files.beginning(self._files, path, check, is_decompressed=is_decompressed)
                notes = [note for note in (changed, note) if note]
            except UnreadableError as error:
                text, notes = None, [str(error)]
            rows[offset] = _row(path, 0, text, "; ".join(notes) or None)
        return rows

    def _records_of_one_length(
        self, path: str, info: Mapping[str, Any], offsets: Sequence[int]
    ) -> dict[int, SourceRow]:
        """The bytes of records as hexadecimal text; `row` counts records."""
        length, first = int(info["record_length"]), first_record(info)
        rows = {}
        try:
            state = self._files.state(path)
            changed = _changed(state, info)
            with self._files.opened(path, at_length=False) as file:
                for offset in offsets:
                    text, note = whole_files.record(file, first + offset, length)
                    notes = [note for note in (changed, note) if note]
                    rows[offset] = _row(path, first + offset, text, "; ".join(notes) or None)
        except UnreadableError as error:
            return {offset: _row(path, first + offset, None, str(error)) for offset in offsets}
        return rows

    # -- from a row to its record -------------------------------------------------------------------

    def find(
        self,
        topology: Topology,
        path: str,
        row: int,
        check: Check = unlimited,
        *,
        direction: Direction = "backward",
        node: int | None = None,
    ) -> list[tuple[int, int, int]]:
        """[(node, split, offset)] of a row of an input or output file; see `RowFinder.find`.

        Raises NotFoundError, InvalidQueryError.
        """
        return self._finder.find(topology, path, row, check, direction, node)

    def rows_before(
        self, path: str, start: int, check: Check = unlimited, *, format: str = TEXT
    ) -> int | None:
        """How many rows of a file are before the first one of the split at `start`; None if unknown."""
        return self._rows.rows_before(path, start, check, format=format)

    # -- search -------------------------------------------------------------------------------------

    def has_files(self, node: TopologyNode, partitions: Iterable[int]) -> bool:
        """Whether records of those splits are rows of files."""
        return any(_paths_of(node, partition) for partition in partitions)

    def unsearched(self, node: TopologyNode, partitions: Iterable[int]) -> str | None:
        """What a search for a text does not see of those splits' rows, in words; None if it sees all.

        None too for a node that has no files.
        """
        for partition in partitions:
            info = node.partitions.get(partition, {})
            is_searched = format_of(node) in LINES if parts_of(node, info) else node.is_text
            is_of_files = bool(paths_of(info))
            is_by_line = not ({"files", "record_length"} & info.keys())
            if is_of_files and not (is_searched and is_by_line):
                what = _FORMATS.get(format_of(node), format_of(node)) if is_by_line else node.name
                return (
                    f"rows of {what} files were not searched for the text, so there may be more that hold it"
                )
        return None

    def matching(
        self, node: TopologyNode, partition: int, text: str, first: int, last: int, check: Check = unlimited
    ) -> Iterator[tuple[int, bool]]:
        """Of a split's records from `first` to before `last`, those whose row holds `text`: (offset, True).

        In any case, and in order; between them (offset, False), when all before that one were looked at.
        Raises UnreadableError.
        """
        info = node.partitions.get(partition)
        if info is not None and (parts := parts_of(node, info)):
            yield from self._rows.matching_parts(format_of(node), parts, text, first, last, check)
            return
        if not node.is_text or info is None or "path" not in info:
            return
        path, start = str(info["path"]), int(info["start"])
        state = self._files.state(path)
        begin = self._rows.text_start(path, state, start, check)
        yield from self._rows.indexes.of(path, state, begin).matching(text, first, last, check)


def _is_utf8(row: bytes) -> bool:
    """A row that is cut may end within a character."""
    try:
        row.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and shown(row).endswith("…")
    return True


def _paths_of(node: TopologyNode, partition: int) -> list[str]:
    return paths_of(node.partitions.get(partition, {}))


def _row(path: str, row: int, text: str | None, warning: str | None) -> SourceRow:
    return SourceRow(path=path, row=row, line=row + 1, text=text, warning=warning)


def _changed(state: FileState, info: Mapping[str, Any]) -> str | None:
    """A warning when the file is not what it was when the job ended; None too where that is not known."""
    size, modified, ended = info.get("size"), info.get("modified"), info.get("ended")
    if size is not None and state.size != size:
        how = f"{size:,} bytes then, {state.size:,} now"
    elif modified is not None and state.modified is not None and state.modified != modified:
        how = f"written at {_time(modified)} then, at {_time(state.modified)} now"
    elif ended is not None and state.modified is not None and state.modified > ended + _CLOCKS_MS:
        how = f"the application ended at {_time(ended)}, the file was written at {_time(state.modified)}"
    else:
        return None
    return f"the file has changed since the run ({how}); this may not be the row that the job read"


def _sizes(node: TopologyNode) -> dict[str, int]:
    """The sizes of a source's files by what its splits say, where the driver could not see the files."""
    sizes: dict[str, int] = {}
    for info in node.partitions.values():
        if node.kind == "source" and info.get("size") is None and info.get("length") is not None:
            path = str(info["path"])
            sizes[path] = max(sizes.get(path, 0), int(info["start"]) + int(info["length"]))
    return sizes


def _as_it_was(info: Mapping[str, Any], sizes: Mapping[str, int], ended: int | None) -> Mapping[str, Any]:
    """With what is known of a file without its state then: its size, and that it was there at the end."""
    if info.get("size") is not None:
        return info
    return {**info, "size": sizes.get(str(info.get("path"))), "ended": ended}


def _time(milliseconds: int) -> str:
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    except (OverflowError, ValueError):  # a file's time may be any
        return f"{milliseconds:,} ms"
    return when.isoformat(sep=" ", timespec="milliseconds")
