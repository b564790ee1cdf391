"""How much each operation keeps of what comes to it, compared with earlier runs of the same job. Pure.

An operation is the same one in two runs if its name, its call site and its place among equal ones are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.tracing.debugging.means import LEAST_OTHERS, deviation_bits
from lineage_service.tracing.model.edges import PublicEdge, public_edges, record_count
from lineage_service.tracing.model.lineage_graph import LineageGraph

__all__ = ["Drift", "Kept", "Operation", "drifts", "kept_by"]

Operation = tuple[str, str, int]
"""(name, call site, place among those of that name and call site)."""

#: So far apart, relative to what was kept, runs of one job may always be.
_USUAL = 0.01


@dataclass(frozen=True, slots=True)
class Kept:
    """Outputs per input of an operation in one run of a job."""

    node: int
    inputs: int
    share: float


@dataclass(frozen=True, slots=True)
class Drift:
    """An operation in this run, and how surprising it is after the runs before."""

    kept: Kept
    low: float
    high: float
    runs: int
    bits: float


def kept_by(graph: LineageGraph) -> dict[Operation, Kept]:
    """Of the operations whose inputs and outputs are counted."""
    edges = public_edges(graph)
    kept: dict[Operation, Kept] = {}
    places: Counter[tuple[str, str]] = Counter()
    for number in sorted(graph.topology.nodes):
        node = graph.topology.nodes[number]
        if not node.is_public or node.kind != "operator":
            continue
        place = places[node.name, node.call_site]
        places[node.name, node.call_site] += 1
        inputs = [_read_by(graph, edge) for edge in edges if edge.target == number]
        outputs = record_count(graph, number)
        if outputs is None:  # rows pass it: what the operations behind it read
            outputs = max((edge.flows or 0 for edge in edges if edge.source == number), default=None)
        total = sum(count or 0 for count in inputs)
        if total and outputs is not None and None not in inputs:
            kept[node.name, node.call_site, place] = Kept(number, total, outputs / total)
    return kept


def _read_by(graph: LineageGraph, edge: PublicEdge) -> int | None:
    """The records that came to an operation; rows that an operator of a query passed on are counted there."""
    records = record_count(graph, edge.source)
    return edge.flows if records is None else records


def drifts(now: Mapping[Operation, Kept], before: Sequence[Mapping[Operation, Kept]]) -> list[Drift]:
    """Of the operations that enough earlier runs have, too."""
    drifted = []
    for operation, kept in now.items():
        earlier = [run[operation] for run in before if operation in run]
        if len(earlier) < LEAST_OTHERS:
            continue
        runs = [kept, *earlier]
        shares = np.array([run.share for run in runs])
        inputs = np.array([run.inputs for run in runs], np.float64)
        variances = np.maximum(shares, 1 / inputs) / inputs + np.square(_USUAL * shares)
        bits = deviation_bits(shares, variances, 1 / inputs)[0]
        low, high = float(shares[1:].min()), float(shares[1:].max())
        drifted.append(Drift(kept, low, high, len(earlier), bits))
    return drifted
