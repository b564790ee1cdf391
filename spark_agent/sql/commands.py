"""What of a plan is the query, and what stands around it: a command that writes, or a limit on top."""

from __future__ import annotations

from collections.abc import Callable

from spark_agent.sql.catalyst import Catalyst, Plan

_WRITING_FILES = ("InsertIntoHadoopFsRelationCommand", "InsertIntoHiveTable", "InsertIntoHiveDirCommand")
_WRITING = (*_WRITING_FILES, "AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic")


def query_of(catalyst: Catalyst, plan: Plan, kind: str) -> tuple[Plan | None, Callable[[Plan], Plan] | None]:
    """The query of a plan, and for a command how the command goes around another one."""
    if kind == "WithCTE" and str(plan.plan().getClass().getSimpleName()) in _WRITING:
        query, around = query_of(catalyst, plan.plan(), str(plan.plan().getClass().getSimpleName()))
        return catalyst.with_children(plan, [*catalyst.items(plan.cteDefs()), query]), around
    if kind in _WRITING_FILES:
        child = plan.children().apply(0)
        if str(child.getClass().getSimpleName()) == "WriteFiles":
            return child.child(), lambda made: catalyst.with_children(
                plan, [catalyst.with_children(child, [made])]
            )
        return child, lambda made: catalyst.with_children(plan, [made])
    if kind in _WRITING:
        return plan.children().apply(0), lambda made: catalyst.with_children(plan, [made])
    return (None, None) if kind.endswith("Command") or kind == "CommandResult" else (plan, None)


def limits_of(query: Plan) -> tuple[list[Plan], Plan]:
    """A limit at the top, which Spark runs partition by partition: what it is made of, and what is below.

    The tap goes below it. One over a sort is another operator of Spark's, and stays where it is.
    """
    limits, at = [], query
    while str(at.getClass().getSimpleName()) in ("GlobalLimit", "LocalLimit"):
        limits.append(at)
        at = at.child()
    below, name = at, str(at.getClass().getSimpleName())
    while name in ("Project", "Offset"):
        below = below.child()
        name = str(below.getClass().getSimpleName())
    return ([], query) if not limits or name == "Sort" else (limits, at)


def limit_of(limit: Plan) -> int | None:
    text = str(limit.limitExpr().toString())
    return int(text) if text.isdecimal() else None
