"""The rows of the other side of a join: none that came is left out, and what is not known decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage_service.evaluation.values import Unknown, Value
from lineage_service.lineage import Column, Dataset
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.missing import other_sides
from lineage_service.tracing.missing.other_sides import OtherSides
from lineage_service.tracing.model.elements import TopologyNode

Node = tuple[int, str, Any, tuple[int, ...]]
OWN = {"column": 1, "name": "customer"}
KEY, NAME = {"column": 11, "name": "key"}, {"column": 12, "name": "name"}
SAME = {"of": "EqualTo", "inputs": [OWN, KEY]}
NAMED = {"condition": {"of": "EqualTo", "inputs": [NAME, {"type": "string", "value": "ann"}]}}
COLUMNS = (Column(name="key", type="bigint"), Column(name="name", type="string"))
SCAN = {"columns": [[11, 12]], "options": {"sep": ","}}
MORE = {"columns": [[21, 22]], "options": {"sep": ","}}
ROW = {1: Value("bigint", 2)}


def node(folder: Path, number: int, name: str, expressions: Any, *parents: int) -> TopologyNode:
    is_scan = name.startswith("Scan")
    format = "parquet" if name == "Scan parquet" else "csv"
    file = folder / f"customers.{format}"
    part = {"path": str(file), "first": 0, "row": 0, "size": file.stat().st_size}
    return TopologyNode(
        number=number,
        name=name,
        description="",
        kind="source" if is_scan else "operator",
        relation="source" if is_scan else "carried",
        exact=True,
        reason="",
        call_site="",
        dataset=Dataset(namespace="file", name=str(folder), format=format) if is_scan else None,
        parents=parents,
        partitions={0: {"split": 0, "parts": [part]}} if is_scan else {},
        schema=COLUMNS if is_scan else (),
        expressions=expressions,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "customers.csv").write_text('1,ann\n2,bo\n2,"ann"\n,cy\n')
    table = pa.table({"key": pa.array([1, 2, 2, None]), "name": ["ann", "bo", "ann", "cy"]})
    pq.write_table(table, tmp_path / "customers.parquet", row_group_size=2)
    return tmp_path


def met(
    folder: Path, *side: tuple[int, str, Any, tuple[int, ...]], condition: Any = SAME, **scan: Any
) -> Any:
    """Of the side that the last of these is: the keys of rows that may be met, or why they are not known."""
    nodes = {0: node(folder, 0, "Scan csv", {"columns": [[1, 2]], "options": {"sep": ","}})}
    for number, name, expressions, parents in side:
        nodes[number] = node(folder, number, name, expressions, *parents)
    join = node(folder, 99, "Join", {"join": "Inner", "condition": condition}, 0, side[-1][0])
    sides = OtherSides(nodes, RecordLocations().scan_rows, None, lambda: None)
    other = sides.of(join, 0)
    assert other is not None
    rows = other.rows(condition, ROW)
    if isinstance(rows, Unknown):
        return rows.why
    return [(row.columns[11].data if 11 in row.columns else "", row.is_sure) for row in rows]


CSV: Node = (1, "Scan csv", SCAN, ())


def test_rows_are_those_with_the_key_or_all(folder: Path) -> None:
    assert met(folder, CSV) == [(2, True), (2, True)]
    least = {"of": "LessThan", "inputs": [OWN, KEY]}
    assert met(folder, CSV, condition=least) == [(1, True), (2, True), (2, True), (None, True)]
    assert met(folder, (1, "Scan parquet", SCAN, ())) == [(2, True), (2, True)]


def test_rows_count_where_no_column_is_asked_for(folder: Path) -> None:
    always = {"type": "boolean", "value": "true"}
    assert met(folder, (1, "Scan parquet", SCAN, ()), condition=always) == [("", True)] * 4


def test_what_an_operator_leaves_out_does_not_come(folder: Path) -> None:
    assert met(folder, CSV, (2, "Filter", NAMED, (1,))) == [(2, True)]
    unsure = {"condition": {"unknown": "Rand"}}
    assert met(folder, CSV, (2, "Filter", unsure, (1,)))[0] == (2, False)


def test_groups_have_their_keys(folder: Path) -> None:
    grouped = (2, "Aggregate", {"keys": [KEY], "distinct": False}, (1,))
    assert met(folder, CSV, grouped) == [(2, True), (2, True)]


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        ([(1, "Scan csv", SCAN | {"options": {"ignoreCorruptFiles": "true"}}, ())], "not read again"),
        ([(1, "Scan csv", {"options": {}}, ())], "not read again"),
        ([(1, "Scan csv", {"columns": [[1, 2]]}, ())], "not read again"),  # the side is the row's own
        ([CSV, (2, "Aggregate", None, (1,))], "Aggregate is not computed again"),  # a row of no rows
        ([CSV, (2, "MapInPandas", None, (1,))], "MapInPandas is not computed again"),
    ],
)
def test_what_is_not_known_is_said(side: Sequence[Node], reason: str, folder: Path) -> None:
    assert reason in met(folder, *side)


def test_a_scan_whose_files_were_not_listed_is_not_known(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_sides, "MOST_ROWS", 3)
    assert met(folder, CSV) == "it has more than 3 rows"
    (folder / "customers.csv").unlink()
    (folder / "customers.csv").write_text("1,ann\n")
    nodes: Mapping[int, TopologyNode] = {1: node(folder, 1, "Scan csv", SCAN)}
    (folder / "customers.csv").write_text("1,ann\n2,bo\n")
    join = node(folder, 9, "Join", {"join": "Inner", "condition": SAME}, 0, 1)
    other = OtherSides(nodes, RecordLocations().scan_rows, None, lambda: None).of(join, 0)
    assert other is not None
    changed = other.rows(SAME, ROW)
    assert isinstance(changed, Unknown)
    assert "has changed since the run" in changed.why


def test_of_a_join_the_input_that_gives_the_key_is_read(folder: Path) -> None:
    right: Node = (2, "Scan csv", MORE, ())
    inner = (3, "Join", {"join": "Inner", "condition": None}, (2, 1))
    assert met(folder, CSV, right, inner) == [(2, False), (2, False)]
    kept = (3, "Join", {"join": "LeftOuter", "condition": None}, (1, 2))
    assert met(folder, CSV, right, kept)[0] == (2, True)


def test_a_row_of_no_row_of_an_input_may_meet_what_does_not_ask_for_its_column(folder: Path) -> None:
    is_null = {"of": "IsNull", "inputs": [KEY]}
    outer = (3, "Join", {"join": "LeftOuter", "condition": None}, (2, 1))
    side = (CSV, (2, "Scan csv", MORE, ()), outer)
    assert met(folder, *side, condition=is_null) == "where its key comes from is not followed"
    assert met(folder, *side)[0] == (2, False)


def test_a_union_has_the_rows_of_each_input(folder: Path) -> None:
    union = (3, "Union", {"output": [11, 12], "inputs": [[11, 12], [21, 22]]}, (1, 2))
    rows = met(folder, CSV, (2, "Scan csv", MORE, ()), union)
    assert len(rows) == 4
    both = (5, "Join", {"join": "Inner", "condition": None}, (3, 4))
    third: Node = (4, "Scan csv", {"columns": [[31, 32]]}, ())
    why = met(folder, CSV, (2, "Scan csv", MORE, ()), union, third, both)
    assert why == "it is made of joins and unions"


NO_NULL = {"condition": {"of": "EqualTo", "inputs": [NAME, {"type": "string", "value": "nobody"}]}}


@pytest.mark.parametrize("join", [{"join": "FullOuter", "condition": None}, None])
def test_a_join_that_may_give_rows_of_no_row_of_an_input_is_not_known_by_that_input(
    join: Any, folder: Path
) -> None:
    """What it makes of both is not null where only one of them has a row."""
    either = {"column": 40, "name": "key"}
    made = {"defined": [{"column": 40, "as": {"of": "Coalesce", "inputs": [KEY, {"column": 21}]}}]}
    side: list[Node] = [
        CSV,
        (2, "Filter", NO_NULL, (1,)),
        (3, "Scan csv", MORE, ()),
        (4, "Join", join, (2, 3)),
        (5, "Project", made, (4,)),
    ]
    same = {"of": "EqualTo", "inputs": [OWN, either]}
    assert met(folder, *side, condition=same) == "where its key comes from is not followed"


def test_rows_of_an_anti_join_are_made_of_none_of_its_second_input(folder: Path) -> None:
    third: Node = (5, "Scan csv", {"columns": [[31, 32]], "options": {"sep": ","}}, ())
    made = {"defined": [{"column": 40, "as": {"of": "Coalesce", "inputs": [KEY, {"column": 21}]}}]}
    side: list[Node] = [
        CSV,
        (3, "Scan csv", MORE, ()),
        (4, "Join", {"join": "FullOuter", "condition": None}, (1, 3)),
        third,
        (6, "Filter", {"condition": {"type": "boolean", "value": "false"}}, (5,)),
        (7, "Join", {"join": "LeftAnti", "condition": None}, (4, 6)),
        (8, "Project", made, (7,)),
    ]
    same = {"of": "EqualTo", "inputs": [OWN, {"column": 40, "name": "key"}]}
    assert met(folder, *side, condition=same) == "where its key comes from is not followed"


def test_the_key_of_the_row_itself_is_none_of_the_other_side(folder: Path) -> None:
    """The other side has the row's own scan again, and rows that no row of it met."""
    again = {"columns": [[1, 2], [21, 22]], "options": {"sep": ","}}
    side: list[Node] = [
        (1, "Scan csv", again, ()),
        (2, "Filter", {"condition": {"type": "boolean", "value": "false"}}, (1,)),
        (3, "Scan csv", SCAN, ()),
        (4, "Join", {"join": "RightOuter", "condition": None}, (2, 3)),
    ]
    assert met(folder, *side) == [(2, True), (2, True)]


def test_a_scan_that_stands_in_a_union_twice_is_followed_each_time(folder: Path) -> None:
    renamed = {"defined": [{"column": 13, "as": KEY}]}
    side: list[Node] = [
        CSV,
        (2, "Filter", NAMED, (1,)),
        (3, "Project", renamed, (1,)),
        (4, "Union", {"output": [11], "inputs": [[11], [13]]}, (2, 3)),
    ]
    assert met(folder, *side) == [(2, True), (2, True), (2, True)]


def test_a_side_that_arrow_cannot_read_is_not_known(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise pa.ArrowNotImplementedError("no such codec")

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", refused)
    why = met(folder, (1, "Scan parquet", SCAN, ()))
    assert why == "the file cannot be read as Parquet (no such codec)"


def test_a_side_does_not_take_the_time_of_the_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_sides, "MOST_SECONDS", -1.0)
    assert met(folder, CSV) == "its files take too long to read"
