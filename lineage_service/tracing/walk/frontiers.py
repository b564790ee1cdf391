"""The records that a walk has reached at each node, as arrays of positions by task run.

An `origin` may travel with each position, so that many starts can be walked at once and distinguished; a walk
without origins needs half the memory. Knows nothing of how a step is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from lineage_service.errors import InvalidQueryError
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.interval_join import distinct, is_ascending
from lineage_service.tracing.model.lineage_graph import LineageGraph

__all__ = [
    "Frontier",
    "Frontiers",
    "Listed",
    "Records",
    "Targets",
    "TooManyError",
    "bounds_of",
    "distinct_records",
]

Records = tuple[Integers | None, Integers]
"""(origins, positions) of one run; positions ascend. No origins: all records have the same one."""
Frontier = Mapping[int, Records]
"""The distinct records of one node, by run."""
Listed = Mapping[tuple[int, int], Integers]
"""(node, partition) -> positions, ascending."""

#: More records are not walked where all of a node count: their positions would take a gibibyte.
_MOST_OF_ALL = 1 << 27
_NONE = np.zeros(0, np.int64)


class TooManyError(Exception):
    """A walk came to more records than its caller allows."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Which records of those that a walk leads to matter: others may be there or not."""

    among: Frontiers  # only records that this walk has reached
    listed: Listed  # and of public nodes only these

    def positions(self, graph: LineageGraph, node: int, run: int) -> Integers:
        """Those of a run."""
        if graph.topology.nodes[node].is_public:
            return self.listed.get((node, graph.topology.runs[run].partition), _NONE)
        return self.among.at(node).get(run, (None, _NONE))[1]


class Frontiers:
    """The frontier of each node. For one thread."""

    def __init__(self, graph: LineageGraph, most: int | None = None, targets: Targets | None = None) -> None:
        """A step that would put more than `most` records at one node raises TooManyError."""
        #: Called before each piece of work; ends the walk by what it raises.
        self.check: Callable[[], None] = lambda: None
        self.is_exact = True
        #: The nodes that a step forward may lead to; None: all.
        self.towards: Collection[int] | None = None
        self.most = most
        self.targets = targets
        self._graph, self._topology = graph, graph.topology
        self._added: dict[int, int] = defaultdict(int)
        self._parts: dict[int, dict[int, list[Records]]] = defaultdict(lambda: defaultdict(list))
        self._are_distinct: set[tuple[int, int]] = set()
        self._new: set[int] = set()

    # -- what is there -------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """Memory of all positions and origins. Arrays that stand at several nodes count once."""
        arrays = {
            id(array): array.nbytes
            for runs in self._parts.values()
            for parts in runs.values()
            for part in parts
            for array in part
            if array is not None
        }
        return sum(arrays.values())

    def added(self, node: int) -> int:
        """How many records were put at a node, some maybe more than once."""
        return self._added.get(node, 0)

    def nodes(self) -> set[int]:
        """The nodes that hold records."""
        return set(self._parts)

    def take_new(self) -> set[int]:
        """The nodes that records were put at since this was called last."""
        new, self._new = self._new, set()
        return new

    def at(self, node: int) -> Frontier:
        """The distinct records of `node`, by run."""
        runs = self._parts.get(node)
        if runs is None:
            return {}
        for run, parts in runs.items():
            if (node, run) not in self._are_distinct:
                self.check()
                runs[run] = [distinct_records(parts)]
                self._are_distinct.add((node, run))
        return {run: parts[0] for run, parts in runs.items()}

    def parts_at(self, node: int, run: int) -> Collection[Records]:
        """What was put at `node` in a run, perhaps repeated."""
        return tuple(self._parts.get(node, {}).get(run, ()))

    # -- what comes ----------------------------------------------------------------------------------

    def add(
        self,
        node: int,
        run: int,
        origins: Integers | None,
        positions: Integers,
        *,
        are_distinct: bool = False,
    ) -> None:
        """Put records at `node`. Those that are distinct and ascending need not be sorted again."""
        self.check()
        if run in self._topology.limited:
            inside = positions < self._topology.runs[run].outputs
            positions, origins = positions[inside], None if origins is None else origins[inside]
        if len(positions):
            self._added[node] += len(positions)
            self._new.add(node)
            self.check_few(self._added[node])
            parts = self._parts[node][run]
            parts.append((origins, positions))
            if are_distinct and len(parts) == 1:
                self._are_distinct.add((node, run))
            else:
                self._are_distinct.discard((node, run))

    def add_every_record(
        self, node: int, origins: Integers | None, runs: Iterable[int], *, is_exact: bool = False
    ) -> None:
        """Put all records of a node in these runs there, for each origin.

        Raises InvalidQueryError where these are more than memory should hold.
        """
        self.is_exact &= is_exact
        for run in runs:
            count = self._graph.count(node, run)
            self.check_few(count)
            distinct_origins = None if origins is None else np.unique(origins)
            targets = None
            if distinct_origins is not None and self.targets is not None:
                targets = self.targets.positions(self._graph, node, run)
            size = count if targets is None else min(count, len(targets))
            records = self.added(node) + size * (1 if distinct_origins is None else len(distinct_origins))
            if records > _MOST_OF_ALL:
                raise InvalidQueryError(
                    f"the trace comes to all {records:,} records of node {node}, more than are held at once "
                    f"({_MOST_OF_ALL:,}): end it before with depth= or to=, or trace on Spark"
                )
            every = np.arange(count, dtype=np.int64) if targets is None else targets[targets < count]
            if distinct_origins is None:
                self.add(node, run, None, every, are_distinct=True)
                continue
            self.check_few(records)
            origins_of = np.tile(distinct_origins, len(every))
            positions = np.repeat(every, len(distinct_origins))
            self.add(node, run, origins_of, positions, are_distinct=True)

    def put(self, node: int, records: Mapping[int, Records]) -> None:
        """What `node` holds from now on, by run, in place of the same records with other origins."""
        self._parts[node] = defaultdict(list, {run: [in_run] for run, in_run in records.items()})
        self._are_distinct.update((node, run) for run in records)

    def without_origins(self) -> None:
        """Go on with all records as ones of one origin."""
        for runs in self._parts.values():
            for run, parts in runs.items():
                runs[run] = [(None, positions) for _, positions in parts]
        self._are_distinct.clear()

    def check_few(self, records: int) -> None:
        """Raises TooManyError."""
        if self.most is not None and records > self.most:
            raise TooManyError


def bounds_of(ascending: Integers) -> tuple[int, int]:
    """The first and the last position."""
    return int(ascending[0]), int(ascending[-1])


def distinct_records(parts: list[Records]) -> Records:
    """The records of several parts of one run, ascending, each once."""
    if len(parts) == 1 and is_ascending(parts[0][1]):
        return parts[0]
    if parts[0][0] is None:
        ordered = sorted((part[1] for part in parts), key=lambda positions: int(positions[0]))
        return None, distinct(np.concatenate(ordered) if len(ordered) > 1 else ordered[0])
    origins = np.concatenate([part[0] for part in parts if part[0] is not None])
    positions = np.concatenate([part[1] for part in parts])
    order = np.lexsort((origins, positions))
    origins, positions = origins[order], positions[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (positions[1:] != positions[:-1]) | (origins[1:] != origins[:-1])
    return origins[is_new], positions[is_new]
