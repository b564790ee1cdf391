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
from lineage_service.tracing.elements import Run, TopologyNode
from lineage_service.tracing.id_runs import of_splits
from lineage_service.tracing.placing import Placing

__all__ = ["that_were_read", "whole"]


def whole(kept: Mapping[int, Run], blocks: Mapping[int, int], receipts: Iterable[Receipt]) -> dict[int, Run]:
    """Those whose `blocks` are all stored: nobody waits for others, whose tasks may have ended too soon."""
    stored = Counter(run for run, _ in {(each.run, each.seq) for each in receipts if each.run in kept})
    return {number: run for number, run in kept.items() if stored[number] == blocks[number]}


def that_were_read(
    nodes: Mapping[int, TopologyNode],
    committed: Mapping[int, Run],
    kept: Mapping[int, Run],
    tagged: Collection[int],
) -> dict[int, Run]:
    """Those of `kept` that filled a cache which a committed run read, straight or by way of others.

    Not where an attempt of the same stage was accepted that computed the same: that one is there for sure.
    They serve no action: what the attempt gave to one came to nothing. `tagged`: see `Placing`.
    """
    accepted = {(run.stage, run.split, run.nodes[-1]) for run in committed.values() if run.nodes}
    maybe = {
        number: replace(run, action=None)
        for number, run in kept.items()
        if number not in committed and run.nodes and (run.stage, run.split, run.nodes[-1]) not in accepted
    }
    if not maybe:
        return {}
    counting = set(of_splits(nodes, committed.values()).values())
    reads: dict[int, set[int]] = defaultdict(set)
    for link in Placing(nodes, {**committed, **maybe}, counting, maybe, tagged).links:
        reads[link.run].add(link.parent_run)
    reached, frontier = set(committed), list(committed)
    while frontier:
        new = reads[frontier.pop()] - reached
        reached |= new
        frontier.extend(new)
    return {number: run for number, run in maybe.items() if number in reached}
