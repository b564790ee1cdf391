"""Scans, ranges, cached DataFrames: where records begin and rows are numbered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spark_agent import contract
from spark_agent.sql import tables
from spark_agent.sql.catalyst import Operator
from spark_agent.sql.database_keys import RecordNames
from spark_agent.sql.rewrite.plan_nodes import PlanNode, UncoveredError
from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Expression, Plan

_OF_RDD = "made of an RDD, whose own records are not followed to here"
#: Leaves whose rows come from elsewhere: it is not known from where.
_NOT_FOLLOWED = {
    "LogicalRDD": _OF_RDD,
    "ExternalRDD": _OF_RDD,
    "InMemoryRelation": "a cache of a query whose records were not followed",
}
#: Those that may read tables, which have names.
_OF_TABLES = frozenset(("LogicalRelation", "DataSourceV2ScanRelation", "HiveTableRelation"))
_OF_VERSION_2 = "DataSourceV2ScanRelation"
#: Why the trail ends at rows that stand in the plan. They are exact: these are the rows.
_OF_PLAN = {
    "LocalRelation": "a list of the driver, or rows in the query's text: where they came from is not followed"
}
_OF_SOURCE = "computed by the source itself, of rows that are not known here (an aggregate or a join)"

_OF_METADATA = "answered by Iceberg from its metadata: no row of the table was read"


def scan(walk: Walk, plan: Plan, pushed: Sequence[Expression] = ()) -> Rewritten:
    """A scan whose rows are numbered, behind conditions that are pushed into it."""
    leaf = walk.look(plan)
    if _is_feed(walk, plan, leaf):
        return walk.rewrite(walk.catalyst.change_feeds.scans(plan))
    walk.interleaved += walk.scans.is_interleaved(leaf)
    if walk.interleaved > 1:
        raise UncoveredError("more than one bucketed table in a query")
    answered = walk.scans.answered(plan, leaf)
    description, dataset = _described(walk, plan, leaf, pushed) if answered is None else answered[:2]
    persisted = walk.scans.persisted_node(plan, leaf)
    parent = walk.scans.rdd_node(plan, leaf) if persisted is None else persisted
    kept = None
    names = None
    if parent is not None:
        number = parent
        schema = None if persisted is not None else walk.scans.schema(plan, leaf)
        node = walk.nodes.operator(leaf.name, description, [number], made_at=leaf.call_sites, schema=schema)
    else:
        is_of_rows = leaf.kind != _OF_VERSION_2 or _is_of_rows(walk, plan)
        names = walk.scans.record_names(plan, leaf, walk.root) if is_of_rows else None
        reason = "" if answered is None else answered.reason
        node = _source(walk, plan, leaf, description, dataset, names, reason)
        number = node.number
        if leaf.files is not None:
            kept = walk.taps.kept(node, leaf.files["roots"], walk.root)
    indexed = walk.scans.with_row_index(plan, leaf) if persisted is None else None
    scanned, row_index = indexed if indexed is not None else (plan, None)
    late: list[Expression] = []
    if kept is not None and row_index is not None:
        pushed, late = _parted(pushed, lambda condition: walk.scans.is_of_dropped_rows(leaf, condition))
    node.is_prefiltered |= any(map(walk.catalyst.may_fail, pushed))
    if pushed:
        scanned = walk.catalyst.filter(walk.catalyst.all_of(pushed), scanned)
    # What is persisted has reported its records when it was made: they need only be numbered again.
    if persisted is None:
        ids = walk.taps.source(
            number,
            row_index,
            kept,
            is_striped=walk.scans.is_striped(leaf),
            is_of_branch=walk.is_of_branch,
            topic_place=walk.scans.topic_place(plan, leaf),
        )
    else:
        ids = walk.catalyst.position()
    column = walk.catalyst.alias(ids, f"lineage_{number}")
    numbered = walk.catalyst.project_as(plan, scanned, [column])
    if names is not None and names.texts:
        key = walk.taps.record_key(number, column.toAttribute(), names)
        numbered = walk.catalyst.filter(key, numbered)
    if kept is not None:
        numbered = _kept(walk, numbered, column.toAttribute(), late, has_candidates=kept.hasCandidates())
    return Rewritten(numbered, [(column.toAttribute(), number)], node.number)


def _described(
    walk: Walk, plan: Plan, leaf: Operator, pushed: Sequence[Expression]
) -> tuple[str, dict[str, Any] | None]:
    """Text and dataset of a scan."""
    if leaf.files is not None or leaf.kind not in _OF_TABLES:
        return walk.scans.describe(leaf, pushed)
    of_table = walk.scans.describe_table(plan) if leaf.kind == _OF_VERSION_2 else None
    if of_table is not None:
        return of_table
    endpoint = tables.read_by(plan)
    # Of other sources of version 2 only the folder is known, not what their tasks read there.
    is_named = leaf.kind == "LogicalRelation" or not tables.is_of_files(endpoint.dataset)
    return endpoint.description, endpoint.dataset if is_named else None


def _parted(
    conditions: Sequence[Expression], is_late: Callable[[Expression], bool]
) -> tuple[list[Expression], list[Expression]]:
    """The others and those that are late."""
    others: list[Expression] = []
    late: list[Expression] = []
    for condition in conditions:
        (late if is_late(condition) else others).append(condition)
    return others, late


def _kept(
    walk: Walk, numbered: Plan, ids: Expression, late: Sequence[Expression], *, has_candidates: bool
) -> Plan:
    """The rows of a scan that a replay keeps, and of these the ones that fulfil the late conditions."""
    if has_candidates:  # PlanStrategy.java knows the scan by this filter
        numbered = walk.catalyst.filter(walk.catalyst.is_other(ids, -1), numbered)
    kept = walk.catalyst.filter(walk.catalyst.is_positive(ids), numbered)
    return walk.catalyst.filter(walk.catalyst.all_of(late), kept) if late else kept


def _source(
    walk: Walk,
    plan: Plan,
    leaf: Operator,
    description: str,
    dataset: dict[str, Any] | None,
    names: RecordNames | None,
    reason: str,
) -> PlanNode:
    """The node of a scan whose rows have no other node of this application. `reason`: why it is not exact."""
    is_answered = bool(reason)
    reason = reason or _NOT_FOLLOWED.get(leaf.kind, "")
    expressions = walk.scans.expressions(plan, leaf)
    if leaf.kind == _OF_VERSION_2 and not _is_of_rows(walk, plan):
        is_of_iceberg = dataset is not None and dataset["format"].startswith("iceberg")
        reason = _OF_METADATA if is_of_iceberg else _OF_SOURCE
    if names is not None and not names.is_exact:
        reason = names.reason
    more = _OF_PLAN.get(leaf.kind, "") if names is None else names.reason
    about: dict[str, Any] = {}
    if not walk.nodes.is_replaying:  # the columns of an answer are not those of the table
        about = {"dataset": dataset} if is_answered else walk.scans.about(plan, leaf, dataset)
    node = walk.nodes.operator(
        _scan_name(leaf, dataset),
        description,
        [],
        made_at=leaf.call_sites,
        kind="source",
        relation=contract.SOURCE,
        by_id=True,
        exact=not reason,
        reason=reason or more,
        expressions=expressions,
        **about,
    )
    _add_columns(node, expressions)
    return node


def _add_columns(node: PlanNode, expressions: dict[str, Any] | None) -> None:
    """Where a scan stands in the plan more than once, its columns have other ids each time."""
    if node.expressions is None or expressions is None:
        node.expressions = None
    elif "columns" in expressions and expressions["columns"][0] not in node.expressions["columns"]:
        node.expressions["columns"] += expressions["columns"]


def _is_of_rows(walk: Walk, scan: Plan) -> bool:
    """Are its columns the table's? Those of what was pushed down into a source are new ones."""
    return set(walk.catalyst.column_ids(scan)) <= set(walk.catalyst.column_ids(scan.relation()))


