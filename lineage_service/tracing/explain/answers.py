"""Makes explanations of what a walk has come to: rows, turns, rules, and whether all of it is exact."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.interval_join import distinct
from lineage_service.tracing.explain.explanation import Explanation, Rule
from lineage_service.tracing.explain.turns import turns_of
from lineage_service.tracing.explain.walk import ExplanationWalk
from lineage_service.tracing.explain.winners import silent_merges, winner_rules
from lineage_service.tracing.model.elements import TopologyNode, in_words
from lineage_service.tracing.model.lineage_graph import LineageGraph
from lineage_service.tracing.model.topology import operation_of
from lineage_service.tracing.walk.result import nodes_before
from spark_agent import contract

__all__ = ["explanations", "rows_of"]

_NOT_CAPTURED = (
    "Nothing was captured of this application that an explanation uses: that needs an agent with "
    "spark.lineage.explain=auto. The rows are those of a plain trace."
)
_NOT_SAID = "it is not known what its records were made of"
_NOT_KNOWN = "Of some tasks it is not known which records they have read."
#: Operations that only pass records on have nothing to say.
_PASSING = (contract.IDENTITY, contract.STATIC, contract.ZIP)


def explanations(walk: ExplanationWalk, starts: Iterable[int]) -> list[Explanation]:
    """One for each group of starts. `starts` are the nodes at which they begin."""
    graph = walk.snapshot.graph
    sources = _sources(walk)
    rows = rows_of(walk)
    turns = turns_of(walk, sources)
    bounds, not_captured = _bounds(walk), _not_captured(walk)
    rules = _rules(walk) if walk.group_count == 1 else ()
    reasons = (*bounds, *not_captured, *_not_looked_at(walk), *_silent(walk), *_always_changed(walk, rules))
    of = _records_of_sources(graph, starts)
    return [
        Explanation(
            rows=rows.get(group, {}),
            turns=tuple(turns.get(group, ())),
            rules=rules,
            of=of,
            exact=not bounds,
            reasons=reasons,
            is_captured=not not_captured,
        )
        for group in range(walk.group_count)
    ]


def _passed(walk: ExplanationWalk) -> list[TopologyNode]:
    """The nodes whose records explain something, in order."""
    nodes = walk.snapshot.graph.topology.nodes
    return [nodes[at] for at in sorted(walk.nodes) if walk.frontiers.at(at) or at in walk.changed]


def _not_captured(walk: ExplanationWalk) -> list[str]:
    """Which operations on the way say nothing that a plain trace does not know; empty where all did."""
    graph = walk.snapshot.graph
    operations = (
        operation_of(graph.topology, node.number) for node in _passed(walk) if node.relation not in _PASSING
    )
    silent = {
        operation.number: operation
        for operation in operations
        if operation is not None and operation.is_public and operation.kind == "operator"
        if not _is_known(operation)
    }
    if silent and not (
        graph.blocks.winning
        or graph.blocks.digested
        or any(node.site is not None or node.decided_by for node in graph.topology.nodes.values())
    ):
        return [_NOT_CAPTURED]
    return [
        f"{in_words(operation)} says nothing that an explanation uses: all that its records were made of is "
        "listed."
        for operation in silent.values()
    ]


def _is_known(operation: TopologyNode) -> bool:
    """Does it say which of the records that it brings together count?"""
    if operation.relation == contract.CARRIED:
        return operation.decided_by is not None
    are_rows_of_query = operation.by_id and operation.relation == contract.FLOWS  # none of them are merged
    return are_rows_of_query or operation.site is not None


def _not_looked_at(walk: ExplanationWalk) -> list[str]:
    """Of which loops it is not known which records stayed as they were, so that more is listed."""
    families, digested = walk.families, walk.snapshot.graph.blocks.digested
    loops: set[str] = set()
    for version in walk.changed:
        before = families.before(version)
        if before is None or _has_begun_with(walk, before):
            continue
        if not (version in digested and before in digested) or version in walk.not_looked_at:
            loops.add(families.families[families.place_of[version][0]].loop)
    return [
        f"It is not known of all turns of the loop at {loop} which records stayed as they were: they are too "
        "many, or have no digests (spark.lineage.redact)."
        for loop in sorted(loops)
    ]


def _has_begun_with(walk: ExplanationWalk, version: int) -> bool:
    """Is it a DataFrame that was cached before a loop? Nobody knew then that it would need digests."""
    node = walk.snapshot.graph.topology.nodes[version]
    is_first = walk.families.place_of[version][1] == 0
    return is_first and node.by_id and version not in walk.snapshot.graph.blocks.digested


def _always_changed(walk: ExplanationWalk, rules: Iterable[Rule]) -> list[str]:
    """The loops whose every turn is needed, where no rule has left anything out: a PageRank, say."""
    is_smaller = any(rule.rule == "unchanged" or rule.kept < rule.of for rule in rules)
    digested, families = walk.snapshot.graph.blocks.digested, walk.families
    is_known = all(
        {version, families.before(version)} <= digested.keys() and version not in walk.not_looked_at
        for version in walk.changed
        if families.before(version) is not None
    )
    if walk.group_count > 1 or is_smaller or not is_known:
        return []
    turns = Counter(families.families[families.place_of[version][0]].loop for version in walk.changed)
    return [
        f"Each turn of the loop at {loop} changed the records on the way, so no turn could be left out."
        for loop, count in sorted(turns.items())
        if count > 2  # what it began with, and one turn: nothing to wonder at
    ]


def _silent(walk: ExplanationWalk) -> list[str]:
    nodes = walk.snapshot.graph.topology.nodes
    return [
        f"A task of {in_words(nodes[operation])} did not say which inputs decided its records: its merge "
        "spilled to disk, say. All inputs of these are listed."
        for operation in silent_merges(walk.snapshot, walk.frontiers, walk.nodes)
    ]


def _bounds(walk: ExplanationWalk) -> list[str]:
    """Why more records may be listed than explain anything; empty where that is not so."""
    graph = walk.snapshot.graph
    nodes = [node for node in _passed(walk) if node.is_public]
    if walk.frontiers.is_exact and all(node.exact or node.relation == contract.PARTITION for node in nodes):
        return []
    bounds = [
        f"{in_words(node)} is an upper bound: {(node.reason or _NOT_SAID).rstrip('.')}."
        for node in nodes
        if not graph.is_exact(node.number)
    ]
    return bounds or [_NOT_KNOWN]


def _records_of_sources(graph: LineageGraph, starts: Iterable[int]) -> int:
    """How many records the sources have that some nodes were made of."""
    return sum(
        graph.count(node, run.number)
        for node in nodes_before(graph.topology, starts)
        if graph.topology.nodes[node].kind == "source"
        for run in graph.holders(node)
    )


# -- rows ----------------------------------------------------------------------------------------------


def _sources(walk: ExplanationWalk) -> list[int]:
    return [node for node in walk.nodes if walk.snapshot.graph.topology.nodes[node].kind == "source"]


def rows_of(walk: ExplanationWalk) -> dict[int, dict[int, dict[int, Integers]]]:
    """Group -> source -> partition -> offsets, ascending."""
    parts: dict[tuple[int, int, int], list[Integers]] = defaultdict(list)
    for node in _sources(walk):
        for run, (origins, positions) in walk.frontiers.at(node).items():
            partition = walk.snapshot.graph.topology.runs[run].partition
            for group, of_group in _by_group(walk, origins, positions):
                parts[group, node, partition].append(of_group)
    rows: dict[int, dict[int, dict[int, Integers]]] = defaultdict(lambda: defaultdict(dict))
    for (group, node, partition), of_runs in sorted(parts.items(), key=lambda part: part[0]):
        rows[group][node][partition] = distinct(np.concatenate(of_runs))
    return {group: dict(by_node) for group, by_node in rows.items()}


def _by_group(
    walk: ExplanationWalk, origins: Integers | None, positions: Integers
) -> Iterable[tuple[int, Integers]]:
    """(group, its positions, ascending, perhaps repeated)."""
    if walk.group_count == 1 or origins is None:
        return [(0, positions)]
    groups = origins // walk.labels.count
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    parts = np.split(positions[order], starts[1:])
    return zip(groups[order[starts]].tolist(), parts, strict=True)


# -- rules ---------------------------------------------------------------------------------------------


def _rules(walk: ExplanationWalk) -> tuple[Rule, ...]:
    unchanged = [
        Rule(node=node, rule="unchanged", kept=kept, of=max(kept, looked_at))
        for node, looked_at in walk.looked_at.items()
        if (kept := walk.moved_from(node))
    ]
    rules = [*winner_rules(walk.snapshot, walk.frontiers, walk.nodes), *unchanged]
    return tuple(sorted(rules, key=lambda rule: (-rule.node, rule.rule)))
