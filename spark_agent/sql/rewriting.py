"""Rewrites an optimised plan so that the ids of records travel with its rows.

A scan numbers its rows; operators carry the columns of ids on; where rows meet (an aggregate, the inner side
of a semi-join, a window, the output) a *tap* writes the ids that come in. What becomes of them is said in
docs/dataframes.md. Side effects: none but new nodes; a plan that holds something that is not covered raises
UncoveredError and stays as it is. The technique (provenance by rewriting queries) is that of Perm and GProM.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from spark_agent import contract
from spark_agent.sql.catalyst import Catalyst, Expression, Plan
from spark_agent.sql.plan_nodes import PlanNode, PlanNodes, UncoveredError

#: What stands for a node's records: (column of ids, node whose ids they are).
Ids = list[tuple[Expression, int]]


class Taps(Protocol):
    """Makes the expressions that number rows and write ids."""

    def source(self, node: int, row_index: Expression | None) -> Expression: ...

    def tap(
        self, node: int, ids: Ids, key: Expression | None = None, steps: tuple[int, int] = (-1, -1)
    ) -> Expression: ...


class Scans(Protocol):
    """Looks at the leaves of plans."""

    def describe(self, leaf: Plan) -> tuple[str, dict[str, str] | None]: ...

    def with_row_index(self, leaf: Plan) -> tuple[Plan, Expression] | None: ...

    def kept(self, leaf: Plan) -> int | None: ...

    def is_pruned_by(self, leaf: Plan, condition: Expression) -> bool: ...

    def is_interleaved(self, leaf: Plan) -> bool: ...


@dataclass
class Rewritten:
    """A plan that gives what it gave before and the ids beside it. `node` is its operator's number."""

    plan: Plan
    ids: Ids
    node: int


#: Operators with one input that pass rows on, or leave some out: the columns of ids go through them.
_PASSING = frozenset(
    (
        "Filter",
        "Sort",
        "GlobalLimit",
        "LocalLimit",
        "LimitAll",
        "Offset",
        "Tail",
        "Repartition",
        "RepartitionByExpression",
        "RebalancePartitions",
        "SubqueryAlias",
        "View",
        "ResolvedHint",
        "Sample",
        "CollectMetrics",
        "BatchEvalPython",
        "ArrowEvalPython",
        "WindowGroupLimit",
    )
)
#: Operators that run a function over whole partitions: what comes out of one may come from any of its rows.
_BY_PARTITION = frozenset(
    ("MapInPandas", "MapInArrow", "PythonMapInArrow", "MapPartitions", "ScriptTransformation")
)
#: Those that run a function over groups of rows.
_BY_GROUP = frozenset(
    (
        "FlatMapGroupsInPandas",
        "FlatMapGroupsInArrow",
        "FlatMapCoGroupsInPandas",
        "FlatMapCoGroupsInArrow",
    )
)
#: How Spark counts the rows of the right side of an EXCEPT ALL.
_COUNTED_OFF = re.compile(r"Project \[-1 AS vcol#")
_EXPRESSION_IDS = re.compile(r"#[0-9]+L?")


