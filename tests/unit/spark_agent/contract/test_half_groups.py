"""What halves of rows say, and where they say nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spark_agent.contract.half_groups import HALVES, NoEstimateError, estimate
from spark_agent.contract.row_counterparts import Counterpart

NUMBERS = [1, 2, 3, 400, 5, 6, 7, 8]


def total(rows: Sequence[int]) -> str:
    return f"H0007;{sum(NUMBERS[row] for row in rows)}"


def test_a_row_that_is_not_sure_keeps_its_estimate() -> None:
    def output(rows: Sequence[int]) -> Counterpart:
        return Counterpart(total(rows), is_sure=3 in rows)

    halves = estimate(output, len(NUMBERS), total(range(len(NUMBERS))))
    assert (halves.without[3], halves.without[0]) == (None, "H0007;431")
    assert halves.changes[3] == max(change for change in halves.changes if change is not None)
    assert halves.changes[0] is None


@pytest.mark.parametrize("text", [None, "H0008;3", "H0007;3;4"])
def test_halves_of_another_form_estimate_nothing(text: str | None) -> None:
    asked = 0

    def output(rows: Sequence[int]) -> Counterpart:
        nonlocal asked
        asked += 1
        return Counterpart(text, is_sure=True)

    with pytest.raises(NoEstimateError, match="no row of the same form"):
        estimate(output, len(NUMBERS), "H0007;432")
    assert asked == HALVES
