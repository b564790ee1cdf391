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
            partition = node.partitions.get(split)
            if partition is not None and "path" in partition:
                for offset, row in self._rows_of_file(partition, offsets).items():
                    found[split, offset] = row
        return found

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
                if "path" in partition and normal_path(str(partition["path"])) == wanted:
                    found.setdefault(node.number, []).append(partition)
        if not found:
            raise NotFoundError(f"no source or sink of this application has the file {wanted}")
        node_number = min(found)
        if len(found) > 1:
            named = ", ".join(str(number) for number in sorted(found))
            raise InvalidQueryError(
                f"several nodes have the file {wanted}: {named}; give node, partition and offset"
            )
        partitions = sorted(found[node_number], key=lambda each: int(each["start"]))
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
        if partition is None or "path" not in partition or "://" in str(partition["path"]):
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
