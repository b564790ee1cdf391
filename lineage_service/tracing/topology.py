"""The shape of one application's lineage, from its events: nodes, runs, and how runs hang together.

Pure: takes decoded events, gives values. The walk over positions happens in `steps`; what is decided here is
which run answers for which partition, so that an answer never mixes two computations of one partition.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lineage_service.answers import Dataset
from lineage_service.tracing.id_runs import has_ids, is_taken, names_ids, of_other_stages, of_splits
from lineage_service.tracing.rows_of_splits import rows_of_splits
from spark_agent import contract


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyNode:
    """One node as it was registered; `parents` by port."""

    number: int
    name: str
    description: str
    kind: str
    relation: str
    exact: bool
    reason: str
    call_site: str
    dataset: Dataset | None
    parents: tuple[int, ...]
    partitions: Mapping[int, Mapping[str, Any]]
    by_id: bool = False
    limit: int | None = None  # only so many of its records are given on, of the first splits
    operation: int | None = None  # the node of the operation that a step is a part of
    file_rows: Mapping[int, range] = field(default_factory=dict)  # split -> rows of its file, where known

    @property
    def is_public(self) -> bool:
        return self.kind != "step"

    @property
    def is_text(self) -> bool:
        """Its records are rows of text files, if it has files."""
        return self.dataset is None or self.dataset.format == "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One committed run (see docs/architecture.md)."""

    number: int
    split: int
    attempt: int
    action: int | None
    input: int
    nodes: tuple[int, ...]
    overridden: frozenset[int]
    inputs: int
    outputs: int
    counts: Mapping[int, int]  # outputs of the nodes that say nothing else about them
    execution: int = 0
    stage: int | None = None  # of Spark
    is_whole: bool = False  # its inputs are all records of its split


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Inputs [start, start + count) of `run` at `node` are the outputs of `parent_run` at `parent_node`."""

    node: int
    run: int
    parent_node: int
    parent_run: int
    start: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    application_id: str
    nodes: Mapping[int, TopologyNode]
    children: Mapping[int, tuple[int, ...]]
    runs: Mapping[int, Run]
    links: tuple[Link, ...]
    #: (run, node, node before it in the run), sinks of actions included.
    chain: tuple[tuple[int, int, int], ...]
    runs_of: Mapping[int, tuple[int, ...]] = field(repr=False)
    #: Sink of an aggregating action that ended well -> the run that holds its one record.
    result_of: Mapping[int, int]
    #: Sink of an aggregating action -> the runs whose records entered.
    entered: Mapping[int, tuple[int, ...]]
    #: Runs whose input came from runs that are not known: their inputs can only be bounded.
    unplaced: frozenset[int]
    #: Node whose records are named by ids -> the nodes that name them, and the other way round.
    id_targets: Mapping[int, tuple[int, ...]]
    id_sources: Mapping[int, tuple[int, ...]]
    #: (node with ids, split) -> the run that counts.
    run_of_split: Mapping[tuple[int, int], int] = field(repr=False)
    #: Runs of steps that count beside those: the same part of a plan, computed in another stage, too.
    beside: frozenset[int]
    #: Node of the relation `keyed` -> the run that stands for its groups.
    groups: Mapping[int, int]
    #: Runs of outputs with a limit: their flows may speak of more records than they have.
    cut: frozenset[int] = frozenset()

    def is_counted(self, node: int, run: Run) -> bool:
        """Is it, of the runs that hold a split of a node with ids, the one that the ids name?"""
        return self.run_of_split.get((node, run.split)) == run.number

    def runs_at(self, node: int, split: int) -> list[Run]:
        """The runs that hold the records of one split of a node, the earliest first."""
        return [
            self.runs[number] for number in self.runs_of.get(node, ()) if self.runs[number].split == split
        ]


def read_topology(application_id: str, events: Iterable[Mapping[str, Any]]) -> Topology:
    """The topology that the events tell, in whatever order and however often they came."""
    registered: dict[int, Mapping[str, Any]] = {}
    ports: dict[int, dict[int, int]] = defaultdict(dict)
    partitions: dict[int, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    runs: dict[int, Run] = {}
    id_links: set[tuple[int, int]] = set()
    for event in sorted(events, key=lambda each: (each["time"], each.get("event", 0))):
        kind = event["type"]
        if kind == contract.NODE_REGISTERED:
            registered[event["node"]] = event
        elif kind == contract.LINK and event.get("ids"):
            id_links.add((event["source"], event["target"]))
        elif kind == contract.LINK:
            ports[event["target"]][event["port"]] = event["source"]
        elif kind == contract.PARTITIONS:
            keep_partitions(partitions[event["node"]], event)
        elif kind == contract.RUN_COMMITTED:
            runs.setdefault(event["run"], _run(event))
    nodes = {
        number: _node(event, tuple(ports[number][port] for port in sorted(ports[number])), partitions[number])
        for number, event in registered.items()
    }
    for number, rows in _file_rows(nodes, runs.values()).items():
        nodes[number] = replace(nodes[number], file_rows=rows)
    children: dict[int, list[int]] = defaultdict(list)
    for node in nodes.values():
        for parent in dict.fromkeys(node.parents):
            children[parent].append(node.number)
    run_of_split = of_splits(nodes, runs.values())
    beside = of_other_stages(nodes, runs, run_of_split)
    cut = _cut(nodes, runs, run_of_split)
    runs.update(cut)
    placing = _Placing(nodes, runs, set(run_of_split.values()))
    # Of the copies of a split, those that count, those that other runs read, and what actions took.
    are_known = {*run_of_split.values(), *beside, *(link.parent_run for link in placing.links)}
    are_known.update(run.number for run in runs.values() if is_taken(nodes, run))
    runs = {number: run for number, run in runs.items() if number in are_known or not has_ids(nodes, run)}
    runs.update({number: run for number, run in placing.jvm_runs.items() if run.number == number})
    entered = {number: tuple(_entered(nodes, node, runs.values())) for number, node in _aggregates(nodes)}
    result_of = {number: -1 - len(placing.jvm_runs) - at for at, number in enumerate(entered)}
    runs.update({result_of[number]: _stand_in(result_of[number], number, 1) for number in entered})
    free = -1 - len(placing.jvm_runs) - len(entered)
    keyed = [number for number, node in nodes.items() if node.relation == contract.KEYED]
    groups = {number: free - at for at, number in enumerate(sorted(keyed))}
    runs.update({run: _stand_in(run, number, 0) for number, run in groups.items()})
    chain = tuple(_chain(nodes, runs.values()))
    runs_of: dict[int, dict[int, None]] = defaultdict(dict)
    for run in runs.values():
        runs_of[run.input][run.number] = None
        for side in sides_of(nodes.get(run.input)):
            runs_of[side][run.number] = None
    for run_number, node_number, _ in chain:
        runs_of[node_number][run_number] = None
    return Topology(
        application_id=application_id,
        nodes=nodes,
        children={number: tuple(sorted(found)) for number, found in children.items()},
        runs=runs,
        links=tuple(placing.links),
        unplaced=frozenset(placing.unplaced),
        chain=chain,
        runs_of={number: tuple(found) for number, found in runs_of.items()},
        result_of=result_of,
        entered=entered,
        id_targets=_by_first(id_links),
        id_sources=_by_first((target, source) for source, target in id_links),
        run_of_split=run_of_split,
        beside=beside,
        groups=groups,
        cut=frozenset(cut),
    )


def keep_partitions(held: dict[int, Mapping[str, Any]], event: Mapping[str, Any]) -> None:
    """Put the partitions of a later event by their splits.

    A run that read less (of a limit, say) tells fewer parts of a split: the first of those of the run that
    counts.
    """

    def reach(partition: Mapping[str, Any]) -> int:
        return max((int(part["first"]) for part in partition.get("parts", ())), default=0)

    for partition in event["partitions"]:
        split = partition["split"]
        if split not in held or reach(partition) >= reach(held[split]):
            held[split] = partition


def _file_rows(nodes: Mapping[int, TopologyNode], runs: Iterable[Run]) -> dict[int, Mapping[int, range]]:
    """Of the sources that are text, by what was read of whole splits."""
    counts: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for run in runs:
        if run.is_whole:
            counts[run.input][run.split].add(run.inputs)
    found: dict[int, Mapping[int, range]] = {}
    for number, by_split in counts.items():
        node = nodes.get(number)
        if node is not None and node.kind == "source" and not node.by_id and node.is_text:
            same = {split: max(each) for split, each in by_split.items() if len(each) == 1}
            found[number] = rows_of_splits(node.partitions, same)
    return found


def _by_first(pairs: Iterable[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = defaultdict(list)
    for first, second in sorted(pairs):
        found[first].append(second)
    return {first: tuple(each) for first, each in found.items()}


def _cut(
    nodes: Mapping[int, TopologyNode], runs: Mapping[int, Run], run_of_split: Mapping[tuple[int, int], int]
) -> dict[int, Run]:
    """The runs of outputs with a limit, with as many records as were given on: those of the first splits."""
    cut: dict[int, Run] = {}
    left = {number: node.limit for number, node in nodes.items() if node.limit is not None}
    for (number, _), run_number in sorted(run_of_split.items()):
        if number in left:
            run = runs[run_number]
            count = min(run.outputs, left[number])
            left[number] -= count
            cut[run_number] = replace(run, inputs=count, outputs=count)
    return cut


def sides_of(node: TopologyNode | None) -> tuple[int, ...]:
    """The nodes that stand for the sides of a cartesian product; their records are those of its runs."""
    return node.parents if node is not None and node.relation == contract.PRODUCT else ()


def shuffled_nodes(topology: Topology) -> frozenset[int]:
    """Nodes whose records other tasks wrote: runs begin with them, and no run has made them.

    A node that was cached begins runs, too, but another run has made it. Before the first run has come, none
    is known.
    """
    made = {number for _, number, _ in topology.chain}
    sides = {side for node in topology.nodes.values() for side in sides_of(node)}
    return frozenset(
        number
        for number in {run.input for run in topology.runs.values()} - made - sides
        if (node := topology.nodes.get(number)) is not None
        and node.relation == contract.FLOWS
        and node.parents
        and not node.by_id
        and node.kind != "sink"  # what a driver kept of its records is a run of the sink itself
    )


def _aggregates(nodes: Mapping[int, TopologyNode]) -> Iterable[tuple[int, TopologyNode]]:
    """Aggregating actions that have given their result; one that failed has none."""
    for number, node in nodes.items():
        if node.relation == contract.AGGREGATE and node.partitions:
            yield number, node


def _entered(nodes: Mapping[int, TopologyNode], sink: TopologyNode, runs: Iterable[Run]) -> Iterable[int]:
    """Runs of the action that hold records of what it aggregates."""
    for run in runs:
        if run.action == sink.number and set(sink.parents) & {run.input, *run.nodes}:
            yield run.number


def _stand_in(number: int, node: int, records: int) -> Run:
    """For what no task made alone: the record of an aggregating action, or groups, which nobody counts."""
    return Run(
        number=number,
        split=0,
        attempt=0,
        action=node if records else None,
        input=node,
        nodes=(),
        overridden=frozenset(),
        inputs=records,
        outputs=records,
        counts={},
    )


def _node(
    event: Mapping[str, Any], parents: tuple[int, ...], partitions: Mapping[int, Mapping[str, Any]]
) -> TopologyNode:
    dataset = event.get("dataset")
    return TopologyNode(
        number=event["node"],
        name=event["name"],
        description=event["description"],
        kind=event["kind"],
        relation=event["relation"],
        exact=event["exact"],
        reason=event.get("reason") or "",
        call_site=event.get("call_site") or "",
        dataset=Dataset(**{key: str(dataset.get(key, "")) for key in ("namespace", "name", "format")})
        if isinstance(dataset, Mapping)
        else None,
        parents=parents,
        partitions=partitions,
        by_id=event.get("by_id") is True,
        limit=event.get("limit"),
        operation=event.get("operation"),
    )


def _run(event: Mapping[str, Any]) -> Run:
    return Run(
        number=event["run"],
        split=event["split"],
        attempt=event["attempt"],
        action=event["action"],
        input=event["input"],
        nodes=tuple(event["nodes"]),
        overridden=frozenset(event.get("overridden") or ()),
        inputs=event["inputs"],
        outputs=event["outputs"],
        counts={int(node): count for node, count in (event.get("counts") or {}).items()},
        execution=event.get("execution", 0),
        stage=event.get("stage"),
        is_whole=event.get("whole") is True,
    )


def _chain(nodes: Mapping[int, TopologyNode], runs: Iterable[Run]) -> Iterable[tuple[int, int, int]]:
    """Each node of a run with the one before it. Nodes that were never registered are a library's own."""
    sinks = {
        number: node.parents[0]
        for number, node in nodes.items()
        if node.kind == "sink" and node.parents and node.relation in (contract.IDENTITY, contract.DATASET)
    }
    for run in runs:
        before = run.input
        for number in run.nodes:
            if number not in nodes:
                break
            yield run.number, number, before
            before = number
        # A sink that is no RDD of its own (collect): the outputs of its parent in the runs of its job.
        sink = run.action
        if sink in sinks and sink not in run.nodes and sinks[sink] in (run.input, *run.nodes):
            yield run.number, sink, sinks[sink]