class Rewriter:
    """One plan. `rewrite` gives it with its ids; `output` puts the last tap above it."""

    def __init__(self, catalyst: Catalyst, taps: Taps, scans: Scans, nodes: PlanNodes) -> None:
        self._catalyst, self._taps, self._scans, self._nodes = catalyst, taps, scans, nodes
        self._is_counting = False  # is the next union that of an INTERSECT ALL or EXCEPT ALL
        self._interleaved = 0  # scans that one task may read by turns
        self._definitions: dict[int, tuple[Ids, int]] = {}

    # -- the walk ------------------------------------------------------------------------------------

    def rewrite(self, plan: Plan) -> Rewritten:
        """Raises UncoveredError."""
        name = str(plan.getClass().getSimpleName())
        handler: Callable[[Plan], Rewritten] | None = getattr(self, f"_rewrite_{name}", None)
        if handler is not None:
            return handler(plan)
        if name in _PASSING:
            return self._passing(plan)
        if name in _BY_PARTITION:
            return self._by_partition(plan)
        if name in _BY_GROUP:
            return self._by_group(plan)
        if plan.children().isEmpty() and name in _LEAVES:
            return self._leaf(plan)
        raise UncoveredError(name)

    def output(
        self, plan: Plan, top: Rewritten, name: str, *, kind: str = "sink", **fields: Any
    ) -> tuple[Plan, PlanNode]:
        """`top` with the tap of an output above it, and the columns of `plan` again; and its node."""
        description = str(fields.pop("description", ""))
        node = self._nodes.operator(
            name, description, [top.node], kind=kind, relation=contract.FLOWS, by_id=True, **fields
        )
        node.id_parents = list(dict.fromkeys(source for _, source in top.ids))
        tap = self._taps.tap(node.number, top.ids)
        return self._catalyst.project(plan.output(), self._catalyst.filter(tap, top.plan)), node

    def coarse(self, plan: Plan, name: str, reason: str, **fields: Any) -> None:
        """The operators of a plan that stays as it is, without records, and its output."""

        def told(at: Plan) -> int:
            parents = [told(each) for each in self._catalyst.items(at.children())]
            if parents:
                return self._operator(at, parents, exact=False, reason=reason).number
            description, dataset = self._scans.describe(at)
            fields: dict[str, Any] = {"kind": "source", "dataset": dataset, "exact": False, "reason": reason}
            return self._nodes.operator(str(at.nodeName()), description, [], **fields).number

        description = str(fields.pop("description", ""))
        fields = {"kind": "sink", "exact": False, "reason": reason, **fields}
        self._nodes.operator(name, description, [told(plan)], **fields)

    def _operator(self, plan: Plan, parents: list[int], **fields: Any) -> PlanNode:
        described = _EXPRESSION_IDS.sub("", str(plan.simpleString(25)))
        name = str(plan.nodeName())
        return self._nodes.operator(name, described.removeprefix(name).strip(), parents, **fields)

    def _child(self, plan: Plan) -> Rewritten:
        return self.rewrite(plan.children().apply(0))

    # -- leaves --------------------------------------------------------------------------------------

    def _leaf(self, leaf: Plan, condition: Expression | None = None) -> Rewritten:
        """A scan whose rows are numbered, behind a filter that the scan itself makes use of."""
        kept = self._scans.kept(leaf)
        self._interleaved += self._scans.is_interleaved(leaf)
        if self._interleaved > 1:
            raise UncoveredError("more than one bucketed table in a query")
        description, dataset = self._scans.describe(leaf)
        is_of_rdd = str(leaf.getClass().getSimpleName()) in ("LogicalRDD", "ExternalRDD")
        if kept is None:
            node = self._nodes.operator(
                str(leaf.nodeName()),
                description,
                [],
                kind="source",
                relation=contract.SOURCE,
                by_id=True,
                dataset=dataset,
                exact=not is_of_rdd,
                reason="made of an RDD, whose own records are not followed to here" if is_of_rdd else "",
            )
            number = node.number
        else:
            node, number = self._nodes.operator(str(leaf.nodeName()), description, [kept]), kept
        indexed = self._scans.with_row_index(leaf) if kept is None else None
        scan, row_index = indexed if indexed is not None else (leaf, None)
        if condition is not None:
            scan = self._catalyst.filter(condition, scan)
        # What is kept has told of its records when it was made: they need only be numbered again.
        ids = self._taps.source(number, row_index) if kept is None else self._catalyst.position()
        column = self._catalyst.alias(ids, f"lineage_{number}")
        numbered = self._catalyst.project([*self._catalyst.items(leaf.output()), column], scan)
        return Rewritten(numbered, [(column.toAttribute(), number)], node.number)

    def _rewrite_OneRowRelation(self, plan: Plan) -> Rewritten:
        return Rewritten(plan, [], self._operator(plan, [], kind="source", relation=contract.SOURCE).number)

    def _rewrite_WithCTE(self, plan: Plan) -> Rewritten:
        """Queries with names that are made once and read several times, each by a `CTERelationRef`."""
        definitions = []
        for each in self._catalyst.items(plan.cteDefs()):
            below = self._child(each)
            columns = [*self._catalyst.items(each.output()), *(column for column, _ in below.ids)]
            definitions.append(
                self._catalyst.with_children(each, [self._catalyst.project(columns, below.plan)])
            )
            self._definitions[int(each.id())] = below.ids, below.node
        query = self.rewrite(plan.plan())
        made = self._catalyst.with_children(plan, [*definitions, query.plan])
        return Rewritten(made, query.ids, query.node)

    def _rewrite_CTERelationRef(self, plan: Plan) -> Rewritten:
        ids, node = self._definitions[int(plan.cteId())]
        columns = [
            self._catalyst.alias(self._catalyst.no_id, f"lineage_{source}").toAttribute() for _, source in ids
        ]
        made = self._catalyst.with_output(plan, columns)
        found = [(column, source) for column, (_, source) in zip(columns, ids, strict=True)]
        return Rewritten(made, found, self._operator(plan, [node]).number)

    def _rewrite_Filter(self, plan: Plan) -> Rewritten:
        """What of it a scan makes use of stays beside the scan, where rows are known all the same."""
        leaf = plan.child()
        is_scan = str(leaf.getClass().getSimpleName()) == "LogicalRelation"
        if not is_scan or not plan.deterministic() or _has_subquery(plan):
            return self._passing(plan)
        beside: list[Expression] = []
        above: list[Expression] = []
        for each in self._catalyst.conjuncts(plan.condition()):
            (beside if self._scans.is_pruned_by(leaf, each) else above).append(each)
        below = self._leaf(leaf, self._catalyst.all_of(beside))
        made = below.plan if not above else self._catalyst.filter(self._catalyst.all_of(above), below.plan)
        return Rewritten(made, below.ids, self._operator(plan, [below.node]).number)

    # -- operators with one input --------------------------------------------------------------------

    def _passing(self, plan: Plan) -> Rewritten:
        below = self._child(plan)
        return self._with_subqueries(plan, below, lambda one: self._catalyst.with_children(one, [below.plan]))

    def _with_subqueries(self, plan: Plan, below: Rewritten, rebuilt: Callable[[Plan], Plan]) -> Rewritten:
        """`plan` over its new child; what its scalar subqueries were made of is a source of each row."""
        plan, subqueries = self._subqueries(plan)
        node = self._operator(plan, [below.node, *(parent for _, parent in subqueries)])
        made, ids = rebuilt(plan), below.ids
        if subqueries:
            constants = [
                self._catalyst.alias(self._catalyst.long(0), f"lineage_{group}") for group, _ in subqueries
            ]
            made, attributes = self._catalyst.with_columns(made, constants)
            ids = [*ids, *zip(attributes, (group for group, _ in subqueries), strict=True)]
        return Rewritten(made, ids, node.number)

    def _subqueries(self, plan: Plan) -> tuple[Plan, list[tuple[int, int]]]:
        """The plan with taps in its scalar subqueries; (groups, operator) of each."""
        if not _has_subquery(plan):
            return plan, []
        found: list[tuple[int, int]] = []

        def tapped(expression: Expression) -> Expression | None:
            name = str(expression.getClass().getSimpleName())
            if name == "ScalarSubquery" and not _is_runtime_filter(expression):
                inner = expression.plan()
                below = self.rewrite(inner)
                node = self._nodes.operator("ScalarSubquery", "", [below.node])
                above, group = self._keyed(node, below, self._catalyst.long(0))
                found.append((group, node.number))
                return expression.withNewPlan(
                    self._catalyst.pruned(self._catalyst.project(inner.output(), above))
                )
            if name in ("Exists", "InSubquery", "ListQuery", "LateralSubquery"):
                raise UncoveredError(name)
            return None

        return self._catalyst.transformed(plan, tapped), found

    def _rewrite_Project(self, plan: Plan) -> Rewritten:
        below = self._child(plan)

        def rebuilt(one: Plan) -> Plan:
            columns = self._catalyst.items(one.projectList())
            return self._catalyst.project([*columns, *(column for column, _ in below.ids)], below.plan)

        return self._with_subqueries(plan, below, rebuilt)

    def _rewrite_Generate(self, plan: Plan) -> Rewritten:
        """Of EXCEPT ALL, Spark makes a union with a count for each row; only the left side is a source."""
        self._is_counting = str(plan.generator().getClass().getSimpleName()) == "ReplicateRows"
        try:
            return self._passing(plan)
        finally:
            self._is_counting = False

    def _rewrite_Expand(self, plan: Plan) -> Rewritten:
        below = self._child(plan)
        columns = [column for column, _ in below.ids]
        output = [self._catalyst.alias(each, each.name()).toAttribute() for each in columns]
        projections = [
            self._catalyst.seq([*self._catalyst.items(each), *columns])
            for each in self._catalyst.items(plan.projections())
        ]
        made = self._catalyst.expand(projections, [*self._catalyst.items(plan.output()), *output], below.plan)
        ids = [(attribute, node) for attribute, (_, node) in zip(output, below.ids, strict=True)]
        return Rewritten(made, ids, self._operator(plan, [below.node]).number)

    # -- where rows meet -----------------------------------------------------------------------------

    def _keyed(self, operation: PlanNode, below: Rewritten, key: Expression) -> tuple[Plan, int]:
        """`below` with a tap that writes ids by their key, and the node of the groups."""
        sources = [node for _, node in below.ids]
        rows, codes, keys, groups = self._nodes.keyed(operation, sources)
        groups.exact, groups.reason = operation.exact, operation.reason
        tap = self._taps.tap(rows.number, below.ids, key, (codes.number, keys.number))
        return self._catalyst.filter(tap, below.plan), groups.number

    def _rewrite_Aggregate(self, plan: Plan) -> Rewritten:
        below = self._child(plan)
        node = self._operator(plan, [below.node])
        grouping = self._catalyst.items(plan.groupingExpressions())
        key = self._key(plan, grouping)
        tapped, groups = self._keyed(node, below, key)
        column = self._catalyst.alias(key, f"lineage_{groups}")
        results = [*self._catalyst.items(plan.aggregateExpressions()), column]
        return Rewritten(
            self._catalyst.aggregate(plan, results, tapped), [(column.toAttribute(), groups)], node.number
        )

    def _key(self, plan: Plan, expressions: list[Expression]) -> Expression:
        for each in expressions:
            if _is_unhashable(str(each.dataType().catalogString())):
                raise UncoveredError(
                    f"{plan.nodeName()} by a column of type {each.dataType().catalogString()}"
                )
        return self._catalyst.key(expressions)

    def _rewrite_Window(self, plan: Plan) -> Rewritten:
        limits, at = [], plan.child()
        while str(at.getClass().getSimpleName()) == "WindowGroupLimit":
            limits.append(at)
            at = at.child()
        below = self.rewrite(at)
        node = self._operator(plan, [below.node])
        if "RowFrame" in node.description or "rank" in node.description or "row_number" in node.description:
            node.exact = False
            node.reason = "a window's frame is not followed: any row of its partition may have gone into it"
        key = self._key(plan, self._catalyst.items(plan.partitionSpec()))
        tapped, groups = self._keyed(node, below, key)
        column = self._catalyst.alias(key, f"lineage_{groups}")
        made, (attribute,) = self._catalyst.with_columns(tapped, [column])
        for limit in reversed(limits):
            made = self._catalyst.with_children(limit, [made])
        made = self._catalyst.with_children(plan, [made])
        return Rewritten(made, [*below.ids, (attribute, groups)], node.number)

    def _by_partition(self, plan: Plan) -> Rewritten:
        return self._bounded(plan, self._catalyst.partition_id, "a record of the same partition")

    def _by_group(self, plan: Plan) -> Rewritten:
        return self._bounded(plan, lambda: self._catalyst.long(0), "a record of its inputs")

    def _bounded(self, plan: Plan, key: Callable[[], Expression], bound: str) -> Rewritten:
        """What a function makes of many rows: whatever entered together may have gone into each of it."""
        belows = [self.rewrite(each) for each in self._catalyst.items(plan.children())]
        node = self._operator(plan, [each.node for each in belows], exact=False)
        node.reason = f"{node.name} is a function over many records; what it gives may come from any {bound}"
        children, found = [], []
        for below, child in zip(belows, self._catalyst.items(plan.children()), strict=True):
            tapped, groups = self._keyed(node, below, key())
            children.append(self._catalyst.project(child.output(), tapped))
            found.append(groups)
        made = self._catalyst.with_children(plan, children)
        columns = [self._catalyst.alias(key(), f"lineage_{groups}") for groups in found]
        made, attributes = self._catalyst.with_columns(made, columns)
        return Rewritten(made, list(zip(attributes, found, strict=True)), node.number)

    # -- operators with several inputs ---------------------------------------------------------------

    def _rewrite_Join(self, plan: Plan) -> Rewritten:
        kind = str(plan.joinType().toString())
        if _has_subquery(plan):
            raise UncoveredError("Join with a subquery in its condition")
        left, right = self.rewrite(plan.left()), self.rewrite(plan.right())
        node = self._operator(plan, [left.node, right.node])
        if kind == "LeftAnti":
            inner = self._catalyst.project(plan.right().output(), right.plan)
            return Rewritten(self._catalyst.with_children(plan, [left.plan, inner]), left.ids, node.number)
        if kind == "LeftSemi" or kind.startswith("ExistenceJoin"):
            return self._semi_join(plan, left, right, node, kind)
        if kind not in ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter"):
            raise UncoveredError(f"Join {kind}")
        made = self._catalyst.with_children(plan, [left.plan, right.plan])
        return Rewritten(made, [*left.ids, *right.ids], node.number)

    def _semi_join(
        self, plan: Plan, left: Rewritten, right: Rewritten, node: PlanNode, kind: str
    ) -> Rewritten:
        """The rows of the right side are known by their key, which the rows of the left side have, too."""
        keys = self._catalyst.equi_join_keys(plan)
        left_keys, right_keys, is_all = (
            keys if keys is not None else ([], [], not plan.condition().isDefined())
        )
        if not is_all:
            node.exact = False
            node.reason = (
                "of the other side, all rows with the same key are given: the rest of the condition is not "
                "followed"
            )
        tapped, groups = self._keyed(node, right, self._key(plan, right_keys))
        inner = self._catalyst.project(plan.right().output(), tapped)
        key = self._key(plan, left_keys)
        if kind == "LeftSemi":
            column = self._catalyst.alias(key, f"lineage_{groups}")
            outer, (attribute,) = self._catalyst.with_columns(left.plan, [column])
            made = self._catalyst.with_children(plan, [outer, inner])
        else:
            joined = self._catalyst.with_children(plan, [left.plan, inner])
            exists = plan.joinType().exists()
            column = self._catalyst.alias(
                self._catalyst.if_(exists, key, self._catalyst.no_id), f"lineage_{groups}"
            )
            made, (attribute,) = self._catalyst.with_columns(joined, [column])
        return Rewritten(made, [*left.ids, (attribute, groups)], node.number)

    def _rewrite_Union(self, plan: Plan) -> Rewritten:
        """Each input has columns for the ids of all; those of the others are null in it."""
        stock = self._catalyst.items(plan.children())
        is_counting, self._is_counting = self._is_counting, False
        belows = [self.rewrite(each) for each in stock]
        for at, each in enumerate(stock if is_counting else ()):
            if _COUNTED_OFF.match(str(each.simpleString(25))):
                belows[at] = Rewritten(belows[at].plan, [], belows[at].node)
        tags = [node for below in belows for _, node in below.ids]
        children = []
        for index, (child, below) in enumerate(zip(stock, belows, strict=True)):
            columns = [
                self._catalyst.alias(column if index == other else self._catalyst.no_id, f"lineage_{node}")
                for other, each in enumerate(belows)
                for column, node in each.ids
            ]
            children.append(
                self._catalyst.project([*self._catalyst.items(child.output()), *columns], below.plan)
            )
        made = self._catalyst.with_children(plan, children)
        output = self._catalyst.items(made.output())
        ids = list(zip(output[len(output) - len(tags) :], tags, strict=True))
        return Rewritten(made, ids, self._operator(plan, [below.node for below in belows]).number)


_LEAVES = frozenset(
    (
        "LogicalRelation",
        "LocalRelation",
        "LogicalRDD",
        "ExternalRDD",
        "Range",
        "InMemoryRelation",
        "DataSourceV2ScanRelation",
        "HiveTableRelation",
    )
)
_UNHASHABLE = re.compile(r"\b(map|variant|geometry|geography)\b|collate", re.IGNORECASE)


def _is_unhashable(type_name: str) -> bool:
    return _UNHASHABLE.search(type_name) is not None


def _has_subquery(plan: Plan) -> bool:
    return not plan.subqueries().isEmpty()


def _is_runtime_filter(subquery: Expression) -> bool:
    """A Bloom filter that Spark made to read less: no part of what the user asked."""
    return "bloom_filter" in str(subquery.plan().simpleString(5)).lower()
