"""Which operator between a row and the next place where rows are counted left the row out. Pure.

Takes the operators that the row passes, in order, and the row's values. Promises that an operator which is
named alone is the one, given that one of them left the row out; else all are named that may have been.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lineage_service.evaluation.expressions import (
    Columns,
    Expression,
    conjuncts,
    equalities,
    evaluated,
    is_never_true,
)
from lineage_service.evaluation.joins import Meeting, OtherSide, meeting
from lineage_service.evaluation.texts import described, value_text
from lineage_service.evaluation.values import Result, Unknown, Value

__all__ = ["Arrived", "Step", "Verdict", "arrived", "scan_columns", "verdict_of"]

#: Each of their rows is one of their input's, and none is left out.
_PASSING = frozenset(
    (
        *("Project", "Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions"),
        *("SubqueryAlias", "View", "LimitAll", "ResolvedHint", "CollectMetrics", "Window", "Union", "Expand"),
        *("BatchEvalPython", "ArrowEvalPython", "AttachDistributedSequence"),
        "WindowGroupLimit",  # the filter above its window leaves out the same rows, and others
    )
)
#: The columns of their input are in their output, unchanged.
_KEEPING = _PASSING - {"Project", "Union", "Expand"} | {
    "Filter",
    "Join",
    "Generate",
    "Sample",
    "GlobalLimit",
    "LocalLimit",
    "Offset",
    "Tail",
    "TypedFilter",
}
#: They define columns beside those of their input.
_DEFINING = frozenset(("Project", "BatchEvalPython", "ArrowEvalPython"))
#: Join -> the sides of which a row without a match is left out.
_DROPPED_SIDES = {
    **{"Inner": (0, 1), "Cross": (0, 1), "LeftOuter": (1,), "RightOuter": (0,), "FullOuter": ()},
    **{"LeftSemi": (0, 1), "LeftAnti": (0, 1), "LeftSingle": (1,)},
}


@dataclass(frozen=True, slots=True)
class Step:
    """An operator that a row comes to by one of its `port`s. `expressions` are those of its node.

    `other` is the other input of a join, if its rows can be had.
    """

    name: str
    expressions: Mapping[str, Any] | None
    port: int = 0
    other: OtherSide | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`candidates` are indices of steps: one of them left the row out. `why` says how, of a single one.

    None: the row passes all of them, as far as is known.
    """

    candidates: tuple[int, ...]
    why: str = ""
    reason: str = ""  # why others could not be told apart

    @property
    def is_exact(self) -> bool:
        return len(self.candidates) == 1


@dataclass(frozen=True, slots=True)
class Arrived:
    """A row behind some operators. `has_come` None: it may have been left out before."""

    columns: Columns
    has_come: bool | None


def scan_columns(
    expressions: Mapping[str, Any] | None, names: Sequence[str], values: Mapping[str, Result]
) -> list[Columns]:
    """The values of a row by the ids of its scan's columns, for each time that the scan stands in the plan.

    `names` are those of the scan's schema.
    """
    return [
        {
            number: values[name]
            for number, name in zip(ids, names, strict=False)
            if name in values and names.count(name) == 1
        }
        for ids in (expressions or {}).get("columns", ())
    ]


def verdict_of(steps: Sequence[Step], columns: Columns) -> Verdict:
    """`columns` are those of the row where it comes to the first step."""
    walk = _Walk(dict(columns))
    if walk.has_ended(steps):
        return Verdict((*walk.candidates, walk.at), "" if walk.candidates else walk.why, walk.reason)
    candidates = tuple(walk.candidates)
    if len(candidates) == 1:
        return Verdict(candidates, walk.why)
    return Verdict(candidates, reason=walk.reason)


def arrived(steps: Sequence[Step], columns: Columns) -> Arrived:
    """What becomes of a row on its way past some operators."""
    walk = _Walk(dict(columns))
    if walk.has_ended(steps):
        return Arrived({}, has_come=False)
    return Arrived(walk.columns, has_come=None if walk.candidates else True)


