from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import duckdb
import pytest

from lineage_service.lineage import AskedRecord
from lineage_service.replays.differences import have_differences, have_new_rows, output_differences
from lineage_service.replays.text_table import TextTable
from lineage_service.replays.verification import Sides, verified, worst
from lineage_service.tracing.files.searched_database import searched_database

SINK = 4


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(searched_database(())) as opened:
        yield opened


def sides(database: duckdb.DuckDBPyConnection, was: Sequence[str], now: Sequence[str]) -> Sides:
    return Sides(TextTable(database, "was", [was]), TextTable(database, "now", [now]))


def asked(*texts: str | None) -> list[AskedRecord]:
    return [
        AskedRecord(node=SINK, record_id=f"write#0#{row}", path="/out/part-0", row=row, text=text, key=None)
        for row, text in enumerate(texts)
    ]


def verdicts(database: duckdb.DuckDBPyConnection, was: Sequence[str], now: Sequence[str]) -> list[str]:
    checked = verified("app", asked(*was), {SINK: sides(database, was, now)})
    return [output.verdict for output in checked.outputs]


def test_rows_with_the_same_text_are_reproduced(database: duckdb.DuckDBPyConnection) -> None:
    checked = verified("app", asked("a,1"), {SINK: sides(database, ["a,1", "b,2"], ["c,3", "a,1"])})
    [output] = checked.outputs
    assert (output.verdict, output.is_, output.alike, output.line) == ("reproduced", "a,1", 0, 1)
    assert checked.extra == 1


def test_a_row_counts_as_often_as_it_is_there(database: duckdb.DuckDBPyConnection) -> None:
    assert verdicts(database, ["a", "a", "a"], ["a", "a"]) == ["reproduced", "reproduced", "no"]


def test_rows_that_look_the_same_are_counted(database: duckdb.DuckDBPyConnection) -> None:
    checked = verified("app", asked("1"), {SINK: sides(database, ["1", "1", "1", "2"], ["1"])})
    [output] = checked.outputs
    assert output.alike == 2
    assert output.why == "2 other rows of the original look the same, so it may be one of these"


def test_numbers_that_are_nearly_the_same_are_close(database: duckdb.DuckDBPyConnection) -> None:
    assert verdicts(database, ["a,0.30000000000000004"], ["a,0.3"]) == ["close"]


def test_another_value_of_the_same_key_is_changed(database: duckdb.DuckDBPyConnection) -> None:
    checked = verified("app", asked("a,1"), {SINK: sides(database, ["a,1"], ["a,2", "b,1"])})
    [output] = checked.outputs
    assert (output.verdict, output.was, output.is_) == ("changed", "a,1", "a,2")
    assert output.why == "the same key: a"


def test_a_row_stands_for_one_row_only(database: duckdb.DuckDBPyConnection) -> None:
    assert verdicts(database, ["a,0.1", "a,0.10000000000000001"], ["a,0.100000000000000005"]) == [
        "close",
        "no",
    ]


def test_nothing_in_its_place_is_no(database: duckdb.DuckDBPyConnection) -> None:
    assert verdicts(database, ["a,1"], []) == ["no"]
    assert verified("app", asked("a"), {}).outputs[0].why == "the replay wrote nothing in its place"


def test_a_row_whose_text_is_not_known_is_never_reproduced(database: duckdb.DuckDBPyConnection) -> None:
    checked = verified("app", asked(None), {SINK: sides(database, [], ["None", ""])})
    assert checked.outputs[0].verdict == "no"


def test_an_output_that_cannot_be_read_says_why() -> None:
    checked = verified(
        "app", asked("a"), {SINK: Sides(None, None, "rows of pickle files cannot be compared")}
    )
    assert (checked.outputs[0].verdict, checked.outputs[0].why) == (
        "no",
        "rows of pickle files cannot be compared",
    )
    assert checked.extra is None


def test_the_verdict_is_that_of_the_worst_row() -> None:
    assert worst(["reproduced", "close"]) == "close"
    assert worst(["reproduced", "no", "changed"]) == "no"
    assert worst([]) == "no"


def test_differences_are_gone_new_and_changed(database: duckdb.DuckDBPyConnection) -> None:
    found = output_differences(
        "/out",
        "/sandbox/out/4-save",
        sides(database, ["a,1", "b,2", "c,3", "c,3"], ["a,1", "b,5", "c,3", "d,4"]),
    )
    assert [(row.was, row.is_, row.key) for row in found.changed] == [("b,2", "b,5", "b")]
    assert (found.gone, found.new, found.same) == (("c,3",), ("d,4",), 2)
    assert (found.gone_total, found.new_total, found.changed_total) == (1, 1, 1)
    assert have_differences(found)
    assert have_new_rows(found)


def test_equal_outputs_have_no_differences(database: duckdb.DuckDBPyConnection) -> None:
    found = output_differences("/out", None, sides(database, ["a", "b"], ["b", "a"]))
    assert (found.same, have_differences(found)) == (2, False)


def test_what_was_not_compared_counts_as_a_difference() -> None:
    found = output_differences("/out", None, Sides(None, None, "it is gone"))
    assert (found.same, found.note, have_differences(found)) == (None, "it is gone", True)
