"""The records of one node that are looked at one by one, numbered, so that a step tells what came of each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.model.elements import TaskRun
from lineage_service.tracing.walk.frontiers import Frontier
from lineage_service.tracing.walk.result import Position
from spark_agent import contract

__all__ = ["MOST_RECORDS", "NumberedRecords"]

#: So many at most.
MOST_RECORDS = 10_000
_BITS = contract.ID_POSITION_BITS


class NumberedRecords:
    """The distinct records of one node, numbered by partition and offset, whichever runs hold them."""

    def __init__(self, frontier: Frontier, runs: Mapping[int, TaskRun]) -> None:
        ids = {
            run: positions.astype(np.int64) + (np.int64(runs[run].partition) << _BITS)
            for run, (_, positions) in frontier.items()
        }
        #: Of groups positions are keys, which need all bits; there is one partition.
        self._bits = 0 if all(runs[run].partition == 0 for run in frontier) else _BITS
        self._ids = np.unique(np.concatenate(list(ids.values())))
        self._run_of: dict[int, int] = {}
        #: Run -> (numbers, positions) of those that it holds.
        self.by_run: dict[int, tuple[Integers, Integers]] = {}
        for run, mine in sorted(ids.items()):
            numbers = np.searchsorted(self._ids, mine).astype(np.int64)
            self.by_run[run] = numbers, frontier[run][1]
            for at in numbers[:MOST_RECORDS].tolist():
                self._run_of.setdefault(at, run)
        self.every = np.arange(len(self._ids), dtype=np.int64)
        self.total = len(self._ids)

    def place(self, at: int) -> tuple[int, int]:
        """(partition, offset) of a record."""
        number = int(self._ids[at])
        return (number >> self._bits, number & ((1 << self._bits) - 1)) if self._bits else (0, number)

    def position(self, node: int, at: int) -> Position:
        partition, offset = self.place(at)
        return Position(node, partition, offset, self._run_of[at])
