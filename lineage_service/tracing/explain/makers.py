"""Records of cached nodes: where they were computed, of where they were read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.interval_join import within
from lineage_service.tracing.model.lineage_graph import LineageGraph

__all__ = ["Chosen", "at_makers"]

Chosen = slice | npt.NDArray[np.bool_]


def at_makers(
    graph: LineageGraph, node: int, run: int, positions: Integers
) -> Iterator[tuple[int, Chosen, Integers]]:
    """(run, which of ascending positions, these there): in a run that filled a cache, not in its readers.

    In one run each record is looked at once.
    """
    is_own = np.ones(len(positions), bool)
    for link in graph.links_of.get(node, ()):
        if link.parent_node == node and link.run == run != link.parent_run:
            inside = within(positions, link.start, link.start + link.count - 1)
            if inside.start < inside.stop:
                is_own[inside] = False
                yield link.parent_run, inside, positions[inside] - np.int64(link.start)
    if is_own.any():
        yield run, is_own, positions[is_own]
