"""The walk over a plan that is rewritten, and what the handlers of its operators share.

A handler gets an operator and gives it back with the columns of ids beside its own: see `operators/`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from spark_agent import contract
from spark_agent.sql.catalyst import Catalyst, Operator, is_hashable
from spark_agent.sql.database_keys import RecordNames
from spark_agent.sql.rewrite.descriptions import described
from spark_agent.sql.rewrite.plan_nodes import AnotherPartError, PlanNode, PlanNodes, UncoveredError
from spark_agent.sql.schemas import Schema
from spark_agent.sql.types import Expression, OutputFiles, Plan, Seq

T = TypeVar("T")

#: Columns of ids beside the rows of a plan: (column, node whose records they name).
Ids = list[tuple[Expression, int]]


class Taps(Protocol):
    """Makes the expressions that number rows and write ids."""

    @property
    def is_explained(self) -> bool:
        """Do nodes say what an explanation uses, too?"""

    def kept(self, node: PlanNode, roots: Sequence[str], query: Plan) -> Any:
        """Which rows of a source in these folders a replay keeps; None: all, and of what is no replay.

        `query` is the plan that the source is part of.
        """

    def source(
        self,
        node: int,
        row_index: Expression | None,
        kept: Any = None,
        *,
        is_striped: bool,
        is_of_branch: bool,
        topic_place: Sequence[Expression] = (),
    ) -> Expression:
        """The id of each row; with `kept` that of a row which is dropped is negative.

        `topic_place`: offset, topic, partition and servers of a record of Kafka.
        """

    def tap(
        self,
        node: int,
        ids: Ids,
        key: Expression | None = None,
        key_nodes: tuple[int, int] = (-1, -1),
        output_files: OutputFiles | None = None,
        step_size: int = 0,
        digest: Expression | None = None,
        operation: Expression | None = None,
        record_names: RecordNames | None = None,
    ) -> Expression: ...

    def record_key(self, node: int, ids: Expression, names: RecordNames) -> Expression:
        """A condition that is always true, and notes how the record of a row is named."""

    def winners(self, nodes: Sequence[int], ids: Ids, key: Expression) -> Expression:
        """A condition that is always true, and notes which rows decide the group of a row."""

    def reads(self, tap: Expression) -> Expression: ...

    def frames(
        self,
        nodes: tuple[int, int, int],
        sources: list[int],
        frames: Sequence[tuple[bool, int | None, int | None]],
    ) -> Any: ...


class Answered(NamedTuple):
    """What a query answers without reading a row. `dataset`: of the table, if it is known; `reason`: why."""

    description: str
    dataset: dict[str, Any] | None
    reason: str


class Scans(Protocol):
    """Looks at the scans of plans."""

    def describe(
        self, scan: Operator, pushed: Sequence[Expression] = ()
    ) -> tuple[str, dict[str, Any] | None]: ...

    def describe_table(self, plan: Plan) -> tuple[str, dict[str, Any]] | None: ...

    def answered(self, plan: Plan, leaf: Operator) -> Answered | None: ...

    def about(self, plan: Plan, leaf: Operator, dataset: dict[str, Any] | None) -> dict[str, Any]: ...

    def schema(self, plan: Plan, leaf: Operator) -> Schema: ...

    def expressions(self, plan: Plan, leaf: Operator) -> dict[str, Any] | None: ...

    def with_row_index(self, plan: Plan, scan: Operator) -> tuple[Plan, Expression] | None: ...

    def is_striped(self, scan: Operator) -> bool: ...

    def topic_place(self, plan: Plan, leaf: Operator) -> list[Expression]: ...

    def record_names(self, plan: Plan, leaf: Operator, query: Plan) -> RecordNames | None: ...

    def persisted_node(self, plan: Plan, leaf: Operator) -> int | None: ...

    def rdd_node(self, plan: Plan, leaf: Operator) -> int | None: ...

    def published_node(self, plan: Plan, leaf: Operator) -> int | None: ...

    def may_be_pushed(self, scan: Operator, condition: Expression) -> bool: ...

    def is_of_dropped_rows(self, scan: Operator, condition: Expression) -> bool: ...

    def is_evaluated_first(self, scan: Operator, condition: Expression) -> bool: ...

    def is_interleaved(self, scan: Operator) -> bool: ...

    def are_of_same_files(self, plan: Plan, other: Plan) -> bool: ...


@dataclass
class Rewritten:
    """A plan that gives what it gave before and the ids beside it. `node` is its operator's number."""

    plan: Plan
    ids: Ids
    node: int


