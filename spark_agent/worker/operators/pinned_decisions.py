"""What an operation that decides by the places of records decides here: what it decided in the original run.

Stands in the place of `zipWithIndex` or a sampler where only some of their records are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

__all__ = ["PinnedChoices", "PinnedNumbers"]

_NONE: Any = object()


class _Pinned:
    """`decisions`: of each record of a partition, in order. Raises ValueError where there are others."""

    def __init__(self, name: str, decisions: Mapping[int, Sequence[int]]) -> None:
        self.name, self.decisions = name, decisions

    def pairs(self, partition: int, records: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        decisions: Iterable[Any] = self.decisions.get(partition, ())
        for record, decision in zip_longest(records, decisions, fillvalue=_NONE):
            if record is _NONE or decision is _NONE:
                raise ValueError(f"{self.name} reads other records than those that it read in the job")
            yield record, decision


class PinnedNumbers(_Pinned):
    """Gives (record, its number)."""

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        return self.pairs(partition, records)


class PinnedChoices(_Pinned):
    """Gives the records whose decision is 1."""

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterator[Any]:
        return (record for record, decision in self.pairs(partition, records) if decision)
