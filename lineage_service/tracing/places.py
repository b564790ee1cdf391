"""Between records and physical rows: which row of which file a source or sink record is, and back."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from lineage_service.answers import InvalidQueryError, NotFoundError, SourceRow
from lineage_service.tracing.text_files import RowIndexes
from lineage_service.tracing.topology import Topology, TopologyNode

#: How much of a record that is a whole file, or of bytes, is shown.
_SHOWN_BYTES = 4_096


class Places:
    """Looks rows up in the files of one application's sources and sinks."""

    def __init__(self, indexes: RowIndexes) -> None:
        self._indexes = indexes

    def rows_of(
        self, node: TopologyNode, places: Iterable[tuple[int, int]]
    ) -> dict[tuple[int, int], SourceRow]:
        """Where the records (split, offset) of a node stand; empty where its partitions are not files."""
        by_split: dict[int, list[int]] = defaultdict(list)
        for split, offset in places:
            by_split[split].append(offset)
        found = {}
        for split, offsets in by_split.items():
            partition = node.partitions.get(split, {})
            for offset, row in self._rows_of_partition(node, partition, offsets).items():
                found[split, offset] = row
        return found

    def _rows_of_partition(
        self, node: TopologyNode, partition: Mapping[str, Any], offsets: Sequence[int]
    ) -> dict[int, SourceRow]:
        if "files" in partition:
            return _whole_files(partition["files"], offsets)
        if "path" not in partition:
            return {}
        if "record_length" in partition:
            return _records_of_one_length(partition, offsets)
        if node.dataset is not None and node.dataset.format != "text":
            return {offset: _row(str(partition["path"]), offset, None, None) for offset in offsets}
        return self._rows_of_file(partition, offsets)

    def _rows_of_file(self, partition: Mapping[str, Any], offsets: Sequence[int]) -> dict[int, SourceRow]:
        path = str(partition["path"])
        first = 0
        texts: dict[int, str] = {}
        warning: str | None
        if "://" in path:
            warning = "the file is not on a file system that this service reads; rows count from the split"
        else:
            try:
                index = self._indexes.of(path)
                first = self._first_row(index, partition)
                texts = index.read_many(first + offset for offset in offsets)
                warning = _changed(path, partition)
            except OSError as error:
                warning = (
                    f"the file cannot be read any more ({error.strerror or error}); rows count from the split"
                )
        rows = {}
        for offset in offsets:
            text = texts.get(first + offset)
            rows[offset] = SourceRow(
                path=path,
                row=first + offset,
                line=first + offset + 1,
                text=text,
                warning=warning or (None if text is not None else "the file has no such row"),
            )
        return rows

    @staticmethod
    def _first_row(index: Any, partition: Mapping[str, Any]) -> int:
        # Spark's text input: a later split begins after the row that its first byte is in.
        start = int(partition["start"])
        return int(index.rows_starting_up_to(start)) if start > 0 else 0

    def find(self, topology: Topology, path: str, row: int) -> tuple[int, int, int]:
        """(node, split, offset) of a row of an input or output file.

        Raises NotFoundError, InvalidQueryError.
        """
        wanted = normal_path(path)
        found: dict[int, list[Mapping[str, Any]]] = {}
        for node in topology.nodes.values():
            for partition in node.partitions.values():
                if any(normal_path(path) == wanted for path in _paths(partition)):
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
            at = [normal_path(path) for path in _paths(partition)].index(wanted)
            return node_number, int(partition["split"]), at
        partitions = sorted(found[node_number], key=lambda each: int(each["start"]))
        if "record_length" in partitions[0]:
            firsts = [_first_record(each) for each in partitions]
            at = max(position for position, first in enumerate(firsts) if first <= row)
            return node_number, int(partitions[at]["split"]), row - firsts[at]
        if "://" in wanted and len(partitions) > 1:
            raise InvalidQueryError(
                f"rows of {wanted} cannot be counted from here; give node, partition and offset"
            )
        if len(partitions) == 1:
            return node_number, int(partitions[0]["split"]), row
        try:
            index = self._indexes.of(str(partitions[0]["path"]))
            firsts = [self._first_row(index, each) for each in partitions]
        except OSError as error:
            raise NotFoundError(f"{wanted} cannot be read any more ({error.strerror or error})") from None
        if row >= index.count:
            raise NotFoundError(
                f"{wanted} has {index.count} rows; row {row} is not there (rows count from 0)"
            )
        at = max(position for position, first in enumerate(firsts) if first <= row)
        return node_number, int(partitions[at]["split"]), row - firsts[at]

    def matching(self, node: TopologyNode, split: int, text: str) -> list[int]:
        """Offsets of the records of a file partition whose text holds `text`, case-insensitively."""
        partition = node.partitions.get(split)
        is_text = node.dataset is None or node.dataset.format == "text"
        if not is_text or partition is None or "path" not in partition or "://" in str(partition["path"]):
            return []
        try:
            index = self._indexes.of(str(partition["path"]))
        except OSError:
            return []
        first = self._first_row(index, partition)
        length = partition.get("length")
        end = int(partition["start"]) + int(length) if length is not None else index.size
        last = index.rows_starting_up_to(end) if node.kind == "source" else index.count
        wanted = text.casefold()
        return [
            offset
            for offset, row in zip(range(last - first), index.read_from(first), strict=False)
            if wanted in row.casefold()
        ]


