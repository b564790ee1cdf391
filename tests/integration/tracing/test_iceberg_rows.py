"""Rows of Iceberg tables by a condition, of any snapshot: those that PyIceberg reads there."""

from __future__ import annotations

import datetime
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, StringType

from lineage_service.conditions.filters import Where
from lineage_service.dataset_trace import ChosenTrace, chosen_trace
from lineage_service.errors import (
    InvalidQueryError,
    NotFoundError,
    NothingMatchesError,
    UnavailableError,
)
from lineage_service.lineage import Choices, RowHistory, Trace
from lineage_service.queries import RowQuery, TraceQuery
from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.tables.iceberg_version import iceberg_version
from lineage_service.tracing.tables.table_search import TableSearch, rows_of_file
from lineage_service.tracing.tables.table_version import TableVersion, VersionAsked
from tests.support.tables.written_iceberg import IcebergLake


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path)


def people(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    columns = {"id": list(ids), "name": [f"n{id}" for id in ids], "p": [str(id % 2) for id in ids]}
    return pa.table(columns)


def version_of(lake: IcebergLake, name: str, snapshot: int | str | None = None) -> TableVersion:
    return iceberg_version(FileSystems(), lake.path(name), unlimited, VersionAsked(snapshot))


def rows_with(version: TableVersion, condition: str) -> tuple[list[dict[str, Any]], int]:
    """Those that fulfil it, by ids; and in how many files they were looked for."""
    files = FileSystems()
    with TableSearch(files, version, Where(condition)) as search:
        matches = [(file, numbers.tolist()) for file, numbers in search.matches(unlimited)]
        assert list(search.warnings) == list(version.warnings)
    rows = [
        row
        for file, numbers in matches
        for row in rows_of_file(files, version, file, numbers, unlimited).values()
    ]
    return sorted(rows, key=lambda row: int(str(row["id"]))), len(matches)


def read_by_pyiceberg(lake: IcebergLake, name: str, snapshot: int) -> list[dict[str, Any]]:
    rows = lake.table(name).scan(snapshot_id=snapshot).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: int(row["id"]))


def expect_the_same(lake: IcebergLake, name: str) -> None:
    """In each snapshot."""
    snapshots = lake.table(name).snapshots()
    assert snapshots
    for snapshot in snapshots:
        rows, _ = rows_with(version_of(lake, name, snapshot.snapshot_id), "id is not null")
        assert rows == read_by_pyiceberg(lake, name, snapshot.snapshot_id), snapshot


def trace(lake: IcebergLake, where: str, **query: Any) -> Trace | Choices:
    rows = RowQuery(dataset="db.t", where=where, **query)
    start = chosen_trace(lake.queries, rows, TraceQuery(direction="backward"), is_of_all=False)
    return lake.queries.trace(start.application_id, start.query) if isinstance(start, ChosenTrace) else start


def lines(answer: Trace | Choices) -> set[tuple[str, str | None]]:
    """(name of a file, its line) of the rows of text that a trace has reached."""
    assert isinstance(answer, Trace), answer
    assert answer.complete
    return {
        (Path(record.source.path).name, record.source.text)
        for node in answer.nodes
        for record in node.records
        if record.source is not None and record.source.path.endswith(".txt")
    }


def test_the_row_of_a_table_is_traced_by_what_it_says_in_any_snapshot(lake: IcebergLake) -> None:
    first = lake.append("first", "t", people(0, 40), began=1)
    lake.append("second", "t", people(38, 50), began=2)
    assert lines(trace(lake, "id = 12")) == {("first-0.txt", "12")}
    assert lines(trace(lake, "name = 'n45'")) == {("second-0.txt", "45")}
    assert lines(trace(lake, "id = 39", version=first)) == {("first-0.txt", "39")}
    both = trace(lake, "id = 39")
    assert isinstance(both, Choices)
    assert (both.version, both.total) == (str(lake.newest("t")), 2)
    assert [choice.columns for choice in both.choices] == [{"id": 39, "name": "n39", "p": "1"}] * 2
    with pytest.raises(
        NothingMatchesError, match=rf"no row fulfils id = 45 in snapshot {first} of .*: it has"
    ):
        trace(lake, "id = 45", version=first)


