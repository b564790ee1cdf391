"""The columns of a line: only what Spark surely reads is known."""

from __future__ import annotations

import pytest

from lineage_service.evaluation.scanned_row import of_line
from lineage_service.evaluation.values import Value
from lineage_service.lineage import Column

COLUMNS = [Column(name="id", type="int"), Column(name="tag", type="string")]
MALFORMED = Column(name="_corrupt_record", type="string")


def test_a_line_of_csv_has_its_columns() -> None:
    assert of_line("csv", "1,a", COLUMNS, {"sep": ","}) == {
        "id": Value("int", 1),
        "tag": Value("string", "a"),
    }


@pytest.mark.parametrize("line", ["1,a", "1,a,", "1,a,b"])
def test_what_stands_where_malformed_lines_do_is_not_known(line: str) -> None:
    """Of `1,a,` Spark has the whole line there: it has a field too many."""
    assert of_line("csv", line, [*COLUMNS, MALFORMED], {"sep": ","}) == {}
