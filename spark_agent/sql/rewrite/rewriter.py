"""Rewrites an optimised plan so that the ids of records travel with its rows.

A scan numbers its rows; operators carry the columns of ids on; where rows meet (an aggregate, the inner side
of a semi-join, a window, the output) a *tap* writes the ids that come in. What becomes of them is said in
docs/dataframes.md. Side effects: none but new nodes; a plan that holds something that is not covered raises
UncoveredError and stays as it is. The technique (provenance by rewriting queries) is that of Perm and GProM.
"""

from __future__ import annotations

from typing import Any

from spark_agent import contract
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.database_keys import RecordNames
from spark_agent.sql.rewrite.operators import (
    aggregates,
    functions,
    joins,
    merges,
    pass_through,
    scans,
    typed_functions,
    unions,
    windows,
)
from spark_agent.sql.rewrite.plan_nodes import PlanNode, PlanNodes
from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Scans, Taps, Walk
from spark_agent.sql.types import Expression, OutputFiles, Plan

_HANDLERS: dict[str, Handler] = {
    **scans.HANDLERS,
    **pass_through.HANDLERS,
    **aggregates.HANDLERS,
    **windows.HANDLERS,
    **functions.HANDLERS,
    **typed_functions.HANDLERS,
    **joins.HANDLERS,
    **unions.HANDLERS,
    **merges.HANDLERS,
}


def walk_of(catalyst: Catalyst, taps: Taps, readers: Scans, nodes: PlanNodes) -> Walk:
    """The walk over one plan."""
    return Walk(catalyst, taps, readers, nodes, _HANDLERS)


def output(
    walk: Walk,
    plan: Plan,
    top: Rewritten,
    name: str,
    *,
    kind: str = "sink",
    output_files: OutputFiles | None = None,
    digest: Expression | None = None,
    left_out: Expression | None = None,
    operation: Expression | None = None,
    record_names: RecordNames | None = None,
    **fields: Any,
) -> tuple[Plan, PlanNode]:
    """`top` with the tap of an output above it, and the columns of `plan` again; and its node.

    `output_files`, `digest` and `record_names` are of expressions over the columns of `plan`, `operation` of
    one over those of `top`.
    `left_out` is a condition: rows that meet it are no records of the output.
    """
    description = str(fields.pop("description", ""))
    node = walk.nodes.operator(
        name, description, [top.node], kind=kind, relation=contract.FLOWS, by_id=True, **fields
    )
    if walk.upper_bound_reason:
        node.exact, node.reason = False, walk.upper_bound_reason
    node.id_parents = list(dict.fromkeys(source for _, source in top.ids))
    tap = walk.taps.tap(
        node.number,
        top.ids,
        output_files=output_files,
        digest=digest,
        operation=operation,
        record_names=record_names,
    )
    if left_out is not None:
        tap = walk.catalyst.either(left_out, tap)
    return walk.catalyst.project_as(plan, walk.catalyst.filter(tap, top.plan)), node


def coarse(walk: Walk, plan: Plan, name: str, reason: str, **fields: Any) -> None:
    """The nodes of a plan that stays as it is: its operators without records, and its output."""

    def node_of(at: Plan) -> int:
        parents = [node_of(child) for child in walk.catalyst.items(at.children())]
        if parents:
            return walk.operator(at, parents, exact=False, reason=reason).number
        leaf = walk.look(at)
        description, dataset = walk.scans.describe(leaf)
        fields: dict[str, Any] = {"exact": False, "reason": reason}
        source = walk.scans.published_node(at, leaf)
        parents = [] if source is None else [source]
        if source is None:
            fields.update(kind="source", **walk.scans.about(at, leaf, dataset))
        return walk.nodes.operator(leaf.name, description, parents, made_at=leaf.call_sites, **fields).number

    description = str(fields.pop("description", ""))
    fields = {"kind": "sink", "exact": False, "reason": reason, **fields}
    walk.nodes.operator(name, description, [node_of(plan)], **fields)
