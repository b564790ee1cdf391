"""The operations at which a row was one of several equal ones that became one record.

Flows tell how many they were. Which of them was kept nobody can tell: the record stands for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.evaluation.texts import described
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.missing.endings import RowStart
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Position, on_the_way
from spark_agent import contract

__all__ = ["Duplicates", "Merged"]

#: Operations of RDDs that give one of several equal records.
_OF_RDDS = frozenset(("distinct", "intersection"))
#: Records of one operation that are looked at, and equal rows that are named.
_MOST_RECORDS, _NAMED = 20, 5


@dataclass(frozen=True, slots=True)
class Merged:
    """`total` rows of the input became one record there, the row itself included. `others` are the first."""

    operation: TopologyNode
    total: int
    others: tuple[Position, ...]
    is_exact: bool

    @property
    def why(self) -> str:
        keys = (self.operation.expressions or {}).get("keys")
        rows = f"{self.total:,} rows of this input"
        if keys and "first(" in self.operation.description:
            same = ", ".join(map(described, keys))
            return f"distinct: {rows} had the same {same} here, and one row stands for all of them"
        return f"distinct: {rows} were equal here, and one row stands for all of them"


class Duplicates:
    """Of one application."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._topology = snapshot, snapshot.graph.topology
        #: Node that has the records of an operation -> the operation.
        self._merging = dict(_merging(list(self._topology.nodes.values())))

    def of(self, start: RowStart, sinks: Sequence[int], check: Callable[[], None]) -> list[Merged]:
        """On the way of a row to some sinks."""
        if start.place is None or not self._merging or not sinks:
            return []
        begin = start.node.number
        way = set().union(*(on_the_way(self._topology, "forward", begin, sink) for sink in sinks))
        asked = [number for number in self._merging if number in way]
        if not asked:
            return []
        walk = TraceWalk(self._snapshot, "forward")
        for run in start.runs:
            walk.start(begin, run.number, np.array([start.place[1]], np.int64))
        walk.advance(check)
        merged = (self._at(number, walk, start, check) for number in asked)
        return [one for one in merged if one is not None]

    def _at(self, number: int, walk: TraceWalk, start: RowStart, check: Callable[[], None]) -> Merged | None:
        """Of the first record there that is made of several rows."""
        places = [
            (partition, offset)
            for partition, offsets in walk.by_partition(number).items()
            for offset in offsets[:_MOST_RECORDS].tolist()
        ]
        for record in walk.positions(number, places[:_MOST_RECORDS]):
            back = TraceWalk(self._snapshot, "backward", to=start.node.number)
            back.start(record.node, record.run, np.array([record.offset], np.int64))
            back.advance(check)
            by_partition = back.by_partition(start.node.number) if back.at(start.node.number) else {}
            total = sum(map(len, by_partition.values()))
            if total > 1:
                others = list(_others(by_partition, start.place))
                positions = back.positions(start.node.number, others)
                return Merged(self._merging[number], total, positions, walk.is_exact and back.is_exact)
        return None


def _others(by_partition: dict[int, Integers], place: tuple[int, int] | None) -> Iterator[tuple[int, int]]:
    """The first ones but the row itself."""
    named = 0
    for partition, offsets in sorted(by_partition.items()):
        for offset in offsets[: _NAMED + 1].tolist():
            if (partition, offset) != place and named < _NAMED:
                named += 1
                yield partition, offset


def _merging(nodes: Sequence[TopologyNode]) -> Iterator[tuple[int, TopologyNode]]:
    by_number = {node.number: node for node in nodes}
    for node in nodes:
        if node.name in _OF_RDDS and node.is_public and node.relation != contract.CARRIED:
            yield node.number, node
        operation = by_number.get(-1 if node.operation is None else node.operation)
        if node.relation == contract.KEYED and operation is not None and _is_distinct(operation):
            yield node.number, operation


def _is_distinct(operation: TopologyNode) -> bool:
    return operation.name == "Aggregate" and (operation.expressions or {}).get("distinct") is True
