"""The findings of an application in one order: of each task its oddest unit and its oddest mean.

An operation may consist of internal nodes. Whatever is odd at one of them is odd about the operation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lineage_service.tracing.debugging.drift import Drift
from lineage_service.tracing.debugging.findings import Finding, Findings
from lineage_service.tracing.debugging.profiles import public_node
from lineage_service.tracing.model.lineage_graph import LineageGraph

__all__ = ["Candidate", "candidates_of", "less_explained"]

_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """One task of an operation, or, without a run, an operation as a whole. `rank` begins at 1.

    `origin` is what it follows from. Its score is then only what that one's score does not explain.
    """

    node: int
    run: int | None
    partition: int
    score: float
    strongest: Finding | Drift
    rank: int = 0
    origin: Candidate | None = None


def candidates_of(graph: LineageGraph, findings: Findings, drifts: Sequence[Drift]) -> list[Candidate]:
    """Those with a score, the largest first. Equal scores share a rank, in the order of the graph."""
    by_task: dict[tuple[int, int], list[Finding]] = defaultdict(list)
    for (number, run), of_task in findings.by_task.items():
        by_task[public_node(graph, number), run] += of_task
    candidates = [Candidate(drift.kept.node, None, -1, round(drift.bits, _DIGITS), drift) for drift in drifts]
    for (node, run), of_task in by_task.items():
        units = [finding for finding in of_task if finding.unit is not None]
        means = [finding for finding in of_task if finding.unit is None]
        best = [max(kind, key=_score) for kind in (units, means) if kind]
        score = round(sum(map(_score, best)), _DIGITS)
        partition = graph.topology.runs[run].partition
        candidates.append(Candidate(node, run, partition, score, max(best, key=_score)))
    return _ranked(candidates)


def less_explained(candidates: Sequence[Candidate], origins: Mapping[int, int]) -> list[Candidate]:
    """The same, ranked anew. `origins` are places in the sequence: what follows, and from which one."""
    return _ranked(
        replace(
            candidate,
            score=round(max(candidate.score - candidates[origins[at]].score, 0.0), _DIGITS),
            origin=candidates[origins[at]],
        )
        if at in origins
        else candidate
        for at, candidate in enumerate(candidates)
    )


def _ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    ordered = sorted(
        (candidate for candidate in candidates if candidate.score > 0),
        key=lambda candidate: (-candidate.score, candidate.node, candidate.partition),
    )
    ranked: list[Candidate] = []
    for at, candidate in enumerate(ordered, start=1):
        is_equal = bool(ranked) and ranked[-1].score == candidate.score
        ranked.append(replace(candidate, rank=ranked[-1].rank if is_equal else at))
    return ranked


def _score(finding: Finding) -> float:
    return finding.score
