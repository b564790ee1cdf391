"""The shape of one application's lineage, from its events: nodes, runs, and how runs hang together.

Pure: takes decoded events, gives values. The walk over positions happens in `steps`; what is decided here is
which run answers for which partition, so that an answer never mixes two computations of one partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lineage_service.completeness import Receipt
from lineage_service.lineage import Dataset
from lineage_service.outcomes import NodeOutcome, actions_of
from lineage_service.tracing.model import cached_runs
from lineage_service.tracing.model.elements import Link, Run, TopologyNode
from lineage_service.tracing.model.id_runs import has_ids, is_taken, of_other_stages, of_splits
from lineage_service.tracing.model.split_rows import rows_of_splits
from lineage_service.tracing.model.upstream_runs import UpstreamResolver
from spark_agent import contract


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
    unresolved: frozenset[int]
    #: (node, split) of which such runs have read what some run has made that nobody told of.
    lost: frozenset[tuple[int, int]]
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
    #: Operators of queries that were not followed: none of their nodes has records.
    unfollowed: frozenset[int] = frozenset()

    def is_counted(self, node: int, run: Run) -> bool:
        """Is it, of the runs that hold a split of a node with ids, the one that the ids name?"""
        return self.run_of_split.get((node, run.split)) == run.number

    def runs_at(self, node: int, split: int) -> list[Run]:
        """The runs that hold the records of one split of a node, the earliest first."""
        return [
            self.runs[number] for number in self.runs_of.get(node, ()) if self.runs[number].split == split
        ]


def read_topology(
    application_id: str, events: Iterable[Mapping[str, Any]], receipts: Collection[Receipt]
) -> Topology:
    """The topology that the events tell, in whatever order and however often they came.

    `receipts`, of stored blocks, say whether a run that was not accepted may count all the same.
    """
    registered: dict[int, Mapping[str, Any]] = {}
    ports: dict[int, dict[int, int]] = defaultdict(dict)
    partitions: dict[int, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    runs: dict[int, Run] = {}
    kept: dict[int, Run] = {}
    kept_events: dict[int, Mapping[str, Any]] = {}
    id_links: set[tuple[int, int]] = set()
    persisted: set[int] = set()
    is_told = False
    events = sorted(events, key=lambda event: (event["time"], event.get("event", 0)))
    for event in events:
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
        elif kind == contract.RUN_KEPT:
            kept.setdefault(event["run"], _run(event))
            kept_events.setdefault(event["run"], event)
        elif kind == contract.PERSISTED:
            persisted.add(event["node"])
        elif kind == contract.APPLICATION_STARTED:
            is_told = contract.tells_what_is_kept(event)
    actions = actions_of(events)
    nodes = {
        number: _node(
            event,
            actions.get(number),
            tuple(ports[number][port] for port in sorted(ports[number])),
            partitions[number],
        )
        for number, event in registered.items()
    }
    tagged = _tagged({**kept, **runs}, receipts)
    named = _by_first(id_links)
    maybe = cached_runs.whole(
        kept, {number: event["blocks"] for number, event in kept_events.items()}, receipts
    )
    maybe = cached_runs.not_accepted(nodes, runs, maybe)
    ever_kept = persisted if is_told else None
    kept = cached_runs.that_were_read(nodes, runs, maybe, tagged, named, ever_kept)
    runs.update(kept)
    for number, run in kept.items():
        if kept_events[number].get("parts") and run.input in nodes:
            nodes[run.input] = _with_parts(nodes[run.input], run.split, kept_events[number]["parts"])
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
    unread = [run for number, run in maybe.items() if number not in kept and not has_ids(nodes, run)]
    upstream = UpstreamResolver(nodes, runs, set(run_of_split.values()), tagged, ever_kept, others=unread)
    # Of the copies of a split, those that count, those that other runs read, and what actions took.
    are_known = {*run_of_split.values(), *beside, *(link.parent_run for link in upstream.links)}
    are_known.update(run.number for run in runs.values() if is_taken(nodes, run))
    runs = {number: run for number, run in runs.items() if number in are_known or not has_ids(nodes, run)}
    runs.update({number: run for number, run in upstream.jvm_runs.items() if run.number == number})
    entered = {number: tuple(_entered(nodes, node, runs.values())) for number, node in _aggregates(nodes)}
    result_of = {number: -1 - len(upstream.jvm_runs) - at for at, number in enumerate(entered)}
    runs.update({result_of[number]: _stand_in(result_of[number], number, 1) for number in entered})
    free = -1 - len(upstream.jvm_runs) - len(entered)
    keyed = [number for number, node in nodes.items() if node.relation == contract.KEYED]
    groups = {number: free - at for at, number in enumerate(sorted(keyed))}
    runs.update({run: _stand_in(run, number, 0) for number, run in groups.items()})
    chain = tuple(_chain(nodes, runs.values()))
    # Who made the records of a node stands before who read them from a cache, and has their keys and values.
    runs_of: dict[int, dict[int, None]] = defaultdict(dict)
    for run_number, node_number, _ in chain:
        runs_of[node_number][run_number] = None
    for run in runs.values():
        runs_of[run.input][run.number] = None
        for side in sides_of(nodes.get(run.input)):
            runs_of[side][run.number] = None
    return Topology(
        application_id=application_id,
        nodes=nodes,
        children={number: tuple(sorted(numbers)) for number, numbers in children.items()},
        runs=runs,
        links=tuple(upstream.links),
        unresolved=frozenset(upstream.unresolved),
        lost=frozenset(upstream.lost),
        chain=chain,
        runs_of={number: tuple(numbers) for number, numbers in runs_of.items()},
        result_of=result_of,
        entered=entered,
        id_targets=named,
        id_sources=_by_first((target, source) for source, target in id_links),
        run_of_split=run_of_split,
        beside=beside,
        groups=groups,
        cut=frozenset(cut),
        unfollowed=_unfollowed(nodes, children),
    )


def _unfollowed(nodes: Mapping[int, TopologyNode], children: Collection[int]) -> frozenset[int]:
    """The operators of queries that were not followed, from their ends back.

    A query that was followed ends at a node with records. `children` are the nodes that others read.
    """
    stack = [
        node.number
        for node in nodes.values()
        if node.relation == contract.CARRIED and not node.exact and node.number not in children
    ]
    operators = set(stack)
    while stack:
        for parent in nodes[stack.pop()].parents:
            is_operator = parent in nodes and nodes[parent].relation == contract.CARRIED
            if is_operator and parent not in operators:
                operators.add(parent)
                stack.append(parent)
    return frozenset(operators)


def keep_partitions(partitions: dict[int, Mapping[str, Any]], event: Mapping[str, Any]) -> None:
    """Put the partitions of a later event by their splits.

    A run that read less (of a limit, say) tells fewer parts of a split: the first of those of the run that
    counts.
    """

    def reach(partition: Mapping[str, Any]) -> int:
        return max((int(part["first"]) for part in partition.get("parts", ())), default=0)

    for partition in event["partitions"]:
        split = partition["split"]
        if split not in partitions or reach(partition) >= reach(partitions[split]):
            partitions[split] = partition


def _with_parts(node: TopologyNode, split: int, parts: list[Any]) -> TopologyNode:
    """With what a run that was kept has read of files; where the driver says as much, its word counts."""
    partitions: dict[int, Mapping[str, Any]] = {split: {"split": split, "parts": parts}}
    keep_partitions(partitions, {"partitions": node.partitions.values()})
    return replace(node, partitions=partitions)


def _file_rows(nodes: Mapping[int, TopologyNode], runs: Iterable[Run]) -> dict[int, Mapping[int, range]]:
    """Of the sources that are text, by what was read of whole splits."""
    counts: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for run in runs:
        if run.is_whole:
            counts[run.input][run.split].add(run.inputs)
    file_rows: dict[int, Mapping[int, range]] = {}
    for number, by_split in counts.items():
        node = nodes.get(number)
        if node is not None and node.kind == "source" and not node.by_id and node.is_text:
            same = {split: max(inputs) for split, inputs in by_split.items() if len(inputs) == 1}
            file_rows[number] = rows_of_splits(node.partitions, same)
    return file_rows


def _tagged(runs: Mapping[int, Run], receipts: Iterable[Receipt]) -> set[int]:
    """The runs with flows of the very node that they read: batches of a shuffle say whose they are."""
    return {
        receipt.run
        for receipt in receipts
        if receipt.relation in contract.FLOW_BLOCKS
        and receipt.run in runs
        and runs[receipt.run].input == receipt.node
    }


def _by_first(pairs: Iterable[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    seconds: dict[int, list[int]] = defaultdict(list)
    for first, second in sorted(pairs):
        seconds[first].append(second)
    return {first: tuple(values) for first, values in seconds.items()}


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


def upper_bound_of(topology: Topology, node: int) -> tuple[int, ...]:
    """The nodes whose records bound what an unplaced run has read of `node`: what the JVM puts together of
    others has no runs where none is placed.
    """
    bounds: dict[int, None] = {}
    stack = list(reversed(topology.nodes[node].parents))
    while stack:
        number = stack.pop()
        parent = topology.nodes.get(number)
        if parent is not None and parent.relation in (contract.STATIC, contract.ZIP):
            stack += reversed(parent.parents)
        elif parent is not None:
            bounds[number] = None
    return tuple(bounds)


def shuffled_nodes(topology: Topology) -> frozenset[int]:
    """Nodes whose records other tasks wrote: runs begin with them, and no run has made them.

    A node that was cached begins runs, too, but another run has made it. Before the first run has come, none
    is known.
    """
    outputs = {number for _, number, _ in topology.chain}
    sides = {side for node in topology.nodes.values() for side in sides_of(node)}
    return frozenset(
        number
        for number in {run.input for run in topology.runs.values()} - outputs - sides
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
    event: Mapping[str, Any],
    outcome: NodeOutcome | None,
    parents: tuple[int, ...],
    partitions: Mapping[int, Mapping[str, Any]],
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
        outcome=outcome,
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
        read=tuple((run, first, count) for run, first, count in event.get("read") or ()),
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
