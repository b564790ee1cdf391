"""Which rows of files the records are that a replay keeps of a source, for its `partitions` event.

The kept records of a partition are numbered anew, from 0. A row set says their old positions, and the rows of
each file; both are in the order of the file. Promises no row rather than a wrong one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spark_agent.contract.row_sets import count_rows, rows_in
from spark_agent.driver.partitions import local_path

Info = dict[str, Any]

#: Pieces of files of one source that are published: a broker takes messages of a megabyte.
MAX_PARTS = 5_000


def partitions_of(source: Mapping[str, Any], listed: Sequence[Mapping[str, Any]] | None) -> list[Info]:
    """What the partitions of a source consist of: {split, parts}, or {split} where it is not known.

    `source` is that of the spec; `listed` are the partitions of the unrestricted source, each with its path
    or its files: needed if there are several, or if records are files.
    """
    count = source.get("partitions") or 0
    infos: list[Info] = [{"split": split} for split in range(count)]
    if listed and any("files" in info for info in listed):
        return _whole_files(source, listed)
    files = source.get("files") or []
    if sum(_count(file["rows"]) for file in files) != count_rows(source):
        return infos
    path_of = _paths(files, listed, count)
    parts_of = None if path_of is None else _parts(source, files, path_of)
    if parts_of is None or sum(map(len, parts_of.values())) > MAX_PARTS:
        return infos
    return [{**info, **_described(parts_of.get(info["split"]))} for info in infos]


def _whole_files(source: Mapping[str, Any], listed: Sequence[Mapping[str, Any]]) -> list[Info]:
    """Of a source whose records are files: those that are kept."""
    kept = {split["split"]: list(rows_in(split["positions"])) for split in source.get("splits", ())}
    return [
        {
            "split": info["split"],
            "files": [info["files"][at] for at in kept.get(info["split"], ()) if at < len(info["files"])],
        }
        for info in listed
    ]


def _described(parts: list[Info] | None) -> Info:
    return {"parts": parts} if parts else {}


def _count(ranges: Sequence[Sequence[int]]) -> int:
    return sum(count for _, count in ranges)


def _paths(
    files: Sequence[Mapping[str, Any]], listed: Sequence[Mapping[str, Any]] | None, count: int
) -> list[str] | None:
    """The file of each partition; None if it is not known."""
    if len(files) == 1:
        return [local_path(files[0]["path"])] * count
    if listed is None or len(listed) != count or any("path" not in info for info in listed):
        return None
    return [local_path(info["path"]) for info in listed]


def _parts(
    source: Mapping[str, Any], files: Sequence[Mapping[str, Any]], path_of: Sequence[str]
) -> dict[int, list[Info]] | None:
    """The pieces of each partition. None if positions and rows do not belong together."""
    file_of = {local_path(file["path"]): file for file in files}
    rows_of = {path: _Ranges(file["rows"]) for path, file in file_of.items()}
    parts_of: dict[int, list[Info]] = {}
    for split in source.get("splits", ()):
        number = split["split"]
        path = path_of[number] if number < len(path_of) else None
        if path not in rows_of:
            return None
        state = {name: file_of[path].get(name) for name in ("size", "modified")}
        first = 0
        for row, count in rows_of[path].take(_count(split["positions"])):
            parts_of.setdefault(number, []).append({"path": path, "first": first, "row": row, **state})
            first += count
    return parts_of if all(rows.is_empty for rows in rows_of.values()) else None


class _Ranges:
    """Ranges of numbers, taken from the front."""

    def __init__(self, ranges: Sequence[Sequence[int]]) -> None:
        self._ranges = [(first, count) for first, count in reversed(ranges)]

    @property
    def is_empty(self) -> bool:
        return not self._ranges

    def take(self, count: int) -> list[tuple[int, int]]:
        """The next `count` numbers as ranges (first, count); fewer if there are fewer."""
        taken = []
        while count and self._ranges:
            first, size = self._ranges.pop()
            some = min(size, count)
            taken.append((first, some))
            count -= some
            if some < size:
                self._ranges.append((first + some, size - some))
        return taken
