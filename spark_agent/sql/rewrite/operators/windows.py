"""Windows: a row stays itself, and each value is made of the rows of its frame.

Spark itself says which rows these are. Beside a function over values stands the same function over ids, or
one that looks at the row in the same distance; of a wide frame, Spark counts where it begins and ends. The
same operator evaluates both, so they see the same rows in the same order. Where a function sees whole
partitions, or its frame is not followed, rows are grouped by partition.
"""

from __future__ import annotations

from spark_agent import contract
from spark_agent.sql.rewrite.operators.window_rows import may_repeat, row_key
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.rewrite.plan_walk import Handler, Ids, Rewritten, Walk
from spark_agent.sql.rewrite.window_frames import (
    RANKED,
    OtherRows,
    WindowFunction,
    frame_of,
    other_rows,
)
from spark_agent.sql.types import Expression, Plan

#: Functions that give the value of one row of their frame, and of which it is not known which row that is.
_PICKING = frozenset(("min", "max", "min_by", "max_by"))
#: So many rows are named one by one where wider frames cannot be told from each other.
_MANY = 64


def window(walk: Walk, plan: Plan) -> Rewritten:
    limits, child = [], plan.child()
    while walk.catalyst.kind(child) == "WindowGroupLimit":
        limits.append(child)
        child = child.child()
    below = walk.rewrite(child)
    node = walk.operator(plan, [below.node])
    functions = [WindowFunction.parse(fields) for fields in walk.catalyst.window_functions(plan)]
    _describe(node, functions)
    decided_by = contract.BY_ALL if walk.taps.is_explained and _are_followed(functions) else None
    read = Rewritten(below.plan, _ids_read(walk, plan, child, below), below.node)
    key, rows = None, other_rows(functions)
    if rows.frames and read.ids and not rows.is_all:
        key, rows = _keyed(walk, plan, child, below.ids, functions, rows)
    if rows.is_all or rows.reason:
        rewritten = _of_partitions(walk, plan, read, node, rows, limits)
    else:
        read.plan = _limited(walk, read.plan, limits)
        rewritten = _Frames(walk, plan, read, functions, rows).window(below.ids, node, key)
    node.decided_by = decided_by
    _note(walk, plan, rewritten.ids)
    return Rewritten(rewritten.plan, [*below.ids, *rewritten.ids], node.number)


def _describe(node: PlanNode, functions: list[WindowFunction]) -> None:
    node.frame = frame_of(functions)
    if any(function.kind == "rank" for function in functions) and RANKED not in node.description:
        node.description = f"{node.description}; {RANKED}"


def _are_followed(functions: list[WindowFunction]) -> bool:
    """Do all rows count that are given for a value? Of the rows of a frame, a minimum would need one."""
    return all(function.kind != "aggregate" or function.name not in _PICKING for function in functions)


def _keyed(
    walk: Walk, plan: Plan, child: Plan, ids: Ids, functions: list[WindowFunction], rows: OtherRows
) -> tuple[Expression | None, OtherRows]:
    """What tells a row with wide frames from all others, and the rows that can be told by it."""
    is_repeated = may_repeat(walk, child)
    if is_repeated:  # rows with the same ids and the same order have the same ranges, and other rows around
        rows = other_rows(functions, _MANY)
        if any(frame.is_rows for frame in rows.frames):
            rows.reason = (
                "rows that were made of one record cannot be told apart: their frames are not followed"
            )
    key = row_key(walk, plan, ids, is_repeated=is_repeated)
    if key is None and rows.frames:
        rows.reason = "by its columns a row cannot be told from others: its frame is not followed"
    return key, rows


def _limited(walk: Walk, below: Plan, limits: list[Plan]) -> Plan:
    for limit in reversed(limits):
        below = walk.catalyst.with_children(limit, [below])
    return below


def _of_partitions(
    walk: Walk, plan: Plan, read: Rewritten, node: PlanNode, rows: OtherRows, limits: list[Plan]
) -> Rewritten:
    """Each value is made of all rows of the partition, or may be."""
    if not rows.is_all:
        node.exact, node.reason = False, rows.reason
    key = walk.key(plan, plan.partitionSpec())
    tapped, groups = walk.grouped(node, read, key)
    column = walk.catalyst.alias(key, f"lineage_{groups}")
    rewritten, (attribute,) = walk.catalyst.with_columns(tapped, [column])
    rewritten = walk.catalyst.with_children(plan, [_limited(walk, rewritten, limits)])
    return Rewritten(rewritten, [(attribute, groups)], node.number)


