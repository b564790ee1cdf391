"""Pinned decisions: each record gets its own, or nothing is given."""

from __future__ import annotations

from typing import Any

import pytest

from spark_agent.worker.operators.pinned_decisions import PinnedChoices, PinnedNumbers


def test_each_record_gets_the_decision_at_its_place() -> None:
    numbers = PinnedNumbers("zipWithIndex", {0: [4, 9], 2: [11]})
    assert list(numbers(0, iter("ab"))) == [("a", 4), ("b", 9)]
    assert list(numbers(1, iter(()))) == []
    assert list(numbers(2, ["c"])) == [("c", 11)]
    assert list(PinnedChoices("sample", {1: [0, 1, 1]})(1, iter("abc"))) == ["b", "c"]


@pytest.mark.parametrize("records", ["a", "abc", ""])
def test_other_records_than_those_of_the_job_are_refused(records: str) -> None:
    pin: Any
    for pin in (PinnedNumbers("zipWithIndex", {0: [4, 9]}), PinnedChoices("sample", {0: [1, 1]})):
        with pytest.raises(ValueError, match="reads other records than those that it read in the job"):
            list(pin(0, iter(records)))
