"""Rows by their columns, all rows of a trace in the order of one of them, and what stands out of these."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Record, TracedNode
from lineage_service.queries import RecordQuery, TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from tests.support.file_applications import APP, MAP, SOURCE, questions_of

ROWS = 400
#: Of the trace of a key: more than pages of these tests, fewer than all rows.
EVERY = {"columns": ("*",), "limit": 1_000}


def file_part(path: Path, rows: int, row: int | None = 0) -> dict[str, Any]:
    status = path.stat()
    about = {"size": status.st_size, "modified": status.st_mtime_ns // 1_000_000, "length": status.st_size}
    return {"path": str(path), "start": 0, "first": 0, "row": row, **about}


def keyed(*counts: int) -> dict[int, list[tuple[str, str]]]:
    """Every record has the same key, so that a trace can begin at all of them."""
    return {split: [("str", "k")] * count for split, count in enumerate(counts)}


def readings(seed: int, count: int) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    return [
        {
            "id": (1 << 60) + at,
            "wind": dice.uniform(0, 43),
            "price": Decimal(at % 97) / 4,
            "name": f"n{at % 7}",
        }
        for at in range(count)
    ]


SCHEMA = pa.schema(
    [("id", pa.int64()), ("wind", pa.float64()), ("price", pa.decimal128(9, 2)), ("name", pa.string())]
)
BY_ORIGIN = {"EWR": readings(1, ROWS), "JFK": readings(2, 30)}
BY_ORIGIN["EWR"][217]["wind"] = 1048.36


@pytest.fixture(params=["parquet", "orc"])
def columnar(request: pytest.FixtureRequest, tmp_path: Path) -> LineageQueries:
    """Two files of the same name, in folders that say their origin."""
    parts = []
    for origin, rows in BY_ORIGIN.items():
        path = tmp_path / "out" / f"origin={origin}" / f"part-00000.{request.param}"
        path.parent.mkdir(parents=True)
        table = pa.Table.from_pylist(rows, SCHEMA)
        if request.param == "parquet":
            pq.write_table(table, path, row_group_size=150)
        else:
            pyarrow.orc.write_table(table, path)
        parts.append(file_part(path, len(rows)))
    partitions = [{"split": at, "parts": [part]} for at, part in enumerate(parts)]
    counts = [len(rows) for rows in BY_ORIGIN.values()]
    return questions_of(tmp_path, partitions, counts, format=request.param, keys=keyed(*counts))


def expected() -> Iterator[dict[str, Any]]:
    for origin, rows in BY_ORIGIN.items():
        for row in rows:
            yield {"origin": origin, **row, "id": str(row["id"]), "price": f"{row['price']:.2f}"}


def columns_of(records: tuple[Record, ...]) -> list[Mapping[str, Any] | None]:
    return [record.source.columns for record in records if record.source is not None]


def source_of(questions: LineageQueries, **query: Any) -> tuple[TracedNode, str | None]:
    """The source of a trace of all records with the key, and the cursor of the next page."""
    start: dict[str, Any] = {"direction": "backward", "node": str(MAP), "key": "k"}
    trace = questions.trace(APP, TraceQuery(**start, **query))
    (source,) = [node for node in trace.nodes if node.node_id == f"{APP}#{SOURCE}"]
    return source, trace.next


def test_rows_have_their_columns_with_those_of_their_folders(columnar: LineageQueries) -> None:
    source, _ = source_of(columnar, **EVERY)
    assert columns_of(source.records) == list(expected())
    assert source.schema is not None
    assert {column.name: column.type for column in source.schema} == {
        **{"origin": "", "id": "bigint", "wind": "double", "price": "decimal(9,2)", "name": "string"}
    }
    page = columnar.records(APP, RecordQuery(node=str(SOURCE), columns=("name", "origin"), limit=1_000))
    assert columns_of(page.records) == [{"origin": r["origin"], "name": r["name"]} for r in expected()]
    assert {record.source.text is None for record in page.records if record.source} == {False}


def test_without_columns_a_result_is_what_it_was(columnar: LineageQueries) -> None:
    plain, _ = source_of(columnar, limit=1_000)
    with_columns, _ = source_of(columnar, **EVERY)
    assert set(columns_of(plain.records)) == {None}
    assert (plain.schema, plain.remarks) == (None, None)
    texts = [[record.source and record.source.text for record in of.records] for of in (plain, with_columns)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("desc", [False, True])
@pytest.mark.parametrize("column", ["wind", "id", "price", "name", "origin"])
def test_all_rows_are_in_the_order_of_a_column_page_by_page(
    columnar: LineageQueries, column: str, desc: bool
) -> None:
    wanted = {"only": str(SOURCE), "sort": column, "desc": desc, "columns": ("*",)}
    rows: list[Any] = []
    cursor: str | None = None
    while True:
        source, cursor = source_of(columnar, **wanted, limit=130, cursor=cursor)
        assert source.total == len(list(expected()))
        rows += columns_of(source.records)
        if cursor is None:
            break
    key = (
        (lambda row: Decimal(row[column])) if column in ("wind", "id", "price") else (lambda row: row[column])
    )
    assert rows == sorted(expected(), key=key, reverse=desc)


def test_rows_that_fulfil_a_condition_are_listed_in_any_order_page_by_page(columnar: LineageQueries) -> None:
    def fulfils(row: Mapping[str, Any]) -> bool:
        return row["wind"] > 20 and row["origin"] == "EWR" and int(row["id"]) < (1 << 60) + 300

    condition = f"wind > 20 and origin = 'EWR' and id < {(1 << 60) + 300}"
    query: dict[str, Any] = {"only": str(SOURCE), "filter": condition, "columns": ("*",)}
    matches = [row for row in expected() if fulfils(row)]
    for order in ({}, {"sort": "wind", "desc": True}):
        rows, cursor, is_first = list[Any](), None, True
        while cursor is not None or is_first:
            source, cursor = source_of(columnar, **query, **order, limit=50, cursor=cursor)
            assert (source.total, source.matches) == (len(list(expected())), len(matches))
            rows += columns_of(source.records)
            is_first = False
        assert rows == (sorted(matches, key=lambda row: -row["wind"]) if order else matches)
    none, cursor = source_of(columnar, only=str(SOURCE), filter="wind > 9000")
    assert (none.matches, none.records, cursor) == (0, (), None)


def test_a_condition_that_cannot_be_asked_is_refused(columnar: LineageQueries) -> None:
    for query, said in (
        ({"filter": "wind > 20"}, "filter needs only"),
        ({"filter": "wnd > 20", "only": str(SOURCE)}, "there is no column wnd: did you mean wind"),
        ({"filter": "wind >", "only": str(SOURCE)}, "wind >"),
    ):
        with pytest.raises(InvalidQueryError, match=said):
            source_of(columnar, **query)


def test_an_order_that_cannot_be_is_refused(columnar: LineageQueries) -> None:
    for query, said in (
        ({"sort": "wind"}, "sort needs only"),
        ({"desc": True}, "desc needs sort"),
        ({"sort": "wnd", "only": str(SOURCE)}, "no row has a column 'wnd': do you mean 'wind'"),
        ({"sort": "wind", "only": str(MAP)}, r"the records of \d+ \(map\) are no rows with columns"),
        ({"columns": ("wind", "gust")}, "no row has a column 'gust': they have "),
    ):
        with pytest.raises(InvalidQueryError, match=said):
            source_of(columnar, **query)
    first, cursor = source_of(columnar, only=str(SOURCE), sort="wind", limit=2)
    assert len(first.records) == 2
    with pytest.raises(InvalidQueryError, match="belongs to another query"):
        source_of(columnar, only=str(SOURCE), sort="id", limit=2, cursor=cursor)


def test_what_stands_out_is_said_of_all_rows_whatever_is_listed(columnar: LineageQueries) -> None:
    source, cursor = source_of(columnar, remarks=True, limit=1)
    assert (source.remarks_of, source.total) == (430, 430)
    (remark,) = source.remarks or ()
    assert (remark.record_id, remark.line, remark.column, remark.value) == (
        "read#0#217",
        218,
        "wind",
        1048.36,
    )
    others = [row["wind"] for rows in BY_ORIGIN.values() for row in rows if row["wind"] != 1048.36]
    assert (remark.low, remark.high) == (min(others), max(others))
    assert remark.text.startswith(f"origin=EWR/{Path(remark.path).name}:218: wind 1,048.36, the others 0.")
    again, _ = source_of(columnar, remarks=True, limit=1, cursor=cursor)
    assert again.remarks is None
    other, _ = source_of(columnar, remarks=True, only=str(MAP))
    assert other.remarks is None


CSV = 'airport;id;ok;wind\r\n\r\n"EWR; Newark";9007199254740993;true;1,5\r\nJFK;;false;\r\n'


def test_lines_of_csv_are_split_by_the_header_of_their_file(tmp_path: Path) -> None:
    path = tmp_path / "year=2013" / "in.csv"
    path.parent.mkdir()
    path.write_text(CSV, newline="")
    questions = questions_of(
        tmp_path, [{"split": 0, "parts": [file_part(path, 2)]}], [2], format="csv+header", keys=keyed(2)
    )
    source, _ = source_of(questions, **EVERY)
    assert columns_of(source.records) == [
        {"year": "2013", "airport": "EWR; Newark", "id": "9007199254740993", "ok": "true", "wind": "1,5"},
        {"year": "2013", "airport": "JFK", "id": None, "ok": "false", "wind": None},
    ]
    ordered, _ = source_of(questions, only=str(SOURCE), sort="airport", desc=True, columns=("airport",))
    assert columns_of(ordered.records) == [{"airport": "JFK"}, {"airport": "EWR; Newark"}]


def test_documents_have_their_fields_and_others_their_text(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text('{"a": 9007199254740993, "b": [1.5]}\n{"b": null, "c": "x"}\nnothing\n')
    questions = questions_of(
        tmp_path, [{"split": 0, "parts": [file_part(path, 3)]}], [3], format="json", keys=keyed(3)
    )
    source, _ = source_of(questions, **EVERY)
    assert columns_of(source.records) == [
        {"a": "9007199254740993", "b": [1.5]},
        {"b": None, "c": "x"},
        None,
    ]
    assert [column.name for column in source.schema or ()] == ["a", "b", "c"]
    ordered, _ = source_of(questions, only=str(SOURCE), sort="c")
    assert [record.offset for record in ordered.records] == [1, 0, 2]


def test_a_file_that_is_gone_has_no_columns_and_no_remarks(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": list(range(9))}), path)
    questions = questions_of(
        tmp_path, [{"split": 0, "parts": [file_part(path, 9)]}], [9], format="parquet", keys=keyed(9)
    )
    path.unlink()
    source, _ = source_of(questions, remarks=True, **EVERY)
    assert columns_of(source.records) == [None] * 9
    assert (source.remarks, source.remarks_of, source.schema) == ((), 0, ())
