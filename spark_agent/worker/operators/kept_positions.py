"""Which records of a source a replay reads: those at some positions, all others, or some with another text.

Stands behind a source in a chain that is not captured: to whoever reads the result, its records are those of
the source. Not much is read behind the last record that is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, islice, repeat
from typing import Any

#: So many records behind the last one that is kept take less time than a new Python worker.
MORE = 10_000

Ranges = Sequence[Sequence[int]]
"""`[[first, count], ...]` in order; they do not touch."""


class Keep:
    """Keeps the records at positions of each partition; if `is_without`, all but these.

    `replaced` has new records by partition and position. Those are kept in any case.
    """

    def __init__(
        self,
        positions: Mapping[int, Ranges],
        *,
        is_without: bool = False,
        replaced: Mapping[int, Mapping[int, Any]] | None = None,
    ) -> None:
        self.positions, self.is_without, self.replaced = dict(positions), is_without, dict(replaced or {})

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterator[Any]:
        replaced = self.replaced.get(partition)
        if replaced:
            records = _with_replaced(records, replaced)
        source = iter(records)
        ranges = self.positions.get(partition, ())
        kept = compress(source, _selectors(ranges, is_kept=not self.is_without))
        return chain(kept, _end_of(source))


def _end_of(records: Iterator[Any]) -> Iterator[Any]:
    """Nothing. Reads a few more records: a worker that has read a whole partition is there for the next."""
    deque(islice(records, MORE), 0)
    yield from ()


def _selectors(ranges: Ranges, *, is_kept: bool) -> Iterator[bool]:
    """For each record whether it stays. They end behind the last range if only the ranges stay."""
    pieces: list[Iterable[bool]] = []
    position = 0
    for first, count in ranges:
        pieces += (repeat(not is_kept, first - position), repeat(is_kept, count))
        position = first + count
    if not is_kept:
        pieces.append(repeat(True))
    return chain.from_iterable(pieces)


def _with_replaced(records: Iterable[Any], replaced: Mapping[int, Any]) -> Iterator[Any]:
    for position, record in enumerate(records):
        yield replaced.get(position, record)


class KeptChain:
    """The functions that make a source's records, and behind them what is kept."""

    def __init__(self, functions: Sequence[Callable[[int, Any], Any]], keep: Keep) -> None:
        self.functions, self.keep = tuple(functions), keep

    def __call__(self, partition: int, records: Any) -> Iterator[Any]:
        for function in self.functions:
            records = function(partition, records)
        return self.keep(partition, records)
