"""Looks positions up in the flows of several task runs: side by side where that is worth another thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lineage_service.tracing.columns.flow_slices import Slice

__all__ = ["Lookup", "in_runs"]

T = TypeVar("T")
Lookup = tuple[int, Sequence[Slice]]
"""How many positions are looked up in the flows of a run, and which rows of these may hold some."""

#: Row groups of several runs are read at once: the libraries that do the work let go of Python's lock.
_pool = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="trace")
#: Positions of one run for which another thread is worth its while.
_MUCH = 1 << 14


def in_runs(
    look_up: Callable[[int, Sequence[Slice]], T], lookups: Mapping[int, Lookup], columns: Collection[str]
) -> Iterator[tuple[int, T]]:
    """(run, what `look_up` gives for it and its rows).

    Much is worked out side by side. Little over rows that are in memory is done here: to hand it to other
    threads takes longer. `columns` are those that will be looked at.
    """
    heavy = [
        run
        for run, (size, slices) in lookups.items()
        if size > _MUCH or not all(rows.is_at_hand(columns) for rows in slices)
    ]
    ahead = {run: lookups[run][1] for run in heavy} if len(heavy) > 1 else {}
    results = _pool.map(look_up, ahead, ahead.values()) if ahead else iter(())
    # One by one: the result of a run may be large, and is taken apart before the next is.
    for run, (_, slices) in lookups.items():
        yield run, next(results) if run in ahead else look_up(run, slices)
