"""The search among the records of a node: in order, ended with its page, and honest about what it saw."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lineage_service.errors import InvalidQueryError, TimeBudgetError
from lineage_service.lineage import RecordPage
from lineage_service.queries import RecordQuery
from lineage_service.tracing.files import record_location, row_index
from lineage_service.tracing.query.service import LineageQueries
from tests.support.file_applications import APP, MAP, SINK, SOURCE, questions_of, splits_of


def ask(asked: LineageQueries, node: int = SOURCE, **query: Any) -> RecordPage:
    return asked.records(APP, RecordQuery(node=str(node), **query))


def found(page: RecordPage) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in page.records]


@pytest.fixture
def asked(tmp_path: Path) -> LineageQueries:
    """Ten files of 100 rows, every tenth of which is a `Storm`; and the values of what maps them."""
    partitions = []
    for split in range(10):
        path = tmp_path / f"{split}.txt"
        path.write_text("".join(f"{'Storm' if row % 10 == 3 else 'calm'} {row}\n" for row in range(100)))
        partitions.append({**splits_of(path)[0], "split": split})
    values = {
        split: [("str", "GALE" if row == split else "breeze") for row in range(100)] for split in (2, 5, 7)
    }
    keys = {split: [("str", "odd" if row % 2 else "even") for row in range(100)] for split in (2, 5, 7)}
    return questions_of(tmp_path, partitions, [100] * 10, values=values, keys=keys, detailed=True)


STORMS = [(split, row) for split in range(10) for row in range(3, 100, 10)]


@pytest.mark.parametrize("limit", [1, 7, 10, 99, 100, 1_000])
def test_the_pages_of_a_search_make_up_all_matches_in_order(asked: LineageQueries, limit: int) -> None:
    places, cursor = [], None
    while True:
        page = ask(asked, text="sTORM", limit=limit, cursor=cursor)
        places += found(page)
        cursor = page.next
        if cursor is None:
            break
        assert page.total is None
    assert places == STORMS


def test_the_total_is_given_where_the_first_page_holds_all(asked: LineageQueries) -> None:
    assert ask(asked, text="storm 93", limit=10).total == 10
    assert ask(asked, text="storm 93", limit=9).total is None
    assert ask(asked, text="storm 93", limit=10, cursor="3:0").total is None
    assert ask(asked, text="hurricane").total == 0


def test_a_page_is_found_without_the_files_behind_it(
    asked: LineageQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    original = record_location.RecordLocations.matching

    def noting(self: Any, node: Any, split: int, **rest: Any) -> Any:
        searched.append(split)
        return original(self, node, split, **rest)

    monkeypatch.setattr(record_location.RecordLocations, "matching", noting)
    page = ask(asked, text="storm", limit=9)
    assert searched == [0]
    ask(asked, text="storm", limit=10, cursor=page.next)
    assert searched == [0, 0, 1]
    ask(asked, text="storm", limit=4, cursor="6:50")
    assert searched[3:] == [6]


def test_positions_begin_a_page(asked: LineageQueries) -> None:
    page = ask(asked, partition=4, offset=97)
    assert (found(page), page.total, page.next) == ([(4, 97), (4, 98), (4, 99)], 3, None)
    assert found(ask(asked, partition=4, offset=40, text="storm", limit=2)) == [(4, 43), (4, 53)]
    assert found(ask(asked, partition=4, offset=40, text="storm", cursor="4:70")) == [
        (4, 73),
        (4, 83),
        (4, 93),
    ]
    assert (ask(asked, partition=4, offset=100).records, ask(asked, partition=4, offset=100).total) == ((), 0)
    assert found(ask(asked, MAP, partition=5, offset=94, key="odd")) == [(5, 95), (5, 97), (5, 99)]
    with pytest.raises(InvalidQueryError, match="offset needs partition"):
        ask(asked, offset=3)


def test_pages_of_all_records_count_them(asked: LineageQueries) -> None:
    page = ask(asked, limit=150)
    assert (page.total, page.next, len(page.records)) == (1_000, "1:49", 150)
    assert found(ask(asked, limit=2, cursor=page.next)) == [(1, 50), (1, 51)]
    assert ask(asked, limit=2, partition=3).total == 100


def test_keys_are_exact_counted_and_paged(asked: LineageQueries) -> None:
    page = ask(asked, MAP, key="odd", limit=60)
    assert (page.total, len(page.records)) == (150, 60)
    rest = ask(asked, MAP, key="odd", limit=100, cursor=page.next)
    assert (rest.total, rest.next) == (150, None)
    assert found(page) + found(rest) == [(split, row) for split in (2, 5, 7) for row in range(1, 100, 2)]
    assert ask(asked, MAP, key="od").total == 0
    assert ask(asked, MAP, key="ODD").total == 0


def test_texts_of_values_are_searched_too_and_with_a_key(asked: LineageQueries) -> None:
    page = ask(asked, MAP, text="gale")
    assert (found(page), page.total, page.next) == ([(2, 2), (5, 5), (7, 7)], 3, None)
    first = ask(asked, MAP, text="gale", limit=2)
    assert (found(first), first.total) == ([(2, 2), (5, 5)], None)
    assert found(ask(asked, MAP, text="gale", limit=2, cursor=first.next)) == [(7, 7)]
    assert found(ask(asked, MAP, text="gale", key="odd")) == [(5, 5), (7, 7)]
    assert found(ask(asked, MAP, text="gale", key="odd", limit=1)) == [(5, 5)]
    assert found(ask(asked, MAP, text="gale", key="odd", limit=1, cursor="5:5")) == [(7, 7)]


def test_a_search_says_which_files_it_could_not_read(asked: LineageQueries, tmp_path: Path) -> None:
    for split in (1, 4):
        (tmp_path / f"{split}.txt").unlink()
    page = ask(asked, text="storm", limit=1_000)
    assert found(page) == [place for place in STORMS if place[0] not in (1, 4)]
    assert (page.total, page.next) == (None, None)
    assert [text.partition(":")[0] for text in page.warnings] == [
        f"partition {split} was not searched to its end" for split in (1, 4)
    ]
    for split in range(10):
        (tmp_path / f"{split}.txt").unlink(missing_ok=True)
    assert len(ask(asked, text="storm").warnings) == 10


def test_a_search_that_outlasts_its_time_gives_what_it_found_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{'storm' if row % 40 == 7 else 'calm'} {row}\n" for row in range(400)))
    original = row_index.RowIndex._read_on

    def slow(self: Any, file: Any, base: int, check: Any) -> Any:
        self._chunk = 32
        for piece in original(self, file, base, check):
            time.sleep(0.01)
            yield piece

    monkeypatch.setattr(row_index, "_MOST_NEW", 32)
    monkeypatch.setattr(row_index.RowIndex, "_read_on", slow)
    asked = questions_of(tmp_path, splits_of(path), [400], time_budget_s=0.6)
    pages, cursor, refused = [], None, 0
    while True:
        try:
            page = ask(asked, text="storm", cursor=cursor)
        except TimeBudgetError:  # showing took the rest of it; what was read is known
            refused += 1
            assert refused < 200
            continue
        pages.append(page)
        cursor = page.next
        if cursor is None:
            break
    assert len(pages) > 1
    assert "the search ended with its time" in pages[0].warnings[0]
    assert [place for page in pages for place in found(page)] == [(0, row) for row in range(7, 400, 40)]


def test_a_cursor_of_another_endpoint_is_refused(asked: LineageQueries) -> None:
    for cursor in ("1", "1:", ":", "a:b", "1:-1", f"1:{'9' * 30}"):
        with pytest.raises(InvalidQueryError, match="was not given by this endpoint"):
            ask(asked, cursor=cursor)


def test_a_search_that_saw_no_value_does_not_deny_any(tmp_path: Path) -> None:
    path = tmp_path / "0.txt"
    path.write_text("storm\n" * 5)
    keys = {0: [("str", "odd")] * 5}
    asked = questions_of(tmp_path, splits_of(path), [5], keys=keys)
    page = ask(asked, MAP, text="storm")
    assert (page.records, page.total) == ((), None)
    assert "no values of this operation were captured" in page.warnings[0]
    assert ask(asked, MAP, text="storm", key="odd").warnings == page.warnings
    assert ask(asked, text="storm").total == 5


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_the_values_of_columns_are_searched(tmp_path: Path, format: str) -> None:
    table = pa.table(
        {
            "name": ["Storm", "calm", None, "é"],
            "speed": pa.array([61.63, 7, None, -1], pa.float64()),
            "at": pa.array([datetime(2013, 2, 12, 8), None, None, None], pa.timestamp("us")),
        }
    )
    path = tmp_path / "a"
    (pq.write_table if format == "parquet" else orc.write_table)(table, path)
    written = [{"split": 0, "path": str(path), "start": 0}]
    asked = questions_of(tmp_path, splits_of(path), [4], written=written, format=format)
    for text, expected in (
        ("storm", [0]),
        ("61.6", [0]),
        ("2013-02-12T08", [0]),
        ("2013-02-12 08", [0]),
        ("É", [3]),
        ("speed", []),
    ):
        page = ask(asked, SINK, text=text)
        assert ([record.offset for record in page.records], page.total) == (expected, len(expected))
        assert page.warnings == ()
    path.unlink()
    page = ask(asked, SINK, text="storm")
    assert (page.records, page.total) == ((), None)
    assert "it is gone" in page.warnings[0]


def test_records_without_files_are_found_by_their_values(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x\n" * 3)
    values = {0: [("json", '{"k": "a", "n": 1}'), ("json", '{"k": "b", "n": 2}'), ("str", "plain")]}
    asked = questions_of(tmp_path, splits_of(path), [3], values=values)
    assert found(ask(asked, MAP, where="n >= 2 and k = 'b'")) == [(0, 1)]
    assert found(ask(asked, MAP, where="value like 'pl%'")) == [(0, 2)]
    assert ask(asked, MAP, where="k is not null", limit=1).next == "0:0"
    with pytest.raises(InvalidQueryError, match="did you mean value"):
        ask(asked, MAP, where="valeu = 'x'")
    with pytest.raises(InvalidQueryError, match="no values of its records were captured"):
        ask(asked, SINK, where="n = 1")
    with pytest.raises(InvalidQueryError, match="where stands alone"):
        ask(asked, MAP, where="n = 1", text="x")


@pytest.mark.parametrize("format", ["parquet", "avro"])  # of Parquet, which row is which is not known
def test_a_search_says_which_files_it_did_not_read(tmp_path: Path, format: str) -> None:
    partition = {"split": 0, "path": str(tmp_path / "a"), "start": 0, "length": 100}
    asked = questions_of(tmp_path, [partition], [5], format=format)
    page = ask(asked, text="storm")
    assert (page.records, page.total) == ((), None)
    assert page.warnings[0].startswith(f"rows of {record_location._FORMATS[format]} files were not searched")
    assert page.next is None
