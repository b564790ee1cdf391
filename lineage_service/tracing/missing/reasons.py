"""Why a record ended at an operation, in words. Pure; for people only."""

from __future__ import annotations

from lineage_service.tracing.missing.droppers import Candidate, join_type
from lineage_service.tracing.missing.endings import Ending
from lineage_service.tracing.model.elements import TopologyNode
from spark_agent import contract

__all__ = ["CHOOSING", "why"]

#: Actions that end as soon as they have what they were to give.
CHOOSING = frozenset(("first", "take", "takeSample", "head", "limit", "tail", "show", "isEmpty", "lookup"))

_OF_FUNCTIONS = {
    "filter": "filter: its function was not true of it",
    "flatMap": "flatMap: its function gave nothing for it",
    "flatMapValues": "flatMapValues: its function gave nothing for it",
    "sample": "sample: it was not drawn",
    "sampleByKey": "sampleByKey: it was not drawn",
    "randomSplit": "randomSplit: it was drawn for another part",
    "intersection": "intersection: the other side does not have it",
    "cartesian": "cartesian: the other side has no records",
    "lookup": "lookup: its key is another one",
    "take": "limit: take gave others",
    "first": "limit: first gave another one",
    "top": "limit: top gave others",
    "takeOrdered": "limit: takeOrdered gave others",
    "takeSample": "sample: takeSample drew others",
    "subtract": "subtract: the other side has it, too",
    "subtractByKey": "subtractByKey: the other side has its key, too",
}
_SUBTRACTIONS = frozenset(("subtract", "subtractByKey"))
_OF_PLANS = {
    "GlobalLimit": "limit: only {} rows are taken",
    "LocalLimit": "limit: only {} rows are taken",
    "Offset": "offset: the first {} rows are left out",
    "Tail": "tail: only the last {} rows are taken",
    "Sample": "sample: it was not drawn ({})",
    "Generate": "explode: it gave nothing ({})",
    "TypedFilter": "filter: its function was not true of it",
}


def why(ending: Ending, candidate: Candidate, key: str | None = None) -> str:
    """Of the candidate as if it were the one."""
    node = candidate.node
    if ending.cause == "deleted":
        return "no row of the table"
    if ending.cause == "unread" and node.kind == "sink":
        return f"limit: {node.name} ended before it came to this row"
    if node.kind == "sink" and node.limit is not None:
        return f"limit: {node.name} took only {node.limit:,} rows"
    if node.relation != contract.CARRIED:
        return _of_rdd(candidate, key)
    if node.name == "Join":
        return _of_join(candidate)
    if node.name == "Filter":
        return f"{_filter_word(ending.last_node)}: {node.description}"
    if node.name in _OF_PLANS:
        return _OF_PLANS[node.name].format(node.description)
    return f"{node.name}: {node.description}".rstrip(": ")


def _filter_word(last: TopologyNode) -> str:
    return "filter of groups" if last.name == "Aggregate: groups" else "filter"


def _of_join(candidate: Candidate) -> str:
    node, kind = candidate.node, join_type(candidate.node)
    condition = node.description.partition(", ")[2] or "any row"
    if candidate.side == 1 and kind == "LeftAnti":
        return f"join: rows of this side only say which rows of the other side are left out: {condition}"
    if kind == "LeftAnti":
        return f"join: it has a match on the other side: {condition}"
    return f"join: it has no match on the other side: {condition}"


def _of_rdd(candidate: Candidate, key: str | None) -> str:
    name = candidate.node.name
    if name in _SUBTRACTIONS and candidate.side == 1:
        return f"{name}: records of its second side are in no output"
    if name.lower().endswith("join"):
        return f"{name}: no match on the other side" + ("" if key is None else f" for the key {key}")
    return _OF_FUNCTIONS.get(name, f"{name}: it gave nothing for it")
