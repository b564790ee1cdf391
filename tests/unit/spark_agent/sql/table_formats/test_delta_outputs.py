from __future__ import annotations

from dataclasses import replace

import pytest

from spark_agent.sql.table_formats.delta_log import AddedFile, Commit
from spark_agent.sql.table_formats.delta_outputs import DeltaOutput, of_changes
from spark_agent.sql.types import OutputFiles

UUID = "5672f616-766b-4c4b-9bb8-0837fc8ac810"


def file(name: str, rows: int | None, folder: str = "") -> AddedFile:
    return AddedFile(f"{folder}{name}", 10, 99, rows)


def part(split: int, counter: int = 0) -> str:
    return f"part-{split:05d}-{UUID}-c{counter:03d}.snappy.parquet"


def output(most_rows: int = 0) -> DeltaOutput:
    return DeltaOutput("/t", {}, OutputFiles(), most_rows)


def test_the_rows_of_a_task_are_those_of_its_file() -> None:
    written = output()
    written.take(0, 3, {})
    written.take(2, 5, {})
    commit = Commit(1, (file(part(2), 5), file(part(0), 3)))
    assert written.files_of(commit) == [
        {
            "split": split,
            "parts": [{"path": f"/t/{part(split)}", "size": 10, "modified": 99, "first": 0, "row": 0}],
        }
        for split in (0, 2)
    ]


def test_a_task_that_rolls_over_goes_on_in_the_next_file() -> None:
    written = output(most_rows=2)
    written.take(0, 3, {})
    [of_task] = written.files_of(Commit(1, (file(part(0, 1), 1), file(part(0), 2))))
    assert [(one["path"], one["first"], one["row"]) for one in of_task["parts"]] == [
        (f"/t/{part(0)}", 0, 0),
        (f"/t/{part(0, 1)}", 2, 0),
    ]


def test_runs_of_rows_go_into_the_folders_of_their_values() -> None:
    written = DeltaOutput("/t", {}, OutputFiles(key=object()))
    written.take(0, 5, {"places": {"of": [["p=1", -1], ["p=2", -1]], "runs": [0, 0, 2, 1]}})
    [of_task] = written.files_of(Commit(1, (file(part(0), 2, "p=1/"), file(part(0), 3, "p=2/"))))
    assert [(one["path"], one["first"]) for one in of_task["parts"]] == [
        (f"/t/p=1/{part(0)}", 0),
        (f"/t/p=2/{part(0)}", 2),
    ]


@pytest.mark.parametrize(
    "files",
    [
        [file(part(0), 4)],  # another number of rows
        [file(part(1), 3)],  # of another task
        [file(part(0), 3), file(part(0).replace("5672", "0000"), 3)],  # of two queries
        [],
    ],
)
def test_files_that_do_not_fit_are_not_told(files: list[AddedFile]) -> None:
    written = output()
    written.take(0, 3, {})
    assert written.files_of(Commit(1, tuple(files))) == []


def test_of_two_files_of_one_place_the_one_with_as_many_rows_is_told() -> None:
    written = output()
    written.take(0, 3, {})
    other = part(0).replace("5672", "0000")
    [of_task] = written.files_of(Commit(1, (file(other, 7), file(part(0), 3))))
    assert of_task["parts"][0]["path"] == f"/t/{part(0)}"


def test_where_rows_are_sorted_again_nothing_is_told_of_a_task_that_spilled() -> None:
    written = output()
    written.is_sorted_again = True
    written.take(0, 3, {"spilled": 4096})
    written.take(1, 3, {"spilled": 0})
    partitions = written.files_of(Commit(1, (file(part(0), 3), file(part(1), 3))))
    assert [partition["split"] for partition in partitions] == [1]


def change(split: int, folder: str = "") -> AddedFile:
    return AddedFile(f"_change_data/{folder}{part(split).replace('part', 'cdc', 1)}", 10, None, None)


def changes(written: DeltaOutput) -> DeltaOutput:
    of_written = of_changes(written)
    assert of_written.dataset["operation"] == "change"
    return of_written


def test_in_a_table_that_maps_columns_files_are_told_by_the_values_of_their_partitions() -> None:
    written = DeltaOutput("/t", {"partitions": ["p", "q"]}, OutputFiles(key=object()))
    written.names_in_log = ["col-1", "col-2"]
    places = {
        "of": [["p=1/q=a%2Fb", -1], ["p=1/q=__HIVE_DEFAULT_PARTITION__", -1]],
        "runs": [0, 0, 2, 1],
    }
    written.take(0, 5, {"places": places})
    other = part(0).replace("5672", "0000")
    commit = Commit(
        1,
        (
            replace(file(other, 3, "xY/"), partition={"col-2": None, "col-1": "1"}),
            replace(file(part(0), 2, "Ab/"), partition={"col-1": "1", "col-2": "a/b"}),
        ),
    )
    [of_task] = written.files_of(commit)
    assert [(one["path"], one["first"], one["row"]) for one in of_task["parts"]] == [
        (f"/t/Ab/{part(0)}", 0, 0),
        (f"/t/xY/{other}", 2, 0),
    ]
    feed = changes(written)
    feed.take(0, 5, {"places": places})
    name = part(0).replace("part", "cdc", 1)
    of_changes = (
        replace(file(name, None, "xY/"), partition={"col-2": None, "col-1": "1"}),
        replace(file(name, None, "Ab/"), partition={"col-1": "1", "col-2": "a/b"}),
    )
    [of_task] = feed.files_of(Commit(1, (), changes=of_changes))
    assert [one["path"] for one in of_task["parts"]] == [f"/t/{folder}/{name}" for folder in ("Ab", "xY")]


def test_folders_of_random_names_are_told_by_no_value() -> None:
    written = output()
    written.take(0, 3, {})
    [of_task] = written.files_of(Commit(1, (file(part(0), 3, "xY/"),)))
    assert of_task["parts"][0]["path"] == f"/t/xY/{part(0)}"


def test_changes_are_in_files_of_their_own() -> None:
    written = output()
    feed = changes(written)
    written.take(0, 3, {})
    feed.take(0, 4, {})
    commit = Commit(1, (file(part(0), 3),), changes=(change(0),))
    [data], [of_feed] = written.files_of(commit), feed.files_of(commit)
    assert data["parts"][0]["path"] == f"/t/{part(0)}"
    assert of_feed["parts"][0]["path"] == f"/t/{change(0).path}"


def test_changes_of_a_value_are_in_a_folder_of_that_value() -> None:
    feed = changes(DeltaOutput("/t", {}, OutputFiles(key=object())))
    feed.take(0, 5, {"places": {"of": [["p=1", -1], ["p=2", -1]], "runs": [0, 0, 2, 1]}})
    [of_task] = feed.files_of(Commit(1, (), changes=(change(0, "p=2/"), change(0, "p=1/"))))
    assert [(one["path"], one["first"]) for one in of_task["parts"]] == [
        (f"/t/{change(0, 'p=1/').path}", 0),
        (f"/t/{change(0, 'p=2/').path}", 2),
    ]


@pytest.mark.parametrize(
    "files",
    [
        [change(1)],
        [change(0), AddedFile(change(0).path.replace("5672", "0000"), 10, None, None)],  # of two queries
        [],
    ],
)
def test_changes_that_do_not_fit_are_not_told(files: list[AddedFile]) -> None:
    feed = changes(output())
    feed.take(0, 3, {})
    assert feed.files_of(Commit(1, (file(part(0), 3),), changes=tuple(files))) == []
