"""The wrong lines of the workloads that are made to be sifted stand first in their groups."""

from __future__ import annotations

from itertools import islice

import pytest

from perf.workloads import planted_inputs
from perf.workloads.planted_inputs import GROUP
from spark_agent.contract.odd_rows import odd_first


@pytest.mark.parametrize(
    ("lines", "is_wrong", "group"),
    [
        (planted_inputs.layovers, planted_inputs.is_wrong_layover, 23),
        (planted_inputs.snowfalls, planted_inputs.is_wrong_snowfall, 0),
        (planted_inputs.students, planted_inputs.is_wrong_student, 10),
        (planted_inputs.readings, planted_inputs.is_wrong_reading, 20),
        (planted_inputs.broken, planted_inputs.is_wrong_value, 0),
    ],
)
def test_planted_lines_are_tried_first(lines, is_wrong, group) -> None:
    texts = list(islice(lines(5), group * GROUP, (group + 1) * GROUP))
    assert any(map(is_wrong, texts))
    assert is_wrong(texts[odd_first(texts)[0]])


def test_rows_of_one_form_and_number_keep_their_order() -> None:
    assert odd_first(["a 1"] * 5) == [0, 1, 2, 3, 4]
    assert odd_first([]) == []
