"""Records that are known by ids: which run holds the record of an id, and which ids a node's records have.

The id of a record of a source is its partition and its position in one number, that of a group is its key
(docs/contract.md). Rows of `flows` that name ids say of which node in `in_run`. Arrays in, arrays out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from lineage_service.decode.rows import mark_of
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.model.elements import TaskRun
from lineage_service.tracing.model.topology import Topology
from spark_agent import contract

__all__ = ["POSITION_BITS", "ids_of", "mark_of", "node_of", "records_of_ids"]

#: How many bits of an id are the position.
POSITION_BITS = contract.ID_POSITION_BITS
_POSITIONS = (1 << POSITION_BITS) - 1


def node_of(in_run: int) -> int | None:
    """The node whose ids a row names; None: it names positions of a run."""
    first = mark_of(0)
    return first - in_run if in_run <= first else None


def records_of_ids(
    topology: Topology, node: int, ids: Integers
) -> Iterator[tuple[int | None, slice | Integers, Integers]]:
    """(run, which of the ids, their positions in it); the run is None where none was reported."""
    groups = topology.groups.get(node)
    if groups is not None:
        yield groups, slice(None), ids
        return
    ids = ids.astype(np.int64, copy=False)
    partitions = ids >> POSITION_BITS
    positions = ids & _POSITIONS
    first = int(partitions[0])
    if bool(np.all(partitions == first)):
        yield topology.run_of_partition.get((node, first)), slice(None), positions
        return
    order = np.argsort(partitions, kind="stable")
    ordered = partitions[order]
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for chosen in np.split(order, starts):
        run = topology.run_of_partition.get((node, int(partitions[chosen[0]])))
        yield run, chosen, positions[chosen]


def ids_of(
    topology: Topology, node: int, frontier: Mapping[int, tuple[Integers | None, Integers]]
) -> tuple[Integers | None, Integers]:
    """(origins, ids) of the (origins, positions) by run that stand at a node. Ids ascend, as positions do.

    Where other runs hold the same records, they count once.
    """
    if node in topology.groups:
        [records] = frontier.values()
        return records
    runs_here = (topology.runs[run] for run in frontier)
    runs: list[TaskRun] = sorted((run for run in runs_here if topology.is_counted(node, run)), key=_partition)
    if not runs:
        return None, np.empty(0, np.int64)
    parts = [frontier[run.number] for run in runs]
    ids = [
        positions.astype(np.int64) + (run.partition << POSITION_BITS)
        for run, (_, positions) in zip(runs, parts, strict=True)
    ]
    origins = [origin for origin, _ in parts if origin is not None]
    return np.concatenate(origins) if origins else None, np.concatenate(ids)


def _partition(run: TaskRun) -> int:
    return run.partition
