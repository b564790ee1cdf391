"""Which rows of which data files a task of Iceberg wrote, by the files that its snapshot has. Pure.

A file is named by its task, its attempt, its write and a counter: `00003-17-<write>-0-00002.parquet`. A task
begins a file where a partition begins, and another one where a file is full. Promises to say nothing of a
task whose files do not hold just as many rows of each partition.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

#: More are not published: they have to fit into one event.
_MOST_PIECES = 3_000


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of a snapshot. `partition` is as in a path; `row_id` that of its first row, if any."""

    path: str
    rows: int
    size: int
    partition: str = ""
    row_id: int | None = None


class Piece(NamedTuple):
    """Rows of a task from `first` on are those of a file from `row` on."""

    first: int
    file: DataFile
    row: int


def files_of_tasks(files: Iterable[DataFile], write: str) -> dict[int, list[DataFile]]:
    """Those of each task in the order of their counters. Without tasks of which several attempts count."""
    pattern = re.compile(rf"([0-9]+)-([0-9]+)-{re.escape(write)}(?:-[0-9]+)?-([0-9]+)(?:\.[^/]*)?")
    of_tasks: dict[int, list[tuple[int, DataFile]]] = defaultdict(list)
    attempts: dict[int, set[str]] = defaultdict(set)
    for file in files:
        match = pattern.fullmatch(file.path.rpartition("/")[2])
        if match is not None:
            of_tasks[int(match[1])].append((int(match[3]), file))
            attempts[int(match[1])].add(match[2])
    return {
        split: [file for _, file in sorted(of_task, key=lambda numbered: numbered[0])]
        for split, of_task in of_tasks.items()
        if len(attempts[split]) == 1
    }


def pieces_of(rows: int, runs: Sequence[tuple[int, int]], files: Sequence[DataFile]) -> list[Piece] | None:
    """The pieces of a task's rows; None where the files do not fit.

    `files` are in the order of their counters, `runs` are (first row, code of the partition). Codes are
    numbered as their partitions begin, and so are the first files of partitions. Rows of a partition fill its
    files one after the other.
    """
    ends = [*(first for first, _ in runs[1:]), rows]
    counts = Counter[int]()
    for (first, code), end in zip(runs, ends, strict=bool(runs)):
        counts[code] += end - first
    of_partitions: dict[str, list[DataFile]] = defaultdict(list)
    for file in files:
        of_partitions[file.partition].append(file)
    if len(counts) != len(of_partitions):
        return None
    files_of = dict(zip(sorted(counts), of_partitions.values(), strict=True))
    if any(counts[code] != sum(file.rows for file in of_code) for code, of_code in files_of.items()):
        return None
    left = {code: iter(of_code) for code, of_code in files_of.items()}
    is_open: dict[int, tuple[DataFile, int]] = {}  # code -> file, rows that it has by now
    pieces: list[Piece] = []
    for (first, code), end in zip(runs, ends, strict=bool(runs)):
        while first < end:
            file, filled = is_open.get(code) or (next(left[code]), 0)
            count = min(end - first, file.rows - filled)
            if count:
                pieces.append(Piece(first, file, filled))
            first, filled = first + count, filled + count
            is_open[code] = file, filled
            if filled == file.rows:
                del is_open[code]
        if len(pieces) > _MOST_PIECES:
            return None
    return pieces


def parts_of(pieces: Iterable[Piece], states: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """In the terms of the contract. `states` are sizes and times of files, by their paths."""
    parts = []
    for piece in pieces:
        file = piece.file
        part = {"path": file.path, **states[file.path], "first": piece.first, "row": piece.row}
        if file.row_id is not None:
            part["row_id_first"] = file.row_id + piece.row
        parts.append(part)
    return parts
