"""The walk of an explanation: backward as a trace goes, past what winners and unchanged records leave out.

Each record has an origin: which group of starts it explains, and the turn that needs it. Where there are too
many for that, and one group, the walk goes on without origins. Then it is not known which turn a source
record came by.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.interval_join import distinct
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.makers import at_makers
from lineage_service.tracing.explain.occurrences import Occurrences
from lineage_service.tracing.explain.winners import CapturedWinners
from lineage_service.tracing.model.families import Families
from lineage_service.tracing.walk.backward import BackwardSteps
from lineage_service.tracing.walk.frontiers import Frontiers, Records, TooManyError, distinct_records
from lineage_service.tracing.walk.result import Position

__all__ = ["Changed", "ExplanationWalk", "Labels"]

#: Records of one node, each as often as turns and groups need it. Beyond, there are no origins.
MOST = 1 << 18


class Labels:
    """The numbers that say in origins by which version of a loop variable a record came. 0: by none."""

    def __init__(self, families: Families) -> None:
        self.versions = tuple(sorted(families.place_of))
        self.count = len(self.versions) + 1
        self.of = {node: label for label, node in enumerate(self.versions, 1)}


@dataclass(slots=True)
class Changed:
    """Records of a version, by run, that were not there the turn before. `until`: the last turn with each."""

    groups: Integers
    positions: Integers
    until: Integers


class ExplanationWalk:
    """Everything that explains some groups of records. For one thread."""

    def __init__(self, snapshot: Snapshot, groups: Sequence[Sequence[Position]]) -> None:
        self.snapshot, self.group_count = snapshot, len(groups)
        self.families = snapshot.graph.families
        self.labels = Labels(self.families)
        #: Version -> run -> its records that changed there.
        self.changed: dict[int, dict[int, Changed]] = defaultdict(dict)
        #: Version -> how many records of the version before were those that moved there made of.
        self.looked_at: dict[int, int] = defaultdict(int)
        self.has_origins = True
        winners = CapturedWinners(snapshot)
        self.frontiers = Frontiers(snapshot.graph)
        self._steps = BackwardSteps(snapshot, self.frontiers, winners)
        self._occurrences = Occurrences(snapshot, winners)
        #: Version -> run -> what came from the version behind it, in no order.
        self._arrivals: dict[int, dict[int, list[Changed]]] = defaultdict(lambda: defaultdict(list))
        self._done: dict[int, int] = {}  # node -> what had come to it when its step was made
        for (node, run), records in self._starts(groups).items():
            self.frontiers.add(node, run, *records)
        self.frontiers.most = MOST

    def _starts(self, groups: Sequence[Sequence[Position]]) -> Mapping[tuple[int, int], Records]:
        starts: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for group, positions in enumerate(groups):
            for start in positions:
                starts[start.node, start.run].append((start.offset, group * self.labels.count))
        records: dict[tuple[int, int], Records] = {}
        for place, entries in starts.items():
            offsets, origins = np.array(sorted(set(entries)), np.int64).T
            records[place] = origins, offsets
        return records

    def advance(self, check: Callable[[], None]) -> None:
        """Walk to the end. `check` is called now and then, and ends it by what it raises.

        Raises TooManyError where several groups would take too many records.
        """
        frontiers = self.frontiers
        frontiers.check = check
        largest_first = [-node for node in frontiers.take_new()]
        heapify(largest_first)
        while largest_first:
            node = -heappop(largest_first)
            if frontiers.added(node) == self._done.get(node):
                continue
            try:
                self._step(node)
            except TooManyError:
                if self.group_count > 1 or not self.has_origins:
                    raise
                self.has_origins, frontiers.most = False, None
                frontiers.without_origins()
                self._step(node)
            self._done[node] = frontiers.added(node)
            for reached in frontiers.take_new():
                heappush(largest_first, -reached)

    def _step(self, node: int) -> None:
        if node in self.labels.of:
            self._at_version(node)
        self._steps.step(node)

    @property
    def nodes(self) -> Iterable[int]:
        """The nodes that it has come to."""
        return self._done

    @property
    def not_looked_at(self) -> Collection[int]:
        """The versions of which it was not looked whether all records stayed as they were."""
        return self._occurrences.not_looked_at

    def moved_from(self, version: int) -> int:
        """How many records of the version before are the same as one of this version."""
        before = self.families.before(version)
        arrivals = {} if before is None else self._arrivals.get(before, {})
        return sum(
            len(np.unique(np.concatenate([part.positions for part in parts]))) for parts in arrivals.values()
        )

    # -- versions of loop variables --------------------------------------------------------------------

    def _at_version(self, node: int) -> None:
        """Label the records there, and send those that stayed as they were to the version before."""
        parts: dict[int, list[Records]] = defaultdict(list)
        for run, (origins, positions) in self.frontiers.at(node).items():
            for maker, chosen, moved in at_makers(self.snapshot.graph, node, run, positions):
                parts[maker].append((None if origins is None else origins[chosen], moved))
        records = {run: self._labelled(node, distinct_records(of_run)) for run, of_run in parts.items()}
        before = self.families.before(node)
        left = records if before is None else self._left(node, before, records)
        self.frontiers.put(node, left)
        for run, (origins, positions) in left.items():
            groups = self._groups(origins, positions)
            self.changed[node][run] = Changed(groups, positions, self._until(node, run, groups, positions))

    def _labelled(self, node: int, records: Records) -> Records:
        """The same records, each once for a group: whatever turn brought them, this one needs the rest."""
        origins, positions = records
        if origins is None:
            return records
        groups = origins // self.labels.count
        is_new = np.ones(len(positions), bool)  # of one position, origins and so groups ascend
        is_new[1:] = (positions[1:] != positions[:-1]) | (groups[1:] != groups[:-1])
        return groups[is_new] * self.labels.count + self.labels.of[node], positions[is_new]

    def _left(self, node: int, before: int, records: Mapping[int, Records]) -> dict[int, Records]:
        """Those that changed, when the others were sent to the version before."""
        distinct_of = {run: distinct(positions) for run, (_, positions) in records.items()}
        moves = self._occurrences.moves(node, before, distinct_of, self.frontiers.check)
        left: dict[int, Records] = {}
        moved: dict[int, list[Changed]] = defaultdict(list)
        for run, (origins, positions) in records.items():
            if run not in moves.places:
                left[run] = origins, positions
                continue
            at = distinct_of[run].searchsorted(positions)
            runs, places = (column[at] for column in moves.places[run])
            groups = self._groups(origins, positions)
            until = self._until(node, run, groups, positions)
            for target in np.unique(runs).tolist():
                chosen = runs == target
                if target < 0:
                    left[run] = None if origins is None else origins[chosen], positions[chosen]
                else:
                    moved[target].append(Changed(groups[chosen], places[chosen], until[chosen]))
        self.looked_at[node] = max(self.looked_at[node], moves.looked_at)
        for target, parts in moved.items():
            self._move(before, target, parts)
        return left

    def _move(self, before: int, target: int, parts: Sequence[Changed]) -> None:
        """Put records at the version before, in a run."""
        groups = np.concatenate([part.groups for part in parts])
        positions = np.concatenate([part.positions for part in parts])
        until = np.concatenate([part.until for part in parts])
        order = np.argsort(positions, kind="stable")
        groups, positions, until = groups[order], positions[order], until[order]
        for run, chosen, places in at_makers(self.snapshot.graph, before, target, positions):
            origins = groups[chosen] * self.labels.count if self.has_origins else None
            self.frontiers.add(before, run, origins, places)
            self._arrivals[before][run].append(Changed(groups[chosen], places, until[chosen]))

    def _groups(self, origins: Integers | None, positions: Integers) -> Integers:
        return np.zeros(len(positions), np.int64) if origins is None else origins // self.labels.count

    def _until(self, node: int, run: int, groups: Integers, positions: Integers) -> Integers:
        """The last turn with each of some records, of ascending positions and groups."""
        until = np.full(len(positions), self.families.turn(node), np.int64)
        codes = positions.astype(np.int64) * self.group_count + groups
        for part in self._arrivals[node].get(run, ()):
            arrived = part.positions.astype(np.int64) * self.group_count + part.groups
            at = np.minimum(codes.searchsorted(arrived), len(codes) - 1)
            is_there = codes[at] == arrived
            np.maximum.at(until, at[is_there], part.until[is_there])
        return until
