"""Which columns of a job's inputs and outputs are keys, and which are numbers: chosen once, and kept.

Keys are what people name, or else columns that make each row one: those without numbers, or with them the
first whole number. Where there are none, the rows are a multiset. What is neither key nor number is one
more number, a hash, so that no change of a row goes unseen. Of many elements a share is kept, by the hash
of the key: the same ones each wave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lineage_service.errors import InvalidQueryError
from lineage_service.triggering.changes.changed_elements import (
    OCCURRENCES,
    Elements,
    Places,
    elements,
    row_keys,
)
from lineage_service.triggering.learning.terms import FUNCTION, Terms

__all__ = [
    "Plan",
    "PlanError",
    "all_elements_of",
    "elements_by_plan",
    "elements_of",
    "places_of",
    "plan_of_json",
    "planned_inputs",
    "planned_outputs",
]

#: Elements of one input or output that are kept, and numbers of each. An execution is compared with two dozen
#: earlier ones, at 0.2 s of CPU for each million elements.
MOST_ELEMENTS = 1 << 18
MOST_VALUES = 8
#: The column of what is neither key nor number.
_REST = "\0rest"


class PlanError(InvalidQueryError):
    """The columns that were chosen before do not serve any more: they are to be chosen again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Of one path. Without `keys` it is a multiset, or `is_single`: one row. `rest`: other columns count.

    `classes` only equal or differ. `is_empty`: it had no rows to choose from. Of 2^`halvings` elements one is
    kept.
    """

    path: str
    is_output: bool
    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    rest: bool = False
    is_single: bool = False
    is_empty: bool = False
    halvings: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Those numbers of an element that features are made of."""
        return self.values if self.keys or self.is_single else (OCCURRENCES,)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def plan_of_json(kept: Mapping[str, Any]) -> Plan:
    lists = {name: tuple(kept[name]) for name in ("keys", "values", "classes")}
    return Plan(**{**kept, **lists})


def planned_inputs(tables: Mapping[str, pa.Table], terms: Terms) -> list[Plan]:
    """Raises InvalidQueryError for values that no input has as numbers."""
    filled = {path: table for path, table in tables.items() if table.num_columns}
    _check_columns("--value", terms.values, filled, "no input")
    for name in terms.values:
        kinds = {path: table.schema.field(name).type for path, table in filled.items() if _has(table, name)}
        if not any(_is_number(kind) for kind in kinds.values()):
            path, kind = next(iter(kinds.items()))
            raise InvalidQueryError(f"--value {name}: the column of {path} is {kind} and holds no numbers")
    return [_of_input(path, table, terms) for path, table in tables.items()]


def _of_input(path: str, table: pa.Table, terms: Terms) -> Plan:
    chosen = [
        name for name in terms.values if _has(table, name) and _is_number(table.schema.field(name).type)
    ]
    keys = _given_key(table, terms) or _own_key(table, chosen)
    others = [field for field in table.schema if field.name not in keys]
    numbers = [field.name for field in others if _is_number(field.type) and not terms.is_redacted(field.name)]
    values = chosen if terms.values else numbers[:MOST_VALUES]
    if not keys or not values:
        return Plan(path=path, is_output=False, is_empty=not table.num_columns, halvings=_halvings(table))
    return Plan(
        path=path,
        is_output=False,
        keys=keys,
        values=tuple(values),
        rest=len(values) < len(others),
        halvings=_halvings(table),
    )


def planned_outputs(tables: Mapping[str, pa.Table], terms: Terms) -> list[Plan]:
    """Those that the error is of. Raises InvalidQueryError."""
    filled = {path: table for path, table in tables.items() if table.num_columns}
    if terms.column is not None:
        _check_columns("--error", [terms.column], filled, "no output")
        tables = {path: table for path, table in filled.items() if _has(table, terms.column)}
    return [_of_output(path, table, terms) for path, table in tables.items()]


def _of_output(path: str, table: pa.Table, terms: Terms) -> Plan:
    column = terms.column
    keys = tuple(terms.keys) if terms.keys and _has(table, *terms.keys) else ()
    if keys:
        elements(table, keys, [])  # raises if they make no key
    elif table.num_columns:
        keys = _own_key(table, [] if column is None else [column])
    is_single = not keys and terms.measure != "rows" and table.num_rows == 1
    if (column is not None or terms.measure == FUNCTION) and table.num_columns and not keys and not is_single:
        raise InvalidQueryError(
            f"--error {terms.error} needs --key: no columns of {path} tell its rows apart "
            f"({', '.join(table.column_names)})"
        )
    plan = Plan(
        path=path,
        is_output=True,
        keys=keys,
        is_single=is_single,
        is_empty=not table.num_columns,
        halvings=_halvings(table),
    )
    if terms.measure == FUNCTION:
        return replace(plan, values=_numbers_of(path, table, keys, terms))
    if column is None:
        return replace(plan, rest=bool(keys))
    if terms.measure == "class":
        return replace(plan, classes=(column,))
    if not _is_number(table.schema.field(column).type):
        kind = table.schema.field(column).type
        raise InvalidQueryError(f"--error {terms.error}: the column of {path} is {kind} and holds no numbers")
    return replace(plan, values=(column,))


