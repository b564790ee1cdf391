"""Whether a row that comes to a join meets a row of the other side there. Pure.

The other side is a list of rows of which each may have come to the join. It may have more of them than came,
but none that came is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from lineage_service.evaluation.expressions import Columns, Expression, evaluated, is_never_true
from lineage_service.evaluation.values import Unknown, Value

__all__ = ["Meeting", "OtherRow", "OtherSide", "meeting"]

_ANY = {"type": "boolean", "value": "true"}


@dataclass(frozen=True, slots=True)
class OtherRow:
    """A row as it is where it comes to the join. `is_sure`: it surely came."""

    columns: Columns
    is_sure: bool


class OtherSide(Protocol):
    """The other input of one join."""

    def rows(self, condition: Expression, columns: Columns) -> Iterable[OtherRow] | Unknown:
        """Those that a row with these columns may meet."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """`is_met` None: that is not known, see `reason`. `columns` are those of the only row that it met."""

    is_met: bool | None
    columns: Columns = field(default_factory=dict)
    reason: str = ""


def meeting(condition: Expression | None, columns: Columns, other: OtherSide) -> Meeting:
    condition = _ANY if condition is None else condition
    rows = other.rows(condition, columns)
    if isinstance(rows, Unknown):
        return Meeting(None, reason=rows.why)
    met: list[Columns] = []
    doubt = ""
    for row in rows:
        both = {**columns, **row.columns}
        if is_never_true(condition, both):
            continue
        result = evaluated(condition, both)
        if isinstance(result, Value) and row.is_sure:
            met.append(row.columns)
        elif isinstance(result, Unknown):
            doubt = f"its condition uses {result}"
        else:
            doubt = "it is not known whether a row that it would meet came to the join"
    if met:
        return Meeting(True, met[0] if len(met) == 1 and not doubt else {})
    return Meeting(None, reason=doubt) if doubt else Meeting(False)
