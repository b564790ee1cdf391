"""The rows of data files that a statement removes as a whole, in the terms of the contract. Pure.

The log names the files, and says how many rows each has. Rows that were deleted before are left out: they are
gone since another version. Promises all rows of the files, or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from spark_agent.sql.table_formats.delta_log import RemovedFile

#: Rows of so many pieces of files are told of one statement, and of each of its partitions.
_MOST_PIECES, _PIECES_OF_PARTITION = 100_000, 1_000
#: Files of one statement whose rows that were deleted before are looked up, and runs of rows in one of them.
MOST_VECTORS, MOST_RUNS = 500, 10_000

Runs = Sequence[tuple[int, int]]
"""(first row, row behind the last one), ascending."""


class UnknownRowsError(Exception):
    """Which rows a statement removed is not known; the text says why."""


class Partition(NamedTuple):
    """Some of the rows: how many, and the parts of files that they are."""

    rows: int
    parts: Sequence[Mapping[str, Any]]


def parse_runs(text: str) -> Runs:
    """Of `DeletionVectors.java`."""
    pairs = (run.split("-") for run in text.split(",") if run)
    return [(int(first), int(end)) for first, end in pairs]


def partitions_of(
    files: Iterable[RemovedFile],
    deleted_before: Callable[[RemovedFile], Runs],
    describe: Callable[[RemovedFile], Mapping[str, Any]],
) -> list[Partition]:
    """All rows of these files. `describe` gives the path, size and time of one.

    Raises UnknownRowsError, and what the two functions raise.
    """
    partitions: list[Partition] = []
    parts: list[Mapping[str, Any]] = []
    count = pieces = 0
    for file in files:
        described = describe(file)
        for first, end in _left(file, deleted_before):
            pieces += 1
            if pieces > _MOST_PIECES:
                raise UnknownRowsError(f"it removed more than {_MOST_PIECES:,} pieces of files")
            parts.append({**described, "first": count, "row": first})
            count += end - first
            if len(parts) == _PIECES_OF_PARTITION:
                partitions.append(Partition(count, parts))
                parts, count = [], 0
    return [*partitions, Partition(count, parts)] if parts else partitions


def _left(file: RemovedFile, deleted_before: Callable[[RemovedFile], Runs]) -> Iterator[tuple[int, int]]:
    """The runs of rows that were there until then."""
    if file.rows is None:
        raise UnknownRowsError(f"the log does not say how many rows {file.path} had")
    at = 0
    for first, end in deleted_before(file) if file.vector else ():
        if at < first:
            yield at, first
        at = end
    if at < file.rows:
        yield at, file.rows
