"""Pieces of files that together are a partition, and the formats that say what a row of them is. Pure.

docs/contract.md says what `parts` mean.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lineage_service.tracing.files.file_systems import is_local
from lineage_service.tracing.model.elements import TopologyNode
from spark_agent.contract.dataset_names import file_format, one_path

__all__ = [
    "AVRO",
    "CSV_WITH_HEADER",
    "JSON",
    "LINES",
    "NUMBERED",
    "ORC",
    "PARQUET",
    "TEXT",
    "FilePart",
    "by_part",
    "first_record",
    "format_of",
    "normal_path",
    "parts_in",
    "parts_of",
    "paths_of",
    "plain_path",
    "row_parts_of",
]

TEXT, CSV_WITH_HEADER, JSON = "text", "csv+header", "json"
PARQUET, ORC, AVRO = "parquet", "orc", "avro"
#: Formats of lines. Of those but text, lines that are blank are no rows, and a header is none.
LINES = frozenset((TEXT, "csv", CSV_WITH_HEADER, JSON))
#: Formats of rows that only have numbers.
NUMBERED = frozenset((PARQUET, ORC, AVRO, "xml"))
#: Of these all rows of a partition are records, in their order.
_IN_ORDER = NUMBERED - {PARQUET}
#: With a host or none. What follows is a path, whatever stands in it: no name ends at its # or ?.
_FILE_URI = re.compile(r"file:(?://[^/]*)?")


@dataclass(frozen=True, slots=True)
class FilePart:
    """Positions from `first` to before `last` (None: to the end of the partition) are rows of one file.

    `row` is the row of `first` in the file; None: `first` is the first row that begins behind the byte
    `start`.
    """

    path: str
    start: int
    size: int | None
    modified: int | None
    first: int
    last: int | None
    row: int | None

    def as_partition(self, ended: int | None = None) -> dict[str, Any]:
        """As that of a text file that is one partition of its own."""
        state = {"size": self.size, "modified": self.modified}
        return {"path": self.path, "start": self.start if self.row is None else 0, "ended": ended, **state}


def format_of(node: TopologyNode) -> str:
    return TEXT if node.dataset is None else file_format(node.dataset.format)


def parts_of(node: TopologyNode, info: Mapping[str, Any]) -> list[FilePart]:
    """Those of a partition of a node."""
    return parts_in(format_of(node), node.kind, info)


def row_parts_of(node: TopologyNode, info: Mapping[str, Any]) -> list[FilePart]:
    """The same, and one where a partition is a piece of one text file.

    None of whole files and of records of a length, which are no rows.
    """
    if "files" in info or "record_length" in info:
        return []
    parts = parts_of(node, info)
    if parts or "path" not in info or format_of(node) != TEXT:
        return parts
    return [
        FilePart(
            path=plain_path(str(info["path"])),
            start=int(info.get("start") or 0),
            size=info.get("size"),
            modified=info.get("modified"),
            first=0,
            last=None,
            row=None,
        )
    ]


def parts_in(format: str, kind: str, info: Mapping[str, Any]) -> list[FilePart]:
    """Those of a partition; one where a partition of CSV, JSON or Parquet is a file or a piece of one.

    None of what is no file, or is described otherwise: text of one piece, whole files, records of a length.
    """
    segments: Sequence[Mapping[str, Any]] = info.get("parts") or ()
    if not segments and "path" in info and format in LINES | NUMBERED and format != TEXT:
        is_written = kind == "sink" and format in NUMBERED
        segments = [{**info, "first": 0, "row": 0 if is_written else None}]
    lasts = [*(int(segment["first"]) for segment in segments[1:]), None]
    return [
        FilePart(
            path=plain_path(str(segment["path"])),
            start=int(segment.get("start") or 0),
            size=segment.get("size"),
            modified=segment.get("modified"),
            first=int(segment["first"]),
            last=last,
            row=_row(format, segment),
        )
        for segment, last in zip(segments, lasts, strict=bool(segments))
    ]


def _row(format: str, part: Mapping[str, Any]) -> int | None:
    row = part.get("row")
    return 0 if row is None and format in _IN_ORDER and not part.get("start") else row


def paths_of(info: Mapping[str, Any]) -> list[str]:
    """The files of a partition, however it names them."""
    for name in ("files", "parts"):
        if name in info:
            return [plain_path(str(file["path"])) for file in info[name]]
    return [plain_path(str(info["path"]))] if "path" in info else []


def plain_path(path: str) -> str:
    """A file of this machine by its path, not by a URI."""
    scheme = _FILE_URI.match(path)
    return path if scheme is None else unquote(path[scheme.end() :])


def by_part(parts: Sequence[FilePart], offsets: Iterable[int]) -> dict[FilePart, list[int]]:
    """The offsets by the part that they are in. A part of no rows has none."""
    offsets_of: dict[FilePart, list[int]] = {}
    firsts = [part.first for part in parts]
    for offset in offsets:
        at = bisect_right(firsts, offset) - 1
        if at >= 0:
            offsets_of.setdefault(parts[at], []).append(offset)
    return offsets_of


def normal_path(path: str) -> str:
    """A local path, absolute and without `file:`; other URIs by one name. Links are not followed."""
    path = plain_path(path)
    if not is_local(path):
        return one_path(path)
    return os.path.abspath(path)  # noqa: PTH100 - resolve() follows links, and Spark does not


def first_record(info: Mapping[str, Any]) -> int:
    """A later partition of a file of records of one length begins with the first record that starts in it."""
    return -(-int(info["start"]) // int(info["record_length"]))