class _Frames:
    """A window whose frames are followed."""

    def __init__(
        self, walk: Walk, plan: Plan, read: Rewritten, functions: list[WindowFunction], rows: OtherRows
    ) -> None:
        self._walk, self._plan, self._read = walk, plan, read
        self._functions, self._rows = functions, rows
        self._added: list[Expression] = []  # functions of the window

    def window(self, own_ids: Ids, node: PlanNode, key: Expression | None) -> Rewritten:
        """The window, and the columns of ids that it adds. `own_ids` are those of the rows below."""
        catalyst = self._walk.catalyst
        ids = self._single_rows() if self._read.ids else []
        structs = self._structs() if self._read.ids else []
        spec = None
        if key is not None and self._rows.frames:
            spec, groups, columns = self._wide_frames(node)
        rewritten = catalyst.window(self._plan, self._added, self._read.plan)
        if spec is None and not structs:
            return Rewritten(rewritten, ids, node.number)
        fields = self._fields(structs)
        if spec is not None:
            named = catalyst.alias(key, f"lineage_{groups}")
            rewritten, (attribute,) = catalyst.with_columns(rewritten, [named])
            last, *rest = columns
            tap = catalyst.frame_tap(spec, [last, attribute, *rest])
            rewritten = catalyst.filter(tap, rewritten)
            ids.append((attribute, groups))
        kept = [column for column, _ in (*own_ids, *ids)]
        rewritten = catalyst.project_as(self._plan, rewritten, [*kept, *(field for field, _ in fields)])
        ids += [(field.toAttribute(), of) for field, of in fields]
        return Rewritten(rewritten, ids, node.number)

    def _add(self, expression: Expression, name: str) -> Expression:
        column = self._walk.catalyst.alias(expression, name)
        self._added.append(column)
        return column.toAttribute()

    def _single_rows(self) -> Ids:
        """The ids of single rows, each in a column of its own."""
        catalyst, ids = self._walk.catalyst, Ids()
        for distance in sorted(self._rows.distances):
            for column, node in self._read.ids:
                ids.append((self._add(catalyst.id_at(self._plan, distance, column), f"lineage_{node}"), node))
        for at in self._rows.picks:
            if not self._functions[at].ignores_nulls:
                for column, node in self._read.ids:
                    ids.append((self._add(catalyst.picked(self._plan, at, column), f"lineage_{node}"), node))
        return ids

    def _structs(self) -> list[Expression]:
        """The ids of rows that are picked by their values: these are null together, or none is."""
        catalyst, structs = self._walk.catalyst, []
        columns = [column for column, _ in self._read.ids]
        for at in self._rows.picks:
            if self._functions[at].ignores_nulls:
                struct = catalyst.ids_unless_null(self._plan, at, columns)
                structs.append(self._add(catalyst.picked(self._plan, at, struct), "lineage_picked"))
        return structs

    def _fields(self, structs: list[Expression]) -> Ids:
        """The ids in structs, with names."""
        catalyst = self._walk.catalyst
        return [
            (catalyst.alias(catalyst.field(struct, at), f"lineage_{node}"), node)
            for struct in structs
            for at, (_, node) in enumerate(self._read.ids)
        ]

    def _wide_frames(self, node: PlanNode) -> tuple[object, int, list[Expression]]:
        """What the tap of wide frames is, the node of the rows' keys, and the columns that the tap reads."""
        walk, sources = self._walk, [source for _, source in self._read.ids]
        rows, frames, keys, groups = walk.nodes.group_provenance(node, sources, "frames")
        spec = walk.taps.frames(
            (rows.number, frames.number, keys.number),
            sources,
            [(frame.is_rows, frame.start, frame.end) for frame in self._rows.frames],
        )
        expressions = walk.catalyst.frame_columns(
            self._plan,
            spec,
            [column for column, _ in self._read.ids],
            [frame.function for frame in self._rows.frames],
        )
        columns = [self._add(expression, "lineage_frame") for expression in expressions]
        return spec, groups.number, columns


def _note(walk: Walk, plan: Plan, ids: Ids) -> None:
    """Remember which window the columns of ids are of."""
    computed = _computed(walk, plan)
    walk.window_columns.update((id(column), (column, computed)) for column, _ in ids)


def _ids_read(walk: Walk, plan: Plan, child: Plan, below: Rewritten) -> Ids:
    """The ids without those of windows right below, of which this one reads nothing.

    Spark puts the windows of one SELECT over each other, in an order of its own.
    """
    if not any(id(column) in walk.window_columns for column, _ in below.ids):
        return below.ids
    read, right_below = walk.catalyst.column_ids_read(plan), set[int]()
    while walk.look(child).kind == "Window" or _passes_columns_only(walk, child):
        if walk.look(child).kind == "Window":
            right_below |= _computed(walk, child)
        child = child.child()

    def may_be_read(column: Expression) -> bool:
        _, computed = walk.window_columns.get(id(column), (None, frozenset[int]()))
        return not computed or not computed <= right_below or bool(computed & read)

    return [(column, node) for column, node in below.ids if may_be_read(column)]


def _computed(walk: Walk, window: Plan) -> frozenset[int]:
    """What tells the columns that a window adds from those of all others."""
    return frozenset(walk.catalyst.column_ids(window)) - {*walk.catalyst.column_ids(window.child())}


def _passes_columns_only(walk: Walk, plan: Plan) -> bool:
    if walk.look(plan).kind != "Project":
        return False
    columns = walk.catalyst.items(plan.projectList())
    return all(walk.catalyst.kind(column) == "AttributeReference" for column in columns)


HANDLERS: dict[str, Handler] = {"Window": window}
