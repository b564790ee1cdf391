"""Which input rows of two records differ, and which records were made of the same ones. Pure.

Files of two runs rarely have one path. They correspond by their names, without the id that Spark puts into
them; a row is the same if its text is.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Input", "changed_inputs", "file_of", "paired_by_inputs"]

_ID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Input(NamedTuple):
    """A row of an input file."""

    path: str
    row: int
    text: str

    @property
    def file(self) -> str:
        """The name of its file, whichever run wrote that."""
        return file_of(self.path)


def file_of(path: str) -> str:
    """The name of a file without the id that Spark puts into it."""
    return _ID.sub("", path.rstrip("/").rpartition("/")[2])


def changed_inputs(
    was: Iterable[Input], now: Iterable[Input]
) -> list[tuple[Input, None] | tuple[None, Input] | tuple[Input, Input]]:
    """Those that are not the same in both: (gone, None), (None, new), or the two at one place of a file.

    Rows that moved are the same.
    """
    before, after = sorted(was), sorted(now)
    for same in (_file_and_text, _text):
        before, after = _without_same(before, after, same)
    places = {(row.file, row.row): row for row in reversed(after)}
    pairs: list[tuple[Input, None] | tuple[None, Input] | tuple[Input, Input]] = []
    for row in before:
        other = places.pop((row.file, row.row), None)
        if other is None:
            pairs.append((row, None))
        else:
            after.remove(other)
            pairs.append((row, other))
    pairs.extend((None, row) for row in after)
    return pairs


def _file_and_text(row: Input) -> Hashable:
    return row.file, row.text


def _file_and_row(row: Input) -> Hashable:
    return row.file, row.row


def _text(row: Input) -> Hashable:
    return row.text


def _without_same(
    before: Sequence[Input], after: Sequence[Input], identity: Callable[[Input], Hashable]
) -> tuple[list[Input], list[Input]]:
    """What is left of both without the rows that both have, as often as both have them."""
    common = Counter(map(identity, before)) & Counter(map(identity, after))

    def left(rows: Sequence[Input]) -> list[Input]:
        todo = Counter(common)
        others = []
        for row in rows:
            if todo[identity(row)]:
                todo[identity(row)] -= 1
            else:
                others.append(row)
        return others

    return left(before), left(after)


def paired_by_inputs(
    was: Mapping[int, Sequence[Input]], now: Mapping[int, Sequence[Input]]
) -> list[tuple[int, int]]:
    """Records that were made of the same input rows: by text, else by file and row. Both by any number.

    Where several were made of the same ones, none of them are paired.
    """
    pairs: list[tuple[int, int]] = []
    left, right = dict(was), dict(now)
    for identity in (_file_and_text, _file_and_row):
        before, after = _by_identity(left, identity), _by_identity(right, identity)
        for inputs, records in before.items():
            others = after.get(inputs, ())
            if len(records) == len(others) == 1:
                pairs.append((records[0], others[0]))
                del left[records[0]], right[others[0]]
    return sorted(pairs)


def _by_identity(
    records: Mapping[int, Sequence[Input]], identity: Callable[[Input], Hashable]
) -> Mapping[Hashable, Sequence[int]]:
    by_identity: dict[Hashable, list[int]] = defaultdict(list)
    for number, inputs in records.items():
        if inputs:
            by_identity[frozenset(Counter(map(identity, inputs)).items())].append(number)
    return by_identity
