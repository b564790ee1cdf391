"""Which rows of which file the rows of a task have become, by the names that Spark gives to files.

A file is named by its task, its write job, its bucket and a counter: `part-00000-<job>_00001.c002.csv`. Knows
what a task wrote by the places of its rows, and finds it in folders that the driver can list. Promises that
nothing is told of files that may be another job's.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from spark_agent.driver import partitions

#: part-00000-<job>-c000.snappy.parquet, part-00000-<job>_00000.c000.snappy.parquet of a bucket; before it
#: 00000_0_ where Hive is to find the bucket
_PART = re.compile(r"(?:[0-9]{5,}_0_)?part-([0-9]{5,})-([0-9a-fA-F-]{36})(?:_([0-9]+))?[-.]c([0-9]+)(?:\.|$)")
#: The most files of a task that are told of: they have to fit into one event.
MOST_PIECES = 3_000
#: What looking for earlier jobs below a folder may take.
_MOST_SECONDS = 0.2

NO_BUCKET = -1


class File(NamedTuple):
    """Which one of a task's it is, within its folder and job."""

    split: int
    bucket: int
    counter: int


class Piece(NamedTuple):
    """Rows of a task from `first` on are those of a file from `row` on."""

    first: int
    folder: str
    file: File
    row: int


Files = Mapping[str, Mapping[File, str]]
"""By job: the files of a folder and their names."""


def files_in(folder: str) -> Files:
    """Nothing of a folder that the driver cannot list."""
    found: dict[str, dict[File, str]] = defaultdict(dict)
    for name in _names(folder):
        match = _PART.match(name)
        if match is not None:
            split, job, bucket, counter = match.groups()
            file = File(int(split), NO_BUCKET if bucket is None else int(bucket), int(counter))
            found[job][file] = name
    return found


def jobs_below(folder: str, *, is_deep: bool) -> frozenset[str] | None:
    """Whose files there are in a folder, and in those below it; None where that takes too long to know."""
    found: set[str] = set()
    left, until = [folder], time.monotonic() + _MOST_SECONDS
    while left:
        at = left.pop()
        for name in _names(at):
            match = _PART.match(name)
            if match is not None:
                found.add(match[2])
            elif is_deep and "=" in name:  # a folder of a value
                left.append(f"{at}/{name}")
        if time.monotonic() > until:
            return None
    return frozenset(found)


def pieces(split: int, rows: int, places: Mapping[str, Any] | None, most: int) -> list[Piece] | None:
    """What a task wrote, in the order of its rows; None if that is too much to tell.

    `places` are as the tap tells them: runs of rows by their folder and bucket; None: one folder. `most` is
    the most rows of a file, 0 for any number.
    """
    runs = [(0, "", NO_BUCKET)] if rows else []
    if places is not None:
        told = places["runs"]
        runs = [(first, *places["of"][code]) for first, code in zip(told[::2], told[1::2], strict=True)]
    found: list[Piece] = []
    written: dict[tuple[str, int], int] = defaultdict(int)
    ends = [*(first for first, _, _ in runs[1:]), rows]
    for (first, folder, bucket), end in zip(runs, ends, strict=bool(runs)):
        while first < end:
            before = written[folder, bucket]
            counter, row = divmod(before, most) if most else (0, before)
            count = min(end - first, most - row) if most else end - first
            found.append(Piece(first, folder, File(split, bucket, counter), row))
            if len(found) > MOST_PIECES:
                return None
            written[folder, bucket] += count
            first += count
    return found


def by_folder(pieces: Iterable[Piece]) -> dict[str, set[File]]:
    found: dict[str, set[File]] = defaultdict(set)
    for piece in pieces:
        found[piece.folder].add(piece.file)
    return found


def job_of(pieces: Iterable[Piece], files: Mapping[str, Files]) -> str | None:
    """The one job that has all the files of these pieces, by folder; None if there are more, or none."""
    jobs = {job for found in files.values() for job in found}
    for folder, each in by_folder(pieces).items():
        jobs = {job for job in jobs if each <= files[folder].get(job, {}).keys()}
    return jobs.pop() if len(jobs) == 1 else None


def partition(split: int, pieces: list[Piece], paths: Mapping[tuple[str, File], str]) -> dict[str, Any]:
    """A task's rows as the contract tells them. `paths` are those of the files, by folder."""
    known = {path: partitions.status(path) for path in {paths[each.folder, each.file] for each in pieces}}
    if len(known) == 1:
        return partitions.part_file(split, next(iter(known)))
    parts = []
    for each in pieces:
        path = paths[each.folder, each.file]
        parts.append({"path": path, **known[path], "first": each.first, "row": each.row})
    return {"split": split, "parts": parts}


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (OSError, ValueError):
        return []
