"""What is before and behind a dataset, across applications: datasets and jobs, in layers. Pure.

Applications of one name are one job. A job stands between a dataset that it read and one that it wrote only
where one of its applications made rows of this from rows of that, or may have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from lineage_service.datasets.catalogue import Catalogue, Placed
from lineage_service.datasets.summaries import FAILED, application_state, remark_of, state_of
from lineage_service.datasets.uses import ApplicationUses
from lineage_service.lineage import DatasetGraph, DatasetGraphEdge, DatasetGraphNode, Direction
from spark_agent.contract.dataset_names import DatasetName

__all__ = ["MOST_NODES", "Neighbours"]

#: Nodes of one graph; the nearest count.
MOST_NODES = 500


class _Node(NamedTuple):
    """A dataset, or a job by its name."""

    kind: Literal["dataset", "job"]
    name: DatasetName | str

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.name if isinstance(self.name, str) else ':'.join(self.name)}"


#: Dataset -> job -> the datasets that are behind or before it there, each with whether that is certain.
_Steps = Mapping[DatasetName, Mapping[str, Mapping[DatasetName, bool]]]


@dataclass(slots=True)
class _Reached:
    """What was reached from a dataset in one direction, and how far away it is."""

    distances: dict[_Node, int] = field(default_factory=dict)
    #: (nearer, farther) -> whether it is certain.
    edges: dict[tuple[_Node, _Node], bool] = field(default_factory=dict)
    truncated: bool = False


class Neighbours:
    """Those of a catalogue. It does not change."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._runs: dict[str, list[ApplicationUses]] = defaultdict(list)
        for application in catalogue.applications:
            self._runs[application.name].append(application)

    @cached_property
    def _steps(self) -> Mapping[Direction, _Steps]:
        """Made when a graph is asked for: lists do without."""
        before: dict[DatasetName, dict[str, dict[DatasetName, bool]]] = defaultdict(dict)
        behind: dict[DatasetName, dict[str, dict[DatasetName, bool]]] = defaultdict(dict)
        for entry in self._catalogue.entries.values():
            for read in entry.reads:
                behind[entry.place].setdefault(read.application.name, {})
            for write in entry.writes:
                sources = before[entry.place].setdefault(write.application.name, {})
                for place, is_certain in self._sources(write):
                    sources[place] = sources.get(place, False) or is_certain
                    outputs = behind[place].setdefault(write.application.name, {})
                    outputs[entry.place] = outputs.get(entry.place, False) or is_certain
        return {"backward": before, "forward": behind}

    def _sources(self, write: Placed) -> Iterator[tuple[DatasetName, bool]]:
        for number, is_certain in write.use.behind:
            for place in self._catalogue.places.get((write.application.application_id, number), ()):
                yield place, is_certain

    def of(
        self,
        place: DatasetName,
        *,
        direction: Direction | None = None,
        depth: int | None = None,
        now_ms: float = 0,
    ) -> DatasetGraph:
        """`depth` counts jobs; without `direction`, both. `now_ms` is Unix time."""
        start = _Node("dataset", place)
        directions: tuple[Direction, ...] = ("backward", "forward") if direction is None else (direction,)
        layers: dict[_Node, int] = {start: 0}
        edges: dict[tuple[_Node, _Node], bool] = {}
        truncated = False
        for way in directions:
            reached = self._reach(start, way, depth, MOST_NODES // len(directions))
            truncated |= reached.truncated
            sign = -1 if way == "backward" else 1
            for node, layer in _layers(start, reached).items():
                layers.setdefault(node, sign * layer)
            for (near, far), is_certain in reached.edges.items():
                edge = (far, near) if way == "backward" else (near, far)
                edges[edge] = edges.get(edge, False) or is_certain
        nodes = sorted(layers.items(), key=lambda item: (item[1], item[0].kind, item[0].id))
        return DatasetGraph(
            nodes=tuple(self._shown(node, layer, now_ms) for node, layer in nodes),
            edges=tuple(
                DatasetGraphEdge(source=source.id, target=target.id, exact=is_certain)
                for (source, target), is_certain in sorted(
                    edges.items(), key=lambda item: (item[0][0].id, item[0][1].id)
                )
            ),
            truncated=truncated,
        )

    def _reach(self, start: _Node, direction: Direction, depth: int | None, most: int) -> _Reached:
        """The nearest first. A job is reached with those of its datasets that hang together with others."""
        reached = _Reached(distances={start: 0})
        frontier: list[_Node] = [start]
        steps = self._steps[direction]
        while frontier:
            following: list[_Node] = []
            for node in frontier:
                for job, places in sorted(steps.get(_place(node), {}).items()):
                    if depth is not None and reached.distances[node] // 2 >= depth:
                        reached.truncated = True
                        break
                    following += _step(reached, node, job, places, most)
            frontier = following
        return reached

    def _shown(self, node: _Node, layer: int, now_ms: float) -> DatasetGraphNode:
        if isinstance(node.name, str):
            return self._shown_job(node, node.name, layer, now_ms)
        entry = self._catalogue.entries[node.name]
        last = entry.writes[-1] if entry.writes else None
        return DatasetGraphNode(
            id=node.id,
            kind="dataset",
            layer=layer,
            namespace=entry.place.namespace,
            name=entry.place.name,
            runs=len(entry.writes),
            failed_runs=sum(state_of(write, now_ms) in FAILED for write in entry.writes),
            application_id=None if last is None else last.application.application_id,
            at=None if last is None else last.use.at,
            remark=remark_of(entry),
        )

    def _shown_job(self, node: _Node, name: str, layer: int, now_ms: float) -> DatasetGraphNode:
        runs = self._runs[name]
        last = max(runs, key=lambda run: (run.began, run.application_id))
        return DatasetGraphNode(
            id=node.id,
            kind="job",
            layer=layer,
            name=name,
            runs=len(runs),
            failed_runs=sum(application_state(run.outcome, now_ms) in FAILED for run in runs),
            application_id=last.application_id,
            at=last.began,
            remark=_unnamed(runs),
        )


def _place(node: _Node) -> DatasetName:
    assert isinstance(node.name, DatasetName)
    return node.name


def _step(
    reached: _Reached, node: _Node, job: str, places: Mapping[DatasetName, bool], most: int
) -> Iterator[_Node]:
    """Goes from a dataset over a job; gives the datasets that were not reached before."""
    between, distance = _Node("job", job), reached.distances[node]
    if not _has_room(reached, between, distance + 1, most):
        return
    reached.edges[node, between] = True
    for place, is_certain in sorted(places.items()):
        far = _Node("dataset", place)
        is_new = far not in reached.distances
        if not _has_room(reached, far, distance + 2, most):
            continue
        reached.edges[between, far] = reached.edges.get((between, far), False) or is_certain
        if is_new:
            yield far


def _has_room(reached: _Reached, node: _Node, distance: int, most: int) -> bool:
    """Takes it up, unless there are too many."""
    if node not in reached.distances:
        if len(reached.distances) > most:
            reached.truncated = True
            return False
        reached.distances[node] = distance
    return True


def _layers(start: _Node, reached: _Reached) -> dict[_Node, int]:
    """How many steps each node is away on the longest way, so that edges go one way but for circles.

    An edge of a circle that leads back to where the search came from counts for nothing.
    """
    following: dict[_Node, list[_Node]] = defaultdict(list)
    for near, far in reached.edges:
        following[near].append(far)
    layers = {start: 0}
    order = _order(start, following)
    position = {node: at for at, node in enumerate(order)}
    for node in order:
        for far in following[node]:
            if position[far] > position[node]:
                layers[far] = max(layers.get(far, 0), layers[node] + 1)
    return layers


def _order(start: _Node, following: Mapping[_Node, Sequence[_Node]]) -> list[_Node]:
    """Each node before those that follow it, but for circles."""
    done: list[_Node] = []
    seen = {start}
    stack: list[tuple[_Node, Iterator[_Node]]] = [(start, iter(following.get(start, ())))]
    while stack:
        node, rest = stack[-1]
        new = next((far for far in rest if far not in seen), None)
        if new is None:
            done.append(node)
            stack.pop()
        else:
            seen.add(new)
            stack.append((new, iter(following.get(new, ()))))
    return done[::-1]


def _unnamed(runs: Iterable[ApplicationUses]) -> str:
    """What the latest run that did so read or wrote without a name."""
    for run in sorted(runs, key=lambda run: run.began, reverse=True):
        if run.unnamed:
            thing = run.unnamed[-1]
            more = f" and {len(run.unnamed) - 1} more" if len(run.unnamed) > 1 else ""
            return f"also {'wrote' if thing.is_write else 'read'} {thing.text!r}{more}: {thing.reason}"
    return ""
