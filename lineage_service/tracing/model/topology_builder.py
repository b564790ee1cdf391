"""Makes the topology of an application from its events: which task runs count, and how they hang together.

Pure: takes decoded events, gives values. Which run counts for which partition is decided here, so that a
result never mixes two computations of one partition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lineage_service.completeness import Receipt
from lineage_service.tracing.model import cached_runs
from lineage_service.tracing.model.elements import FailedRun, TaskRun, TopologyNode
from lineage_service.tracing.model.event_log import read_events
from lineage_service.tracing.model.id_runs import (
    aggregated_runs,
    counted_runs,
    has_ids,
    is_taken,
    of_other_stages,
)
from lineage_service.tracing.model.partition_rows import rows_of_partitions
from lineage_service.tracing.model.topology import Topology, sides_of
from lineage_service.tracing.model.upstream_runs import UpstreamResolver
from spark_agent import contract

__all__ = ["read_topology"]

_Nodes = Mapping[int, TopologyNode]


def read_topology(
    application_id: str,
    events: Iterable[Mapping[str, Any]],
    receipts: Collection[Receipt],
    *,
    has_failed: bool = False,
) -> Topology:
    """The topology by the events, in whatever order and however often they came.

    `receipts`, of stored blocks, say whether a run that was not accepted may count all the same.
    `has_failed`: with the runs that an error has ended, for traces that begin in one. Nobody has read them.
    """
    log = read_events(events)
    nodes = log.nodes()
    id_targets = _by_first(log.id_links)
    failed = {number: failed.run for number, failed in log.failed.items()} if has_failed else {}
    failed = {number: run for number, run in failed.items() if number not in log.committed}
    tagged = _tagged({**log.cached, **log.committed, **failed}, receipts)
    blocks = {number: event["blocks"] for number, event in log.cache_events.items()}
    not_committed = {number: run for number, run in log.cached.items() if number not in log.committed}
    candidates = cached_runs.not_accepted(
        nodes, log.committed, cached_runs.whole(not_committed, blocks, receipts)
    )
    readers = {**log.committed, **failed}
    cached = cached_runs.that_were_read(
        nodes, readers, candidates, tagged, id_targets, log.persisted, failed=failed
    )
    for run in cached.values():
        if run.input in nodes:
            nodes[run.input] = log.with_files_of_cached(nodes[run.input], run)
    for number in failed:
        for scan in log.failed[number].scans:
            if scan.node in nodes:
                nodes[scan.node] = log.with_files_of_failed(nodes[scan.node], scan)
    runs = {**log.committed, **cached}
    for number, rows in _file_rows(nodes, runs.values()).items():
        nodes[number] = replace(nodes[number], file_rows=rows)
    run_of_partition = counted_runs(nodes, runs.values())
    in_other_stages = of_other_stages(nodes, runs, run_of_partition)
    limited = _limited(nodes, runs, run_of_partition)
    runs.update(limited)
    runs.update(failed)
    upstream = UpstreamResolver(
        nodes,
        runs,
        {*run_of_partition.values(), *failed},
        tagged,
        log.persisted,
        others=[
            run for number, run in candidates.items() if number not in cached and not has_ids(nodes, run)
        ],
        unread=failed,
    )
    # Of the copies of a partition, those that count, those that other runs read, and what actions took.
    counted = {*run_of_partition.values(), *in_other_stages, *(link.parent_run for link in upstream.links)}
    counted |= failed.keys()
    counted |= aggregated_runs(nodes, runs.values())
    runs = {
        number: run
        for number, run in runs.items()
        if number in counted or is_taken(nodes, run) or not has_ids(nodes, run)
    }
    runs.update(upstream.jvm_runs)
    stand_ins = _stand_ins(nodes, runs.values(), cached, free=-1 - len(upstream.jvm_runs))
    runs.update(stand_ins.runs)
    chain = tuple(_chain(nodes, runs.values()))
    children = _by_first((parent, node.number) for node in nodes.values() for parent in set(node.parents))
    return Topology(
        application_id=application_id,
        nodes=nodes,
        children=children,
        runs=runs,
        links=tuple(upstream.links),
        unresolved=frozenset(upstream.unresolved),
        lost=frozenset(upstream.lost),
        chain=chain,
        runs_of=_runs_of(nodes, runs.values(), chain),
        result_of=stand_ins.result_of,
        entered=stand_ins.entered,
        id_targets=id_targets,
        id_sources=_by_first((target, source) for source, target in log.id_links),
        run_of_partition=run_of_partition,
        in_other_stages=in_other_stages,
        groups=stand_ins.groups,
        limited=frozenset(limited),
        failed=_with_stored(log.failed, receipts),
        checked=tuple(log.checked),
        unfollowed=_unfollowed(nodes, children),
    )


def _with_stored(failed: Mapping[int, FailedRun], receipts: Collection[Receipt]) -> dict[int, FailedRun]:
    runs = {number: run.run for number, run in failed.items()}
    stored = cached_runs.whole(runs, {number: run.blocks for number, run in failed.items()}, receipts)
    return {number: replace(run, is_stored=number in stored) for number, run in failed.items()}


def _tagged(runs: Mapping[int, TaskRun], receipts: Iterable[Receipt]) -> set[int]:
    """The runs with flows of the very node that they read: batches of a shuffle say whose they are."""
    return {
        receipt.run
        for receipt in receipts
        if receipt.relation in contract.FLOW_BLOCKS
        and receipt.run in runs
        and runs[receipt.run].input == receipt.node
    }


def _file_rows(nodes: _Nodes, runs: Iterable[TaskRun]) -> dict[int, Mapping[int, range]]:
    """Of the sources that are text, by what was read of whole partitions."""
    counts: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for run in runs:
        if run.is_whole:
            counts[run.input][run.partition].add(run.inputs)
    file_rows: dict[int, Mapping[int, range]] = {}
    for number, by_partition in counts.items():
        node = nodes.get(number)
        if node is not None and node.kind == "source" and not node.by_id and node.is_text:
            same = {partition: max(inputs) for partition, inputs in by_partition.items() if len(inputs) == 1}
            file_rows[number] = rows_of_partitions(node.partitions, same)
    return file_rows


def _limited(
    nodes: _Nodes, runs: Mapping[int, TaskRun], run_of_partition: Mapping[tuple[int, int], int]
) -> dict[int, TaskRun]:
    """The runs of outputs with a limit, with as many records as were given on: of the first partitions."""
    limited: dict[int, TaskRun] = {}
    left = {number: node.limit for number, node in nodes.items() if node.limit is not None}
    for (number, _), run_number in sorted(run_of_partition.items()):
        if number in left:
            run = runs[run_number]
            count = min(run.outputs, left[number])
            left[number] -= count
            limited[run_number] = replace(run, inputs=count, outputs=count)
    return limited


# -- runs that no task made -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _StandIns:
    """Runs for what no task made alone, with the fields of the same names of a topology."""

    runs: Mapping[int, TaskRun]
    entered: Mapping[int, tuple[int, ...]]
    result_of: Mapping[int, int]
    groups: Mapping[int, int]


def _stand_ins(nodes: _Nodes, runs: Collection[TaskRun], cached: Collection[int], free: int) -> _StandIns:
    """For results of aggregating actions, and for groups, which are not counted. Numbers go down from `free`.

    An action that failed has given no result.
    """
    entered = {
        number: tuple(_entered(node, runs, cached))
        for number, node in nodes.items()
        if node.relation == contract.AGGREGATE and node.partitions
    }
    result_of = {number: free - at for at, number in enumerate(entered)}
    keyed = sorted(number for number, node in nodes.items() if node.relation == contract.KEYED)
    groups = {number: free - len(entered) - at for at, number in enumerate(keyed)}
    results = [_stand_in(run, number, action=number, records=1) for number, run in result_of.items()]
    of_groups = [_stand_in(run, number, action=None, records=0) for number, run in groups.items()]
    return _StandIns(
        runs={run.number: run for run in (*results, *of_groups)},
        entered=entered,
        result_of=result_of,
        groups=groups,
    )


def _entered(sink: TopologyNode, runs: Collection[TaskRun], cached: Collection[int]) -> list[int]:
    """Runs of the action that hold records of what it aggregates.

    And the `cached` ones of partitions that none of these has read, where a library of the JVM ran its jobs:
    it found them in a cache of its own.
    """
    own = [run for run in runs if run.action == sink.number and set(sink.parents) & {run.input, *run.nodes}]
    read = {(run.input, run.partition) for run in own}
    is_of_library = bool(own) and not any(run.nodes for run in own)
    kept = [
        run.number
        for run in (runs if is_of_library else ())
        if run.number in cached and run.input in sink.parents and (run.input, run.partition) not in read
    ]
    return [*(run.number for run in own), *kept]


def _stand_in(number: int, node: int, *, action: int | None, records: int) -> TaskRun:
    return TaskRun(
        number=number,
        partition=0,
        attempt=0,
        action=action,
        input=node,
        nodes=(),
        overridden=frozenset(),
        inputs=records,
        outputs=records,
        counts={},
    )


# -- what hangs together ----------------------------------------------------------------------------------


def _chain(nodes: _Nodes, runs: Iterable[TaskRun]) -> Iterable[tuple[int, int, int]]:
    """(run, node, node before it) of all runs. Nodes that were never registered are a library's own."""
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


def _runs_of(
    nodes: _Nodes, runs: Iterable[TaskRun], chain: Iterable[tuple[int, int, int]]
) -> dict[int, tuple[int, ...]]:
    """Node -> the runs that hold records of it.

    Who made the records of a node stands before who read them from a cache, and has their keys and values.
    """
    runs_of: dict[int, dict[int, None]] = defaultdict(dict)
    for run_number, node_number, _ in chain:
        runs_of[node_number][run_number] = None
    for run in runs:
        for number in (run.input, *sides_of(nodes.get(run.input))):
            runs_of[number][run.number] = None
    return {number: tuple(numbers) for number, numbers in runs_of.items()}


def _unfollowed(nodes: _Nodes, children: Collection[int]) -> frozenset[int]:
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


def _by_first(pairs: Iterable[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    """The second of each pair by the first, ascending."""
    seconds: dict[int, list[int]] = defaultdict(list)
    for first, second in sorted(pairs):
        seconds[first].append(second)
    return {first: tuple(values) for first, values in seconds.items()}
