"""Which task runs count of nodes with ids, where the same rows may have been computed several times.

docs/contract.md, "Ids", says the same for other readers. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from spark_agent import contract

if TYPE_CHECKING:
    from lineage_service.tracing.model.elements import TaskRun, TopologyNode

__all__ = [
    "aggregated_nodes",
    "aggregated_runs",
    "counted_runs",
    "has_ids",
    "is_taken",
    "names_ids",
    "of_other_stages",
]


def has_ids(nodes: Mapping[int, TopologyNode], run: TaskRun) -> bool:
    """Are its records known by ids? One that goes on from an operator reads records that another run has."""
    node = nodes.get(run.input)
    return node is not None and node.by_id and (not run.nodes or not node.is_public)


def is_taken(nodes: Mapping[int, TopologyNode], run: TaskRun) -> bool:
    """Did an action give on the records of this very run, as its own?"""
    sink = None if run.action is None else nodes.get(run.action)
    return sink is not None and sink.relation == contract.IDENTITY


def aggregated_nodes(nodes: Mapping[int, TopologyNode]) -> frozenset[int]:
    """The nodes with ids whose rows an aggregating action took, of those that ended well."""
    taken = (
        parent
        for sink in nodes.values()
        if sink.relation == contract.AGGREGATE and sink.partitions
        for parent in sink.parents
    )
    return frozenset(
        number for number in taken if number in nodes and nodes[number].by_id and names_ids(nodes[number])
    )


def aggregated_runs(nodes: Mapping[int, TopologyNode], runs: Iterable[TaskRun]) -> frozenset[int]:
    """Of each aggregating action that took rows with ids, the runs that count: one for each partition.

    An algorithm may compute its input again for each of its steps, and two actions may share one plan.
    """
    best: dict[tuple[int, int, int], int] = {}
    for run in sorted(runs, key=lambda run: (-run.outputs, run.number)):
        sink = None if run.action is None else nodes.get(run.action)
        if sink is not None and sink.relation == contract.AGGREGATE and not run.nodes and has_ids(nodes, run):
            best.setdefault((sink.number, run.input, run.partition), run.number)
    return frozenset(best.values())


def names_ids(node: TopologyNode) -> bool:
    """It is made of records that have ids."""
    return node.relation == contract.FLOWS


def counted_runs(nodes: Mapping[int, TopologyNode], runs: Iterable[TaskRun]) -> dict[tuple[int, int], int]:
    """(node, partition) -> the run that counts, of nodes with ids.

    Ids are the same in each run: the one with the most records counts. Of a sink only those
    of its latest execution: an earlier one may have written something else.
    """
    id_runs = [run for run in runs if has_ids(nodes, run)]
    latest: dict[int, int] = {}
    for run in id_runs:
        if nodes[run.input].kind == "sink":
            latest[run.input] = max(latest.get(run.input, 0), run.execution)
    run_of_partition: dict[tuple[int, int], int] = {}
    for run in sorted(id_runs, key=lambda run: (-run.outputs, run.number)):
        if run.execution >= latest.get(run.input, 0):
            run_of_partition.setdefault((run.input, run.partition), run.number)
    return run_of_partition


def of_other_stages(
    nodes: Mapping[int, TopologyNode],
    runs: Mapping[int, TaskRun],
    run_of_partition: Mapping[tuple[int, int], int],
) -> frozenset[int]:
    """Runs of internal nodes in other stages of the execution whose run of their partition counts.

    Spark may compute equal parts of one plan in two stages that are partitioned in different ways: rows that
    are in one partition of the one are in another of the other. Together they say all, and nothing that is
    wrong.
    """
    of_stage: dict[tuple[int, int, int | None], TaskRun] = {}
    for run in sorted(runs.values(), key=lambda run: (-run.outputs, run.number)):
        if has_ids(nodes, run) and nodes[run.input].kind == "step":
            counts = runs[run_of_partition[run.input, run.partition]]
            if run.execution == counts.execution and run.stage != counts.stage:
                of_stage.setdefault((run.input, run.partition, run.stage), run)
    return frozenset(run.number for run in of_stage.values())
