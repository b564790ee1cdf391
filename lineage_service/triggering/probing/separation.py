"""By which columns of an input a job's rows never meet: read from the plans of its last execution. Pure.

Rows with other values of these columns, the *classes*, do not enter one output row, and no row of one class
decides about a row of another. The output is then the union of what each class gives: O(I) = union of
O(I_c) over the classes c. So a change of some classes leaves the output rows of all others as they are, and a
run on the rows of these classes alone gives the rest. That holds because each operator between the input and
the output is one of these:
- of single rows (filter, projection, the preserved side of a join): each row of the input by itself;
- a group by keys that contain the columns: its groups lie within classes;
- a join with another input, which is read whole, where the input is the side whose rows are looked up:
  a row meets there whatever it would meet in a full run, also rows that nobody has met before.
And because the output has the columns, unchanged: they say which class an output row is of.

The flows of rows would not do. A group that a filter has left out, such as one below a threshold, has no
output and so no flow, and a new row may lift it above. Its key is known all the same.

Everything else is refused by name: windows, limits, samples, groups over all rows, self-joins, the side of a
join that is looked up (an anti join there is a filter by what is *not* there), Python functions, functions
that are not known here, results that the program takes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from lineage_service.tracing.model.elements import TopologyNode, have_files_in_common

__all__ = ["NotSeparableError", "Separation", "separation_of"]

#: Each row is passed on as it is. The order of rows is not compared.
_MOVING = frozenset(
    (
        *("Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions"),
        *("SubqueryAlias", "View", "ResolvedHint", "LimitAll"),
    )
)
#: Join -> the sides whose rows are each taken by themselves, as long as the other side is whole.
_SIDES = {
    **{"Inner": (0, 1), "Cross": (0, 1), "LeftOuter": (0,), "RightOuter": (1,)},
    **{"LeftSemi": (0,), "LeftAnti": (0,)},
}
#: Functions of groups whose value does not depend on the order of rows, but for the last digits of fractions;
#: and functions of values, which may stand around them.
_OF_GROUPS = frozenset(
    (
        *("sum", "avg", "count", "min", "max", "bool_and", "bool_or", "every", "some", "any"),
        *("bit_and", "bit_or", "bit_xor", "count_if"),
        *("cast", "coalesce", "round", "abs", "ceil", "floor", "if", "upper", "lower", "concat", "least"),
        *("greatest", "and", "or", "not", "in", "when", "then", "else", "filter", "where"),
    )
)
_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\(")
#: How a plan says that it has left something out.
_CUT = re.compile(r"\.\.\.|…|more fields")
#: Types of columns whose values are texts in one way only.
_PLAIN = frozenset(("string", "tinyint", "smallint", "int", "bigint", "date", "boolean"))


class NotSeparableError(Exception):
    """The text says why a part of the input does not give a part of the output."""


@dataclass(frozen=True, slots=True)
class Separation:
    """`columns` of the input tell classes apart; each output has them by the names in `outputs`:
    path -> the names, in the same order.
    """

    columns: tuple[str, ...]
    outputs: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows on their way. `columns`: number of a column -> that of the input which it is; None: they are not
    of the input. `keys`: the columns of the input that each group so far has among its keys; None: no group.
    """

    columns: Mapping[int, str] | None
    keys: frozenset[str] | None = None


def separation_of(
    nodes: Mapping[int, TopologyNode], path: str, sources: Collection[int], sinks: Mapping[int, str]
) -> Separation:
    """Of the input at `path`, which these sources read. `sinks`: those that are compared, and their paths.

    Raises NotSeparableError.
    """
    _check_ends(nodes)
    named: dict[str, Mapping[str, str]] = {}
    common: set[str] | None = None
    for number, place in sinks.items():
        walk = _Walk(nodes, frozenset(sources))
        rows = walk.below(number)
        if rows.columns is None:
            continue
        names = _written(nodes[number], rows)
        usable = names.keys() if rows.keys is None else names.keys() & rows.keys
        common = set(usable) if common is None else common & usable
        named[place] = names
    if common is None:
        raise NotSeparableError(f"no output that is compared is made of {path}")
    types = {column.name: column.type for source in sources for column in nodes[source].schema}
    columns = tuple(sorted(name for name in common if types.get(name) in _PLAIN))
    if not columns:
        raise NotSeparableError(
            f"no column of {path} is in the outputs as it is and among the keys of each group, so which "
            "output rows a change is in cannot be said"
        )
    outputs = {place: tuple(names[name] for name in columns) for place, names in named.items()}
    return Separation(columns, outputs)


def _check_ends(nodes: Mapping[int, TopologyNode]) -> None:
    sinks = [node for node in nodes.values() if node.kind == "sink"]
    for node in sinks:
        if node.dataset is None or not node.dataset.name:
            raise NotSeparableError(
                f"{_named(node)} gives values to the program, which may use them anywhere"
            )
    places = [node.location or (node.dataset and node.dataset.name) for node in sinks]
    if len(set(places)) < len(places):
        raise NotSeparableError("it writes to one place several times")
    for node in nodes.values():
        if node.kind == "source" and any(have_files_in_common(node, sink) for sink in sinks):
            raise NotSeparableError(f"it reads {node.location}, which it writes itself")


def _written(sink: TopologyNode, rows: _Rows) -> dict[str, str]:
    """Column of the input -> the name by which the output has it."""
    assert rows.columns is not None
    lists = (sink.expressions or {}).get("columns") or [()]
    if len(lists) != 1 or len(lists[0]) != len(sink.schema):
        raise NotSeparableError(f"which columns {_named(sink)} writes was not captured")
    pairs = zip(lists[0], sink.schema, strict=True)
    return {rows.columns[number]: column.name for number, column in pairs if number in rows.columns}


