"""Rows of tables by a condition: of a version, whoever wrote their files."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow.fs import S3FileSystem

from lineage_service.cli import main
from lineage_service.conditions.filters import Where
from lineage_service.dataset_trace import ChosenTrace, chosen_trace
from lineage_service.errors import InvalidQueryError, NotFoundError, NothingMatchesError, TimeBudgetError
from lineage_service.lineage import Choices, RowHistory, Trace
from lineage_service.queries import RowQuery, TraceQuery
from lineage_service.tracing.columns.time_budget import TimeBudget
from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.query.service import LineageQueries
from lineage_service.tracing.tables import table_search
from lineage_service.tracing.tables.delta_commits import commits_of
from lineage_service.tracing.tables.delta_version import delta_version
from lineage_service.tracing.tables.table_search import TableSearch, rows_of_file
from lineage_service.tracing.tables.table_version import TableVersion, VersionAsked
from lineage_service.tracing.tables.table_versions import DELTA, TableVersions
from tests.support.dataset_applications import Job, dataset, store_all
from tests.support.tables.written_tables import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def people(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    columns = {"id": list(ids), "name": [f"n{id}" for id in ids], "p": [str(id % 2) for id in ids]}
    return pa.table(columns)


def chosen(lake: Lake, dataset: str, where: str, *, is_of_all: bool = False, **query: object) -> object:
    rows = RowQuery(dataset=dataset, where=where, **query)  # type: ignore[arg-type]
    return chosen_trace(lake.queries, rows, TraceQuery(direction="backward"), is_of_all=is_of_all)


def traced(lake: Lake, dataset: str, where: str, **query: object) -> Trace:
    start = chosen(lake, dataset, where, **query)
    assert isinstance(start, ChosenTrace), start
    return lake.queries.trace(start.application_id, start.query)


def texts(trace: Trace, kind: str = "source") -> set[tuple[str, str | None]]:
    """(name of a file, row as text) of the rows that a trace has reached in files of text."""
    return {
        (Path(record.source.path).name, record.source.text)
        for node in trace.nodes
        for record in node.records
        if node.kind == kind and record.source is not None and record.source.path.endswith(".txt")
    }


def test_the_row_of_a_table_is_traced_by_what_it_says(lake: Lake) -> None:
    lake.write("first", "t", people(0, 40), began=1, partition_by=["p"])
    lake.write("second", "t", people(40, 50), began=2)
    trace = traced(lake, lake.path("t"), "id = 12")
    assert trace.complete
    assert texts(trace) == {("first-0.txt", "12")}
    assert texts(traced(lake, lake.path("t"), "name = 'n45'")) == {("second-1.txt", "45")}


def test_a_table_is_named_as_in_its_catalog(lake: Lake) -> None:
    lake.write("first", "people", people(0, 4), alias="hr.people")
    for name in ("hr.people", "spark_catalog.hr.people", "people"):
        assert texts(traced(lake, name, "id = 2")) == {("first-0.txt", "2")}


def test_the_same_row_in_two_versions_is_traced_where_it_was_made(lake: Lake) -> None:
    lake.write("first", "t", people(0, 4), began=1)
    lake.write("second", "t", people(2, 3), began=2)
    assert texts(traced(lake, lake.path("t"), "id = 2", version=0)) == {("first-0.txt", "2")}
    both = chosen(lake, lake.path("t"), "id = 2")
    assert isinstance(both, Choices)
    assert (both.version, both.total, both.next) == ("1", 2, None)
    assert {choice.node_id for choice in both.choices} == {"first#1", "second#1"}
    assert [choice.columns for choice in both.choices] == [{"id": 2, "name": "n2", "p": "0"}] * 2


def test_a_deleted_row_is_no_answer(lake: Lake) -> None:
    lake.write("first", "t", people(0, 10))
    [file] = lake.files("t")
    lake.delete("t", file, [3, 7, 8])
    with pytest.raises(NothingMatchesError, match=r"in version 1 of .*; 1 that did were deleted"):
        traced(lake, lake.path("t"), "id = 7")
    assert texts(traced(lake, lake.path("t"), "id = 7", version=0)) == {("first-0.txt", "7")}
    rest = chosen(lake, lake.path("t"), "id >= 0", limit=100)
    assert isinstance(rest, Choices)
    assert [choice.row for choice in rest.choices] == [0, 1, 2, 4, 5, 6, 9]


def test_columns_are_known_by_their_names_in_the_version(lake: Lake) -> None:
    lake.write("first", "t", people(0, 10))
    lake.rename("t", {"name": "label"})
    assert texts(traced(lake, lake.path("t"), "label = 'n3'")) == {("first-0.txt", "3")}
    assert texts(traced(lake, lake.path("t"), "name = 'n3'", version=0)) == {("first-0.txt", "3")}
    with pytest.raises(InvalidQueryError, match="there is no column name"):
        traced(lake, lake.path("t"), "name = 'n3'")


@pytest.mark.parametrize("partition_by", [None, ["x", "y", "z"]])
def test_columns_that_were_renamed_in_turn_rule_out_no_file_of_the_other(
    lake: Lake, partition_by: list[str] | None
) -> None:
    rows = pa.table({"id": [1], "x": [10], "y": [20], "z": [30]})
    lake.write("first", "t", rows, partition_by=partition_by)
    lake.rename("t", {"x": "y", "y": "z", "z": "x"})
    assert texts(traced(lake, lake.path("t"), "y = 10 and z = 20 and x = 30")) == {("first-0.txt", "1")}
    lake.write("first", "u", rows, partition_by=partition_by)
    lake.rename("u", {"x": "z", "z": "y", "y": "x"})
    assert texts(traced(lake, lake.path("u"), "z = 10 and y = 30 and x = 20")) == {("first-0.txt", "1")}


def test_a_row_is_followed_into_who_read_it(lake: Lake) -> None:
    lake.write("first", "t", people(0, 10), began=1)
    lake.read("reader", "t", began=2)
    trace = traced(lake, lake.path("t"), "id = 7", direction="forward")
    assert texts(trace, "sink") == {("reader-0.txt", "7")}


def test_what_another_engine_wrote_is_followed_from_who_read_it(lake: Lake) -> None:
    lake.write("first", "t", people(0, 4), began=1)
    lake.write(None, "t", people(4, 8))
    with pytest.raises(NotFoundError, match="no application that is known wrote or read 1 row of version 1"):
        traced(lake, lake.path("t"), "id = 6")
    lake.read("reader", "t", began=2)
    start = chosen(lake, lake.path("t"), "id = 6")
    assert isinstance(start, ChosenTrace)
    assert (start.application_id, start.query.direction) == ("reader", "forward")


def test_a_row_that_nobody_has_is_not_chosen_away(lake: Lake) -> None:
    lake.write("first", "t", people(0, 4), began=1)
    lake.write(None, "t", people(2, 3))
    both = chosen(lake, lake.path("t"), "id = 2")
    assert isinstance(both, Choices)
    assert (both.total, len(both.choices)) == (2, 1)
    assert "no application that is known" in both.warnings[0]


def test_a_page_of_rows_that_nobody_has_does_not_end_the_paging(lake: Lake) -> None:
    lake.write("first", "t", people(0, 4).filter(pc.field("p") == "1"), began=1, partition_by=["p"])
    lake.write(None, "t", people(10, 11))
    lake.write(None, "t", people(12, 13))
    pages = paged(lake, "id >= 0")
    assert [[choice.row for choice in page.choices] for page in pages] == [[], [], [0], [1]]
    assert {page.application_id for page in pages} == {"first"}
    for page in pages:
        is_said = any("no application that is known wrote or read 1 row" in said for said in page.warnings)
        assert is_said is not bool(page.choices)
    with pytest.raises(NotFoundError, match=r"on no page is a row known: .*row 0 of .*parquet"):
        paged(lake, "id >= 10")


def paged(lake: Lake, where: str) -> list[Choices]:
    """All pages of one row."""
    pages: list[Choices] = []
    while not pages or pages[-1].next is not None:
        cursor = pages[-1].next if pages else None
        page = lake.queries.rows(RowQuery(dataset=lake.path("t"), where=where, limit=1, cursor=cursor))
        pages.append(page)
    return pages


def test_all_rows_are_traced_together_where_one_application_wrote_them(lake: Lake) -> None:
    lake.write("first", "t", people(0, 10), began=1)
    lake.write("second", "t", people(10, 12), began=2)
    start = chosen(lake, lake.path("t"), "id < 4", is_of_all=True, limit=2)
    assert isinstance(start, ChosenTrace)
    trace = lake.queries.trace(start.application_id, start.query)
    assert texts(trace) == {("first-0.txt", str(id)) for id in range(4)}
    with pytest.raises(
        InvalidQueryError, match=r"of several applications.*name version 1 and one of \w+, \w+"
    ):
        chosen(lake, lake.path("t"), "id > 8", is_of_all=True)


def test_pages_stay_those_of_one_version(lake: Lake) -> None:
    lake.write("first", "t", people(0, 10), began=1)
    query = RowQuery(dataset=lake.path("t"), where="id < 5", limit=3)
    page = lake.queries.rows(query)
    lake.write("second", "t", people(0, 10), began=2)
    rest = lake.queries.rows(RowQuery(dataset=lake.path("t"), where="id < 5", limit=3, cursor=page.next))
    assert (page.version, rest.version, rest.next) == ("0", "0", None)
    assert [choice.row for choice in (*page.choices, *rest.choices)] == [0, 1, 2, 3, 4]


def test_a_partition_is_a_part_of_its_table(lake: Lake) -> None:
    lake.write("first", "t", people(0, 10), partition_by=["p"])
    assert texts(traced(lake, f"{lake.path('t')}/p=1", "id > 8")) == {("first-1.txt", "9")}
    with pytest.raises(NothingMatchesError, match="it has 1 file with 5 rows, and 0 could hold"):
        traced(lake, f"{lake.path('t')}/p=1", "p = '0'")


def test_files_are_ruled_out_by_what_the_log_says_of_them(tmp_path: Path) -> None:
    """A file for each row, with its values as columns or as partitions: rows are those of one whole file."""
    accents = "\u00e9" * 10
    day, at = datetime.date(2026, 3, 1), datetime.datetime(2026, 3, 1, 12, 30, tzinfo=datetime.timezone.utc)
    values = {
        "number": [1, 2, None, 4],
        "half": [0.5, float("nan"), -1.5, None],
        "text": ["a", accents, None, "a/b c%"],
        "day": [day, None, day.replace(day=2), day.replace(day=3)],
        "at": [at, at.replace(minute=31), None, at.replace(microsecond=1)],
        "exact": [Decimal("1.10"), Decimal("-2.00"), None, Decimal("3.33")],
        "is_it": [True, False, None, True],
    }
    conditions = (
        *("number = 2", "number > 3", "number is null", "number in (1, 4)", "number < 2", "3 < number"),
        *("half > 0.1", "half = 0.5", "half <= 0.5", "half is null", "half between 0 and 1"),
        *(f"text = '{accents}'", "text > 'b'", "text like 'a%'", "text = 'a/b c%'", "text != 'a'"),
        *("day = '2026-03-02'", "day >= '2026-03-02'", "day is null", "day < '2026-03-02'"),
        *("at > '2026-03-01 12:30:30'", "at = '2026-03-01 12:30:00.000001'", "at is null"),
        *("exact = 1.1", "exact < 0", "exact is null", "is_it = true", "is_it is null", "not is_it = true"),
        *("number = 1 and text = 'a'", "number = 1 or day is null", "number < 3 and half > 0.1"),
    )
    rows = pa.table({"id": range(4), **values})
    paths = [str(tmp_path / name) for name in ("whole", "plain", "parted")]
    write_deltalake(paths[0], rows)
    partition_by = [name for name in values if name != "half"]  # of NaN Delta's library makes null
    for row in range(4):
        write_deltalake(paths[1], rows.slice(row, 1), mode="append")
        write_deltalake(paths[2], rows.slice(row, 1), mode="append", partition_by=partition_by)
    whole, plain, parted = (delta_version(FileSystems(), path) for path in paths)
    for condition in conditions:
        expected, _ = ids_with(whole, condition)
        assert ids_with(plain, condition)[0] == expected, condition
        assert ids_with(parted, condition)[0] == expected, condition
    for condition, most in {"number = 2": 2, "day > '2026-03-02'": 2, "text = 'a'": 2}.items():
        assert ids_with(plain, condition)[1] <= most, condition  # a file without a bound is looked at
        assert ids_with(parted, condition)[1] == 1, condition


def ids_with(version: TableVersion, condition: str) -> tuple[set[object], int]:
    """The ids of the rows that fulfil it, and in how many files they were looked for."""
    files = FileSystems()
    with TableSearch(files, version, Where(condition)) as search:
        matches = [(file, numbers.tolist()) for file, numbers in search.matches(unlimited)]
        assert not search.warnings
    rows = (
        row
        for file, numbers in matches
        for row in rows_of_file(files, version, file, numbers, unlimited).values()
    )
    return {row["id"] for row in rows}, len(matches)


def test_a_table_in_s3_is_searched_there(lake: Lake, s3: str, bucket: str) -> None:
    """With a deletion vector, and a partition whose folder has signs that addresses have, too."""
    rows = people(0, 10).set_column(2, "p", pa.array(["a b%/c"] * 10))
    lake.write("first", "t", rows, partition_by=["p"])
    [file] = lake.files("t")
    lake.delete("t", file, [3, 7])
    table = f"{bucket}/lake/t"
    scheme, _, address = s3.partition("://")
    system = S3FileSystem(endpoint_override=address, scheme=scheme, region="us-east-1")
    for path in Path(lake.path("t")).rglob("*"):
        if path.is_file():
            key = f"{table.partition('://')[2]}/{path.relative_to(lake.path('t'))}"
            with system.open_output_stream(key, compression=None) as stream:
                stream.write(path.read_bytes())
    version = delta_version(FileSystems(), table)
    assert version.files[0].path == f"{table}{file.removeprefix(lake.path('t'))}"
    assert ids_with(version, "p = 'a b%/c'")[0] == {0, 1, 2, 4, 5, 6, 8, 9}
    assert ids_with(version, "id in (2, 3)")[0] == {2}
    commits = commits_of(FileSystems(), table, 1, {}, unlimited)
    assert [(commit.version, list(commit.added)) for commit in commits] == [
        (0, [version.files[0].path]),
        (1, [version.files[0].path]),
    ]


def test_a_terminal_asks_for_versions_and_histories(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.write("first", "t", people(0, 4), began=1, alias="hr.t")
    [file] = lake.files("t")
    lake.delete("t", file, [2])
    monkeypatch.setenv("LINEAGE_STORE", str(lake.folder / "flows"))
    assert main.main(["trace", "hr.t", "--version", "0", "--where", "id = 2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["starts"][0]["application_id"] == "first"
    assert main.main(["trace", "hr.t", "--where", "id = 2"]) == 3
    assert "1 that did were deleted" in capsys.readouterr().err
    assert main.main(["trace", "hr.t", "--where", "id < 3", "--csv"]) == 3
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main.main(["history", "hr.t", "--version", "0", "--where", "id = 2"]) == 0
    out = capsys.readouterr().out
    for word in ("inserted", "deleted", "first", "id = 2"):
        assert word in out
    assert main.main(["history", "hr.t", "--where", "id < 3"]) == 3
    for flags in (["--version", "0"], ["--where", "id = 2", "--version", "0", "--at", "2026-01-01"]):
        assert main.main(["trace", "hr.t", *flags]) in (1, 2)
        assert "--version" in capsys.readouterr().err


def test_what_is_wrong_is_one_sentence(lake: Lake) -> None:
    lake.write("first", "t", people(0, 4), began=1)
    path = lake.path("t")
    for query, message in {
        ("id = 42",): "no row fulfils id = 42 in version 0 of .*: it has 1 file with 4 rows, and 0 could",
        ("nam = 'n1'",): "there is no column nam: did you mean name",
        ("name = 3",): "name is a text, and does not compare with a number",
        ("id = ",): "id = ",
        ("id = 1", 5): "t has no version 5: the newest is 0",
        ("id = 1", 2**53 - 1): "t has no version 9007199254740991: the newest is 0",
        ("id = 1", 10**20): "t has no version 1",
    }.items():
        where, version = (*query, None)[:2]
        with pytest.raises((InvalidQueryError, NotFoundError), match=message):
            traced(lake, path, str(where), version=version)
    with pytest.raises(InvalidQueryError, match="a version of a Delta table is a number, and 'main' is none"):
        traced(lake, path, "id = 1", version="main")
    with pytest.raises(InvalidQueryError, match="no table of Delta"):
        traced(lake, str(lake.folder / "first-0.txt"), "value = '1'", version=0)
    with pytest.raises(NotFoundError, match=r"no application wrote or read a dataset 'db\.other'"):
        traced(lake, "db.other", "id = 1")


def test_a_file_that_is_gone_is_no_denial(lake: Lake) -> None:
    lake.write("first", "t", people(0, 4), began=1)
    lake.write("second", "t", people(4, 8), began=2)
    [file] = [file for file in lake.files("t") if "second" not in file and _has(lake, file, 1)]
    Path(file).unlink()
    with pytest.raises(NothingMatchesError, match="was not searched"):
        traced(lake, lake.path("t"), "id = 2")
    assert texts(traced(lake, lake.path("t"), "id = 5")) == {("second-0.txt", "5")}


def _has(lake: Lake, file: str, id: int) -> bool:
    return id in pq.read_table(file).column("id").to_pylist()


def version_at(lake: Lake, at: int) -> str | None:
    """None: there is none until then."""
    with suppress(NotFoundError):
        return lake.queries.rows(RowQuery(dataset=lake.path("t"), where="id = 1", at=at)).version
    return None


def touch(lake: Lake, version: int, at: int) -> Path:
    """`at` is in milliseconds."""
    path = Path(lake.path("t")) / "_delta_log" / f"{version:020d}.json"
    os.utime(path, ns=(at * 1_000_000, at * 1_000_000))
    return path


def test_what_a_table_was_at_a_time(lake: Lake) -> None:
    """What a commit says of its time, and what its file says, are different times."""
    lake.write("first", "t", people(0, 4), began=1)
    for _ in range(3):
        lake.commit("t", {"commitInfo": {"operation": "NOTHING", "timestamp": 77}})
    for version, modified in enumerate((1_000, 5_000, 3_000, 9_000)):
        touch(lake, version, modified)
    expected = {999: None, 1_000: "0", 4_999: "0", 5_000: "1", 5_001: "2", 8_999: "2", 9_000: "3"}
    assert {at: version_at(lake, at) for at in expected} == expected
    assert version_at(lake, 2**53 - 1) == "3"
    message = "has no version until then: the first is of 1970-01-01 00:00:01"
    with pytest.raises(NotFoundError, match=message):
        lake.queries.rows(RowQuery(dataset=lake.path("t"), where="id = 1", at=999))
    history = lake.queries.history(RowQuery(dataset=lake.path("t"), where="id = 1"))
    assert isinstance(history, RowHistory)
    assert [version.time for version in history.versions] == [1_000]


def test_a_table_may_keep_times_in_its_commits_from_a_version_on(lake: Lake) -> None:
    lake.write("first", "t", people(0, 4), began=1)
    lake.commit("t", {"commitInfo": {"operation": "NOTHING"}})
    lake.keep_times("t", 20_000)
    lake.commit("t", {"commitInfo": {"operation": "NOTHING", "inCommitTimestamp": 30_000}})
    for version, modified in enumerate((1_000, 40_000, 3_000, 9_000)):
        touch(lake, version, modified)
    expected = {999: None, 19_999: "0", 20_000: "2", 29_999: "2", 30_000: "3", 40_000: "3"}
    assert {at: version_at(lake, at) for at in expected} == expected


def test_times_of_commits_that_were_cleaned_up_do_not_count(lake: Lake) -> None:
    lake.write("first", "t", people(0, 4), began=1)
    for _ in range(2):
        lake.commit("t", {"commitInfo": {"operation": "NOTHING"}})
    lake.checkpoint("t")
    lake.commit("t", {"commitInfo": {"operation": "NOTHING"}})
    paths = [touch(lake, version, at) for version, at in enumerate((7_000, 6_000, 5_000, 8_000))]
    assert [version_at(lake, at) for at in (6_999, 7_000, 7_001, 7_002)] == [None, "0", "1", "2"]
    paths[0].unlink()
    assert [version_at(lake, at) for at in (4_999, 5_000, 7_999, 8_000)] == [None, "2", "2", "3"]


@pytest.fixture
def silent_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a table in a store that takes requests and never answers one."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.setenv(name, "silent")
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        yield "s3://bucket/t"


def test_the_time_of_a_query_holds_for_a_log_that_nothing_reads(lake: Lake, silent_store: str) -> None:
    job = Job("writer", "writer", 1)
    job.node("sink", "identity", [], dataset=dataset(silent_store, "delta"))
    store_all(lake.store, job.end())
    queries = LineageQueries(lake.store, time_budget_s=0.2)
    query = RowQuery(dataset=silent_store, where="id = 1")
    message = r"reading the log of s3://bucket/t took longer than its 0\.2 s.*LINEAGE_TRACE_SECONDS"
    for ask in (queries.rows, queries.history):
        with pytest.raises(TimeBudgetError, match=message):
            ask(query)


def test_a_version_is_read_once_while_it_is_the_same(lake: Lake) -> None:
    lake.write("first", "t", people(0, 10))
    versions, path, budget = TableVersions(FileSystems()), lake.path("t"), TimeBudget(60)
    newest = versions.of(path, DELTA, budget)
    assert versions.of(path, DELTA, budget, VersionAsked(page_of=0)) is newest
    lake.write("first", "t", people(10, 12))
    assert versions.of(path, DELTA, budget).number == 1
    assert versions.of(path, DELTA, budget, VersionAsked(page_of=0)) is newest
    first = versions.of(path, DELTA, budget, VersionAsked(0))
    assert versions.of(path, DELTA, budget, VersionAsked(0)) is first
    shutil.rmtree(path)
    write_deltalake(path, people(0, 3))
    another = versions.of(path, DELTA, budget, VersionAsked(0))
    assert [file.rows for file in another.files] == [3]


def test_any_number_of_files_is_searched(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_search, "_AT_ONCE", 2)
    for part in range(5):
        write_deltalake(lake.path("t"), people(part * 4, part * 4 + 4), mode="append")
    version = delta_version(FileSystems(), lake.path("t"))
    assert ids_with(version, "name != 'n6' and id < 18") == (set(range(18)) - {6}, 5)
    assert ids_with(version, "id in (1, 14)") == ({1, 14}, 2)