def test_a_deleted_row_is_no_answer(lake: IcebergLake) -> None:
    first = lake.append("first", "t", people(0, 10))
    [file] = lake.files("t")
    lake.delete_rows("t", {file: [3, 7]})
    lake.delete_rows("t", {file: [8], "/another.parquet": [1, 2]})
    with pytest.raises(NothingMatchesError, match=r"1 that did were deleted"):
        trace(lake, "id = 7")
    assert lines(trace(lake, "id = 7", version=first)) == {("first-0.txt", "7")}
    rest = trace(lake, "id >= 0", limit=100)
    assert isinstance(rest, Choices)
    assert [choice.row for choice in rest.choices] == [0, 1, 2, 4, 5, 6, 9]
    lake.append("second", "t", people(7, 8), began=2)  # which deletes of before do not concern
    assert lines(trace(lake, "id = 7")) == {("second-0.txt", "7")}
    expect_the_same(lake, "t")


def test_deletes_by_values_are_said_not_to_be_followed(lake: IcebergLake) -> None:
    lake.append("first", "t", people(0, 4))
    lake.delete_equal("t", "id", [2])
    [said] = version_of(lake, "t").warnings
    assert (
        "1 file of deletes by equal values, which are not followed: rows may be listed that are deleted"
        in said
    )
    start = chosen_trace(
        lake.queries,
        RowQuery(dataset="db.t", where="id = 2"),
        TraceQuery(direction="backward"),
        is_of_all=False,
    )
    assert isinstance(start, ChosenTrace)
    assert start.warnings == (said,)


def test_columns_are_those_that_the_snapshot_had(lake: IcebergLake) -> None:
    """Renamed, wider, added, and dropped and added again by the same name."""
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "name": ["a", "b"],
            "old": ["x", "y"],
            "of": [{"name": "u", "n": 1}, {"name": "v", "n": None}],
        }
    )
    lake.table("t", rows)
    first = lake.append("first", "t", rows)
    with lake.table("t").update_schema(allow_incompatible_changes=True) as update:
        update.rename_column("name", "label")
        update.update_column("id", LongType())
        update.delete_column("old")
        update.rename_column("of.name", "title")
        update.add_column("more", IntegerType())
    with lake.table("t").update_schema() as update:
        update.add_column("old", StringType())
        update.add_column(("of", "name"), StringType())
    rows, _ = rows_with(version_of(lake, "t"), "label = 'b'")
    of = {"title": "v", "n": None, "name": None}
    assert rows == [{"id": 2, "label": "b", "of": of, "more": None, "old": None}]
    assert (
        rows_with(version_of(lake, "t"), "old is null and more is null and of.title = 'u'")[0][0]["id"] == 1
    )
    assert rows_with(version_of(lake, "t", first), "old = 'y'")[0][0]["name"] == "b"
    lake.table("t").append(
        pa.table(
            {
                "id": [3],
                "label": ["c"],
                "of": pa.array(
                    [{"title": "w", "n": 3, "name": "z"}],
                    lake.table("t").schema().as_arrow().field("of").type,
                ),
                "more": pa.array([7], pa.int32()),
                "old": ["new"],
            }
        )
    )
    assert rows_with(version_of(lake, "t"), "old = 'new' and of.name = 'z'")[0][0]["id"] == 3
    assert rows_with(version_of(lake, "t"), "old = 'x'")[0] == []
    expect_the_same(lake, "t")
    query = RowQuery(dataset="db.t", where="name = 'a'")
    with pytest.raises(InvalidQueryError, match="there is no column name"):
        lake.queries.rows(query)


