"""Connected components by the smallest label, as a job, and as an agent tells it of PySpark's usual loop.

labels = labels.union(labels.join(edges).map(message)).reduceByKey(min)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from tests.support.loop_applications import MADE, READ, LoopApplication
from tests.support.run_applications import Operator, Place, RunApplication, Stage

Edge = tuple[int, int]
Label = tuple[int, int]
"""(node of the graph, the label that it has)."""


def propagated(nodes: Iterable[int], edges: Iterable[Edge], turns: int) -> set[Label]:
    """What the job gives."""
    labels = {node: node for node in nodes}
    for _ in range(turns):
        sent = [(target, labels[source]) for source, target in edges if source in labels]
        for target, label in sent:
            labels[target] = min(label, labels.get(target, label))
    return set(labels.items())


@dataclass(frozen=True)
class Propagation:
    """The job as it was told. `labels`: the record of each label of each version."""

    application: LoopApplication
    labels: Sequence[dict[Label, Place]]
    nodes: dict[Place, int]  # rows of files
    edges: dict[Place, Edge]


class _Told:
    """Stages, with the value of each record at their ends."""

    def __init__(self, splits: int, *, has_digests: bool) -> None:
        self.splits, self.has_digests = splits, has_digests
        self.stages: list[Stage] = []
        self._node = 0

    def node(self) -> int:
        self._node += 1
        return self._node - 1

    def file(self, values: Sequence[Any]) -> tuple[Stage, list[list[Any]]]:
        by_split = [list(values[split :: self.splits]) for split in range(self.splits)]
        sizes = list(map(len, by_split))
        read: list[list[Place]] = [[] for _ in sizes]
        stage = Stage(self.node(), "file", read, sizes, [], [], is_public=True, is_read=True)
        self.stages.append(stage)
        return stage, by_split

    def union(self, *parts: tuple[Stage, list[list[Any]]], site: str) -> tuple[Stage, list[list[Any]]]:
        read = [
            [(stage.end, split, at) for at in range(len(values))]
            for stage, by_split in parts
            for split, values in enumerate(by_split)
        ]
        parents = [stage.end for stage, _ in parts]
        stage = Stage(self.node(), "union", read, list(map(len, read)), parents, [], True, site, is_read=True)
        self.stages.append(stage)
        return stage, [values for _, by_split in parts for values in by_split]

    def shuffled(self, part: tuple[Stage, list[list[Any]]]) -> tuple[Stage, list[list[Any]]]:
        """By key."""
        stage, by_split = part
        read: list[list[Place]] = [[] for _ in range(self.splits)]
        values: list[list[Any]] = [[] for _ in range(self.splits)]
        for split, records in enumerate(by_split):
            for at, record in enumerate(records):
                read[record[0] % self.splits].append((stage.end, split, at))
                values[record[0] % self.splits].append(record)
        shuffle = Stage(self.node(), "shuffle", read, list(map(len, read)), [stage.end], [], is_read=True)
        self.stages.append(shuffle)
        return shuffle, values

    def then(
        self,
        part: tuple[Stage, list[list[Any]]],
        function: Callable[[list[Any]], list[tuple[Any, list[int], int | None]]],
        *,
        is_version: bool = False,
        site: str = "",
    ) -> tuple[Stage, list[list[Any]]]:
        """One more operator: of each split's records (record, inputs, winner)."""
        stage, by_split = part
        made = [function(values) for values in by_split]
        records = [[record for record, _, _ in split] for split in made]
        digests: list[dict[int, int]] = []
        if is_version and self.has_digests:
            digests = [{at: _digest(record) for at, record in enumerate(split)} for split in records]
        operator = Operator(
            self.node(),
            "codes" if function is _smallest else "gather",
            [[inputs for _, inputs, _ in split] for split in made],
            is_version,
            site,
            winners=[
                {at: winner for at, (_, _, winner) in enumerate(split) if winner is not None}
                for split in made
            ],
            digests=digests,
        )
        self.stages[-1] = replace(stage, operators=[*stage.operators, operator])
        return self.stages[-1], records


def _joined(records: list[Any]) -> list[tuple[Any, list[int], int | None]]:
    """(node, label) with each (source, target, "edge") of it: what the target is sent."""
    labels = [(at, record) for at, record in enumerate(records) if len(record) == 2]
    edges = [(at, record) for at, record in enumerate(records) if len(record) == 3]
    return [
        ((edge[1], label[1]), [of_label, of_edge], None)
        for of_label, label in labels
        for of_edge, edge in edges
        if edge[0] == label[0]
    ]


def _smallest(records: list[Any]) -> list[tuple[Any, list[int], int | None]]:
    """The smallest label of each node, as `min` merges: of equal ones the first stays."""
    inputs: dict[int, list[int]] = defaultdict(list)
    winner: dict[int, int] = {}
    for at, (node, label) in enumerate(records):
        inputs[node].append(at)
        if node not in winner or label < records[winner[node]][1]:
            winner[node] = at
    return [(records[winner[node]], inputs[node], winner[node]) for node in inputs]


def _passed_on(records: list[Any]) -> list[tuple[Any, list[int], int | None]]:
    return [(record, [at], None) for at, record in enumerate(records)]


def _digest(label: Label) -> int:
    return int.from_bytes(blake2b(repr(label).encode(), digest_size=8).digest()) >> 1


def told_propagation(
    nodes: Sequence[int],
    edges: Sequence[Edge],
    turns: int,
    *,
    splits: int = 2,
    has_digests: bool = True,
    are_old_first: bool = True,
) -> Propagation:
    """`are_old_first`: of equal labels that of the turn before wins, else one that was sent."""
    told = _Told(splits, has_digests=has_digests)
    of_nodes = told.file([(node, node) for node in nodes])
    versions = [told.then(of_nodes, _passed_on, is_version=True)]
    of_edges = told.file([(*edge, "edge") for edge in edges])
    for _ in range(turns):
        read = told.union(versions[-1], of_edges, site=READ)
        met = told.then(told.shuffled(read), _joined)
        both = (versions[-1], met) if are_old_first else (met, versions[-1])
        combined = told.then(told.union(*both, site="both"), _smallest)
        merged = told.then(told.shuffled(combined), _smallest)
        versions.append(told.then(merged, _passed_on, is_version=True, site=MADE))
    told.stages[-1] = replace(told.stages[-1], actions=[told.node()], is_read=False)
    return Propagation(
        LoopApplication(
            RunApplication(told.stages), [stage.end for stage, _ in versions] if turns > 1 else []
        ),
        [
            {
                label: (stage.end, split, at)
                for split, labels in enumerate(by_split)
                for at, label in enumerate(labels)
            }
            for stage, by_split in versions
        ],
        {place: node for place, (node, _) in _rows(of_nodes).items()},
        {place: (source, target) for place, (source, target, _) in _rows(of_edges).items()},
    )


def _rows(part: tuple[Stage, list[list[Any]]]) -> dict[Place, Any]:
    """The value of each row of a file."""
    stage, by_split = part
    return {
        (stage.begin, split, at): value
        for split, values in enumerate(by_split)
        for at, value in enumerate(values)
    }