def _scan_name(leaf: Operator, dataset: dict[str, Any] | None) -> str:
    """As Spark's own pages name it; elsewhere the plan's name."""
    if leaf.kind not in ("LogicalRelation", "LocalRelation", _OF_VERSION_2) or dataset is None:
        return leaf.name
    return f"Scan {dataset['format'].partition('+')[0]}"


def filter_(walk: Walk, plan: Plan) -> Rewritten:
    """What of it a scan makes use of is pushed into the scan, where rows are known all the same."""
    below = plan.child()
    leaf = walk.look(below)
    if _is_feed(walk, below, leaf):
        return walk.rewrite(walk.catalyst.change_feeds.scans(plan))
    has_positions = leaf.kind == _OF_VERSION_2 and walk.scans.describe_table(below) is not None
    if leaf.kind != "LogicalRelation" and not has_positions:
        return walk.pass_through(plan, below)
    plan, runtime_filters = _without_runtime_filters(walk, plan) if has_positions else (plan, [])
    if plan is None:
        return scan(walk, below, runtime_filters)
    tapped, subqueries = walk.tapped_subqueries(plan)
    pushed: list[Expression] = runtime_filters
    first: list[Expression] = []
    others: list[Expression] = []
    for condition in walk.catalyst.conjuncts(tapped.condition()):
        if walk.scans.may_be_pushed(leaf, condition):
            pushed.append(condition)
        else:
            (first if walk.scans.is_evaluated_first(leaf, condition) else others).append(condition)
    scanned = scan(walk, below, pushed)
    filtered = scanned.plan
    for conditions in (first, others):  # one filter of both would look at `IS NOT NULL` last
        if conditions:
            filtered = walk.catalyst.filter(walk.catalyst.all_of(conditions), filtered)
    return walk.over(plan, scanned, filtered, subqueries)


def _without_runtime_filters(walk: Walk, plan: Plan) -> tuple[Plan | None, list[Expression]]:
    """A Filter without what Spark put into it to read fewer files, and that. None: it is nothing else.

    Such a condition stays directly over the scan, which Spark hands it to. Its subquery is no part of what
    the user asked.
    """
    conditions = walk.catalyst.conjuncts(plan.condition())
    own, runtime = _parted(conditions, lambda one: walk.catalyst.kind(one) == "DynamicPruningExpression")
    if not runtime:
        return plan, []
    return walk.catalyst.filter(walk.catalyst.all_of(own), plan.child()) if own else None, runtime


def _is_feed(walk: Walk, plan: Plan, leaf: Operator) -> bool:
    """Does a leaf read the change data feed of a table of Delta Lake?"""
    is_relation = leaf.kind == "LogicalRelation" and leaf.files is None
    return is_relation and bool(walk.catalyst.change_feeds.isFeed(plan))


def one_row(walk: Walk, plan: Plan) -> Rewritten:
    return Rewritten(plan, [], walk.operator(plan, [], kind="source", relation=contract.SOURCE).number)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(
        (
            "LogicalRelation",
            "LocalRelation",
            "LogicalRDD",
            "ExternalRDD",
            "Range",
            "InMemoryRelation",
            _OF_VERSION_2,
            "HiveTableRelation",
        ),
        scan,
    ),
    "Filter": filter_,
    "OneRowRelation": one_row,
}