def test_a_column_that_a_file_lacks_has_its_first_default(lake: IcebergLake) -> None:
    """Format 3 has defaults; PyIceberg writes none of it."""
    lake.append("first", "t", people(0, 4))
    path = Path(lake.table("t").metadata_location)
    metadata = json.loads(path.read_text())
    [fields] = [schema["fields"] for schema in metadata["schemas"]]
    for number, (type_, default) in enumerate(
        (("int", 5), ("date", "2026-03-01"), ("string", "x")), start=90
    ):
        fields.append({"id": number, "name": f"c{number}", "type": type_, "initial-default": default})
    path.write_text(json.dumps(metadata))
    version = version_of(lake, "t")
    assert rows_with(version, "c90 = 6 or c91 is null") == ([], 1)
    rows, _ = rows_with(version, "c90 = 5 and c91 < '2026-03-02' and c92 like 'x%' and id = 2")
    assert rows == [{"id": 2, "name": "n2", "p": "0", "c90": 5, "c91": "2026-03-01", "c92": "x"}]
    fields[-1] |= {"type": "binary", "initial-default": "00"}
    path.write_text(json.dumps(metadata))
    with pytest.raises(UnavailableError, match="column c92 has a default of type binary"):
        version_of(lake, "t")


def test_partitions_may_change(lake: IcebergLake) -> None:
    lake.append("first", "t", people(0, 6))
    with lake.table("t").update_spec() as update:
        update.add_field("p", IdentityTransform())
    lake.append("second", "t", people(6, 12))
    with lake.table("t").update_spec() as update:
        update.remove_field("p")
    lake.append("third", "t", people(12, 20))
    lake.table("t").delete(EqualTo("id", 7))
    expect_the_same(lake, "t")
    version = version_of(lake, "t")
    assert [row["id"] for row in rows_with(version, "p = '1' and id < 13")[0]] == [1, 3, 5, 9, 11]
    of_files, count = rows_with(version, "id between 8 and 10")
    assert [row["id"] for row in of_files] == [8, 9, 10]
    assert count == 2  # one of each partition of the second


def test_files_are_ruled_out_by_what_manifests_say_of_them(lake: IcebergLake) -> None:
    """A file for each row: rows are those of one whole file."""
    day, at = datetime.date(2026, 3, 1), datetime.datetime(2026, 3, 1, 12, 30, tzinfo=datetime.timezone.utc)
    rows = pa.table(
        {
            "id": range(4),
            "number": pa.array([1, 2, None, 4], pa.int32()),
            "half": [0.5, float("nan"), -1.5, None],
            "text": ["a", "\u00e9" * 40, None, "a/b c%"],
            "day": [day, None, day.replace(day=2), day.replace(day=3)],
            "at": [at, at.replace(minute=31), None, at.replace(microsecond=1)],
            "exact": [Decimal("1.10"), Decimal("-2.00"), None, Decimal("3.33")],
            "is_it": [True, False, None, True],
        }
    )
    lake.append(None, "whole", rows)
    for row in range(4):
        lake.append(None, "plain", rows.slice(row, 1))
    whole, plain = version_of(lake, "whole"), version_of(lake, "plain")
    for condition in (
        *("number = 2", "number > 3", "number is null", "number in (1, 4)", "number < 2", "3 < number"),
        *("half > 0.1", "half = 0.5", "half <= 0.5", "half is null", "half between 0 and 1"),
        *(f"text = '{chr(233) * 40}'", "text > 'b'", "text like 'a%'", "text = 'a/b c%'", "text != 'a'"),
        *("day = '2026-03-02'", "day >= '2026-03-02'", "day is null", "day < '2026-03-02'"),
        *("at > '2026-03-01 12:30:30'", "at = '2026-03-01 12:30:00.000001'", "at is null"),
        *("exact = 1.1", "exact < 0", "exact is null", "is_it = true", "is_it is null", "not is_it = true"),
        *("number = 1 and text = 'a'", "number = 1 or day is null", "number < 3 and half > 0.1"),
    ):
        assert rows_with(plain, condition)[0] == rows_with(whole, condition)[0], condition
    for condition in ("number = 2", "day > '2026-03-02'", "text = 'a'"):
        assert rows_with(plain, condition)[1] <= 2, condition  # a file without a bound is looked at