class SubqueryGroup(NamedTuple):
    """The one group of a scalar subquery: all that its value was made of."""

    node: int
    operator: int  # the node of the subquery itself


class Walk:
    """One plan. `handlers` are those of operators by the names of their classes."""

    def __init__(
        self, catalyst: Catalyst, taps: Taps, scans: Scans, nodes: PlanNodes, handlers: Mapping[str, Handler]
    ) -> None:
        self.catalyst, self.taps, self.scans, self.nodes = catalyst, taps, scans, nodes
        self._handlers = handlers
        self.is_counting = False  # is the next union that of an INTERSECT ALL or EXCEPT ALL
        self.is_prunable = True  # does each operator say all columns that it reads
        self.is_of_branch = False  # may this part be compiled into one piece with a union above it
        self.interleaved = 0  # scans that one task may read alternately
        self.root: Plan = None  # of the query, or of the subquery, that is walked over
        self.outers: list[Plan] = []  # of which Spark put copies into the part that is walked over
        self.copies = 0  # that were met
        self.upper_bound_reason = ""  # why all of it is one, if it is
        #: id() of a column of ids that a window added -> (it, ids of the columns that the window computed)
        self.window_columns: dict[int, tuple[Expression, frozenset[int]]] = {}
        #: (class, hash) of a part of the plan -> the parts with their nodes
        self._visited: dict[tuple[str, int], list[tuple[Plan, list[PlanNode]]]] = defaultdict(list)
        self._operators: dict[
            int, tuple[Plan, Operator]
        ] = {}  # by the id of the plan, which stays alive here

    def look(self, plan: Plan) -> Operator:
        """What an operator is; the JVM is asked once."""
        if id(plan) not in self._operators:
            self._operators[id(plan)] = plan, self.catalyst.look(plan)
        return self._operators[id(plan)][1]

    def rewrite(self, plan: Plan) -> Rewritten:
        """Raises UncoveredError."""
        name = self.look(plan).kind
        self.root = self.root or plan
        handler = self._handlers.get(name)
        if handler is None:
            raise UncoveredError(name)
        is_above_of_branch = self.is_of_branch
        self.is_of_branch = name == "Union" or (
            is_above_of_branch and (name in _COMPILED or bool(plan.children().isEmpty()))
        )
        try:
            return self._reusing_nodes(plan, name, lambda: handler(self, plan))
        finally:
            self.is_of_branch = is_above_of_branch

    def _reusing_nodes(self, plan: Plan, kind: str, rewrite: Callable[[], T]) -> T:
        """What `rewrite` makes of a part of the plan. Of one that equals an earlier part, with its nodes.

        Spark computes equal parts of a plan once (it reuses exchanges and subqueries), as long as what the
        agent puts into them is equal, too. Columns are recreated: they tell the sides of a self-join apart.
        """
        if self.nodes.is_replaying:
            return rewrite()
        key = kind, int(plan.semanticHash())
        for earlier, nodes in self._visited[key]:
            if earlier.sameResult(plan) and self.scans.are_of_same_files(earlier, plan):
                interleaved = self.interleaved
                try:
                    with self.nodes.replaying(nodes):
                        rewritten = rewrite()
                except AnotherPartError:
                    self.interleaved = interleaved
                    break
                if not self.look(plan).is_deterministic and self.catalyst.may_differ(plan):
                    _mark_nondeterministic(nodes)
                return rewritten
        first = len(self.nodes.used)
        rewritten = rewrite()
        self._visited[key].append((plan, self.nodes.used[first:]))
        return rewritten

    def operator(self, plan: Plan, parents: list[int], **fields: Any) -> PlanNode:
        look = self.look(plan)
        text = described(look.text, look.name)
        fields.setdefault("expressions", look.expressions)
        return self.nodes.operator(look.name, text, parents, made_at=look.call_sites, **fields)

    def child(self, plan: Plan) -> Rewritten:
        return self.rewrite(plan.child())

    def pass_through(self, plan: Plan, child: Plan | None = None) -> Rewritten:
        """`child` is the plan's own, where it was asked for before."""
        below = self.child(plan) if child is None else self.rewrite(child)
        return self.with_subqueries(plan, below, lambda one: self.catalyst.with_children(one, [below.plan]))

    def with_subqueries(self, plan: Plan, below: Rewritten, rebuild: Callable[[Plan], Plan]) -> Rewritten:
        """`plan` over its new child; what its scalar subqueries were made of is a source of each row."""
        tapped, groups = self.tapped_subqueries(plan)
        return self.over(plan, below, rebuild(tapped), groups)

    def over(
        self, plan: Plan, below: Rewritten, rewritten: Plan, groups: Sequence[SubqueryGroup]
    ) -> Rewritten:
        """`plan`, rewritten over its child, with its operator's node and the groups of its subqueries."""
        node = self.operator(plan, [below.node, *(group.operator for group in groups)])
        return self.with_groups(Rewritten(rewritten, below.ids, node.number), groups)

    def with_groups(self, rewritten: Rewritten, groups: Sequence[SubqueryGroup]) -> Rewritten:
        """With columns of ids for the groups of scalar subqueries."""
        if not groups:
            return rewritten
        zero = self.catalyst.long(0)
        constants = [self.catalyst.alias(zero, f"lineage_{group.node}") for group in groups]
        plan, attributes = self.catalyst.with_columns(rewritten.plan, constants)
        ids = zip(attributes, (group.node for group in groups), strict=True)
        return Rewritten(plan, [*rewritten.ids, *ids], rewritten.node)

    def tapped_subqueries(self, plan: Plan) -> tuple[Plan, list[SubqueryGroup]]:
        """The plan with taps in its scalar subqueries, and their groups."""
        if not self.look(plan).has_subqueries:
            return plan, []
        groups: list[SubqueryGroup] = []

        def tapped(expression: Expression) -> Expression | None:
            name = self.catalyst.kind(expression)
            if name == "ScalarSubquery" and not _is_runtime_filter(expression):
                inner = expression.plan()
                above, group = self._reusing_nodes(inner, name, lambda: self._subquery(inner))
                if group not in groups:
                    groups.append(group)
                subquery = self.pruned(self.catalyst.project_as(inner, above))
                if self.look(
                    inner
                ).is_deterministic:  # else a condition on its value is not pushed into a scan
                    subquery = self.catalyst.deterministic(subquery)
                return expression.withNewPlan(subquery)
            if name == "DynamicPruningSubquery":
                return self.catalyst.pruning_by_itself(expression)
            if name in ("Exists", "InSubquery", "ListQuery", "LateralSubquery"):
                raise UncoveredError(name)
            return None

        return self.catalyst.transformed(plan, tapped), groups

    def _subquery(self, inner: Plan) -> tuple[Plan, SubqueryGroup]:
        """The plan of a scalar subquery with a tap, and its group."""
        outer, self.root, self.is_of_branch = (self.root, self.is_of_branch), inner, False
        try:
            below = self.rewrite(inner)
        finally:
            self.root, self.is_of_branch = outer
        node = self.nodes.operator("ScalarSubquery", "", [below.node])
        if self._is_existence(inner):
            node.exact = False
            node.reason = (
                "an EXISTS that asks of no row of the query around it ends at the first row it finds"
            )
        above, group = self.grouped(node, below, self.catalyst.long(0))
        return above, SubqueryGroup(group, node.number)

    def _is_existence(self, inner: Plan) -> bool:
        """Is it what Spark makes of an EXISTS: a 1 for the first row?"""
        limits = 0
        while self.look(inner).kind in ("GlobalLimit", "LocalLimit"):
            inner, limits = inner.child(), limits + 1
        return limits > 0 and _ONE.match(self.look(inner).text) is not None

    def pruned(self, plan: Plan) -> Plan:
        """Without the columns of ids that nothing above reads, where that can be known."""
        return self.catalyst.pruned(plan) if self.is_prunable else plan

    def grouped(
        self, operation: PlanNode, below: Rewritten, key: Expression, decided_by: str | None = contract.BY_ALL
    ) -> tuple[Plan, int]:
        """`below` with a tap that writes ids by their key, and the node of the groups.

        `decided_by`: which rows of a group count, as contract.DECISIONS says; None: not known.
        """
        if self.taps.is_explained:
            operation.decided_by = decided_by
        sources = [node for _, node in below.ids]
        rows, codes, keys, groups = self.nodes.group_provenance(operation, sources)
        groups.exact, groups.reason = operation.exact, operation.reason
        tap = self.taps.tap(rows.number, below.ids, key, (codes.number, keys.number))
        return self.catalyst.filter(tap, below.plan), groups.number

    def with_winners(
        self, operation: PlanNode, like: Plan, grouped: Rewritten, picked: Sequence[tuple[Expression, int]]
    ) -> Rewritten:
        """`grouped`, the groups of an operation, with a tap that writes which rows decide each.

        `picked` are columns of it with the ids of such rows, and the nodes of these. It ends with the columns
        of `like` and of its own ids.
        """
        [(key, _)] = grouped.ids
        nodes = [self.nodes.winners(operation, source).number for _, source in picked]
        tap = self.taps.winners(nodes, list(picked), key)
        plan = self.catalyst.project_as(like, self.catalyst.filter(tap, grouped.plan), [key])
        return Rewritten(plan, grouped.ids, grouped.node)

    def read_so_far(
        self, operation: PlanNode, below: Rewritten, step_size: int
    ) -> tuple[Plan, int, Expression]:
        """`below` with a tap, the node of all rows up to a certain one, and the key of those read by now."""
        sources = [node for _, node in below.ids]
        rows, steps, keys, groups = self.nodes.group_provenance(operation, sources)
        groups.exact, groups.reason = operation.exact, operation.reason
        if self.taps.is_explained:
            operation.decided_by = contract.BY_ALL
        nodes = (steps.number, keys.number)
        tap = self.taps.tap(rows.number, below.ids, self.catalyst.long(0), nodes, step_size=step_size)
        return self.catalyst.filter(tap, below.plan), groups.number, self.taps.reads(tap)

    def key(self, plan: Plan, expressions: list[Expression] | Seq) -> Expression:
        for name in self.catalyst.types(expressions):
            if not is_hashable(name):
                raise UncoveredError(f"{self.look(plan).name} by a column of type {name}")
        return self.catalyst.key(expressions)


Handler = Callable[[Walk, Plan], Rewritten]
#: Operators that are compiled with what is below them.
_COMPILED = frozenset(("Filter", "Generate", "Join", "Project"))


def _mark_nondeterministic(nodes: list[PlanNode]) -> None:
    """Computed twice, this part may bring other rows together the second time, under the same keys."""
    for node in nodes:
        if node.relation == contract.KEYED:
            node.exact = False
            node.reason = "computed more than once, with values that may differ each time"


_ONE = re.compile(r"Project \[1 AS col#[0-9]+L?\]$")


def _is_runtime_filter(subquery: Expression) -> bool:
    """A Bloom filter that Spark made to read less: no part of what the user asked."""
    return "bloom_filter_agg(" in str(subquery.plan().simpleString(5)).lower()
