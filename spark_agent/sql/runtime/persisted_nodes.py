"""Which node a cached or checkpointed DataFrame has the records of."""

from __future__ import annotations

import re

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.types import Plan

_TAP = re.compile(r"lineage_tap\(([0-9]+)")
#: The tap stands at the top of what is cached, below how Spark computes it.
_MOST_ABOVE = 6
#: Of a list in the text of an operator, so many are shown.
_SHOWN = 8


class PersistedNodes:
    """Nodes of DataFrames that are cached or checkpointed."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._by_rdd: dict[int, int] = {}

    def remember(self, leaf: Plan, node: int) -> None:
        """What a checkpoint gave, a LogicalRDD, has the records of `node`."""
        self._by_rdd[int(leaf.rdd().id())] = node

    def of(self, leaf: Plan, kind: str) -> int | None:
        """The node whose records a leaf reads."""
        if kind == "InMemoryRelation":
            plan = leaf.cacheBuilder().cachedPlan()
            if self._catalyst.kind(plan) == "AdaptiveSparkPlanExec":
                plan = plan.inputPlan()  # as it was before stages of it ran and came to stand above the tap
            return _top_tap(plan)
        return self._by_rdd.get(int(leaf.rdd().id())) if kind == "LogicalRDD" else None


def _top_tap(plan: Plan) -> int | None:
    """The node of the tap at the top of a physical plan.

    Operators are looked at one by one: the text of a whole plan has those of the caches that it reads in it,
    and so on, so that it doubles with each turn of a loop that reads a cache twice.
    """
    for _ in range(_MOST_ABOVE):
        match = _TAP.search(str(plan.simpleString(_SHOWN)))
        if match is not None:
            return int(match[1])
        children = plan.children()
        if children.size() != 1:
            return None
        plan = children.apply(0)
    return None
