"""Which task runs are live: those that an output was made from. The others never show. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from lineage_service.tracing.model.topology import Topology, upper_bound_of
from spark_agent import contract

__all__ = ["live_runs"]


def live_runs(topology: Topology, shuffled: Iterable[tuple[int, int]]) -> frozenset[int]:
    """The runs of sinks, and what these read, transitively.

    `shuffled` are (reading run, writing run) pairs. Other runs (a lost map output that was recreated) never
    show. Where no sink has run, every committed run is live.
    """
    reached = _runs_of_sinks(topology)
    if not reached:
        return frozenset(topology.runs)
    # It is decided which copies count; where nothing went on from them, their records were left out.
    reached.update(topology.run_of_partition.values(), topology.in_other_stages, topology.groups.values())
    reached.update(number for number in topology.failed if number in topology.runs)  # traces begin there
    reads = _reads(topology, shuffled)
    frontier = list(reached)
    while frontier:
        for read in reads.get(frontier.pop(), ()):
            if read not in reached and read in topology.runs:
                reached.add(read)
                frontier.append(read)
    return frozenset(reached | _ended_in_nothing(topology, reached))


def _runs_of_sinks(topology: Topology) -> set[int]:
    sinks = {number for number, node in topology.nodes.items() if node.kind == "sink"}
    runs = {run for run, node, _ in topology.chain if node in sinks}
    # What a driver collected or aggregated: the run reads the sink itself.
    runs.update(run.number for run in topology.runs.values() if run.input in sinks and not run.nodes)
    return runs


def _reads(topology: Topology, shuffled: Iterable[tuple[int, int]]) -> Mapping[int, set[int]]:
    """Run -> the runs whose records it read, or may have read."""
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
    for sink, result in topology.result_of.items():
        reads[result].update(topology.entered[sink])
    return reads


def _ended_in_nothing(topology: Topology, reached: set[int]) -> set[int]:
    """One run for each partition whose records went into no output: all were filtered out, say."""
    chains = {(run.input, run.nodes, run.partition) for run in map(topology.runs.__getitem__, reached)}
    run_of_chain: dict[tuple[int, tuple[int, ...], int], int] = {}
    for run in topology.runs.values():
        chain = (run.input, run.nodes, run.partition)
        if run.number >= 0 and chain not in chains:
            run_of_chain.setdefault(chain, run.number)
    return set(run_of_chain.values())
