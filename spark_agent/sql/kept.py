"""Which node a cached or checkpointed DataFrame has the records of."""

from __future__ import annotations

import re

from spark_agent.sql.catalyst import Catalyst, Plan


class KeptNodes:
    """Nodes of DataFrames that are cached or checkpointed."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._by_output: dict[tuple[int, ...], int] = {}
        self._by_rdd: dict[int, int] = {}

    def remember(self, plan: Plan, node: int) -> None:
        """What is made of `plan` and kept has the records of `node`."""
        self._by_output[self.output(plan)] = node

    def of(self, leaf: Plan) -> int | None:
        """The node whose records a leaf reads."""
        name = str(leaf.getClass().getSimpleName())
        if name == "InMemoryRelation":
            # The tap stands at the top of what is cached, below how Spark computes it.
            lines = str(leaf.cacheBuilder().cachedPlan().treeString()).splitlines()[:4]
            found = [match for match in map(_TAP.search, lines) if match is not None]
            return int(found[0][1]) if found else None
        if name != "LogicalRDD":
            return None
        rdd = int(leaf.rdd().id())
        if rdd not in self._by_rdd:  # later it may have another output, beside itself in a join
            node = self._by_output.get(self.output(leaf))
            if node is None:
                return None
            self._by_rdd[rdd] = node
        return self._by_rdd[rdd]

    def output(self, plan: Plan) -> tuple[int, ...]:
        """What tells the columns of a plan from those of all others."""
        return tuple(int(each.exprId().id()) for each in self._catalyst.items(plan.output()))


_TAP = re.compile(r"lineage_tap\(([0-9]+)")
