"""The rows of files that records are, with their texts, and with warnings where these may be others.

A file that is gone, unreadable or another one by now is reported in the row's warning, never as an error:
lineage outlives the data. `row_index` and `columnar_rows` do the reading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timezone
from functools import partial

from lineage_service.lineage import SourceRow
from lineage_service.tracing.files import avro_blocks, columnar_rows, whole_files
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import AVRO, FilePart, by_part, first_record
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import FileState, UnreadableError
from lineage_service.tracing.files.row_columns import ColumnRequest
from lineage_service.tracing.files.row_ends import shown, shown_text
from lineage_service.tracing.files.row_formats import RowFormat, row_format_of
from lineage_service.tracing.files.shown_columns import TextColumns, shown_columns
from lineage_service.tracing.model.elements import PartitionInfo, TopologyNode
from spark_agent.contract.dataset_names import is_topic_partition

__all__ = ["SourceRows", "change_of"]

#: How far the clocks of a store and of a driver may be apart.
_CLOCKS_MS = 60_000
_FROM_PARTITION = "; rows count from the partition"
_NO_TEXT = {
    "pickle": "a pickle file holds no rows of text, and is never unpickled here",
    "hadoop": "a file of a Hadoop format (such as a SequenceFile) holds no rows of text",
}
_ELSE_VALUES = ": run the job with --conf spark.lineage.detailed=true to see its records' values"
_OF_TOPIC = "a record of Kafka is known by its offset, and topics are not read here"
_NO_ROW = "the file has no such row: put the one back that the job read"


class SourceRows:
    """Of the files of one application's sources and sinks. What takes a check raises what it raises."""

    def __init__(self, rows: FileRows) -> None:
        self._rows, self._files = rows, rows.files
        self._text_columns = TextColumns(rows)

    def of_partition(
        self, node: TopologyNode, info: PartitionInfo, offsets: Sequence[int], check: Check
    ) -> dict[int, SourceRow]:
        if "files" in info:
            return self._whole_files(node, info, offsets, check)
        if "path" not in info:
            return {}
        path = str(info["path"])
        if "record_length" in info:
            return self._of_one_length(path, info, offsets)
        if not node.is_text:
            warning = self._about_no_text(node, path, info)
            return {offset: _row(path, offset, None, warning) for offset in offsets}
        file_rows = node.file_rows.get(int(info["split"]))
        return self._in_file(path, info, offsets, check, None if file_rows is None else file_rows.start)

    def of_parts(
        self,
        node: TopologyNode,
        parts: Sequence[FilePart],
        offsets: Sequence[int],
        ended: int | None,
        check: Check,
        columns: ColumnRequest | None = None,
    ) -> dict[int, SourceRow]:
        format, rows = row_format_of(node), dict[int, SourceRow]()
        for part, mine in by_part(parts, offsets).items():
            check()
            info = part.as_partition(ended if part.size is None else None)
            # Which they are of the file, or of the partition of it.
            numbers = {offset: offset - part.first + (part.row or 0) for offset in mine}
            if format.is_text:
                source_rows = self._in_file(part.path, info, list(numbers.values()), check)
            elif format.is_cut:
                of_part = self._in_lines if format.has_lines else self._in_several_lines
                source_rows = of_part(format, part, info, numbers.values(), check)
                if columns is not None:
                    source_rows = self._text_columns.added(format, node, source_rows, columns, check)
            elif (format.is_columnar or format.name == AVRO) and part.row is not None:
                name = format.name
                source_rows = self._in_columns(name, part.path, info, numbers.values(), check, columns)
            else:
                warning = self._about_no_text(node, part.path, info)
                if part.row is None:
                    warning = f"which row of the file this is, is not known{_FROM_PARTITION}; {warning}"
                source_rows = {row: _row(part.path, row, None, warning) for row in numbers.values()}
            rows |= {offset: source_rows[number] for offset, number in numbers.items()}
        return rows

    def _in_lines(
        self, format: RowFormat, part: FilePart, info: PartitionInfo, records: Iterable[int], check: Check
    ) -> dict[int, SourceRow]:
        """Of files in which not every line is a record."""
        path, start = part.path, int(info["start"])
        try:
            lines = self._rows.record_lines(format, path, start, check)
            line_of = {record: lines.line_of(record, check) for record in records}
        except UnreadableError as error:
            warning = f"{error}{_FROM_PARTITION}" if start else str(error)
            return {record: _row(path, record, None, warning) for record in records}
        lines_read = [line for line in line_of.values() if line is not None]
        rows = self._in_file(path, info, lines_read, check, encoding=format.encoding)
        return {
            record: _row(path, record, None, _NO_ROW) if line is None else rows[line]
            for record, line in line_of.items()
        }

    def _in_several_lines(
        self, format: RowFormat, part: FilePart, info: PartitionInfo, records: Iterable[int], check: Check
    ) -> dict[int, SourceRow]:
        """Of files of records that may have several lines. The first one stands for each."""
        path = part.path
        try:
            changed = change_of(self._files.state(path), info)
            several = self._rows.several(format, path, check)
        except UnreadableError as error:
            return {record: _row(path, record, None, str(error)) for record in records}
        rows = {}
        for record in records:
            line = several.line_of(record)
            if line is None:
                rows[record] = _row(path, record, None, "; ".join(filter(None, (changed, _NO_ROW))))
            else:
                rows[record] = _row(path, line, shown_text(several.texts[record]), changed)
        return rows

    def _in_columns(
        self,
        format: str,
        path: str,
        info: PartitionInfo,
        rows: Collection[int],
        check: Check,
        columns: ColumnRequest | None,
    ) -> dict[int, SourceRow]:
        try:
            changed = change_of(self._files.state(path), info)
            show = partial(shown_columns, path, columns)
            names = columns.names if columns is not None and not columns.has_text else None
            if format == AVRO:
                values_of_rows = avro_blocks.read_rows(self._files, path, rows, check, show)
            else:
                values_of_rows = columnar_rows.read_rows(self._files, format, path, rows, check, show, names)
        except UnreadableError as error:
            return {row: _row(path, row, None, str(error)) for row in rows}
        source_rows = {}
        for row in rows:
            missing = None if row in values_of_rows else _NO_ROW
            notes = [note for note in (changed, missing) if note]
            text, values, is_cut = values_of_rows.get(row, (None, None, None))
            source_rows[row] = SourceRow(
                path=path,
                row=row,
                line=row + 1,
                text=text,
                warning="; ".join(notes) or None,
                columns=values,
                columns_cut=is_cut,
            )
        return source_rows

    def _in_file(
        self,
        path: str,
        info: PartitionInfo,
        offsets: Sequence[int],
        check: Check,
        first: int | None = None,
        encoding: str = "utf-8",
    ) -> dict[int, SourceRow]:
        """`first` is which row of the file the first one of the partition is, if that is known."""
        start = int(info["start"])
        try:
            state = self._files.state(path)
            begin = self._rows.text_start(path, state, start, check)
            texts, problem, first = self._rows.of_partition(path, state, begin, offsets, check, first)
        except UnreadableError as error:
            warning = f"{error}{_FROM_PARTITION}" if start and first is None else str(error)
            return {offset: _row(path, (first or 0) + offset, None, warning) for offset in offsets}
        changed = change_of(state, info)
        missing = problem or "the file has no such row" + (
            " any more: put the old one back" if changed is not None else ""
        )
        rows = {}
        for offset in offsets:
            data = texts.get(offset)
            notes = [changed] if changed is not None else []
            if data is None:
                notes.append(missing)
            elif encoding == "utf-8" and not _is_utf8(data):
                notes.append("the row is not all UTF-8: what is not is shown as \ufffd, as the job read it")
            text = None if data is None else shown(data, encoding)
            rows[offset] = _row(path, first + offset, text, "; ".join(notes) or None)
        return rows

    def _about_no_text(self, node: TopologyNode, path: str, info: PartitionInfo) -> str:
        if is_topic_partition(path):
            return _OF_TOPIC
        format = node.dataset.format if node.dataset is not None else "hadoop"
        warning = _NO_TEXT.get(format, f"a file of the format {format} holds no rows of text") + _ELSE_VALUES
        try:
            changed = change_of(self._files.state(path), info)
        except UnreadableError as error:
            changed = str(error)
        return warning if changed is None else f"{changed}; {warning}"

    def _whole_files(
        self, node: TopologyNode, info: PartitionInfo, offsets: Sequence[int], check: Check
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
                changed = change_of(self._files.state(path), {"ended": info.get("ended"), **files[offset]})
                is_decompressed = node.name != "binaryFiles"
                text, note = whole_files.beginning(self._files, path, check, is_decompressed=is_decompressed)
                notes = [note for note in (changed, note) if note]
            except UnreadableError as error:
                text, notes = None, [str(error)]
            rows[offset] = _row(path, 0, text, "; ".join(notes) or None)
        return rows

    def _of_one_length(self, path: str, info: PartitionInfo, offsets: Sequence[int]) -> dict[int, SourceRow]:
        """The bytes of records as hexadecimal text; `row` counts records."""
        length, first = int(info["record_length"]), first_record(info)
        rows = {}
        try:
            state = self._files.state(path)
            changed = change_of(state, info)
            with self._files.opened(path, at_length=False) as file:
                for offset in offsets:
                    text, note = whole_files.record(file, first + offset, length)
                    notes = [note for note in (changed, note) if note]
                    rows[offset] = _row(path, first + offset, text, "; ".join(notes) or None)
        except UnreadableError as error:
            return {offset: _row(path, first + offset, None, str(error)) for offset in offsets}
        return rows


def _is_utf8(row: bytes) -> bool:
    """A row that is cut may end within a character."""
    try:
        row.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and shown(row).endswith("…")
    return True


def _row(path: str, row: int, text: str | None, warning: str | None) -> SourceRow:
    line = row if is_topic_partition(path) else row + 1
    return SourceRow(path=path, row=row, line=line, text=text, warning=warning)


def change_of(state: FileState, info: PartitionInfo) -> str | None:
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


def _time(milliseconds: int) -> str:
    try:
        when = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    except (OverflowError, ValueError):  # a file's time may be any
        return f"{milliseconds:,} ms"
    return when.isoformat(sep=" ", timespec="milliseconds")
