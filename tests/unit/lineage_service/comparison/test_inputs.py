"""Which input rows of two records differ."""

from __future__ import annotations

import pytest

from lineage_service.comparison.inputs import Input, changed_inputs, paired_by_inputs

pytestmark = pytest.mark.unit


def test_rows_that_moved_are_the_same_and_those_at_one_place_are_paired() -> None:
    was = [Input("/mon/a.csv", 1, "x"), Input("/mon/a.csv", 2, "y"), Input("/mon/b.csv", 0, "z")]
    now = [Input("/tue/a.csv", 2, "y 2"), Input("/tue/a.csv", 7, "x"), Input("/tue/a.csv", 8, "new")]
    assert changed_inputs(was, now) == [(was[1], now[0]), (was[2], None), (None, now[2])]


def test_files_are_known_by_their_names_without_the_ids_of_spark() -> None:
    first = Input("/mon/part-00000-80251e05-8c1d-4a52-9c3b-1f2e3d4c5b6a-c000.snappy.parquet", 3, "x")
    other = Input("/tue/part-00000-90251e05-8c1d-4a52-9c3b-1f2e3d4c5b6b-c000.snappy.parquet", 3, "y")
    assert first.file == other.file == "part-00000-c000.snappy.parquet"
    assert changed_inputs([first], [other]) == [(first, other)]
    assert paired_by_inputs({0: [first]}, {5: [other]}) == [(0, 5)]


def test_records_of_no_rows_are_not_paired() -> None:
    assert paired_by_inputs({0: []}, {0: []}) == []
