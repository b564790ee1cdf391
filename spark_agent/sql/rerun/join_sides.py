"""Joins of which one input is a row, or a few rows, and the other one is whole. Makes plans, runs nothing."""

from __future__ import annotations

from spark_agent.sql.catalyst import Catalyst, singleton
from spark_agent.sql.types import Expression, Plan

#: Join -> what it is for rows of its first and of its second input: without what is made of other rows alone.
#: None: these rows are in no output.
_FOR_ROWS: dict[str, tuple[str, str | None]] = {
    "Inner": ("Inner", "Inner"),
    "Cross": ("Inner", "Inner"),
    "LeftOuter": ("LeftOuter", "Inner"),
    "LeftSingle": ("LeftOuter", "Inner"),
    "RightOuter": ("Inner", "RightOuter"),
    "FullOuter": ("LeftOuter", "RightOuter"),
    "LeftSemi": ("LeftSemi", "LeftSemi"),
    "LeftAnti": ("LeftAnti", None),
}


class JoinSides:
    """Of one JVM."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._plans = catalyst.jvm.org.apache.spark.sql.catalyst.plans
        self._no_hint = singleton(self._plans.logical, "JoinHint").NONE()

    def of_row(self, join: Plan, side: int, row: Plan) -> Plan | None:
        """What a join makes of rows of one of its inputs; None where that is nothing, whatever they are."""
        kind = str(join.joinType().toString())
        left, right = (row, join.right()) if side == 0 else (join.left(), row)
        if kind.startswith("ExistenceJoin"):
            return self._catalyst.with_children(join, [left, right]) if side == 0 else None
        for_row = _FOR_ROWS[kind][side]
        if for_row is None:
            return None
        return self._joined(left, right, for_row, join.condition())

    def meeting(self, plan: Plan, other: Plan, condition: Expression) -> Plan:
        """The rows of a plan that meet one of another plan."""
        option = self._catalyst.jvm.scala.Option.apply(condition)
        return self._joined(plan, other, "LeftSemi", option)

    def _joined(self, left: Plan, right: Plan, kind: str, condition: object) -> Plan:
        join = self._plans.logical.Join
        return join(left, right, singleton(self._plans, kind), condition, self._no_hint)
