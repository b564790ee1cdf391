"""Between records and physical rows: which row of which file a source or sink record is, and back.

A file that is gone, unreadable or another one by now is told in the row's warning, never an error: lineage
outlives the data. Looks by itself at what it needs of a file only; `text_files` does the reading.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote, urlparse

from lineage_service.answers import InvalidQueryError, NotFoundError, SourceRow
from lineage_service.file_systems import FileState, FileSystems, UnreadableError, is_local, one_name
from lineage_service.tracing import whole_files
from lineage_service.tracing.decompressed import Check, unlimited
from lineage_service.tracing.text_files import RowIndex, RowIndexes, shown
from lineage_service.tracing.topology import Topology, TopologyNode

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


class Places:
    """Looks rows up in the files of one application's sources and sinks.

    What takes a check raises what it raises, while much is read.
    """

    def __init__(self, indexes: RowIndexes | None = None) -> None:
        self._indexes = indexes or RowIndexes(FileSystems())
        self._files = self._indexes.files

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
        by_split: dict[int, list[int]] = defaultdict(list)
        for split, offset in places:
            by_split[split].append(offset)
        sizes = _sizes(node) if by_split else {}

        def rows_of_split(split: int) -> dict[int, SourceRow]:
            check()
            partition = _as_it_was(node.partitions.get(split, {}), sizes, ended)
            return self._rows_of_partition(node, partition, by_split[split], check)

        # A remote file is waited for, and one does not wait for another.
        is_remote = any(not is_local(path) for split in by_split for path in _paths_of(node, split))
        workers = min(len(by_split), _AT_ONCE) if is_remote else 1
        with ThreadPoolExecutor(workers) if workers > 1 else nullcontext() as pool:
            found = (pool.map if pool is not None else map)(rows_of_split, by_split)
            return {
                (split, offset): row
                for split, rows in zip(by_split, found, strict=True)
                for offset, row in rows.items()
            }

    def _rows_of_partition(
        self, node: TopologyNode, partition: Mapping[str, Any], offsets: Sequence[int], check: Check
    ) -> dict[int, SourceRow]:
        if "files" in partition:
            return self._whole_files(node, partition, offsets, check)
        if "path" not in partition:
            return {}
        path = str(partition["path"])
        if "record_length" in partition:
            return self._records_of_one_length(path, partition, offsets)
        if not _is_text(node):
            warning = self._about_no_text(node, path, partition)
            return {offset: _row(path, offset, None, warning) for offset in offsets}
        return self._rows_of_file(path, partition, offsets, check)

    def _rows_of_file(
        self, path: str, partition: Mapping[str, Any], offsets: Sequence[int], check: Check
    ) -> dict[int, SourceRow]:
        start = int(partition["start"])
        try:
            state = self._files.state(path)
            begin = self._text_start(path, state, start, check)
            # The rows are read in the split; what is before it is counted, once.
            texts, problem = self._texts(self._indexes.of(path, state, begin), offsets, check)
            first = self._first_row(path, state, begin, check)
        except UnreadableError as error:
            warning = f"{error}{_FROM_SPLIT}" if start else str(error)
            return {offset: _row(path, offset, None, warning) for offset in offsets}
        changed = _changed(state, partition)
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

    @staticmethod
    def _texts(index: RowIndex, offsets: Sequence[int], check: Check) -> tuple[dict[int, bytes], str | None]:
        """The rows, and what is wrong with those that are not there, if the file broke off before them."""
        try:
            return index.read_bytes(offsets, check), None
        except UnreadableError as error:
            known = index.known_rows
            if not known:
                raise
            return index.read_bytes((each for each in offsets if each < known), check), str(error)

    def _text_start(self, path: str, state: FileState, start: int, check: Check) -> int:
        """The byte of the text that a split begins at; the end of it all where it has no text."""
        if not start or not path.endswith(".bz2"):
            return start
        return self._indexes.text_starts(path, state, [start], check)[start]

    def _first_row(self, path: str, state: FileState, start: int, check: Check) -> int:
        # Spark's text input: a later split begins after the row that its first byte is in.
        return self._indexes.of(path, state).rows_starting_up_to(start, check) if start > 0 else 0

    def rows_before(self, path: str, start: int, check: Check = unlimited) -> int | None:
        """How many rows of a text file are before the first one of the split at `start`; None if unknown."""
        if not start:
            return 0
        try:
            state = self._files.state(path)
            return self._first_row(path, state, self._text_start(path, state, start, check), check)
        except UnreadableError:
            return None

    def _about_no_text(self, node: TopologyNode, path: str, partition: Mapping[str, Any]) -> str:
        format = node.dataset.format if node.dataset is not None else "hadoop"
        warning = _NO_TEXT.get(format, f"a file of the format {format} holds no rows of text") + _ELSE_VALUES
        try:
            changed = _changed(self._files.state(path), partition)
        except UnreadableError as error:
            changed = str(error)
        return warning if changed is None else f"{changed}; {warning}"

    def _whole_files(
        self, node: TopologyNode, partition: Mapping[str, Any], offsets: Sequence[int], check: Check
    ) -> dict[int, SourceRow]:
        """Records that are files: row 0 stands for the whole of each, its beginning is shown."""
        rows = {}
        files = partition["files"]
        for offset in offsets:
            if offset >= len(files):
                continue
            path = str(files[offset]["path"])
            check()
            try:
                changed = _changed(
                    self._files.state(path), {"ended": partition.get("ended"), **files[offset]}
                )
                is_decompressed = node.name != "binaryFiles"
                text, note = whole_files.beginning(self._files, path, check, is_decompressed=is_decompressed)
                notes = [each for each in (changed, note) if each]
            except UnreadableError as error:
                text, notes = None, [str(error)]
            rows[offset] = _row(path, 0, text, "; ".join(notes) or None)
        return rows

    def _records_of_one_length(
        self, path: str, partition: Mapping[str, Any], offsets: Sequence[int]
    ) -> dict[int, SourceRow]:
        """The bytes of records as hexadecimal text; `row` counts records."""
        length, first = int(partition["record_length"]), _first_record(partition)
        rows = {}
        try:
            state = self._files.state(path)
            changed = _changed(state, partition)
            with self._files.opened(path, at_length=False) as file:
                for offset in offsets:
                    text, note = whole_files.record(file, first + offset, length)
                    notes = [each for each in (changed, note) if each]
                    rows[offset] = _row(path, first + offset, text, "; ".join(notes) or None)
        except UnreadableError as error:
            return {offset: _row(path, first + offset, None, str(error)) for offset in offsets}
        return rows

    # -- from a row to its record -------------------------------------------------------------------

    def find(self, topology: Topology, path: str, row: int, check: Check = unlimited) -> tuple[int, int, int]:
        """(node, split, offset) of a row of an input or output file.

        Raises NotFoundError, InvalidQueryError.
        """
        wanted = normal_path(path)
        found: dict[int, list[Mapping[str, Any]]] = {}
        for node in topology.nodes.values():
            for partition in node.partitions.values():
                if any(each == path or normal_path(each) == wanted for each in _paths(partition)):
                    found.setdefault(node.number, []).append(partition)
        if not found:
            raise NotFoundError(f"no source or sink of this application has the file {wanted}")
        node_number = min(found)
        if len(found) > 1:
            named = ", ".join(str(number) for number in sorted(found))
            raise InvalidQueryError(
                f"several nodes have the file {wanted}: {named}; give node, partition and offset"
            )
        if "files" in found[node_number][0]:
            partition = found[node_number][0]
            at = next(
                at for at, each in enumerate(_paths(partition)) if each == path or normal_path(each) == wanted
            )
            return node_number, int(partition["split"]), at
        partitions = sorted(found[node_number], key=lambda each: int(each["start"]))
        if "record_length" in partitions[0]:
            firsts = [_first_record(each) for each in partitions]
            at = max(position for position, first in enumerate(firsts) if first <= row)
            return node_number, int(partitions[at]["split"]), row - firsts[at]
        if len(partitions) == 1:
            return node_number, int(partitions[0]["split"]), row
        split, offset = self._split_of(partitions, row, check)
        return node_number, split, offset

    def _split_of(self, partitions: Sequence[Mapping[str, Any]], row: int, check: Check) -> tuple[int, int]:
        """(split, offset) of a row of a file that was read in several."""
        path = str(partitions[0]["path"])
        begins = {start: start for start in (int(each["start"]) for each in partitions)}
        try:
            state = self._files.state(path)
            if path.endswith(".bz2"):
                begins |= self._indexes.text_starts(path, state, filter(None, begins), check)
            index = self._indexes.of(path, state)
            begin = index.offset_of(row, check)
            if begin is None:
                raise NotFoundError(
                    f"{path} has {index.count_rows(check)} rows; row {row} is not there (rows count from 0)"
                )
            # The row that begins at the first byte of a split belongs to the split before.
            held = [each for each in partitions if begins[int(each["start"])] < begin] or [partitions[0]]
            first = self._first_row(path, state, begins[int(held[-1]["start"])], check)
        except UnreadableError as error:
            raise NotFoundError(f"{path}: {error}; or give node, partition and offset") from None
        return int(held[-1]["split"]), row - first

    # -- search -------------------------------------------------------------------------------------

    def matching(
        self, node: TopologyNode, split: int, text: str, first: int, last: int, check: Check = unlimited
    ) -> Iterator[tuple[int, bool]]:
        """Of a split's records from `first` to before `last`, those whose row holds `text`: (offset, True).

        In any case, and in order; between them (offset, False), when all before that one were looked at.
        Raises UnreadableError.
        """
        partition = node.partitions.get(split)
        if not _is_text(node) or partition is None or "path" not in partition:
            return
        path, start = str(partition["path"]), int(partition["start"])
        state = self._files.state(path)
        begin = self._text_start(path, state, start, check)
        yield from self._indexes.of(path, state, begin).matching(text, first, last, check)


def _is_text(node: TopologyNode) -> bool:
    return node.dataset is None or node.dataset.format == "text"


def _is_utf8(row: bytes) -> bool:
    """A row that is cut may end within a character."""
    try:
        row.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and shown(row).endswith("…")
    return True


def _paths_of(node: TopologyNode, split: int) -> list[str]:
    return _paths(node.partitions.get(split, {}))


def _paths(partition: Mapping[str, Any]) -> list[str]:
    if "files" in partition:
        return [str(file["path"]) for file in partition["files"]]
    return [str(partition["path"])] if "path" in partition else []


def _row(path: str, row: int, text: str | None, warning: str | None) -> SourceRow:
    return SourceRow(path=path, row=row, line=row + 1, text=text, warning=warning)


def _first_record(partition: Mapping[str, Any]) -> int:
    """A later split of a file of records of one length begins with the first record that starts in it."""
    return -(-int(partition["start"]) // int(partition["record_length"]))


def normal_path(path: str) -> str:
    """A local path, absolute and without `file:`; other URIs by one name. Links are not followed."""
    parsed = urlparse(path)
    if parsed.scheme == "file":
        path = unquote(parsed.path)
    elif not is_local(path):
        return one_name(path)
    return os.path.abspath(path)  # noqa: PTH100 - resolve() follows links, and Spark does not


def _changed(state: FileState, partition: Mapping[str, Any]) -> str | None:
    """A warning when the file is not what it was when the job ended; None too where that is not known."""
    size, modified, ended = partition.get("size"), partition.get("modified"), partition.get("ended")
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
    for partition in node.partitions.values():
        if node.kind == "source" and partition.get("size") is None and partition.get("length") is not None:
            path = str(partition["path"])
            sizes[path] = max(sizes.get(path, 0), int(partition["start"]) + int(partition["length"]))
    return sizes


def _as_it_was(
    partition: Mapping[str, Any], sizes: Mapping[str, int], ended: int | None
) -> Mapping[str, Any]:
    """With what is known of a file without its state then: its size, and that it was there at the end."""
    if partition.get("size") is not None:
        return partition
    return {**partition, "size": sizes.get(str(partition.get("path"))), "ended": ended}


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(
        sep=" ", timespec="milliseconds"
    )
