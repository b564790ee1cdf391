"""Which rows of which file the rows of a task have become, by the names that Spark gives to files.

A file is named by its task, its write job, its bucket and a counter: `part-00000-<job>_00001.c002.csv`. Knows
what a task wrote by the folders and buckets of its rows, and finds it in folders that the driver can list.
Promises to say nothing of files that may be another job's.
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
PART = re.compile(r"(?:[0-9]{5,}_0_)?part-([0-9]{5,})-([0-9a-fA-F-]{36})(?:_([0-9]+))?[-.]c([0-9]+)(?:\.|$)")
#: The most files of a task that are published: they have to fit into one event.
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
    files: dict[str, dict[File, str]] = defaultdict(dict)
    for name in _names(folder):
        match = PART.match(name)
        if match is not None:
            split, job, bucket, counter = match.groups()
            file = File(int(split), NO_BUCKET if bucket is None else int(bucket), int(counter))
            files[job][file] = name
    return files


def jobs_below(folder: str, *, is_deep: bool) -> frozenset[str] | None:
    """Whose files there are in a folder, and in those below it; None where that takes too long to know."""
    jobs: set[str] = set()
    left, until = [folder], time.monotonic() + _MOST_SECONDS
    while left:
        at = left.pop()
        for name in _names(at):
            match = PART.match(name)
            if match is not None:
                jobs.add(match[2])
            elif is_deep and "=" in name:  # a folder of a value
                left.append(f"{at}/{name}")
        if time.monotonic() > until:
            return None
    return frozenset(jobs)


def pieces(split: int, rows: int, report: Mapping[str, Any] | None, most: int) -> list[Piece] | None:
    """What a task wrote, in the order of its rows; None if that is too much to publish.

    `report` is the tap's: runs of rows by their folder and bucket; None: one folder. `most` is the most rows
    of a file, 0 for any number.
    """
    runs = [(0, "", NO_BUCKET)] if rows else []
    if report is not None:
        firsts, codes = report["runs"][::2], report["runs"][1::2]
        runs = [(first, *report["of"][code]) for first, code in zip(firsts, codes, strict=True)]
    task_pieces: list[Piece] = []
    written: dict[tuple[str, int], int] = defaultdict(int)
    ends = [*(first for first, _, _ in runs[1:]), rows]
    for (first, folder, bucket), end in zip(runs, ends, strict=bool(runs)):
        while first < end:
            before = written[folder, bucket]
            counter, row = divmod(before, most) if most else (0, before)
            count = min(end - first, most - row) if most else end - first
            task_pieces.append(Piece(first, folder, File(split, bucket, counter), row))
            if len(task_pieces) > MOST_PIECES:
                return None
            written[folder, bucket] += count
            first += count
    return task_pieces


def by_folder(pieces: Iterable[Piece]) -> dict[str, set[File]]:
    files: dict[str, set[File]] = defaultdict(set)
    for piece in pieces:
        files[piece.folder].add(piece.file)
    return files


def job_of(pieces: Iterable[Piece], files: Mapping[str, Files]) -> str | None:
    """The one job that has all the files of these pieces, by folder; None if there are more, or none."""
    jobs = {job for in_folder in files.values() for job in in_folder}
    for folder, written in by_folder(pieces).items():
        jobs = {job for job in jobs if written <= files[folder].get(job, {}).keys()}
    return jobs.pop() if len(jobs) == 1 else None


def partition(split: int, pieces: list[Piece], paths: Mapping[tuple[str, File], str]) -> dict[str, Any]:
    """A task's rows in the terms of the contract. `paths` are those of the files, by folder."""
    written = {paths[piece.folder, piece.file] for piece in pieces}
    if len(written) == 1:
        return partitions.part_file(split, written.pop())
    states = {path: partitions.status(path) for path in written}
    parts = []
    for piece in pieces:
        path = paths[piece.folder, piece.file]
        parts.append({"path": path, **states[path], "first": piece.first, "row": piece.row})
    return {"split": split, "parts": parts}


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (OSError, ValueError):
        return []
