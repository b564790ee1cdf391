"""Which node a cached or checkpointed DataFrame has the records of."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.types import Plan

_TAP = re.compile(r"lineage_tap\(([0-9]+)")
#: The tap stands at the top of what is cached, below how Spark computes it.
_MOST_ABOVE = 6
#: Of a list in the text of an operator, so many are shown.
_SHOWN = 8
#: Transactions of tables that may be under way.
_MOST_TRANSACTIONS = 100


class PersistedNodes:
    """Nodes of DataFrames that are cached or checkpointed."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._by_rdd: dict[int, int] = {}
        self._materialized: OrderedDict[str, tuple[tuple[int, ...], int]] = OrderedDict()  # by transaction
        self._local = threading.local()

    def remember_materialized(self, transaction: str, query: Plan, node: int) -> None:
        """A transaction of a table materializes the rows of a query, those of `node`, in the JVM."""
        self._materialized[transaction] = self._catalyst.column_ids(query), node
        if len(self._materialized) > _MOST_TRANSACTIONS:
            self._materialized.popitem(last=False)

    @contextmanager
    def within(self, transaction: str | None) -> Iterator[None]:
        """What this thread asks meanwhile is of a plan of that transaction."""
        self._local.transaction = transaction
        try:
            yield
        finally:
            self._local.transaction = None

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
        if kind != "LogicalRDD":
            return None
        node = self._by_rdd.get(int(leaf.rdd().id()))
        return self._materialized_of(leaf) if node is None else node

    def _materialized_of(self, leaf: Plan) -> int | None:
        """By its columns, which stay those of the query: nobody outside sees the DataFrame of the library."""
        columns, node = self._materialized.get(getattr(self._local, "transaction", None) or "", ((), None))
        return node if node is not None and self._catalyst.column_ids(leaf) == columns else None


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
