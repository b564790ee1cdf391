"""Which node a cached or checkpointed DataFrame has the records of."""

from __future__ import annotations

import re

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.types import Plan

_TAP = re.compile(r"lineage_tap\(([0-9]+)")
#: The tap stands at the top of what is cached, below how Spark computes it.
_MOST_LINES = 4


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
            top = "\n".join(str(plan.treeString()).splitlines()[:_MOST_LINES])
            match = _TAP.search(top)
            return int(match[1]) if match is not None else None
        return self._by_rdd.get(int(leaf.rdd().id())) if kind == "LogicalRDD" else None
