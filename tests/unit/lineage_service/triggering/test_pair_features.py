from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lineage_service.triggering.changes.impact import Features
from lineage_service.triggering.learning.forest import RandomForest
from lineage_service.triggering.learning.phases import Verdict
from lineage_service.triggering.learning.terms import Terms
from lineage_service.triggering.weighing.element_plans import Plan, elements_of
from lineage_service.triggering.weighing.experience import Step
from lineage_service.triggering.weighing.kept_elements import KeptContainer
from lineage_service.triggering.weighing.pair_features import Errors, between, kept_inputs, seen_input

PLANS = [Plan(path=path, is_output=False, keys=("id",), values=("x",)) for path in ("/a", "/b")]
HOUR_MS = 3_600_000


def step(number: int) -> Step:
    verdict = Verdict(run=True, reason="", phase="training")
    return Step(step=number, number=number, time=number * HOUR_MS, part="", verdict=verdict)


def inputs(numbers: list[float], plans: list[Plan] = PLANS) -> dict[str, KeptContainer]:
    table = pa.table({"id": [f"k{at}" for at in range(len(numbers))], "x": numbers})
    return kept_inputs(seen_input(table, plan, elements_of(table, plan), None) for plan in plans)


def features(then: list[float], now: list[float], plans: list[Plan] = PLANS) -> Features:
    return between(plans, inputs(then, plans), inputs(now, plans), [], {}, step(1), step(4))


def test_inputs_are_told_apart_by_their_paths_only_where_there_are_several() -> None:
    both, one = features([1.0, 2.0], [1.0, 3.0]), features([1.0, 2.0], [1.0, 3.0], PLANS[:1])
    assert {"/a: x.impact", "/b: x.impact", "waves_since", "hours_since"} <= set(both.names)
    assert "x.impact" in one.names
    known = dict(zip(one.names, one.values, strict=True))
    assert (known["changed"], known["waves_since"], known["hours_since"]) == (0.5, 3, 3)


def test_a_forest_takes_whatever_numbers_there_are() -> None:
    rows = [features([1.0, 2.0], [1e200 * at, -1e300]).values for at in range(6)]
    rows.append(features([float("nan"), 0.0], [float("inf"), 0.0]).values)
    labels = np.array([True, False] * 3 + [True])
    assert RandomForest(np.array(rows), labels).probability(rows[0][None, :]).shape == (1,)


def test_an_input_that_was_not_there_then_and_other_outputs_are_not_compared() -> None:
    with pytest.raises(KeyError):
        between(PLANS, inputs([1.0], PLANS[:1]), inputs([1.0]), [], {}, step(1), step(2))
    terms = Terms(bound=0.1, error="relative:x")
    stale, correct = (
        [KeptContainer(path=path, is_output=True, elements=inputs([1.0])["/a"].elements)]
        for path in ("/out", "/elsewhere")
    )
    assert Errors(terms, []).between(stale, correct) is None
    assert Errors(terms, []).between(stale, stale) == 0