def _paths(partition: Mapping[str, Any]) -> list[str]:
    if "files" in partition:
        return [str(file["path"]) for file in partition["files"]]
    return [str(partition["path"])] if "path" in partition else []


def _row(path: str, row: int, text: str | None, warning: str | None) -> SourceRow:
    return SourceRow(path=path, row=row, line=row + 1, text=text, warning=warning)


def _whole_files(files: Sequence[Mapping[str, Any]], offsets: Sequence[int]) -> dict[int, SourceRow]:
    """Records that are files: row 0 stands for the whole of each, its beginning is shown."""
    rows = {}
    for offset in offsets:
        if offset < len(files):
            path = str(files[offset]["path"])
            text, warning = _beginning(path, files[offset])
            rows[offset] = _row(path, 0, text, warning)
    return rows


def _beginning(path: str, described: Mapping[str, Any]) -> tuple[str | None, str | None]:
    if "://" in path:
        return None, "the file is not on a file system that this service reads"
    try:
        with Path(path).open("rb") as file:
            return file.read(_SHOWN_BYTES).decode("utf-8", "replace"), _changed(path, described)
    except OSError as error:
        return None, f"the file cannot be read any more ({error.strerror or error})"


def _first_record(partition: Mapping[str, Any]) -> int:
    """A later split of a file of records of one length begins with the first record that starts in it."""
    return -(-int(partition["start"]) // int(partition["record_length"]))


def _records_of_one_length(partition: Mapping[str, Any], offsets: Sequence[int]) -> dict[int, SourceRow]:
    """The bytes of records as hexadecimal text; `row` counts records."""
    path, length, first = str(partition["path"]), int(partition["record_length"]), _first_record(partition)
    if "://" in path:
        warning = "the file is not on a file system that this service reads"
        return {offset: _row(path, first + offset, None, warning) for offset in offsets}
    rows = {}
    try:
        with Path(path).open("rb") as file:
            for offset in offsets:
                file.seek((first + offset) * length)
                data = file.read(length)
                rows[offset] = _row(
                    path, first + offset, data[:_SHOWN_BYTES].hex(), _changed(path, partition)
                )
    except OSError as error:
        warning = f"the file cannot be read any more ({error.strerror or error})"
        return {offset: _row(path, first + offset, None, warning) for offset in offsets}
    return rows


def normal_path(path: str) -> str:
    """A local path, absolute and without `file:`; other URIs as they are. Links are not followed."""
    parsed = urlparse(path)
    if parsed.scheme == "file":
        path = unquote(parsed.path)
    elif "://" in path:
        return path
    return os.path.abspath(path)  # noqa: PTH100 - resolve() follows links, and Spark does not


def _changed(path: str, partition: Mapping[str, Any]) -> str | None:
    """A warning when the file is not what it was when the job ended."""
    size, modified = partition.get("size"), partition.get("modified")
    if size is None or modified is None:
        return None
    status = Path(path).stat()
    if (status.st_size, status.st_mtime_ns // 1_000_000) != (size, modified):
        return "the file has changed since the run; this may not be the row that the job read"
    return None
