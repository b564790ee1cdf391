"""The features and the error of a pair of waves, from what is kept of both. Pure.

`between` joins what lineage knows of a pair to the features of the paper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np
import pyarrow as pa

from lineage_service.triggering.changes import impact
from lineage_service.triggering.changes.changed_elements import Elements, Keys, difference
from lineage_service.triggering.changes.error_function import ErrorFunction
from lineage_service.triggering.changes.impact import Features, Impact
from lineage_service.triggering.changes.output_error import ERRORS
from lineage_service.triggering.dependence.lineage_features import (
    Lineage,
    keys_of_new_rows,
    lineage_features,
)
from lineage_service.triggering.dependence.read_rows import Codes
from lineage_service.triggering.learning.terms import FUNCTION, Terms
from lineage_service.triggering.weighing.coded_columns import codes_of_elements
from lineage_service.triggering.weighing.container_rows import files_of
from lineage_service.triggering.weighing.element_plans import Plan, places_of
from lineage_service.triggering.weighing.experience import Step
from lineage_service.triggering.weighing.kept_elements import KeptContainer

__all__ = ["Errors", "between", "kept_inputs", "seen", "seen_input"]

_HOUR_MS = 3_600_000
#: scikit-learn computes with floats of 32 bits, and adds them up.
_LARGEST = 1e30


def seen_input(
    table: pa.Table,
    plan: Plan,
    elements: Elements,
    previous: KeptContainer | None,
    keys: Collection[str] = (),
) -> KeptContainer:
    """As it is now, with its impact since the wave before. `keys` are those of the outputs."""
    level = impact.level(elements)
    since = None if previous is None else impact.impact(difference(previous.elements, elements), level)
    before = previous.codes.names if previous is not None and previous.codes is not None else ()
    kept = seen(table, plan, elements)
    codes = codes_of_elements(table, elements, kept.places, keys, before)
    return replace(kept, level=level, impact=since, codes=codes)


def seen(table: pa.Table, plan: Plan, elements: Elements) -> KeptContainer:
    """An input or output that was read."""
    files, places = files_of(table), places_of(table, plan, elements)
    return KeptContainer(
        path=plan.path,
        is_output=plan.is_output,
        elements=elements,
        files=() if places is None else tuple(files),
        places=places if files else None,
    )


def kept_inputs(containers: Iterable[KeptContainer]) -> dict[str, KeptContainer]:
    return {one.path: one for one in containers if not one.is_output}


def between(
    plans: Sequence[Plan],
    then: Mapping[str, KeptContainer],
    now: Mapping[str, KeptContainer],
    impacts: Sequence[Mapping[str, Impact]],
    lineages: Mapping[str, Lineage],
    reference: Step,
    step: Step,
) -> Features:
    """Of the inputs at two steps. `impacts`: of each step since the reference, this one included, by path.
    `lineages`: of the execution at the reference, by path; of others it is not known.

    Raises KeyError where one of them lacks an input.
    """
    parts = []
    for plan in plans:
        before, after = then[plan.path], now[plan.path]
        if before.level is None or after.level is None:
            raise KeyError(plan.path)
        changes = difference(before.elements, after.elements)
        own = impact.features(
            plan.columns,
            changes,
            before.level,
            after.level,
            [by_path[plan.path] for by_path in impacts if plan.path in by_path],
        )
        lineage = lineages.get(plan.path, "it is not known")
        new = None if before.codes is None else _codes_of(after, keys_of_new_rows(plan.columns, changes))
        reached = lineage_features(plan.columns, lineage, changes, new)
        own = impact.joined(own, reached.features)
        prefix = f"{plan.path}: " if len(plans) > 1 else ""
        parts.append(Features(tuple(f"{prefix}{name}" for name in own.names), own.values))
    moment = datetime.fromtimestamp(step.time / 1000, timezone.utc)
    hour = moment.hour + moment.minute / 60
    features = impact.joined(
        *parts,
        impact.age(step.step - reference.step, (step.time - reference.time) / _HOUR_MS),
        impact.time_of(hour, moment.weekday() + hour / 24),
    )
    return Features(features.names, np.clip(features.values, -_LARGEST, _LARGEST))


def _codes_of(container: KeptContainer, keys: Keys) -> Codes | None:
    """Of some of its elements; None where they are not kept."""
    if container.codes is None:
        return None
    at = container.elements.keys.searchsorted(keys)
    return Codes(container.codes.names, container.codes.values[at])


class Errors:
    """How errors between outputs are measured under these terms; `plans` are those of the outputs.

    A context: a user's function has a process until its end.
    """

    def __init__(self, terms: Terms, plans: Sequence[Plan]) -> None:
        self._terms, self._columns = terms, {plan.path: plan.columns for plan in plans}
        self._function: ErrorFunction | None = None

    def __enter__(self) -> Errors:
        return self

    def __exit__(self, *of_error: object) -> None:
        if self._function is not None:
            self._function.close()

    def between(self, stale: Sequence[KeptContainer], correct: Sequence[KeptContainer]) -> float | None:
        """The largest of the outputs; None where they are not the same ones. Raises ErrorFunctionError."""
        by_path = {one.path: one.elements for one in stale if one.is_output}
        if by_path.keys() != {one.path for one in correct}:
            return None
        return max(self._of(one.path, by_path[one.path], one.elements) for one in correct)

    def _of(self, path: str, stale: Elements, correct: Elements) -> float:
        if self._terms.measure != FUNCTION:
            return ERRORS[self._terms.measure](stale, correct, 0)
        if self._function is None:
            self._function = ErrorFunction(self._terms.error, self._terms.within_s)
        return self._function.error(stale, correct, self._columns[path])
