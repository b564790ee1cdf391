"""The records at which a trace of a dataset starts: the rows of its files that fulfil a condition.

Which application and which of its nodes are meant follows from the files: the newest application that wrote
them, else the newest that read them, and there the operations that `nodes_meant` names. Files of other runs
are not looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lineage_service.conditions.filters import Where
from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.lineage import Direction
from lineage_service.queries import MOST_STARTS
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_nodes import nodes_meant
from lineage_service.tracing.files.file_parts import normal_path, paths_of
from lineage_service.tracing.files.missing_files import only_file_below
from lineage_service.tracing.files.path_patterns import PathPattern
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.record_search import RecordSearch
from lineage_service.tracing.files.row_finder import holders_of
from lineage_service.tracing.model.elements import PartitionInfo, TaskRun, TopologyNode, in_words
from lineage_service.tracing.query.value_search import search_of
from lineage_service.tracing.walk.result import Position
from lineage_service.tracing.walk.starts import check_has_records, has_records, node_named

__all__ = ["MOST_STARTS", "DatasetRows", "Sought"]


@dataclass(slots=True)
class Sought:
    """Which records of an application are looked at: of each node, in which of its files.

    `files_of` a node is None where it has no files, and its values are looked at. `first` are the nodes to
    name first: a row that several nodes read is listed once.
    """

    direction: Direction
    files_of: dict[int, set[str] | None] = field(default_factory=dict)
    first: dict[int, set[str] | None] = field(default_factory=dict)

    def add(self, node: int, paths: set[str] | None, *, is_first: bool = True) -> None:
        for files in (self.files_of, self.first) if is_first else (self.files_of,):
            files[node] = None if paths is None else {*(files.get(node) or ()), *paths}

    @property
    def files(self) -> int:
        """How many they are."""
        return len({path for paths in self.first.values() for path in paths or ()})


@dataclass(slots=True)
class _Requested:
    """Of one node, as a search wants it."""

    opened: OpenedApplication[Snapshot]
    cursor: StoreCursor
    node: TopologyNode
    runs: dict[int, TaskRun]


class DatasetRows:
    """Finds the records that conditions name."""

    def __init__(self, locations: RecordLocations, *, time_budget_s: float) -> None:
        self._locations, self._time_budget_s = locations, time_budget_s

    def sought(
        self,
        opened: OpenedApplication[Snapshot],
        dataset: str | None,
        node: str | None,
        direction: Direction | None,
    ) -> Sought:
        """Raises NotFoundError, InvalidQueryError."""
        graph = opened.graph
        if node is not None and dataset is None:
            chosen = node_named(graph, node)
            check_has_records(chosen)
            meant = direction or ("forward" if chosen.kind == "source" else "backward")
            return _of_one(chosen, meant)
        if dataset is None:
            return self._only_node(opened, direction or "backward")
        number = None if node is None else node_named(graph, node).number
        sought = _by_files(opened, dataset, number, direction)
        if not sought.files_of:
            only_file_below(graph.topology, dataset)  # says why it is not there
            raise NotFoundError(f"node {node} neither read nor wrote {dataset}")
        return sought

    def _only_node(self, opened: OpenedApplication[Snapshot], direction: Direction) -> Sought:
        """Of an application: its one output, or forward its one input."""
        kind = "sink" if direction == "backward" else "source"
        nodes = [node for node in opened.graph.topology.nodes.values() if node.kind == kind]
        with_files = [node for node in nodes if has_records(node) and _files(node)]
        meant = with_files or nodes
        if len(meant) != 1:
            what = {"sink": "output", "source": "input"}[kind]
            which = ", ".join(map(in_words, meant[:_LISTED])) + (", …" if len(meant) > _LISTED else "")
            listed = f": give a dataset, or one of them as node: {which}" if meant else ""
            raise InvalidQueryError(f"the application has {len(meant) or 'no'} {what}s{listed}")
        check_has_records(meant[0])
        return _of_one(meant[0], direction)

    def matches(
        self,
        opened: OpenedApplication[Snapshot],
        nodes: Mapping[int, set[str] | None],
        where: Where,
        check: Check,
        warnings: dict[str, None],
        after: tuple[int, int, int] | None = None,
    ) -> Iterator[Position]:
        """Node by node, in the order of partitions and offsets; those after a (node, partition, offset)."""
        cursor = opened.snapshot.cursor()
        for number in sorted(nodes):
            if after is not None and number < after[0]:
                continue
            begin = (0, 0) if after is None or number > after[0] else (after[1], after[2] + 1)
            node = opened.graph.topology.nodes[number]
            runs = {run.partition: run for run in opened.graph.holders(number)}
            requested = _Requested(opened, cursor, node, runs)
            with (
                self._search(requested, nodes[number], where) as search,
                time_budget(search.database, self._time_budget_s),
            ):
                yield from self._of_node(requested, search, begin, check)
                warnings.update(search.warnings)
                unsearched = self._locations.unsearched(node, runs)
                if unsearched is not None:
                    warnings[unsearched] = None

    def _search(self, requested: _Requested, files: set[str] | None, where: Where) -> RecordSearch:
        if files is None:
            return search_of(requested, self._locations, where)
        ended = requested.opened.application.ended
        return self._locations.search(requested.node, where, among=files, ended=ended)

    @staticmethod
    def _of_node(
        requested: _Requested, search: RecordSearch, begin: tuple[int, int], check: Check
    ) -> Iterator[Position]:
        graph, number = requested.opened.graph, requested.node.number
        for partition in sorted(requested.runs):
            run = requested.runs[partition].number
            if partition < begin[0]:
                continue
            check()
            first = begin[1] if partition == begin[0] else 0
            last = graph.count(number, run)
            for offset, is_match in search.matching(partition, first=first, last=last, check=check):
                if is_match:
                    yield Position(number, partition, offset, run)


_LISTED = 5


def _of_one(node: TopologyNode, direction: Direction) -> Sought:
    sought = Sought(direction)
    sought.add(node.number, _files(node) or None)
    return sought


def _files(node: TopologyNode) -> set[str]:
    return {path for info in node.partitions.values() for path in paths_of(info)}


def _by_files(
    opened: OpenedApplication[Snapshot], dataset: str, node: int | None, direction: Direction | None
) -> Sought:
    """The nodes that are meant, with the files of each that fit."""
    topology, pattern = opened.graph.topology, PathPattern(dataset)
    with_file: dict[str, dict[int, _InNode]] = defaultdict(lambda: defaultdict(_InNode))
    for number, other in topology.nodes.items():
        if not has_records(other) or node not in (None, number):
            continue
        for info in other.partitions.values():
            for path in paths_of(info):
                name = normal_path(path)
                if pattern.fits(name):
                    with_file[name][number].add(path, info)
    is_written = any(
        topology.nodes[number].kind == "sink" for nodes in with_file.values() for number in nodes
    )
    sought = Sought(direction or ("backward" if is_written else "forward"))
    for name, of_nodes in with_file.items():
        meant = list(of_nodes)
        if len(of_nodes) > 1:
            infos_of = {number: in_node.infos for number, in_node in of_nodes.items()}
            meant = nodes_meant(holders_of(topology, name, infos_of), sought.direction)
            meant = meant[:1] if sought.direction == "backward" else meant
        for number in meant:
            sought.add(number, of_nodes[number].paths, is_first=number == meant[0])
    return sought


@dataclass(slots=True)
class _InNode:
    """A file as the partitions of one node name it."""

    paths: set[str] = field(default_factory=set)
    infos: list[PartitionInfo] = field(default_factory=list)

    def add(self, path: str, info: PartitionInfo) -> None:
        self.paths.add(path)
        if not self.infos or self.infos[-1] is not info:
            self.infos.append(info)
