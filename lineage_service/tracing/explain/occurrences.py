"""Records of loop variables that stayed as they were: from one version back to the same record a turn before.

A record is the same if its digest is the same, and if it was made of the record of the version before. Then
the explanation goes on there: the record was there already. Why the turn has not dropped it is not asked, so
an explanation may lack rows that the job needs to keep the record. A record that left and came back, from one
version to a later one, is explained by its return.

Whether it was made of the other is looked for by a walk of its own, over the nodes of the turn alone. It
follows winners first, which are few; then all inputs, but only of records whose digest occurs at all in the
version before. It does not pass a merge of several records that none of them decided: a sum that equals one
of its parts was not there already.

A merge of records by their keys, as of `reduceByKey`, gives each key once. Where it also reads the version
before as it is, the record with the key came in there, and no other record of that version can be the same.
So the rest of the turn is not walked: it may lead to all neighbours of a node of a graph. Neither are the
tasks that read the rest: which part of a union each has read is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.interval_join import distinct, within
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.winners import CapturedWinners
from lineage_service.tracing.walk.backward import BackwardSteps, Winners
from lineage_service.tracing.walk.frontiers import Frontier, Frontiers, Records, TooManyError
from spark_agent import contract

__all__ = ["Moves", "Occurrences"]

#: Records at one node. Where a turn leads to more, it is not looked whether records stayed as they were.
MOST_LOOKED_AT = 1 << 21
#: Records of a version beyond which it is looked first whether their digests occur in the version before.
MANY = 1 << 12
#: Digests of a version beyond which to look through them for one is more work than to walk.
MOST_COMPARED = 1 << 22
#: The same where only a merge by keys is to be walked.
MOST_COMPARED_OF_KEYS = 1 << 21
#: So many digests are compared one by one.
_FEW = 8
_Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Moves:
    """Where records of a version were a turn before.

    `places`: run -> for each of its records (run, position) there; a run of -1 where it was not there.
    """

    places: Mapping[int, tuple[Integers, Integers]] = field(default_factory=dict)
    looked_at: int = 0  # records of the version before, of which those that moved were made


class Occurrences:
    """Of one application. For one thread."""

    def __init__(self, snapshot: Snapshot, winners: CapturedWinners) -> None:
        #: The versions of which it was not looked whether all records stayed as they were.
        self.not_looked_at: set[int] = set()
        self._snapshot, self._winners = snapshot, winners
        self._graph = snapshot.graph

    def moves(
        self, node: int, before: int, positions_of: Mapping[int, Integers], check: Callable[[], None]
    ) -> Moves:
        """Of distinct, ascending positions of a version by run. `before` is the version before it."""
        digested = self._graph.blocks.digested
        if node not in digested or before not in digested:
            return Moves()
        if sum(map(len, positions_of.values())) > MOST_LOOKED_AT:
            self.not_looked_at.add(node)
            return Moves()
        by_run = {run: self._digests(node, run, positions) for run, positions in positions_of.items()}
        digests = np.concatenate([values for _, values in by_run.values()]) if by_run else _NONE
        if not len(digests):
            return Moves()
        starts: dict[int, tuple[Integers, Integers]] = {}
        first = 0
        for run, (is_known, values) in by_run.items():
            if len(values):
                numbers = np.arange(first, first + len(values))
                starts[run] = numbers, positions_of[run][is_known]
                first += len(values)
        if len(digests) > MANY:  # all of a version: to see that nothing stayed is less work than to walk
            starts = self._that_occur(before, starts, digests, check)
        same, looked_at = self._same(node, before, starts, digests, check)
        places: dict[int, tuple[Integers, Integers]] = {}
        first = 0
        for run, (is_known, values) in by_run.items():
            of_run = slice(first, first + len(values))
            first += len(values)
            runs = np.full(len(is_known), -1, np.int64)
            at = np.zeros(len(is_known), np.int64)
            runs[is_known], at[is_known] = same[0][of_run], same[1][of_run]
            places[run] = runs, at
        return Moves(places, looked_at)

    def _that_occur(
        self,
        before: int,
        starts: Mapping[int, tuple[Integers, Integers]],
        digests: Integers,
        check: Callable[[], None],
    ) -> dict[int, tuple[Integers, Integers]]:
        """Those of numbered records whose digest is that of any record of the version before."""
        numbered = np.concatenate([numbers for numbers, _ in starts.values()])
        occur = np.zeros(len(digests), bool)
        occur[numbered] = self._occur(before, digests[numbered], check)
        return {
            run: (numbers[occur[numbers]], positions[occur[numbers]])
            for run, (numbers, positions) in starts.items()
            if occur[numbers].any()
        }

    def _occur(self, before: int, digests: Integers, check: Callable[[], None]) -> _Marks:
        """Which digests are those of any record of the version before."""
        annotations = self._snapshot.annotations
        if len(digests) <= _FEW:
            return annotations.occur(before, contract.DIGESTS, digests, check)
        order = np.argsort(digests)
        ascending, occur = digests[order], np.zeros(len(digests), bool)
        for values in annotations.every(before, contract.DIGESTS):
            check()
            ordered = np.sort(values)
            at = np.minimum(ordered.searchsorted(ascending), len(ordered) - 1)
            occur |= ordered[at] == ascending
        marks = np.zeros(len(digests), bool)
        marks[order] = occur
        return marks

    def _same(
        self,
        node: int,
        before: int,
        starts: Mapping[int, tuple[Integers, Integers]],
        digests: Integers,
        check: Callable[[], None],
    ) -> tuple[tuple[Integers, Integers], int]:
        """(run, position) of the same record before, by number of the record; and how many were looked at."""
        runs, positions = np.full(len(digests), -1, np.int64), np.zeros(len(digests), np.int64)
        looked_at = 0
        of_keys = self._ways_of_keys(node, before)
        between = of_keys or self._graph.nodes_between(before, node)
        has_winners = bool(between & self._graph.blocks.winning)
        most = MOST_COMPARED_OF_KEYS if of_keys else MOST_COMPARED
        for winners in (self._winners, None) if has_winners else (None,):
            left = {
                run: (numbers[is_left], at[is_left])
                for run, (numbers, at) in starts.items()
                if (is_left := runs[numbers] < 0).any()
            }
            if winners is None and left and self._graph.blocks.digested[before] <= most:
                left = self._that_occur(before, left, digests, check)
            if not left:
                break
            side = self._made_of(node, before, between, left, winners, check)
            if side is None:
                self.not_looked_at.add(node)
                break
            arrived = side.at(before)
            numbers, runs_there, places = self._equal(before, arrived, digests)
            runs[numbers], positions[numbers] = runs_there, places
            looked_at += sum(
                int(np.count_nonzero(np.isin(of_run, numbers)))
                for of_run, _ in arrived.values()
                if of_run is not None
            )
        return (runs, positions), looked_at

    def _ways_of_keys(self, node: int, before: int) -> frozenset[int]:
        """The nodes by which all records of `before` enter, as they are, the merge by keys that makes `node`.

        Empty where there is no such merge, or where `before` may hold a key twice.
        """
        ways = self._merge_by_keys(node)
        if not ways or not self._merge_by_keys(before):
            return frozenset()
        nodes, pending = self._graph.topology.nodes, set(ways)
        parents = set[int]()
        while pending:
            parents |= set(nodes[pending.pop()].parents)
            unions = {parent for parent in parents - ways if nodes[parent].relation == contract.STATIC}
            ways, pending = ways | unions, pending | unions
        return ways if before in parents else frozenset()

    def _merge_by_keys(self, node: int) -> frozenset[int]:
        """All nodes of an operation that has merged records by their keys behind a shuffle, and gave these.

        Empty if `node` is none.
        """
        topology, parts = self._graph.topology, self._graph.parts_of.get(node, frozenset())
        at = topology.nodes[node]
        merges = self._winners.merging.intersection(at.parents)
        if at.relation != contract.IDENTITY or not merges or not merges <= parts:
            return frozenset()
        shuffles = {topology.runs[run].input for merge in merges for run in self._graph.runs_of(merge)}
        return parts if shuffles and shuffles <= parts else frozenset()

    def _made_of(
        self,
        node: int,
        before: int,
        between: frozenset[int],
        starts: Mapping[int, tuple[Integers, Integers]],
        winners: Winners | None,
        check: Callable[[], None],
    ) -> Frontiers | None:
        """What numbered records of a version were made of, by the nodes `between` it and the version before.

        None: not known.
        """
        leading = between | {before}
        side = Frontiers(self._graph, MOST_LOOKED_AT)
        side.check = check
        steps = BackwardSteps(self._snapshot, side, winners)
        done = set[int]()
        try:
            for run, (numbers, positions) in starts.items():
                side.add(node, run, numbers, positions)
            while pending := side.nodes().intersection(between) - done:
                number = max(pending)
                self._stop_in_other_runs(side, number, leading)
                self._stop_at_merges(side, number)
                steps.step(number)
                side.put(number, {})  # what was stepped from is not needed any more
                done.add(number)
        except TooManyError:
            return None
        return side if side.is_exact else None

    def _stop_in_other_runs(self, side: Frontiers, node: int, leading: Set[int]) -> None:
        """Leave out the records of runs that read a part of a union to which none of the nodes `leading` led.

        They are not followed further there. To know it here saves the flows on the way.
        """
        frontier, nodes = side.at(node), self._graph.topology.nodes
        left: dict[int, Records] = {}
        for run, records in frontier.items():
            read = self._graph.topology.runs[run].input
            if nodes[read].relation == contract.STATIC:
                sources = {link.parent_node for link in self._graph.links_of.get(read, ()) if link.run == run}
                if sources and sources.isdisjoint(leading):
                    continue
            left[run] = records
        if len(left) < len(frontier):
            side.put(node, left)

    def _stop_at_merges(self, side: Frontiers, node: int) -> None:
        """Leave out the records that were merged of several, none of which decided them."""
        is_of_groups = node in self._graph.topology.groups
        if node not in self._winners.merging and not is_of_groups:
            return
        left: dict[int, Records] = {}
        for run, (numbers, positions) in side.at(node).items():
            outputs = distinct(positions)
            if is_of_groups:
                are_merged = self._winners.are_groups_merged(node, outputs, side.check)
            else:
                are_merged = self._winners.are_merged(node, run, outputs)
            are_left = ~are_merged[outputs.searchsorted(positions)]
            if numbers is not None and bool(are_left.any()):
                left[run] = numbers[are_left], positions[are_left]
        side.put(node, left)

    def _equal(
        self, before: int, arrived: Frontier, digests: Integers
    ) -> tuple[Integers, Integers, Integers]:
        """(numbers, runs, positions) of records that arrived with the digest of the record of their number.

        Of several, the first one by partition and position.
        """
        parts: list[tuple[Integers, Integers, Integers, Integers]] = []
        for run, (numbers, positions) in arrived.items():
            assert numbers is not None
            is_known, values = self._digests(before, run, positions)
            numbers, positions = numbers[is_known], positions[is_known]
            is_same = values == digests[numbers]
            partition = self._graph.topology.runs[run].partition
            count = int(is_same.sum())
            parts.append(
                (np.full(count, run), positions[is_same], np.full(count, partition), numbers[is_same])
            )
        if not parts:
            return _NONE, _NONE, _NONE
        runs, positions, partitions, numbers = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((runs, positions, partitions, numbers))
        first = order[np.unique(numbers[order], return_index=True)[1]]
        return numbers[first], runs[first], positions[first]

    # -- digests -------------------------------------------------------------------------------------

    def _digests(self, node: int, run: int, positions: Integers) -> tuple[_Marks, Integers]:
        """(which of ascending positions have a digest, the digests of these).

        Those of a cached version stand in the run that made it, or in one that read it.
        """
        is_known, values = self._digests_in(node, run, positions)
        if bool(is_known.all()):
            return is_known, values
        every = np.zeros(len(positions), np.int64)
        every[is_known] = values
        for other, index, moved in self._copies(node, run, positions):
            has, of_other = self._digests_in(node, other, moved)
            every[index[has]] = of_other
            is_known[index[has]] = True
        return is_known, every[is_known]

    def _digests_in(self, node: int, run: int, positions: Integers) -> tuple[_Marks, Integers]:
        """The same of those that a run has."""
        if (node, run, contract.DIGESTS) not in self._graph.blocks.annotated:
            return np.zeros(len(positions), bool), _NONE
        return self._snapshot.annotations.at(node, run, contract.DIGESTS, positions)

    def _copies(self, node: int, run: int, positions: Integers) -> Iterator[tuple[int, Integers, Integers]]:
        """(other run, indices of the positions, positions there) of the same records of a cached node."""
        copies = [link for link in self._graph.links_of.get(node, ()) if link.parent_node == node]
        if not copies:
            return
        makers = [(run, np.arange(len(positions)), positions)]
        for link in copies:
            if link.run == run:
                inside = within(positions, link.start, link.start + link.count - 1)
                indices = np.arange(inside.start, inside.stop)
                makers.append((link.parent_run, indices, positions[inside] - np.int64(link.start)))
        for maker, indices, moved in makers:
            if maker != run:
                yield maker, indices, moved
            for link in copies:
                if link.parent_run == maker and link.run != run:
                    inside = within(moved, 0, link.count - 1)
                    yield link.run, indices[inside], moved[inside] + np.int64(link.start)


_NONE = np.zeros(0, np.int64)