def test_a_file_without_numbers_of_columns_is_read_by_the_names_of_the_table(lake: IcebergLake) -> None:
    lake.table("t", people(0, 1))
    path = lake.folder / "foreign.parquet"
    pq.write_table(people(0, 4), path)
    lake.table("t").add_files([str(path)])
    with lake.table("t").update_schema() as update:
        update.rename_column("name", "label")
    assert [row["id"] for row in rows_with(version_of(lake, "t"), "label = 'n3'")[0]] == [3]
    with lake.table("t").transaction() as transaction:
        transaction.remove_properties("schema.name-mapping.default")
    with TableSearch(FileSystems(), version_of(lake, "t"), Where("label = 'n3'")) as search:
        assert list(search.matches(unlimited)) == []
        [said] = search.warnings
    assert "was not searched: its columns have no numbers by which the table knows them" in said


def test_what_a_table_was_at_a_time(lake: IcebergLake) -> None:
    lake.append("first", "t", people(0, 4))
    lake.append("second", "t", people(4, 8))
    first, second = lake.table("t").history()
    for at, expected in {
        first.timestamp_ms: first,
        second.timestamp_ms - 1: first,
        second.timestamp_ms: second,
        2**53 - 1: second,
    }.items():
        rows = lake.queries.rows(RowQuery(dataset="db.t", where="id = 1", at=at))
        assert rows.version == str(expected.snapshot_id)
    with pytest.raises(NotFoundError, match=r"t has no snapshot until then: the first is of 20"):
        lake.queries.rows(RowQuery(dataset="db.t", where="id = 1", at=first.timestamp_ms - 1))


def test_a_branch_and_a_tag_are_versions(lake: IcebergLake) -> None:
    first = lake.append("first", "t", people(0, 4))
    table = lake.table("t")
    table.manage_snapshots().create_branch(first, "audit").create_tag(first, "paid").commit()
    lake.append("second", "t", people(4, 8))
    with lake.table("t").update_schema() as update:
        update.rename_column("name", "label")
    # As in Spark, a branch has the columns of now, and a tag those of its snapshot.
    assert len(rows_with(version_of(lake, "t", "audit"), "label is not null")[0]) == 4
    assert len(rows_with(version_of(lake, "t", "paid"), "name is not null")[0]) == 4
    assert len(rows_with(version_of(lake, "t", "main"), "label is not null")[0]) == 8
    page = lake.queries.rows(RowQuery(dataset="db.t", where="label > ''", version="audit", limit=2))
    rest = lake.queries.rows(
        RowQuery(dataset="db.t", where="label > ''", version="audit", limit=2, cursor=page.next)
    )
    assert (page.version, rest.version, rest.next) == (str(first), str(first), None)
    assert lines(trace(lake, "id = 1", version="paid")) == {("first-0.txt", "1")}


def test_pages_stay_those_of_one_snapshot_and_its_columns(lake: IcebergLake) -> None:
    lake.append("first", "t", people(0, 10), began=1)
    first = lake.newest("t")
    with lake.table("t").update_schema() as update:
        update.rename_column("name", "label")
    page = lake.queries.rows(RowQuery(dataset="db.t", where="label like 'n%'", limit=6))
    lake.append("second", "t", people(0, 10).rename_columns(["id", "label", "p"]), began=2)
    rest = lake.queries.rows(RowQuery(dataset="db.t", where="label like 'n%'", limit=6, cursor=page.next))
    assert (page.version, rest.version, rest.next) == (str(first), str(first), None)
    assert [choice.row for choice in (*page.choices, *rest.choices)] == list(range(10))


