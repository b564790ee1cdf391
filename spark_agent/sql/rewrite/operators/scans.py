"""Scans, ranges, cached DataFrames: where records begin and rows are numbered."""

from __future__ import annotations

from collections.abc import Sequence

from spark_agent import contract
from spark_agent.sql import tables
from spark_agent.sql.catalyst import Operator
from spark_agent.sql.rewrite.plan_nodes import UncoveredError
from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Expression, Plan

_OF_RDD = "made of an RDD, whose own records are not followed to here"
#: Leaves whose rows come from elsewhere, where nobody knows from where.
_NOT_FOLLOWED = {
    "LogicalRDD": _OF_RDD,
    "ExternalRDD": _OF_RDD,
    "InMemoryRelation": "a cache of a query whose records were not followed",
}
#: Those that may read tables, which have names.
_OF_TABLES = frozenset(("LogicalRelation", "DataSourceV2ScanRelation", "HiveTableRelation"))
#: Why the trail ends at rows that stand in the plan. They are exact: these are the rows.
_OF_PLAN = {
    "LocalRelation": "a list of the driver, or rows in the query's text: where they came from is not followed"
}
_OF_SOURCE = "computed by the source itself, of rows that are not known here (an aggregate or a join)"


def scan(walk: Walk, plan: Plan, beside: Sequence[Expression] = ()) -> Rewritten:
    """A scan whose rows are numbered, behind conditions that the scan itself makes use of."""
    leaf = walk.look(plan)
    kept = walk.scans.kept(plan, leaf)
    given = walk.scans.given(plan, leaf) if kept is None else None
    walk.interleaved += walk.scans.is_interleaved(leaf)
    if walk.interleaved > 1:
        raise UncoveredError("more than one bucketed table in a query")
    description, dataset = walk.scans.describe(leaf, beside)
    if leaf.files is None and leaf.kind in _OF_TABLES:
        place = tables.read_by(plan)
        # Of a source of version 2 only the folder is known, not what its tasks read there.
        description, dataset = place.description, place.dataset if leaf.kind == "LogicalRelation" else None
    number = kept if kept is not None else given
    if number is not None:
        node = walk.nodes.operator(leaf.name, description, [number], made_at=leaf.call_sites)
    else:
        reason = _NOT_FOLLOWED.get(leaf.kind, "")
        if leaf.kind == "DataSourceV2ScanRelation" and not _is_of_rows(walk, plan):
            reason = _OF_SOURCE
        node = walk.nodes.operator(
            _scan_name(leaf, dataset),
            description,
            [],
            made_at=leaf.call_sites,
            kind="source",
            relation=contract.SOURCE,
            by_id=True,
            dataset=dataset,
            exact=not reason,
            reason=reason or _OF_PLAN.get(leaf.kind, ""),
        )
        number = node.number
    indexed = walk.scans.with_row_index(plan, leaf) if kept is None else None
    made, row_index = indexed if indexed is not None else (plan, None)
    if beside:
        made = walk.catalyst.filter(walk.catalyst.all_of(beside), made)
    # What is kept has told of its records when it was made: they need only be numbered again.
    if kept is None:
        ids = walk.taps.source(
            number, row_index, is_striped=walk.scans.is_striped(leaf), is_of_branch=walk.is_of_branch
        )
    else:
        ids = walk.catalyst.position()
    column = walk.catalyst.alias(ids, f"lineage_{number}")
    numbered = walk.catalyst.project_as(plan, made, [column])
    return Rewritten(numbered, [(column.toAttribute(), number)], node.number)


def _is_of_rows(walk: Walk, scan: Plan) -> bool:
    """Are its columns the table's? Those of what was pushed down into a source are new ones."""
    return set(walk.catalyst.column_ids(scan)) <= set(walk.catalyst.column_ids(scan.relation()))


def _scan_name(leaf: Operator, dataset: dict[str, str] | None) -> str:
    """As Spark's own pages name it; elsewhere the plan's name."""
    if leaf.kind != "LogicalRelation" or dataset is None:
        return leaf.name
    return f"Scan {dataset['format'].removesuffix('+header')}"


def filter_(walk: Walk, plan: Plan) -> Rewritten:
    """What of it a scan makes use of stays beside the scan, where rows are known all the same."""
    below = plan.child()
    leaf = walk.look(below)
    if leaf.kind != "LogicalRelation":
        return walk.passing(plan, below)
    tapped, entered = walk.tapped_subqueries(plan)
    beside: list[Expression] = []
    first: list[Expression] = []
    above: list[Expression] = []
    for each in walk.catalyst.conjuncts(tapped.condition()):
        if walk.scans.is_pruned_by(leaf, each):
            beside.append(each)
        else:
            (first if walk.scans.is_asked_first(leaf, each) else above).append(each)
    scanned = scan(walk, below, beside)
    made = scanned.plan
    for conditions in (first, above):  # one filter of both would look at `IS NOT NULL` last
        if conditions:
            made = walk.catalyst.filter(walk.catalyst.all_of(conditions), made)
    return walk.entered_by(entered, plan, scanned, made)


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
            "DataSourceV2ScanRelation",
            "HiveTableRelation",
        ),
        scan,
    ),
    "Filter": filter_,
    "OneRowRelation": one_row,
}
