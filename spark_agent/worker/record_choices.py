"""Which records of a replay in a session are those that were asked for: by their keys, or by their rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spark_agent import contract

__all__ = ["EqualRecords", "OfKeys", "OfTexts", "OutputTexts", "RowsSeen"]

_ROW_END = re.compile("\r\n|\r|\n")


class OfKeys:
    """Takes pairs whose keys have one of these texts, as the captured key has it."""

    def __init__(self, keys: Collection[str]) -> None:
        self.keys = frozenset(keys)

    def __call__(self, record: Any) -> bool:
        is_pair = isinstance(record, tuple) and len(record) > 0
        return is_pair and contract.typed_text(record[0])[1] in self.keys


class OfTexts:
    """Takes records that become one of these rows of a text file, among others perhaps."""

    def __init__(self, texts: Collection[str]) -> None:
        self.texts = frozenset(texts)

    def __call__(self, record: Any) -> bool:
        return not self.texts.isdisjoint(_rows_of(record))


@dataclass(frozen=True)
class RowsSeen:
    """Of the rows of a text output: how often each of the `asked` is there, and the first of the `others`."""

    asked: Counter[str]
    others: list[str]
    rows: int


class EqualRecords:
    """Looks for records that are equal to some; gives how often each of these is there."""

    def __init__(self, asked: Sequence[Any]) -> None:
        self.asked = tuple(asked)

    def __call__(self, records: Iterable[Any]) -> Iterator[list[int]]:
        counts = [0] * len(self.asked)
        for record in records:
            for number, one in enumerate(self.asked):
                counts[number] += bool(type(record) is type(one) and record == one)
        yield counts


class OutputTexts:
    """Looks at the rows that records become in a text file, as saveAsTextFile writes them."""

    def __init__(self, asked: Collection[str], most_others: int) -> None:
        self.asked, self.most_others = frozenset(asked), most_others

    def __call__(self, records: Iterable[Any]) -> Iterator[RowsSeen]:
        asked: Counter[str] = Counter()
        others: list[str] = []
        rows = 0
        for record in records:
            for row in _rows_of(record):
                rows += 1
                if row in self.asked:
                    asked[row] += 1
                elif len(others) < self.most_others:
                    others.append(row)
        yield RowsSeen(asked, others, rows)


def _rows_of(record: Any) -> list[str]:
    """The rows of a text file that saveAsTextFile makes of a record."""
    text = record.decode("utf-8", "replace") if isinstance(record, bytes) else str(record)
    return _ROW_END.split(text)
