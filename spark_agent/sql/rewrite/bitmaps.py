"""With each row of an output a bitmap: which of 64 blocks of the input its records are in.

A scan gives each row the bit of its block, an aggregate the bits of all rows of a group, a join those of both
sides. Whoever reads only the blocks of a row's bitmap finds that row again, with all its records. Promises
that, by leaving alone what it does not hold for: of the scans below an operator that is not named here, and
where rows that are made of a part of their input could come to be taken for records of the row, all is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from spark_agent.sql.catalyst import Catalyst, Operator
from spark_agent.sql.rerun.row_index import COLUMN, Columns
from spark_agent.sql.rewrite.operators.pass_through import PASSING, REPARTITIONS
from spark_agent.sql.rewrite.plan_nodes import UncoveredError
from spark_agent.sql.types import Expression, Plan


class Scans(Protocol):
    def with_row_index(self, plan: Plan, leaf: Operator) -> tuple[Plan, Expression] | None: ...

    def is_pruned_by(self, leaf: Operator, condition: Expression) -> bool: ...

    def has_blocks(self, leaf: Operator) -> bool: ...


@dataclass
class Carried:
    """A part of a plan, its bitmaps beside its rows.

    Where blocks are left out, the columns `partial` may have other values in rows that are not those looked
    for, and with `has_others` there may be rows that there are none of.
    """

    plan: Plan
    bitmaps: list[Expression] = field(default_factory=list)
    scans: dict[Columns, int] = field(default_factory=dict)
    partial: frozenset[int] = frozenset()
    has_others: bool = False


class Taps(Protocol):
    def blocks(self, scan: int, row_index: Expression | None) -> Expression: ...

    def is_of_python(self, aggregate: Plan) -> bool: ...


class Bitmaps:
    """The walk over one plan. `next_number` gives the numbers of scans."""

    def __init__(self, catalyst: Catalyst, scans: Scans, taps: Taps, next_number: Callable[[], int]) -> None:
        self._catalyst, self._scans, self._taps, self._next_number = catalyst, scans, taps, next_number
        self._numbered: list[tuple[Plan, int]] = []
        self._handlers: dict[str, Callable[[Plan], Carried]] = {
            **dict.fromkeys(PASSING, self._passing),
            **dict.fromkeys(REPARTITIONS, self._repartition),
            "LogicalRelation": self._scan,
            "Filter": self._filter,
            "Project": self._project,
            "Generate": self._generate,
            "Expand": self._expand,
            "Aggregate": self._aggregate,
            "Join": self._join,
            "Union": self._union,
        }

    def of(self, query: Plan) -> tuple[Plan, Expression, dict[Columns, int]] | None:
        """(the plan, its column of bitmaps, the numbers of the scans whose blocks these are).

        None where no scan has any.
        """
        top = self._carry(query)
        if not top.bitmaps:
            return None
        bitmap = self._catalyst.alias(self._catalyst.bits(top.bitmaps), COLUMN)
        made, (column,) = self._catalyst.with_columns(top.plan, [bitmap])
        return made, column, top.scans

    def _carry(self, plan: Plan) -> Carried:
        handler = self._handlers.get(self._catalyst.kind(plan))
        return Carried(plan) if handler is None else handler(plan)

    # -- scans ---------------------------------------------------------------------------------------

    def _scan(self, leaf: Plan, whole: Plan | None = None, condition: Expression | None = None) -> Carried:
        """`whole` is the scan with the `condition` that it makes use of."""
        whole = leaf if whole is None else whole
        look = self._catalyst.look(leaf)
        if not self._scans.has_blocks(look):
            return Carried(whole)
        try:
            indexed = self._scans.with_row_index(leaf, look)
        except UncoveredError:
            return Carried(whole)
        made, row_index = indexed if indexed is not None else (leaf, None)
        if condition is not None:
            made = self._catalyst.filter(condition, made)
        number = self._number(whole)
        column = self._catalyst.alias(self._taps.blocks(number, row_index), COLUMN)
        made = self._catalyst.project_as(leaf, made, [column])
        return Carried(made, [column.toAttribute()], {tuple(self._catalyst.column_ids(leaf)): number})

    def _number(self, scan: Plan) -> int:
        """Of scans that Spark takes for one, the same."""
        for other, number in self._numbered:
            if scan.sameResult(other):
                return number
        number = self._next_number()
        self._numbered.append((scan, number))
        return number

    def _filter(self, plan: Plan) -> Carried:
        plan = self._with_own_pruning(plan)
        leaf = plan.child()
        look = self._catalyst.look(leaf)
        if look.kind != "LogicalRelation" or not plan.deterministic():
            return self._passing(plan)
        beside: list[Expression] = []
        above: list[Expression] = []
        for each in self._catalyst.conjuncts(plan.condition()):
            (beside if self._scans.is_pruned_by(look, each) else above).append(each)
        condition = self._catalyst.all_of(beside)
        whole = leaf if condition is None else self._catalyst.filter(condition, leaf)
        carried = self._scan(leaf, whole, condition)
        if above:
            carried.plan = self._catalyst.filter(self._catalyst.all_of(above), carried.plan)
        return carried

    def _with_own_pruning(self, plan: Plan) -> Plan:
        """What prunes partitions cannot use a broadcast that has a column more."""
        if not self._catalyst.has_subqueries(plan):
            return plan

        def own(part: Expression) -> Expression | None:
            is_pruning = self._catalyst.kind(part) == "DynamicPruningSubquery"
            return self._catalyst.pruning_by_itself(part) if is_pruning else None

        return self._catalyst.transformed(plan, own)

    # -- operators with one input --------------------------------------------------------------------

    def _passing(self, plan: Plan) -> Carried:
        below = self._carry(plan.child())
        return self._over(below, self._catalyst.with_children(plan, [below.plan]), plan)

    def _repartition(self, plan: Plan) -> Carried:
        below = self._carry(plan.child())
        made = self._catalyst.repartition_over(plan, list(below.bitmaps), below.plan)
        return self._over(below, made, plan)

    def _over(self, below: Carried, made: Plan, plan: Plan) -> Carried:
        """`made` of `plan`: if that reads what may be partial, so may be all that it adds."""
        partial, has_others = below.partial, below.has_others
        if partial:
            has_others = has_others or bool(partial & self._read(plan, plan.child()))
            given = self._catalyst.column_ids(plan)
            partial |= set(given).difference(self._catalyst.column_ids(plan.child()))
        return Carried(made, below.bitmaps, below.scans, frozenset(partial), has_others)

    def _project(self, plan: Plan) -> Carried:
        below = self._carry(plan.child())
        made = self._catalyst.project(plan.projectList(), below.plan, below.bitmaps)
        columns = self._catalyst.items(plan.projectList()) if below.partial else ()
        partial = frozenset(_id(each) for each in columns if below.partial & self._read(each, plan.child()))
        return Carried(made, below.bitmaps, below.scans, partial, below.has_others)

    def _generate(self, plan: Plan) -> Carried:
        below = self._carry(plan.child())
        return self._over(below, self._catalyst.generate(plan, below.plan), plan)

    def _expand(self, plan: Plan) -> Carried:
        below = self._carry(plan.child())
        bitmap = self._catalyst.bits(below.bitmaps)
        given = self._catalyst.alias(bitmap, COLUMN).toAttribute()
        made = self._catalyst.expand(plan, [bitmap], [given], below.plan)
        if not below.bitmaps:
            return Carried(plan)
        carried = self._over(below, made, plan)
        carried.bitmaps = [given]
        return carried

    def _aggregate(self, plan: Plan) -> Carried:
        """A group that is made of a part of its rows is the row of nobody, but not the records of another."""
        if self._taps.is_of_python(plan):
            return Carried(plan)
        below = self._carry(plan.child())
        keys = self._catalyst.items(plan.groupingExpressions())
        read = (self._read(each, plan.child()) for each in keys) if below.partial else ()
        if not below.bitmaps or below.has_others or any(below.partial & each for each in read):
            return Carried(plan)
        bitmap = self._catalyst.alias(self._catalyst.bits_of_all(below.bitmaps), COLUMN)
        made = self._catalyst.aggregate(plan, [bitmap], below.plan)
        whole = {_id(each) for each in keys if self._catalyst.kind(each) == "AttributeReference"}
        partial = frozenset(self._catalyst.column_ids(plan)) - whole
        return Carried(made, [bitmap.toAttribute()], below.scans, partial)

    # -- operators with several ----------------------------------------------------------------------

    def _join(self, plan: Plan) -> Carried:
        """Who has no partner because its block is left out stands there alone in an outer join."""
        kind, condition = str(plan.joinType().toString()), plan.condition()
        if self._catalyst.has_subqueries(plan):
            return Carried(plan)
        left = self._carry(plan.left())
        if kind in ("LeftSemi", "LeftAnti") or kind.startswith("ExistenceJoin"):
            right = Carried(plan.right())  # whole: of a part of it nobody could say that there is no partner
        elif kind in ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter"):
            right = self._carry(plan.right())
        else:
            return Carried(plan)
        made = self._catalyst.with_children(plan, [left.plan, right.plan])
        partial = set(left.partial | right.partial)
        has_others = left.has_others or right.has_others
        if partial and condition.isDefined():
            has_others = has_others or any(
                partial & self._read(condition.get(), side) for side in (plan.left(), plan.right())
            )
        for side, kinds in (
            (plan.right(), ("LeftOuter", "FullOuter")),
            (plan.left(), ("RightOuter", "FullOuter")),
        ):
            if kind in kinds:
                partial.update(self._catalyst.column_ids(side))
        bitmaps, scans = [*left.bitmaps, *right.bitmaps], {**left.scans, **right.scans}
        return Carried(made, bitmaps, scans, frozenset(partial), has_others)

    def _union(self, plan: Plan) -> Carried:
        stock = self._catalyst.items(plan.children())
        belows = [self._carry(each) for each in stock]
        if not any(each.bitmaps for each in belows):
            return Carried(plan)
        partial: set[int] = set()
        children, scans = [], {}
        given = self._catalyst.column_ids(plan)
        for child, below in zip(stock, belows, strict=True):
            bitmap = self._catalyst.alias(self._catalyst.bits(below.bitmaps), COLUMN)
            children.append(self._catalyst.project(child.output(), below.plan, [bitmap]))
            ids = self._catalyst.column_ids(child)
            partial.update(one for one, each in zip(given, ids, strict=True) if each in below.partial)
            scans.update(below.scans)
        made = self._catalyst.with_children(plan, children)
        (column,) = self._catalyst.last(made.output(), 1)
        has_others = any(each.has_others for each in belows)
        return Carried(made, [column], scans, frozenset(partial), has_others)

    def _read(self, reader: Expression | Plan, plan: Plan) -> set[int]:
        return {_id(each) for each in self._catalyst.references(reader, plan)}


def _id(named: Expression) -> int:
    return int(named.exprId().id())
