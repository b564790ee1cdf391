"""Which records each record was derived from, and when it was the same record a turn before.

Of one record there are several derivations where it is known that each gave it alone: of a `distinct`, each
of the equal records; of a record that stayed as it was in a loop, what each turn made it of. Winners alone
count, where there are some. Of few records: beyond a limit, the others are not derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.makers import at_makers
from lineage_service.tracing.explain.occurrences import Occurrences
from lineage_service.tracing.explain.winners import CapturedWinners
from lineage_service.tracing.model.topology import operation_of
from lineage_service.tracing.walk.backward import BackwardSteps
from lineage_service.tracing.walk.frontiers import Frontiers, TooManyError
from lineage_service.tracing.walk.result import Position

__all__ = ["Derivations"]

#: Records that are derived, and inputs that they have together.
MOST_RECORDS, MOST_INPUTS = 5_000, 50_000
_Place = tuple[int, int, int]
"""(node, partition, offset), where it was computed."""


class Derivations:
    """Of some records, back to sources. For one thread."""

    def __init__(self, snapshot: Snapshot, starts: Iterable[Position], check: Callable[[], None]) -> None:
        """`check` is called now and then, and ends it by what it raises."""
        self.records: list[Position] = []
        #: Record -> its derivations, each the records that it was made of together.
        self.made_of: dict[int, list[tuple[int, ...]]] = {}
        #: Record of a version -> the same record of the version before.
        self.same: dict[int, int] = {}
        #: Not all records were derived: those without an entry in `made_of` are at the limit, or of sources.
        self.is_truncated = False
        #: It is known what each record was made of.
        self.is_exact = True
        self._snapshot, self._graph, self._check = snapshot, snapshot.graph, check
        self._winners = CapturedWinners(snapshot)
        self._occurrences = Occurrences(snapshot, self._winners)
        self._numbers: dict[_Place, int] = {}
        self._pending: dict[int, list[int]] = {}
        self._heap: list[int] = []
        self._inputs = 0
        self.starts = [self._number(start.node, start.run, start.offset) for start in starts]
        self._derive()

    def _derive(self) -> None:
        heapify(self._heap)
        while self._heap:
            node = -heappop(self._heap)
            numbers = self._pending.pop(node, [])
            if not numbers:
                continue
            if len(self.records) > MOST_RECORDS or self._inputs > MOST_INPUTS:
                self.is_truncated = True
                return
            self._at_version(node, numbers)
            for number, derivations in self._derivations(node, numbers):
                self.made_of[number] = derivations

    def _number(self, node: int, run: int, position: int) -> int:
        """Of a record, where it was computed."""
        maker, _, moved = next(at_makers(self._graph, node, run, np.array([position], np.int64)))
        place = node, self._graph.topology.runs[maker].partition, int(moved[0])
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self.records)
            self.records.append(Position(*place, maker))
            if node not in self._pending:
                heappush(self._heap, -node)
            self._pending.setdefault(node, []).append(number)
        return number

    def _by_run(self, numbers: Sequence[int]) -> Iterator[tuple[int, Integers, Integers]]:
        """(run, numbers, positions, ascending)."""
        by_run: dict[int, list[int]] = {}
        for number in numbers:
            by_run.setdefault(self.records[number].run, []).append(number)
        for run, of_run in sorted(by_run.items()):
            of_run.sort(key=lambda number: self.records[number].offset)
            positions = np.array([self.records[number].offset for number in of_run], np.int64)
            yield run, np.array(of_run, np.int64), positions

    def _at_version(self, node: int, numbers: Sequence[int]) -> None:
        """Find the records of a version a turn before."""
        before = self._graph.families.before(node)
        if before is None:
            return
        by_run = {run: (of_run, positions) for run, of_run, positions in self._by_run(numbers)}
        moves = self._occurrences.moves(
            node, before, {run: positions for run, (_, positions) in by_run.items()}, self._check
        )
        for run, (runs_before, positions_before) in moves.places.items():
            of_run = by_run[run][0].tolist()
            places = zip(of_run, runs_before.tolist(), positions_before.tolist(), strict=True)
            for number, run_before, position in places:
                if run_before >= 0:
                    self.same[number] = self._number(before, run_before, position)

    def _derivations(self, node: int, numbers: Sequence[int]) -> Iterator[tuple[int, list[tuple[int, ...]]]]:
        """(record, its derivations). None of records of sources."""
        is_distinct = self._gives_one_of_equals(node)
        side = Frontiers(self._graph, MOST_INPUTS)
        side.check = self._check
        for run, of_run, positions in self._by_run(numbers):
            side.add(node, run, of_run, positions)
        try:
            BackwardSteps(self._snapshot, side, None if is_distinct else self._winners).step(node)
        except TooManyError:
            self.is_truncated = True
            return
        self.is_exact &= side.is_exact
        inputs: dict[int, dict[int, None]] = {}
        for before in sorted(side.nodes() - {node}):
            for run, (of, positions) in sorted(side.at(before).items()):
                assert of is not None
                for number, position in zip(of.tolist(), positions.tolist(), strict=True):
                    inputs.setdefault(number, {})[self._number(before, run, position)] = None
                    self._inputs += 1
        for number, of_record in inputs.items():
            yield number, [(one,) for one in of_record] if is_distinct else [tuple(of_record)]

    def _gives_one_of_equals(self, node: int) -> bool:
        operation = operation_of(self._graph.topology, node)
        return node in self._winners.merging and operation is not None and operation.name == "distinct"