def _numbers_of(path: str, table: pa.Table, keys: Sequence[str], terms: Terms) -> tuple[str, ...]:
    """What a user's function is given. Raises InvalidQueryError."""
    numbers = (field.name for field in table.schema if _is_number(field.type))
    names = tuple(name for name in numbers if name not in keys and not terms.is_redacted(name))
    if table.num_columns and not 0 < len(names) <= MOST_VALUES:
        raise InvalidQueryError(
            f"--error {terms.error}: {path} has {len(names)} columns of numbers beside its key "
            f"({', '.join(keys)}), and a function is given 1 to {MOST_VALUES}"
        )
    return names


def elements_by_plan(
    tables: Mapping[str, pa.Table],
    plans: Sequence[Plan],
    terms: Terms,
    choose: Callable[[Mapping[str, pa.Table], Terms], list[Plan]],
) -> tuple[list[Plan], dict[str, Elements]]:
    """By path. The plans of before where they serve; else what `choose` gives. Raises InvalidQueryError."""
    by_path = {plan.path: plan for plan in plans}
    kept = [by_path[path] for path in tables if path in by_path]
    are_all = len(kept) == len(plans) and (choose is planned_outputs or len(kept) == len(tables))
    if kept and are_all and all(_serves(plan, tables[plan.path]) for plan in kept):
        try:
            return kept, {plan.path: elements_of(tables[plan.path], plan) for plan in kept}
        except PlanError:
            pass
    chosen = choose(tables, terms)
    return chosen, {plan.path: elements_of(tables[plan.path], plan) for plan in chosen}


def _serves(plan: Plan, table: pa.Table) -> bool:
    if plan.is_empty and table.num_columns:
        return False
    return not table.num_columns or _has(table, *plan.keys, *plan.values, *plan.classes)


def elements_of(table: pa.Table, plan: Plan) -> Elements:
    """Those that are kept. Raises PlanError where the plan does not serve any more."""
    most = 2 * (MOST_ELEMENTS << plan.halvings)
    if table.num_rows > most and len(every := all_elements_of(table, plan)) > most:
        raise PlanError(f"{plan.path} has {len(every):,} elements, many more than before")
    return _chosen(table, plan, 1 << (64 - plan.halvings) if plan.halvings else None)


def all_elements_of(table: pa.Table, plan: Plan) -> Elements:
    """However many there are. Raises PlanError where the plan does not serve any more."""
    return _chosen(table, plan, None)


def _chosen(table: pa.Table, plan: Plan, below: int | None) -> Elements:
    """Those with a smaller key. Raises PlanError."""
    numbers = len(plan.values) + len(plan.classes) + plan.rest if plan.keys or plan.is_single else 1
    if not table.num_rows:
        return Elements(np.zeros(0, np.uint64), np.zeros((0, numbers)))
    if plan.is_single:
        if table.num_rows > 1:
            raise PlanError(f"{plan.path} had one row, and has {table.num_rows:,}: name their --key")
        table = table.append_column(_REST, pa.array([0] * table.num_rows))
        return elements(table, [_REST], plan.values, plan.classes, below)
    classes = list(plan.classes)
    if plan.rest:
        table = _with_rest(table, plan)
        classes.append(_REST)
    try:
        return elements(table, plan.keys, plan.values, classes, below)
    except InvalidQueryError as error:
        raise PlanError(f"{plan.path}: {error}") from None


def places_of(table: pa.Table, plan: Plan, elements: Elements) -> Places | None:
    """Which of its elements each row is, -1 of one that is not kept; None of no rows."""
    if not len(elements):
        return None
    if plan.is_single:
        return np.zeros(table.num_rows, np.int32)
    if elements.places is not None:
        return elements.places
    keys = row_keys(table, plan.keys)
    places = np.minimum(elements.keys.searchsorted(keys), len(elements) - 1)
    return np.where(elements.keys[places] == keys, places, -1).astype(np.int32)


def _with_rest(table: pa.Table, plan: Plan) -> pa.Table:
    """With a number that differs where any other column does."""
    others = [name for name in table.column_names if name not in {*plan.keys, *plan.values, *plan.classes}]
    rest = np.zeros(table.num_rows, np.uint64)
    if others:
        rest = row_keys(table, others)
    return table.append_column(_REST, pa.array(rest.view(np.int64)))


def _given_key(table: pa.Table, terms: Terms) -> tuple[str, ...]:
    keys = tuple(terms.keys)
    return keys if keys and _has(table, *keys) and _is_key(table, keys) else ()


def _own_key(table: pa.Table, values: Sequence[str]) -> tuple[str, ...]:
    """Columns that make each row one; none: nothing does."""
    fields = [field for field in table.schema if field.name not in values]
    names = tuple(field.name for field in fields if not _is_number(field.type))
    if names and _is_key(table, names):
        return names
    for field in fields:
        if pa.types.is_integer(field.type) and _is_key(table, (*names, field.name)):
            return (*names, field.name)
    return ()


def _is_key(table: pa.Table, names: Sequence[str]) -> bool:
    try:
        elements(table, names, [])
    except InvalidQueryError:
        return False
    return True


def _halvings(table: pa.Table) -> int:
    return int(max((table.num_rows - 1) // MOST_ELEMENTS, 0)).bit_length()


def _has(table: pa.Table, *names: str) -> bool:
    return set(names) <= set(table.column_names)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _check_columns(flag: str, names: Sequence[str], tables: Mapping[str, pa.Table], nobody: str) -> None:
    for name in names:
        if tables and not any(_has(table, name) for table in tables.values()):
            columns = sorted({column for table in tables.values() for column in table.column_names})
            raise InvalidQueryError(
                f"{flag} {name}: {nobody} has such a column; there are {', '.join(columns)}"
            )
