"""What of a plan is the query, and what stands around it: a command that writes, or a limit on top."""

from __future__ import annotations

from collections.abc import Callable

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.types import Plan

_WRITING_FILES = ("InsertIntoHadoopFsRelationCommand", "InsertIntoHiveTable", "InsertIntoHiveDirCommand")
_WRITING_TABLES = (
    *("AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic"),
    *("ReplaceData", "WriteDelta"),
)
_WRITING = (*_WRITING_FILES, *_WRITING_TABLES)
#: Those that run a query of their own for what they do: that query is followed. What is cached is one, too.
_RUNNING_ANOTHER = (
    "CacheTable",
    "CacheTableAsSelect",
    "UncacheTable",
    "CreateTableAsSelect",
    "ReplaceTableAsSelect",
)
#: Those that move rows without a query that could be followed.
_MOVING = ("LoadDataCommand",)
#: What hands rows to a function of the JVM: a write into a database, an algorithm of Spark ML.
GIVING = "DeserializeToObject"
#: Typed functions of Scala and Java, which make objects of objects.
TYPED = frozenset(("MapPartitions", "MapElements"))
#: What such functions are among: rows become objects, and objects rows again.
_OF_OBJECTS = TYPED | {GIVING, "SerializeFromObject"}
#: One limit is both, as a rule.
_LIMITS = ("GlobalLimit", "LocalLimit")


def several(catalyst: Catalyst, plan: Plan, kind: str) -> list[Plan]:
    """The commands of one statement that writes several queries (`FROM ... INSERT ... INSERT ...`)."""
    commands = catalyst.items(plan.children()) if kind == "Union" else []
    return commands if all(catalyst.kind(command) in _WRITING for command in commands) else []


def query_of(catalyst: Catalyst, plan: Plan, kind: str) -> tuple[Plan | None, Callable[[Plan], Plan] | None]:
    """The query of a plan, and of a command what puts another query into it."""
    if kind in _WRITING_FILES:
        child = plan.child()
        if catalyst.kind(child) == "WriteFiles":
            return child.child(), lambda query: catalyst.with_children(
                plan, [catalyst.with_children(child, [query])]
            )
        return child, lambda query: catalyst.with_children(plan, [query])
    if kind in _WRITING:
        return plan.child(), lambda query: catalyst.with_children(plan, [query])
    if kind in _MOVING:
        return plan, None
    if kind.endswith("Command") or kind in ("CommandResult", *_RUNNING_ANOTHER):
        return None, None
    return plan, None


def is_giving(catalyst: Catalyst, plan: Plan, kind: str) -> bool:
    """Does a plan hand its rows, or what a function makes of them, to a library of the JVM, as an RDD?

    Where a function made the objects, Spark leaves out what would make rows of these and objects again.
    """
    is_of_objects = kind in TYPED or (kind == "Project" and catalyst.kind(plan.child()) in TYPED)
    return kind == GIVING or is_of_objects


def query_of_function(catalyst: Catalyst, plan: Plan) -> tuple[Plan, Callable[[Plan], Plan]]:
    """The same of a plan that gives rows to functions of the JVM: the query that the first of them reads."""
    functions = [plan]
    while catalyst.kind(functions[-1].child()) in _OF_OBJECTS:
        functions.append(functions[-1].child())

    def into_functions(query: Plan) -> Plan:
        for function in reversed(functions):
            query = catalyst.with_children(function, [query])
        return query

    return functions[-1].child(), into_functions


def limits_of(catalyst: Catalyst, query: Plan) -> tuple[list[Plan], Plan]:
    """A limit or an offset at the top of an action: what it is made of, and what is below.

    The tap goes below it: Spark runs a limit partition by partition, and leaves the first rows out on the
    driver, for which they would all go to one task otherwise. One over a sort is another operator of Spark's,
    and stays where it is.
    """
    limits, at, is_offset = [], query, _is_offset(catalyst, query)
    peeled = (*_LIMITS, "Offset") if is_offset else _LIMITS
    while (name := catalyst.kind(at)) in peeled:
        limits.append(at)
        at = at.child()
    if is_offset or not limits:
        return limits, at
    below = at
    while name in ("Project", "Offset", "GlobalLimit", "LocalLimit"):
        below = below.child()
        name = catalyst.kind(below)
    return ([], query) if name == "Sort" else (limits, at)


def _is_offset(catalyst: Catalyst, query: Plan) -> bool:
    """Is it one of which Spark leaves the first rows out on the driver?"""
    below, is_limited = _below_limits(catalyst, query)
    if catalyst.kind(below) != "Offset":
        return False
    below, is_limited_within = _below_limits(catalyst, below.child())
    if catalyst.kind(below) == "Project":
        below = below.child()
    is_of_order = catalyst.kind(below) == "Sort" and (is_limited or is_limited_within)
    return not is_of_order  # which is another operator of Spark's


def _below_limits(catalyst: Catalyst, query: Plan) -> tuple[Plan, bool]:
    is_limited = False
    while catalyst.kind(query) in _LIMITS:
        query, is_limited = query.child(), True
    return query, is_limited


def limit_of(catalyst: Catalyst, limits: list[Plan]) -> int | None:
    """How many rows are read for all of `limits`, if that is known; below an offset its rows count, too."""
    offset = _offset_among(catalyst, limits)
    if not limits or offset is limits[-1]:
        return None
    text = str(limits[0 if offset is None else -1].limitExpr().toString())
    return int(text) if text.isdecimal() else None


def upper_bound_reason(catalyst: Catalyst, limits: list[Plan]) -> str:
    """Why fewer records are given than are read, if one cannot tell which; empty where none are."""
    offset = _offset_among(catalyst, limits)
    if offset is None:
        return ""
    return f"the first {offset.offsetExpr().toString()} of these records were left out by offset()"


def _offset_among(catalyst: Catalyst, limits: list[Plan]) -> Plan | None:
    return next((limit for limit in limits if catalyst.kind(limit) == "Offset"), None)
