"""Lines of CSV as columns of a table, whether any of them has quotes or not."""

from __future__ import annotations

import pytest

from lineage_service.conditions.column_types import LOOSE_TEXT
from lineage_service.tracing.files.csv_columns import CsvColumns
from lineage_service.tracing.files.csv_dialect import dialect_of
from lineage_service.tracing.files.line_search import csv_table


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"nullvalue": "NULL", "emptyvalue": ""}, {"emptyvalue": "EMPTY"}, {"nullvalue": "-"}]
)
def test_a_line_has_the_same_texts_beside_one_with_quotes(options: dict[str, str], is_written: bool) -> None:
    lines = ["1,", "2,NULL", "3,EMPTY", "4,-", "5,x"]
    columns = CsvColumns(lines, ["a", "b"], dialect_of(options, is_written=is_written), has_header=False)
    table = csv_table(columns, {"a": LOOSE_TEXT, "b": LOOSE_TEXT})
    alone, beside = table.texts_of(lines, ["b"])["c1"], table.texts_of([*lines, '"6",x'], ["b"])["c1"]
    assert [str(text) for text in alone] == [str(text) for text in beside][: len(lines)]
