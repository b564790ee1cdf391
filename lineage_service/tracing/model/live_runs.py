"""Which runs an output was made from: the others never show. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lineage_service.tracing.model.topology import Topology, upper_bound_of
from spark_agent import contract

__all__ = ["effective_runs"]


def _ended_in_nothing(topology: Topology, reached: set[int]) -> set[int]:
    """One run for each split whose records went into no output: all were filtered out, say."""
    chains = {(run.input, run.nodes, run.split) for run in map(topology.runs.__getitem__, reached)}
    run_of_chain: dict[tuple[int, tuple[int, ...], int], int] = {}
    for run in topology.runs.values():
        place = (run.input, run.nodes, run.split)
        if run.number >= 0 and place not in chains:
            run_of_chain.setdefault(place, run.number)
    return set(run_of_chain.values())


def live_runs(topology: Topology, shuffled: Iterable[tuple[int, int]]) -> frozenset[int]:
    """The runs that an output was made from: those of sinks, and what these read, transitively.

    `shuffled` are (reading run, writing run) pairs. Other runs (a lost map output that was made again) never
    show. Where no sink has run, every committed run counts.
    """
    reads: dict[int, set[int]] = defaultdict(set)
    for reader, writer in shuffled:
        reads[reader].add(writer)
    for link in topology.links:
        reads[link.run].add(link.parent_run)
    for run in topology.runs.values():
        node = topology.nodes.get(run.input)
        is_unresolved = run.number in topology.unresolved
        if node is not None and (node.relation == contract.DATASET or is_unresolved):
            for parent in upper_bound_of(topology, node.number) if is_unresolved else node.parents:
                reads[run.number].update(topology.runs_of.get(parent, ()))
    sinks = {number for number, node in topology.nodes.items() if node.kind == "sink"}
    for sink, result in topology.result_of.items():
        reads[result].update(topology.entered[sink])
    reached = {run for run, node, _ in topology.chain if node in sinks}
    # What a driver kept or aggregated: the run reads the sink itself.
    reached.update(run.number for run in topology.runs.values() if run.input in sinks and not run.nodes)
    if not reached:
        return frozenset(topology.runs)
    # Which copies count is settled, and where nothing went on from them their records were left out.
    reached.update(topology.run_of_split.values(), topology.beside, topology.groups.values())
    frontier = list(reached)
    while frontier:
        for read in reads[frontier.pop()]:
            if read not in reached and read in topology.runs:
                reached.add(read)
                frontier.append(read)
    return frozenset(reached | _ended_in_nothing(topology, reached))
