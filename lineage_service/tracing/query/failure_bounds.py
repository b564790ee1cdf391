"""The input rows among which a culprit is for sure, where it is not known which one it was.

A bound is what the failed task had read by then, as far as it has said so. Otherwise it is all that any task
has read of the inputs. Promises None where the culprit might be another row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from lineage_service.lineage import SourceRow
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import TaskRun, TopologyNode
from lineage_service.tracing.model.id_runs import has_ids
from lineage_service.tracing.model.topology import Topology
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import nodes_before, nodes_behind

__all__ = ["MOST_ROWS", "Bound", "FailureBounds", "has_read_of_own"]

#: Input rows that are listed of a failure.
MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class Bound:
    """Input rows, of which the first are listed."""

    rows: tuple[SourceRow, ...] = ()
    total: int = 0


class FailureBounds:
    """Those of open applications."""

    def __init__(self, locations: RecordLocations) -> None:
        self._locations = locations

    def of_records(
        self, opened: Opened, run: TaskRun, node: int, records: range, check: Check
    ) -> Bound | None:
        """What these records of a node in a run that failed were made of."""
        topology = opened.graph.topology
        if run.number not in topology.runs or not _is_followed(topology, run, node):
            return None
        if topology.nodes[node].kind == "source":
            return self.of_partition(topology.nodes[node], run.partition, records, check)
        if has_read_of_own(topology, run):
            return None
        walk = TraceWalk(opened.snapshot, "backward")
        walk.start_range(node, run.number, records.start, len(records))
        walk.advance(check)
        if not walk.is_exact and opened.graph.lost:
            return None  # a task has read what an unknown one had made
        reached = [
            page
            for page in walk.page(MOST_ROWS, None, check).reached
            if topology.nodes[page.node].kind == "source"
        ]
        rows: list[SourceRow] = []
        for page in reached:
            places = [(at.partition, at.offset) for at in page.positions]
            rows += self._listed(topology.nodes[page.node], places, check)
        return Bound(tuple(rows[:MOST_ROWS]), sum(page.total for page in reached))

    def of_partition(self, node: TopologyNode, partition: int, records: range, check: Check) -> Bound:
        """Records of one partition of a source."""
        places = [(partition, offset) for offset in records[:MOST_ROWS]]
        return Bound(tuple(self._listed(node, places, check)), len(records))

    def of_inputs(
        self, opened: Opened, nodes: Iterable[int], check: Check, *, unless_in: int | None = None
    ) -> Bound | None:
        """All that tasks have read of the inputs of these nodes, and of what is made of them.

        None if the stage `unless_in` may read a scan: its task has not said how much of it.
        """
        topology = opened.graph.topology
        before = nodes_before(topology, nodes_behind(topology, set(nodes) & topology.nodes.keys()))
        sources = [topology.nodes[number] for number in sorted(before)]
        sources = [node for node in sources if node.kind == "source"]
        scans = {node.number for node in sources if node.by_id}
        if scans and unless_in is not None and not _are_read_before(topology, scans, unless_in):
            return None
        read = _records_read(topology)
        rows: list[SourceRow] = []
        total = 0
        for node in sources:
            counts = self._counts(node, read.get(node.number, {}), check)
            if counts is None:
                return None
            total += sum(counts.values())
            rows += self._listed(node, _places(counts, MOST_ROWS - len(rows)), check)
        return Bound(tuple(rows), total) if sources else None

    def rows_in(self, node: TopologyNode, partition: int, check: Check) -> int | None:
        """How many rows a partition of a text file has; None if that is not known."""
        info = node.partitions.get(partition, {})
        path, start, length = (info.get(key) for key in ("path", "start", "length"))
        if not node.is_text or not isinstance(start, int) or not isinstance(length, int):
            return None
        return self._locations.rows_in(str(path), start, length, check)

    def _counts(self, node: TopologyNode, read: Mapping[int, int], check: Check) -> Mapping[int, int] | None:
        """Partition -> records that may have been read of it."""
        if node.by_id or node.dataset is None:  # records of lists and ranges are no input rows
            return read
        # Of an RDD, a task that failed may have read what no task has reported.
        counts: dict[int, int] = {}
        for partition in node.partitions:
            count = self.rows_in(node, partition, check)
            if count is None:
                return None
            counts[partition] = count
        return counts or None

    def _listed(
        self, node: TopologyNode, places: Iterable[tuple[int, int]], check: Check
    ) -> Iterator[SourceRow]:
        places = list(places)
        rows = self._locations.rows_of(node, places, check)
        return (rows[place] for place in places if place in rows)


def has_read_of_own(topology: Topology, run: TaskRun) -> bool:
    """Has it read what its own task made? That was never committed; the runs of other tasks are no bound."""
    node = topology.nodes.get(run.input)
    is_lost = (run.input, run.partition) in topology.lost or (node is not None and node.by_id)
    return run.number in topology.unresolved and is_lost


def _are_read_before(topology: Topology, scans: Set[int], stage: int) -> bool:
    """Have tasks of other stages read all that a job reads of these scans?

    Those of a stage before a shuffle have. Of a stage that gives rows to an action, a job may run some tasks,
    and the next job more of them, as `take` does.
    """
    not_before = {None, stage, *(run.stage for run in topology.runs.values() if _gives(topology, run))}
    stages = [(run.input, run.stage) for run in topology.runs.values() if run.input in scans]
    return scans == {scan for scan, _ in stages} and all(at not in not_before for _, at in stages)


def _gives(topology: Topology, run: TaskRun) -> bool:
    """Does it give records to an action?"""
    nodes = {run.input, *run.nodes}
    if any(topology.nodes[number].kind == "sink" for number in nodes & topology.nodes.keys()):
        return True
    action = None if run.action is None else topology.nodes.get(run.action)
    return action is not None and not nodes.isdisjoint(action.parents)


def _is_followed(topology: Topology, run: TaskRun, node: int) -> bool:
    """Are all nodes of the run up to this one known?"""
    nodes = (run.input, *run.nodes)
    return node in nodes and all(number in topology.nodes for number in nodes[: nodes.index(node) + 1])


def _records_read(topology: Topology) -> Mapping[int, Mapping[int, int]]:
    """Node -> partition -> how many of its records a task has read at most, those that failed too."""
    read: dict[int, dict[int, int]] = {}

    def add(node: int, partition: int, count: int) -> None:
        of_node = read.setdefault(node, {})
        of_node[partition] = max(of_node.get(partition, 0), count)

    for run in topology.runs.values():
        add(run.input, run.partition, run.outputs if has_ids(topology.nodes, run) else run.inputs)
    for failed in topology.failed.values():
        for scan in failed.scans:
            add(scan.node, scan.partition, scan.records)
    return read


def _places(counts: Mapping[int, int], most: int) -> list[tuple[int, int]]:
    places: list[tuple[int, int]] = []
    for partition in sorted(counts):
        places += [(partition, offset) for offset in range(min(counts[partition], most - len(places)))]
    return places
