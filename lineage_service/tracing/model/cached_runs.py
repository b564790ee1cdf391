"""What tasks left in a cache before they failed, or were no longer needed: runs that no manifest accepts, and
whose records others read. Pure.

Spark drops what a failed attempt says to the driver, and keeps what it has cached. So such a run tells of
itself (`run_kept`), and counts if, and only if, a run that counts has read what it made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from lineage_service.completeness import Receipt
from lineage_service.tracing.model.elements import Run, TopologyNode
from lineage_service.tracing.model.id_runs import has_ids, names_ids, of_splits
from lineage_service.tracing.model.upstream_runs import UpstreamResolver
from spark_agent import contract

__all__ = ["not_accepted", "that_were_read", "whole"]


def whole(kept: Mapping[int, Run], blocks: Mapping[int, int], receipts: Iterable[Receipt]) -> dict[int, Run]:
    """Those whose `blocks` are all stored: nobody waits for others, whose tasks may have ended too soon."""
    blocks_of_kept = {(receipt.run, receipt.seq) for receipt in receipts if receipt.run in kept}
    stored = Counter(run for run, _ in blocks_of_kept)
    return {number: run for number, run in kept.items() if stored[number] == blocks[number]}


def not_accepted(
    nodes: Mapping[int, TopologyNode], committed: Mapping[int, Run], kept: Mapping[int, Run]
) -> dict[int, Run]:
    """Those whose attempts Spark did not accept. They serve no action: what they gave to one came to nothing.

    Of nodes with ids, an accepted attempt that computed the same is there for sure, and says all.
    """
    same = {_place(nodes, run) for run in committed.values() if has_ids(nodes, run)}
    candidates: dict[int, Run] = {}
    for number, run in kept.items():
        if number in committed or not _is_known(nodes, run):
            continue
        if has_ids(nodes, run) and _place(nodes, run) in same:
            continue
        candidates[number] = replace(run, action=None)
    return candidates


def that_were_read(
    nodes: Mapping[int, TopologyNode],
    committed: Mapping[int, Run],
    maybe: Mapping[int, Run],
    tagged: Collection[int],
    targets: Mapping[int, Collection[int]],
    kept: Collection[int] | None,
) -> dict[int, Run]:
    """Those of `maybe` that filled a cache which a committed run read, straight or by way of others.

    `targets`: which nodes name the ids of a node. `tagged` and `kept`: see `UpstreamResolver`.
    """
    if not maybe:
        return {}
    counting = {*of_splits(nodes, committed.values()).values(), *maybe}
    reads: dict[int, set[int]] = defaultdict(set)
    runs = {**committed, **maybe}
    for link in UpstreamResolver(nodes, runs, counting, tagged, kept).links:
        reads[link.run].add(link.parent_run)
    caches, beside = _by_readers(nodes, maybe, targets)
    of_attempt: dict[int, set[int]] = defaultdict(set)
    for maybe_run in maybe.values():
        of_attempt[maybe_run.attempt].add(maybe_run.number)
    reached, frontier = set(committed), list(committed)
    while frontier:
        number = frontier.pop()
        run = maybe.get(number) or committed.get(number)
        new = set(reads[number])
        if run is not None:  # else one that stands for what the JVM put together
            new |= caches[run.input]
        if number in maybe:
            new |= beside[maybe[number].attempt, maybe[number].input]
            if nodes[maybe[number].input].relation == contract.PRODUCT:
                new |= of_attempt[maybe[number].attempt]  # its flows name which of these were its sides
        new -= reached
        reached |= new
        frontier.extend(new)
    return {number: run for number, run in maybe.items() if number in reached}


def _by_readers(
    nodes: Mapping[int, TopologyNode], maybe: Mapping[int, Run], targets: Mapping[int, Collection[int]]
) -> tuple[dict[int, set[int]], dict[tuple[int, int], set[int]]]:
    """Runs of nodes with ids, which no link names, by the nodes that name their ids.

    Of a cache, whoever reads it reads what one of its attempts left: ids are the same in each, so that with
    the most records will do. What an attempt had read and grouped for a cache counts with that attempt.
    """
    caches: dict[int, set[int]] = defaultdict(set)
    beside: dict[tuple[int, int], set[int]] = defaultdict(set)
    filled = [run for run in maybe.values() if _is_cache(nodes, run)]
    for number in of_splits(nodes, filled).values():
        for target in targets.get(maybe[number].input, ()):
            caches[target].add(number)
    groups: dict[int, int] = {
        parent: number
        for number, node in nodes.items()
        if node.relation == contract.KEYED
        for parent in node.parents
    }
    for number, run in maybe.items():
        if has_ids(nodes, run) and not _is_cache(nodes, run):
            named = groups.get(run.nodes[-1]) if run.nodes else run.input
            for target in () if named is None else targets.get(named, ()):
                beside[run.attempt, target].add(number)
    return caches, beside


def _is_cache(nodes: Mapping[int, TopologyNode], run: Run) -> bool:
    return has_ids(nodes, run) and nodes[run.input].kind == "operator" and names_ids(nodes[run.input])


def _is_known(nodes: Mapping[int, TopologyNode], run: Run) -> bool:
    return bool(run.nodes) or has_ids(nodes, run)


def _place(nodes: Mapping[int, TopologyNode], run: Run) -> tuple[int | None, int, int]:
    """What an accepted run has computed for good: of a node with ids in whatever stage.

    But for its steps, which stages may split in different ways.
    """
    is_same = has_ids(nodes, run) and not run.nodes
    return None if is_same else run.stage, run.split, run.nodes[-1] if run.nodes else run.input