class _Placing:
    """Finds, for what each run read from the JVM without shuffle tags, whose outputs it was.

    Where only the JVM made a partition (a union of unions, a file that is unioned before Python reads it), a
    run of its own stands for it: it has a negative number and no nodes, and belongs to one reading run.
    """

    def __init__(
        self, nodes: Mapping[int, TopologyNode], runs: Mapping[int, Run], counting: Collection[int]
    ) -> None:
        """`counting`: of the runs whose records are known by ids, those that count."""
        self._nodes = nodes
        self._by_output: dict[tuple[int, int], list[Run]] = defaultdict(list)
        #: Nodes that tasks made in their chains: what others read of them was kept, not shuffled.
        self._made = {number for run in runs.values() for number in run.nodes if number != run.input}
        those: list[Run] = []
        for run in runs.values():
            is_id = has_ids(nodes, run)
            if not is_id and run.nodes:
                self._by_output[run.nodes[-1], run.split].append(run)
            elif is_id and not run.nodes and names_ids(nodes[run.input]):
                self._by_output[run.input, run.split].append(run)
            # The rows of a DataFrame made of an RDD have ids, and are records that a run of that RDD has.
            if not is_id or (run.number in counting and not names_ids(nodes[run.input])):
                those.append(run)
        self.links: list[Link] = []
        self.jvm_runs: dict[int, Run] = {}
        self.unplaced: set[int] = set()
        self._reads: Counter[tuple[int, int, int]] = Counter()  # (reading run, node, split)
        for run in those:
            node = nodes.get(run.input)
            if node is not None and not self._place_input(node, run):
                self.unplaced.add(run.number)

    def _place_input(self, node: TopologyNode, run: Run) -> bool:
        """False when the input of `run` should come from other runs and these are not known."""
        if node.relation == contract.STATIC:
            return self._concatenate(node, run.split, run, run.number, run.inputs) is not None
        if node.relation in (contract.SOURCE, contract.DATASET) or not node.parents:
            return True
        if node.relation == contract.PRODUCT:
            for side in node.parents:
                self._link(node.number, run.number, side, run.number, 0, run.inputs)
            return True
        if node.relation == contract.ZIP:
            return self._zip(node, run)
        found = _computed(self._by_output[node.number, run.split], run)
        if found is not None:  # computed by Python or by a plan, or kept by cache(), and read here
            # The JVM may have read ahead of a worker that had enough.
            count = min(found.outputs, run.inputs) if node.by_id else found.outputs
            self._link(node.number, run.number, node.number, found.number, 0, count)
            return count == run.inputs or not node.by_id
        # A shuffle: its batches say where they come from. What a task kept that failed afterwards has no run.
        is_shuffle = node.relation == contract.FLOWS and node.number not in self._made
        return (is_shuffle or not run.inputs) and not node.by_id

    def _zip(self, node: TopologyNode, run: Run) -> bool:
        """Link record k of each parent to input k of `run`."""
        for parent in node.parents:
            placed = self._place(parent, run.split, run, run.inputs)
            if placed is None:
                return False
            self._link(node.number, run.number, parent, placed[0], 0, run.inputs)
        return True

    def _concatenate(
        self, node: TopologyNode, split: int, reader: Run, into: int, count: int | None
    ) -> int | None:
        """Link the parts of a static partition to `into`; their records together, None if not known."""
        parts = [
            (node.parents[port], parent)
            for port, parent in node.partitions.get(split, {}).get("parents", ())
            if port < len(node.parents)
        ]
        start = 0
        for parent, parent_split in parts:
            placed = self._place(parent, parent_split, reader, count if len(parts) == 1 else None)
            if placed is None:
                return None
            self._link(node.number, into, parent, placed[0], start, placed[1])
            start += placed[1]
        return start if parts else None

    def _place(self, number: int, split: int, reader: Run, count: int | None) -> tuple[int, int] | None:
        """(run, records) that hold one split of a node as `reader` read it."""
        place = reader.number, number, split
        found = _computed(self._by_output[number, split], reader, self._reads[place])
        self._reads[place] += 1
        if found is not None:
            return found.number, found.outputs
        node = self._nodes.get(number)
        if node is None or node.relation not in (contract.STATIC, contract.SOURCE):
            return None
        made = -1 - len(self.jvm_runs)
        self.jvm_runs[made] = reader  # taken before the parts take theirs
        records = count if node.relation == contract.SOURCE else None
        if node.relation == contract.STATIC:
            records = self._concatenate(node, split, reader, made, count)
        if records is None:
            return None
        self.jvm_runs[made] = Run(
            number=made,
            split=split,
            attempt=reader.attempt,
            action=None,
            input=number,
            nodes=(),
            overridden=frozenset(),
            inputs=records,
            outputs=records,
            counts={},
        )
        return made, records

    def _link(self, node: int, run: int, parent: int, parent_run: int, start: int, count: int) -> None:
        link = Link(node=node, run=run, parent_node=parent, parent_run=parent_run, start=start, count=count)
        self.links.append(link)


def _computed(candidates: Sequence[Run], reader: Run, before: int = 0) -> Run | None:
    """The run whose output `reader` read, which has read the partition `before` times already.

    That of its own task attempt, if it has one: a coalesce may read a partition twice, and computes it twice.
    Else the last one that began before it: a cache or a checkpoint keeps what was computed last.
    """
    others = [run for run in candidates if run.number != reader.number]
    same_attempt = [run for run in others if run.attempt == reader.attempt]
    if same_attempt:
        return same_attempt[min(before, len(same_attempt) - 1)]
    earlier = [run for run in others if run.nodes and run.attempt < reader.attempt]
    return max(earlier, key=lambda run: run.attempt) if earlier else others[0] if others else None