class _Walk:
    """From one output down to its inputs."""

    def __init__(self, nodes: Mapping[int, TopologyNode], sources: frozenset[int]) -> None:
        self._nodes, self._sources = nodes, sources

    def below(self, number: int) -> _Rows:
        """The rows that come to a node. Raises NotSeparableError."""
        node = self._nodes[number]
        if len(node.parents) != 1:
            raise NotSeparableError(f"{_named(node)} has no one input")
        return self._rows(node.parents[0])

    def _rows(self, number: int) -> _Rows:
        """The rows that a node gives."""
        node = self._nodes[number]
        if not node.exact:
            raise NotSeparableError(f"{_named(node)} is not exact")
        if node.kind == "source":
            return self._scan(node)
        if node.kind != "operator" or node.relation != "carried":
            raise NotSeparableError(f"{_named(node)} may need other rows")
        expressions = node.expressions or {}
        if node.name in _MOVING:
            return self.below(number)
        if node.name == "Filter":
            _check_known(node, expressions.get("condition"))
            return self.below(number)
        if node.name == "Project" and "defined" in expressions:
            return self._project(node, expressions["defined"])
        if node.name == "Join" and "join" in expressions:
            return self._join(node, expressions)
        if node.name == "Aggregate":
            return self._aggregate(node, expressions)
        raise NotSeparableError(f"{_named(node)} may need other rows")

    def _scan(self, node: TopologyNode) -> _Rows:
        if node.number not in self._sources:
            if node.dataset is None:
                raise NotSeparableError(f"{_named(node)} reads no files")
            return _Rows(None)
        columns = (node.expressions or {}).get("columns") or []
        if len(columns) != 1:
            raise NotSeparableError(f"{_named(node)} is read several times in one query, or with options")
        return _Rows(dict(zip(columns[0], (column.name for column in node.schema), strict=False)))

    def _project(self, node: TopologyNode, defined: Collection[Mapping[str, Any]]) -> _Rows:
        rows = self.below(node.number)
        for one in defined:
            _check_known(node, one["as"])
        if rows.columns is None:
            return rows
        renamed = {
            one["column"]: rows.columns[one["as"]["column"]]
            for one in defined
            if one["as"].get("column") in rows.columns
        }
        return _Rows({**rows.columns, **renamed}, rows.keys)

    def _join(self, node: TopologyNode, expressions: Mapping[str, Any]) -> _Rows:
        kind, condition = str(expressions["join"]), expressions.get("condition")
        if len(node.parents) != 2 or kind not in (*_SIDES, "FullOuter"):
            raise NotSeparableError(f"{_named(node)} may need other rows")
        if condition is not None:
            _check_known(node, condition)
        sides = [self._rows(parent) for parent in node.parents]
        own = [at for at, side in enumerate(sides) if side.columns is not None]
        if not own:
            return _Rows(None)
        if len(own) == 2:
            raise NotSeparableError(f"{_named(node)} joins the input with itself")
        if own[0] not in _SIDES.get(kind, ()):
            raise NotSeparableError(
                f"in {_named(node)} rows of the input decide about the other side, also where they are not"
            )
        rows = sides[own[0]]
        assert rows.columns is not None
        columns = dict(rows.columns)
        if kind == "Inner" and condition is not None:
            columns |= _equal_columns(condition, rows.columns)
        return _Rows(columns, rows.keys)

    def _aggregate(self, node: TopologyNode, expressions: Mapping[str, Any]) -> _Rows:
        rows = self.below(node.number)
        results = node.description.partition("], [")[2] or node.description
        if _CUT.search(node.description):
            raise NotSeparableError(f"not all functions of {_named(node)} were captured")
        unknown = sorted({name.lower() for name in _CALL.findall(results)} - _OF_GROUPS)
        if unknown:
            raise NotSeparableError(
                f"{unknown[0]} in {_named(node)} may depend on the order of rows, or is not known here"
            )
        keys = expressions.get("keys") or ()
        if rows.columns is None:
            return rows
        if not keys:
            raise NotSeparableError(f"{_named(node)} makes one group of all rows")
        for key in keys:
            _check_known(node, key)
        columns = {
            key["column"]: rows.columns[key["column"]] for key in keys if key.get("column") in rows.columns
        }
        own = frozenset(columns.values())
        return _Rows(columns, own if rows.keys is None else own & rows.keys)


def _equal_columns(condition: Mapping[str, Any], columns: Mapping[int, str]) -> dict[int, str]:
    """Columns of the other side that equal one of the input in each row of an inner join."""
    if condition.get("of") == "And":
        return {
            number: name
            for part in condition["inputs"]
            for number, name in _equal_columns(part, columns).items()
        }
    inputs = [part.get("column") for part in condition.get("inputs", ())]
    if condition.get("of") != "EqualTo" or len(inputs) != 2 or None in inputs:
        return {}
    one, other = inputs
    if one in columns and other not in columns:
        return {other: columns[one]}
    return {one: columns[other]} if other in columns and one not in columns else {}


def _check_known(node: TopologyNode, expression: Mapping[str, Any] | None) -> None:
    """Is it made of functions whose value is that of their inputs, each time?"""
    if expression is None:
        raise NotSeparableError(f"what {_named(node)} computes was not captured")
    if "unknown" in expression:
        name = expression.get("name") or expression["unknown"]
        raise NotSeparableError(
            f"{_named(node)} calls {name}, which is not known here to depend on one row alone"
        )
    for part in expression.get("inputs", ()):
        _check_known(node, part)


def _named(node: TopologyNode) -> str:
    site = node.call_site.rpartition("/")[2]
    return f"{node.name} ({site})" if site else node.name
