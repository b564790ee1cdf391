"""The history of a row of a table: by ids that the table keeps, else by what applications made of what."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage_service.errors import InvalidQueryError, NotFoundError, NothingMatchesError
from lineage_service.lineage import Choices, RowHistory
from lineage_service.queries import RowQuery
from tests.support.tables.written_tables import Lake

NAMES = ["Ada", "Bob", "Eve"]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def people(*names: str, first: int = 0) -> pa.Table:
    return pa.table({"id": range(first, first + len(names)), "name": names})


def history(lake: Lake, where: str, version: int | None = None, table: str = "t") -> RowHistory:
    answer = lake.queries.history(RowQuery(dataset=lake.path(table), where=where, version=version))
    assert isinstance(answer, RowHistory)
    return answer


def told(answer: RowHistory) -> list[tuple[int, str, object, str | None]]:
    """(version, change, name, application)."""
    return [
        (version.version, version.change, (version.columns or {}).get("name"), version.application_id)
        for version in answer.versions
    ]


def test_a_row_is_followed_from_file_to_file_by_what_was_captured(lake: Lake) -> None:
    lake.write("loader", "t", people(*NAMES), began=1)
    [file] = lake.files("t")
    lake.rewrite("updater", "t", file, people("Ada", "Bo", "Eve"), began=2)
    [file] = lake.files("t")
    lake.rewrite("compactor", "t", file, people("Ada", "Bo", "Eve"), began=3, operation="OPTIMIZE")
    [file] = lake.files("t")
    lake.delete("t", file, [1])
    expected = [
        (0, "inserted", "Bob", "loader"),
        (1, "changed", "Bo", "updater"),
        (2, "rewritten", "Bo", "compactor"),
        (3, "deleted", None, None),
    ]
    for version in range(3):
        answer = history(lake, "id = 1", version)
        assert told(answer) == expected
        assert (answer.by, answer.complete, answer.warnings) == ("links", True, ())
    with pytest.raises(NothingMatchesError, match="1 that did were deleted"):
        history(lake, "id = 1")
    assert [change for _, change, _, _ in told(history(lake, "id = 0"))] == [
        "inserted",
        "rewritten",
        "rewritten",
    ]
    [updated] = [version for version in answer.versions if version.version == 1]
    assert (updated.operation, updated.node_id, updated.record_id) == ("UPDATE", "updater#1", "write#0#1")


def test_one_application_may_make_all_versions(lake: Lake) -> None:
    lake.write("job", "t", people(*NAMES), began=1)
    for names in (("Ada", "Bo", "Eve"), ("Ada", "B", "Eve")):
        [file] = lake.files("t")
        lake.rewrite("job", "t", file, people(*names), began=1)
    expected = [(0, "inserted", "Bob", "job"), (1, "changed", "Bo", "job"), (2, "changed", "B", "job")]
    for version in range(3):
        answer = history(lake, "id = 1", version)
        assert (told(answer), answer.complete) == (expected, True)


def test_what_another_engine_did_is_not_known(lake: Lake) -> None:
    lake.write("loader", "t", people(*NAMES), began=1)
    [file] = lake.files("t")
    lake.rewrite(None, "t", file, people("Ada", "Bo", "Eve"))
    answer = history(lake, "id = 1")
    assert told(answer) == [(1, "inserted", "Bo", None)]
    assert not answer.complete
    assert "no application that is known made version 1 (UPDATE)" in answer.warnings[0]
    before = history(lake, "id = 1", 0)
    assert told(before) == [(0, "inserted", "Bob", "loader"), (1, "deleted", None, None)]
    assert not before.complete


def test_a_table_that_keeps_ids_needs_no_capture(lake: Lake) -> None:
    lake.write(None, "t", people(*NAMES))
    reader = lake.track_rows("t", "_row_id_")
    [file] = lake.files("t")
    moved = people("Eve", "Bo", first=1).append_column("_row_id_", pa.array([2, 1], pa.int64()))
    moved = moved.set_column(0, "id", pa.array([2, 1], pa.int64()))
    lake.rewrite(None, "t", file, moved, operation="MERGE", first_row_id=3)
    lake.read("reader", "t", began=1)  # so that the table is known
    answer = history(lake, "id = 1")
    assert (answer.by, answer.row_id, answer.complete) == ("row_id", 1, True)
    assert [(version.version, version.change, version.row) for version in answer.versions] == [
        (0, "inserted", 1),
        (reader + 1, "changed", 1),
    ]
    moved_row = history(lake, "id = 2")
    assert [(version.change, version.row) for version in moved_row.versions] == [
        ("inserted", 2),
        ("rewritten", 0),
    ]
    gone = history(lake, "id = 0", reader)
    assert [version.change for version in gone.versions] == ["inserted", "deleted"]


def test_a_log_that_was_cleaned_up_says_so(lake: Lake) -> None:
    lake.write("loader", "t", people(*NAMES), began=1)
    [file] = lake.files("t")
    lake.rewrite("updater", "t", file, people("Ada", "Bo", "Eve"), began=2)
    lake.checkpoint("t")
    (Path(lake.path("t")) / "_delta_log" / f"{0:020d}.json").unlink()
    answer = history(lake, "id = 1")
    assert told(answer) == [(1, "inserted", "Bo", "updater")]
    assert not answer.complete
    assert "the log has no commits before version 1" in answer.warnings[0]


def test_several_rows_are_listed_and_other_datasets_have_no_history(lake: Lake) -> None:
    lake.write("loader", "t", people("Ada", "Ada"), began=1)
    several = lake.queries.history(RowQuery(dataset=lake.path("t"), where="name = 'Ada'"))
    assert isinstance(several, Choices)
    assert (several.total, several.version) == (2, "0")
    with pytest.raises(InvalidQueryError, match="no table of Delta"):
        lake.queries.history(RowQuery(dataset=str(lake.folder / "loader-0.txt"), where="value = '1'"))
    with pytest.raises(NotFoundError, match="no application wrote or read"):
        lake.queries.history(RowQuery(dataset="nothing", where="id = 1"))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_random_statements_are_told_as_they_were(lake: Lake, seed: int) -> None:
    """Files grow, are rewritten with other values and in their order, and lose rows by deletion vectors."""
    chance = random.Random(seed)
    expected: dict[int, list[tuple[int, str, object, str | None]]] = {}
    deleted: dict[str, set[int]] = {}
    next_id = 0
    for step in range(14):
        files = sorted(lake.files("t"))
        what = chance.choice(["write", "rewrite", "rewrite", "delete"]) if files else "write"
        application_id = f"job-{step}"
        if what == "write":
            names = [f"{chance.random():.3f}" for _ in range(chance.randint(1, 5))]
            version = lake.write(application_id, "t", people(*names, first=next_id), began=step)
            for name in names:
                expected[next_id] = [(version, "inserted", name, application_id)]
                next_id += 1
            continue
        file = chance.choice(files)
        rows = pq.read_table(file)
        ids = rows.column("id").to_pylist()
        gone = deleted.get(file, set())
        alive = [row for row in range(len(ids)) if row not in gone]
        if what == "delete" and len(alive) > 1:
            row = chance.choice(alive)
            deleted[file] = gone | {row}
            version = lake.delete("t", file, sorted(deleted[file]))
            expected[ids[row]].append((version, "deleted", None, None))
        elif what == "rewrite" and not gone:
            names = [
                name if chance.random() < 0.5 else f"{chance.random():.3f}"
                for name in rows.column("name").to_pylist()
            ]
            new = rows.set_column(1, "name", pa.array(names))
            version = lake.rewrite(application_id, "t", file, new, began=step)
            for id, before, name in zip(ids, rows.column("name").to_pylist(), names, strict=True):
                change = "rewritten" if before == name else "changed"
                expected[id].append((version, change, name, application_id))
    for id, versions in expected.items():
        answer = history(lake, f"id = {id}", versions[0][0])
        assert (told(answer), answer.complete) == (versions, True), id
