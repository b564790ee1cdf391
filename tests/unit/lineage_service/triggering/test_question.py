from __future__ import annotations

import pytest

from lineage_service.errors import InvalidQueryError
from lineage_service.triggering.waves.question import Question, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1_800), ("24h", 86_400), ("7d", 604_800), ("0.5 W", 302_400)]
)
def test_a_length_of_time_has_a_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "0h", "1y", "1d2h"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidQueryError):
        seconds_of(text)


@pytest.mark.parametrize(
    "question",
    [
        Question(job=""),
        Question(job="x" * 501),
        Question(job="x", wave=" "),
        Question(job="x", inputs=("",)),
        Question(job="x", at_least_every_s=float("nan")),
    ],
)
def test_what_cannot_be_asked_is_refused(question: Question) -> None:
    with pytest.raises(InvalidQueryError):
        question.check()