class _Walk:
    """One row on its way up."""

    def __init__(self, columns: dict[int, Result]) -> None:
        self.columns = columns
        self.at = 0
        self.candidates: list[int] = []
        self.why = self.reason = ""

    def has_ended(self, steps: Sequence[Step]) -> bool:
        """Does it surely end at one of them? Then it stands there."""
        for at, step in enumerate(steps):
            self.at = at
            is_limited = any(later.name == "GlobalLimit" for later in steps[at + 1 :])
            if not (step.name == "LocalLimit" and is_limited) and self.ends_at(step):
                return True
            self.pass_on(step)
        return False

    def ends_at(self, step: Step) -> bool:
        """Does the row surely end here? Where it may, the step becomes a candidate."""
        if step.name in _PASSING:
            return False
        expressions = step.expressions or {}
        if step.name == "Aggregate" and expressions.get("keys"):
            return False  # each row has a group
        if step.name == "Filter":
            return self._ends_at_filter(expressions.get("condition"))
        if step.name == "Join":
            return self._ends_at_join(step, expressions)
        self._may_end("", "")
        return False

    def _ends_at_filter(self, condition: Expression | None) -> bool:
        if condition is None:
            self._may_end("", "the condition of the filter was not sent")
            return False
        result = evaluated(condition, self.columns)
        if isinstance(result, Value) and result.data is True:
            return False
        parts = conjuncts(condition)
        denied = next((part for part in parts if is_never_true(part, self.columns)), None)
        if denied is not None:
            self.why = self._explained(denied)
            return True
        used = result if isinstance(result, Unknown) else "more than is known of the row"
        self._may_end("", f"the condition of the filter uses {used}")
        return False

    def _ends_at_join(self, step: Step, expressions: Mapping[str, Any]) -> bool:
        kind, condition = expressions.get("join", ""), expressions.get("condition")
        if kind.startswith("ExistenceJoin") and step.port == 0:
            return False
        is_dropped = step.port in _DROPPED_SIDES.get(kind, (0, 1))
        is_anti = kind == "LeftAnti"
        denied = None
        if condition is not None and kind in _DROPPED_SIDES and not is_anti and is_dropped:
            parts = conjuncts(condition)
            denied = next((part for part in parts if is_never_true(part, self.columns)), None)
        if denied is not None:
            self.why = f"{self._explained(denied)}: it matches no row of the other side"
            return True
        met = self._met(step, kind, condition)
        self.columns |= met.columns
        if not is_dropped or met.is_met is (not is_anti):
            return False
        why = self._unmet(condition, is_anti=is_anti, is_second=step.port == 1)
        if met.is_met is is_anti:
            self.why = why
            return True
        reason = "what the other side of the join had is not known"
        self._may_end(why, f"{reason}: {met.reason}" if met.reason else reason)
        return False

    def _met(self, step: Step, kind: str, condition: Expression | None) -> Meeting:
        """Of the second side of a semi-join or an anti-join it says nothing: its rows are in no output."""
        is_asked = kind in _DROPPED_SIDES and not (kind in ("LeftSemi", "LeftAnti") and step.port)
        if step.other is None or not is_asked:
            return Meeting(None)
        met = meeting(condition, self.columns, step.other)
        return Meeting(met.is_met) if kind in ("LeftSemi", "LeftAnti") else met

    def _unmet(self, condition: Expression | None, *, is_anti: bool, is_second: bool) -> str:
        others = "a row" if is_anti else "no row"
        keys = [] if condition is None or (is_anti and is_second) else self._keys(condition)
        is_all = condition is not None and len(keys) == len(conjuncts(condition))
        rest = "" if is_all else " and meets the rest of the condition"
        return f"{others} of the other side has {' and '.join(keys)}{rest}" if keys else ""

    def _keys(self, condition: Expression) -> list[str]:
        """What the other side is asked for: `c_id = 42`."""
        keys = []
        for own, asked in equalities(condition, "EqualTo", "EqualNullSafe"):
            value = evaluated(own, self.columns)
            if isinstance(value, Value) and isinstance(evaluated(asked, self.columns), Unknown):
                keys.append(f"{described(asked)} = {value_text(value)}")
        return keys

    def _may_end(self, why: str, reason: str) -> None:
        self.candidates.append(self.at)
        self.why, self.reason = why, self.reason or reason

    def _explained(self, condition: Expression) -> str:
        """`amount > 5, and amount is 3`."""
        values = []
        for name, number in _read(condition).items():
            value = self.columns.get(number)
            if isinstance(value, Value):
                values.append(f"{name} is {value_text(value)}")
        return f"not {described(condition)}" + (f", since {' and '.join(values)}" if values else "")

    def pass_on(self, step: Step) -> None:
        """The columns of the row behind a step."""
        expressions = step.expressions or {}
        if step.name in _DEFINING and "defined" in expressions:
            new = {one["column"]: evaluated(one["as"], self.columns) for one in expressions["defined"]}
            self.columns |= new
        elif step.name == "Union" and step.port < len(expressions.get("inputs", ())):
            pairs = zip(expressions.get("output", ()), expressions["inputs"][step.port], strict=False)
            self.columns = {number: self.columns[below] for number, below in pairs if below in self.columns}
        elif step.name == "Aggregate":
            keys = [key["column"] for key in expressions.get("keys", ()) if "column" in key]
            self.columns = {number: self.columns[number] for number in keys if number in self.columns}
        elif step.name not in _KEEPING:
            self.columns = {}


def _read(expression: Expression) -> dict[str, int]:
    """The columns that it reads, by their names."""
    if "column" in expression:
        return {expression.get("name") or f"column {expression['column']}": expression["column"]}
    return {name: number for part in expression.get("inputs", ()) for name, number in _read(part).items()}
