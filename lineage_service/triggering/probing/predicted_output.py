"""The output that a full run would write, of the old one and of what the rows of changed classes give. Pure.

The rows of all other classes stay. What fractions differ in their last digits by the order in which they were
added is no difference between an output that was expected and one that was written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute

from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.triggering.changes.changed_elements import Keys, row_keys
from lineage_service.triggering.learning.terms import Terms
from lineage_service.triggering.probing.class_rows import ClassRows, UnsureRowsError
from lineage_service.triggering.weighing.element_plans import Plan, all_elements_of, planned_outputs
from lineage_service.triggering.weighing.kept_elements import KeptContainer
from lineage_service.triggering.weighing.pair_features import Errors

__all__ = ["PredictedOutput", "digest_of", "error_of", "predicted"]

_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))
_FRACTIONS = frozenset(("float", "double"))
#: Digits of a fraction that count when outputs are compared.
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class PredictedOutput:
    """One output: as it is, and as it would be."""

    old: pa.Table
    new: pa.Table


def predicted(node: TopologyNode, old: ClassRows, probed: ClassRows | None, changed: Keys) -> PredictedOutput:
    """`probed` is what came out for the changed classes; None: nothing. Raises UnsureRowsError."""
    before = _typed(old.table, node)
    stays = before.filter(pa.array(~np.isin(old.classes, changed)))
    if probed is None:
        return PredictedOutput(before, stays)
    if not np.isin(probed.classes, changed).all():
        raise UnsureRowsError("the probe gave output rows of groups in which nothing has changed")
    now = _typed(probed.table, node)
    if now.schema != before.schema:
        raise UnsureRowsError("the probe gave other columns than the output has")
    return PredictedOutput(before, pa.concat_tables([stays, now]).combine_chunks())


def error_of(terms: Terms, outputs: Mapping[str, PredictedOutput]) -> float:
    """The largest, as it is measured between executions, but of all rows. Raises LineageError."""
    filled = {path: one.old if one.old.num_rows else one.new for path, one in outputs.items()}
    plans = [replace(plan, halvings=0) for plan in planned_outputs(filled, terms)]
    old = [_elements(plan, outputs[plan.path].old) for plan in plans]
    new = [_elements(plan, outputs[plan.path].new) for plan in plans]
    with Errors(terms, plans) as errors:
        error = errors.between(old, new) if plans else None
    if error is None:
        raise UnsureRowsError("no output has rows that an error is of")
    return error


def _elements(plan: Plan, table: pa.Table) -> KeptContainer:
    return KeptContainer(path=plan.path, is_output=True, elements=all_elements_of(table, plan))


def digest_of(table: pa.Table) -> str:
    """Of the rows in any order."""
    for at, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            texts = [None if one is None else f"{one:.{_DIGITS}g}" for one in table.column(at).to_pylist()]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
    return hashlib.sha256(np.sort(row_keys(table, ())).tobytes()).hexdigest()


def written(node: TopologyNode, rows: ClassRows) -> pa.Table:
    """What an output holds, to be compared with what was expected of it."""
    return _typed(rows.table, node)


def _typed(table: pa.Table, node: TopologyNode) -> pa.Table:
    """Numbers that stand as texts, as numbers."""
    types = {column.name: column.type for column in node.schema}
    for at, field in enumerate(table.schema):
        kind = types.get(field.name, "")
        is_number = kind in _WHOLE or kind in _FRACTIONS or kind.startswith("decimal(")
        if is_number and pa.types.is_string(field.type):
            column = table.column(at)
            empty = pa.compute.equal(column, "")
            filled = pa.compute.if_else(empty, pa.scalar(None, pa.string()), column)
            try:
                numbers = filled.cast(pa.int64() if kind in _WHOLE else pa.float64())
            except pa.ArrowInvalid as error:
                raise UnsureRowsError(f"not all of {field.name} are numbers: {error}") from None
            table = table.set_column(at, field.name, numbers)
    return table.replace_schema_metadata(None)
