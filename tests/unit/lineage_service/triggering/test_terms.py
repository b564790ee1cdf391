from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lineage_service.errors import InvalidQueryError
from lineage_service.triggering.learning.compliance import Compliance
from lineage_service.triggering.learning.drift import Looks
from lineage_service.triggering.learning.phases import APPLICATION, Policy, Progress, Verdict
from lineage_service.triggering.learning.terms import Terms, terms_of
from lineage_service.triggering.weighing.element_plans import Plan
from lineage_service.triggering.weighing.experience import Experience, Step, experience_of_json

TERMS = Terms(bound=0.05, error="relative:mean", keys=("region",))


def test_a_bound_of_0_is_none_and_texts_are_numbers() -> None:
    assert terms_of(bound="0") is None
    assert terms_of(bound="0.05", error=" relative:mean ", keys=["region"]) == TERMS
    assert TERMS.policy() == Policy(bound=0.05)
    assert (TERMS.measure, TERMS.column, Terms(bound=0.1).column) == ("relative", "mean", None)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"bound": -0.1},
            "--bound -0.1 is out of range: it is above 0 and below 1, or 0 for certain answers",
        ),
        ({"bound": 1}, "--bound 1 is out of range"),
        ({"bound": "inf", "error": "rmse:x"}, "above 0, and finite"),
        ({"bound": "nan"}, "--bound nan is no number"),
        ({"bound": "5 %"}, "--bound 5 % is no number"),
        ({"confidence": 1}, "--confidence 1 is out of range: it is between 0.5 and 1"),
        ({"error": "relative"}, "--error relative is not known"),
        ({"error": "rows:x"}, "--error rows:x is not known"),
        ({"horizon": 0}, "--horizon 0 is out of range: it is 1 to 200 waves"),
        ({"training": 2}, "--training 2 is out of range"),
        ({"audit": 1.5}, "--audit 1.5 is out of range: it is from 0 to 1"),
        ({"keys": ["a", " "]}, "a column without a name"),
    ],
)
def test_what_is_out_of_range_is_said_in_one_sentence(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidQueryError) as error:
        terms_of(**{"bound": 0.05, **changes})
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"values": ("id", "salary")}, "--value: the numbers of salary are not kept"),
        ({"error": "relative:Salary"}, "--error: the numbers of Salary are not kept"),
        ({"error": "rmse:salary"}, "LINEAGE_TRIGGER_REDACT"),
    ],
)
def test_numbers_of_redacted_columns_are_refused(changes: dict[str, Any], says: str) -> None:
    terms = Terms(**{"bound": 0.05, "redacted": (" SALARY", "age"), **changes})
    with pytest.raises(InvalidQueryError) as error:
        terms.check()
    assert says in str(error.value)
    for fine in (Terms(bound=0.05, redacted=("x",)), replace(terms, values=(), error="class:salary")):
        fine.check()
    assert terms.digest() != replace(terms, redacted=()).digest()


def test_an_error_in_units_may_be_above_1() -> None:
    assert terms_of(bound=20, error="rmse:mean") == Terms(bound=20.0, error="rmse:mean")


def test_training_begins_anew_where_errors_are_measured_in_another_way_only() -> None:
    same = (replace(TERMS, bound=0.1), replace(TERMS, confidence=0.9), replace(TERMS, training=50))
    assert {terms.digest() for terms in same} == {TERMS.digest()}
    for other in (
        replace(TERMS, error="rmse:mean"),
        replace(TERMS, keys=()),
        replace(TERMS, values=("x",)),
        replace(TERMS, outputs=("out",)),
    ):
        assert other.digest() != TERMS.digest()


def step(number: int, **changes: Any) -> Step:
    verdict = Verdict(run=True, reason="training", phase="training")
    return Step(step=number, number=number + 5, time=number, part=f"k-{number}", verdict=verdict, **changes)


EXPERIENCE = Experience(
    terms="t",
    policy=Policy(bound=0.05, horizon=3),
    progress=Progress(
        phase=APPLICATION,
        threshold=0.1,
        compliance=Compliance(99, 100),
        looks=Looks(recent="srk", surprise=0.5),
    ),
    plans=(Plan(path="/in", is_output=False, keys=("a",), values=("x",), rest=True),),
    steps=(step(0, application_id="app-0", has_output=True), *(step(number) for number in range(1, 6))),
    next_step=6,
)


def test_what_was_learned_is_the_same_after_it_was_kept() -> None:
    assert experience_of_json(EXPERIENCE.to_json()) == EXPERIENCE
    with pytest.raises((ValueError, TypeError, KeyError)):
        experience_of_json('{"terms": "of another version"}')


def test_of_earlier_steps_those_within_the_horizon_and_the_last_execution_stay() -> None:
    skip = Verdict(run=False, reason="", phase=APPLICATION, probability=0.0, threshold=0.1)
    later = EXPERIENCE.after_verdict(step(6), skip)
    assert [one.step for one in later.steps] == [0, 3, 4, 5, 6]
    assert (later.next_step, later.progress.looks.recent) == (7, "srks")
    anew = later.anew(6, "the code has changed")
    assert (anew.progress.phase, anew.progress.since) == ("training", 6)
    assert anew.steps == later.steps