def history(lake: IcebergLake, where: str, version: int | str | None = None) -> RowHistory:
    answer = lake.queries.history(RowQuery(dataset="db.t", where=where, version=version))
    assert isinstance(answer, RowHistory), answer
    return answer


def test_the_history_of_a_row_goes_from_snapshot_to_snapshot(lake: IcebergLake) -> None:
    first = lake.append("loader", "t", people(0, 10), began=1)
    second = lake.delete_last("cleaner", "t", 9, began=2)
    [file] = lake.files("t")
    lake.append("other", "t", people(20, 22), began=3)
    third = lake.delete_rows("t", {file: [1, 3]})
    expected = [
        (1, str(first), "inserted", "append", "loader"),
        (2, str(second), "rewritten", "overwrite", "cleaner"),
        (4, str(third), "deleted", "delete", None),
    ]
    for version in (first, second):
        answer = history(lake, "id = 1", version)
        assert [
            (one.version, one.version_name, one.change, one.operation, one.application_id)
            for one in answer.versions
        ] == expected
        assert (answer.by, answer.complete, answer.version_name) == ("links", True, str(version))
    times = [snapshot.timestamp_ms for snapshot in lake.table("t").snapshots()]
    assert [one.time for one in history(lake, "id = 1", first).versions] == [times[0], times[1], times[3]]
    [inserted, deleted] = history(lake, "id = 9", first).versions
    assert (inserted.columns, deleted.change) == ({"id": 9, "name": "n9", "p": "1"}, "deleted")


def test_what_a_history_does_not_know_is_said(lake: IcebergLake) -> None:
    first = lake.append("loader", "t", people(0, 10), began=1)
    lake.delete_last(None, "t", 9)
    [said] = history(lake, "id = 1", first).warnings
    assert "no application that is known made version 2 (overwrite)" in said
    lake.table("t").maintenance.expire_snapshots().by_id(first).commit()
    answer = history(lake, "id = 1")
    assert [(one.version, one.change, one.operation) for one in answer.versions] == [(2, "inserted", "")]
    assert not answer.complete
    assert "the log has no commits before version 2" in answer.warnings[0]


def test_what_is_wrong_is_one_sentence(lake: IcebergLake) -> None:
    lake.append("first", "t", people(0, 4))
    newest = lake.newest("t")
    for version, kind in {17: "snapshot", "audit": "branch or tag"}.items():
        message = rf"t has no {kind} {version}: the newest snapshot is {newest}"
        with pytest.raises(NotFoundError, match=message):
            trace(lake, "id = 1", version=version)
    with pytest.raises(InvalidQueryError, match="there is no column nam: did you mean name"):
        trace(lake, "nam = 'n1'")
    metadata = Path(lake.path("t")) / "metadata"
    metadata.rename(metadata.with_name("elsewhere"))
    with pytest.raises(NotFoundError, match="there is no metadata of an Iceberg table in"):
        trace(lake, "id = 1")


def test_metadata_may_be_compressed_and_two_files_may_be_the_newest(lake: IcebergLake) -> None:
    lake.append("first", "t", people(0, 4))
    path = Path(lake.table("t").metadata_location)
    packed = path.with_name(path.name.replace(".metadata.json", ".gz.metadata.json"))
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert len(rows_with(version_of(lake, "t"), "id >= 0")[0]) == 4
    content = json.loads(gzip.decompress(packed.read_bytes()))
    older = content | {"current-snapshot-id": -1, "last-updated-ms": content["last-updated-ms"] - 1}
    packed.with_name(f"{path.name.partition('-')[0]}-other.metadata.json").write_text(json.dumps(older))
    version = version_of(lake, "t")
    assert version.number == content["current-snapshot-id"]
    assert "2 files of metadata with the number" in version.warnings[0]
