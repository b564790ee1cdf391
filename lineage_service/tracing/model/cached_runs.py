"""What tasks left in a cache before they failed, or were no longer needed: task runs that no commit manifest
accepts, and whose records others read. Pure.

Spark drops what a failed attempt reports to the driver, and keeps what it has cached. So such a run reports
itself (`run_kept`), and counts if, and only if, a run that counts has read what it made. A program without
Spark that fails reports its runs so: they count where a failed run has read them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from lineage_service.completeness import Receipt
from lineage_service.tracing.model.elements import TaskRun, TopologyNode
from lineage_service.tracing.model.id_runs import aggregated_nodes, counted_runs, has_ids, names_ids
from lineage_service.tracing.model.upstream_runs import UpstreamResolver
from spark_agent import contract

__all__ = ["not_accepted", "that_were_read", "whole"]

_Nodes = Mapping[int, TopologyNode]
_Runs = Mapping[int, TaskRun]


def whole(cached: _Runs, blocks: Mapping[int, int], receipts: Iterable[Receipt]) -> dict[int, TaskRun]:
    """Those whose `blocks` are all stored: others are not waited for, whose tasks may have ended too soon."""
    stored_blocks = {(receipt.run, receipt.seq) for receipt in receipts if receipt.run in cached}
    stored = Counter(run for run, _ in stored_blocks)
    return {number: run for number, run in cached.items() if stored[number] == blocks[number]}


def not_accepted(nodes: _Nodes, committed: _Runs, cached: _Runs) -> dict[int, TaskRun]:
    """Those whose attempts Spark did not accept. They serve no action: what they gave to one came to nothing.

    Of nodes with ids, an accepted attempt that computed the same is there for sure, and says all.
    """
    accepted = {_computed(nodes, run) for run in committed.values() if has_ids(nodes, run)}
    candidates: dict[int, TaskRun] = {}
    for number, run in cached.items():
        if number in committed or not (run.nodes or has_ids(nodes, run)):
            continue
        if has_ids(nodes, run) and _computed(nodes, run) in accepted:
            continue
        candidates[number] = replace(run, action=None)
    return candidates


def that_were_read(
    nodes: _Nodes,
    committed: _Runs,
    candidates: _Runs,
    tagged: Collection[int],
    targets: Mapping[int, Collection[int]],
    persisted: Collection[int] | None,
    *,
    failed: Collection[int] = (),
) -> dict[int, TaskRun]:
    """The candidates that filled a cache which a committed run read, directly or by way of others.

    Rows that an aggregating action took count, too: a library keeps them for the jobs that it runs for the
    action, and no run says that these have read them. `targets`: which nodes name the ids of a node. `tagged`
    and `persisted`: see `UpstreamResolver`. Of the runs, `failed` may have read what their attempts had made.
    """
    if not candidates:
        return {}
    counted = {*counted_runs(nodes, committed.values()).values(), *candidates, *failed}
    runs = {**committed, **candidates}
    reads: dict[int, set[int]] = defaultdict(set)
    for link in UpstreamResolver(nodes, runs, counted, tagged, persisted, unread=failed).links:
        reads[link.run].add(link.parent_run)
    readable = _readable_by(nodes, candidates, targets)
    taken = aggregated_nodes(nodes)
    reached = {*committed, *(number for number, run in candidates.items() if run.input in taken)}
    frontier = list(reached)
    while frontier:
        number = frontier.pop()
        new = set(reads[number])
        if number in runs:  # else one that stands for what the JVM made
            new |= readable.caches[runs[number].input]
        if number in candidates or number in failed:
            new |= readable.of_same_attempt(nodes, runs[number])
            new |= readable.of_program(nodes, runs[number])
        new -= reached
        reached |= new
        frontier.extend(new)
    return {number: run for number, run in candidates.items() if number in reached}


@dataclass(frozen=True, slots=True)
class _ReadableBy:
    """Runs that no link names, by those that may have read them.

    Of a cache, whoever reads it reads what one of its attempts left: ids are the same in each, so that with
    the most records will do. What an attempt had read and grouped for a cache counts with that attempt.
    """

    caches: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # by node
    inputs: dict[tuple[int, int], set[int]] = field(
        default_factory=lambda: defaultdict(set)
    )  # (attempt, node)
    attempts: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    programs: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # by node

    def of_same_attempt(self, nodes: _Nodes, run: TaskRun) -> set[int]:
        """What its attempt had read and made for this run."""
        inputs = self.inputs[run.attempt, run.input]
        node = nodes.get(run.input)
        if node is not None and node.relation == contract.PRODUCT:
            return inputs | self.attempts[run.attempt]  # its flows name which of these were its sides
        return inputs

    def of_program(self, nodes: _Nodes, run: TaskRun) -> set[int]:
        """What a program without Spark had made for this run: its flows name which of these it has read."""
        node = nodes.get(run.input)
        if node is None or not _is_of_program(run):
            return set()
        return set().union(*(self.programs[parent] for parent in node.parents))


def _readable_by(nodes: _Nodes, candidates: _Runs, targets: Mapping[int, Collection[int]]) -> _ReadableBy:
    readable = _ReadableBy()
    filled = [run for run in candidates.values() if _is_cache(nodes, run)]
    for number in counted_runs(nodes, filled).values():
        for target in targets.get(candidates[number].input, ()):
            readable.caches[target].add(number)
    groups: dict[int, int] = {
        parent: number
        for number, node in nodes.items()
        if node.relation == contract.KEYED
        for parent in node.parents
    }
    for number, run in candidates.items():
        readable.attempts[run.attempt].add(number)
        if _is_of_program(run):
            readable.programs[run.input].add(number)
        if has_ids(nodes, run) and not _is_cache(nodes, run):
            named = groups.get(run.nodes[-1]) if run.nodes else run.input
            for target in () if named is None else targets.get(named, ()):
                readable.inputs[run.attempt, target].add(number)
    return readable


def _is_of_program(run: TaskRun) -> bool:
    """Does it hold one operation of a program without Spark (docs/contract.md)?"""
    return run.nodes == (run.input,)


def _is_cache(nodes: _Nodes, run: TaskRun) -> bool:
    return has_ids(nodes, run) and nodes[run.input].kind == "operator" and names_ids(nodes[run.input])


def _computed(nodes: _Nodes, run: TaskRun) -> tuple[int | None, int, int]:
    """What an accepted run has computed for good: of a node with ids in whatever stage.

    But for its internal nodes, which stages may partition in different ways.
    """
    is_same = has_ids(nodes, run) and not run.nodes
    return None if is_same else run.stage, run.partition, run.nodes[-1] if run.nodes else run.input
