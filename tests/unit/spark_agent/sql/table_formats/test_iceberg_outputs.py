from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent.sql.rewrite.plan_nodes import UncoveredError
from spark_agent.sql.table_formats.iceberg_outputs import (
    IcebergOutput,
    UnknownTableError,
    of_command,
    of_unknown,
    what_stays,
)
from spark_agent.sql.types import OutputFiles

WRITE = "9eae2a64-6e23-42f3-8c0e-b08d4ae2b84a"


class Write:
    """What IcebergWrite.java answers, one answer for each look."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)

    def commit(self) -> str:
        return self._answers.pop(0)


def said(*files: tuple[int, int, str, int | None]) -> str:
    """Of files: (task, rows, partition, id of the first row)."""
    described: list[dict[str, Any]] = [
        {
            "path": f"file:/t/data/{partition}/{split:05d}-7-{WRITE}-0-{counter:05d}.parquet",
            "rows": rows,
            "size": 10,
            "partition": partition,
            "row_id": row_id,
        }
        for counter, (split, rows, partition, row_id) in enumerate(files)
    ]
    return json.dumps({"version": "42", "files": described})


def output(write: Write, *, is_divided: bool = False, keeps_row_ids: bool = False) -> IcebergOutput:
    files = OutputFiles(key=object()) if is_divided else OutputFiles()
    return IcebergOutput("/t", {}, files, write=write, id=WRITE, keeps_row_ids=keeps_row_ids)


def test_a_snapshot_that_is_not_there_yet_is_looked_for_again() -> None:
    written = output(Write("", said((0, 3, "", None))))
    written.take(0, 3, {})
    assert written.is_committed_later
    assert written.commit() is None
    commit = written.commit()
    assert commit is not None
    assert commit.version == "42"
    [of_task] = written.files_of(commit)
    assert [(part["path"], part["first"], part["row"]) for part in of_task["parts"]] == [
        (f"/t/data//00000-7-{WRITE}-0-00000.parquet", 0, 0)
    ]


def test_rows_go_into_the_files_of_their_partitions() -> None:
    written = output(Write(said((1, 2, "p=a", 100), (1, 1, "p=b", 102))), is_divided=True)
    written.take(1, 3, {"places": {"of": [["p=a", -1], ["p=b", -1]], "runs": [0, 0, 1, 1, 2, 0]}})
    commit = written.commit()
    assert commit is not None
    [of_task] = written.files_of(commit)
    assert [(part["first"], part["row"], part["row_id_first"]) for part in of_task["parts"]] == [
        (0, 0, 100),
        (1, 0, 102),
        (2, 1, 101),
    ]


def test_a_statement_that_keeps_the_ids_of_rows_tells_none() -> None:
    written = output(Write(said((0, 3, "", 7))), keeps_row_ids=True)
    written.take(0, 3, {})
    commit = written.commit()
    assert commit is not None
    [of_task] = written.files_of(commit)
    assert "row_id_first" not in of_task["parts"][0]


def test_of_a_task_whose_runs_are_lost_nothing_is_told() -> None:
    written = output(Write(said((0, 3, "p=a", None), (1, 2, "p=a", None))), is_divided=True)
    written.take(0, 3, {"places": None})
    written.take(1, 2, {"places": {"of": [["p=a", -1]], "runs": [0, 0]}})
    commit = written.commit()
    assert commit is not None
    assert [of_task["split"] for of_task in written.files_of(commit)] == [1]


def test_a_statement_that_wrote_no_row_waits_for_no_snapshot() -> None:
    written = output(Write())
    written.take(0, 0, {})
    assert not written.is_committed_later


def command(*, table: str = "SparkTable", condition: tuple[str, str] = ("Literal", "true")) -> Any:
    """A command that writes into a table of this class, or overwrites what meets a condition (kind, text)."""
    named = SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: table))
    return SimpleNamespace(table=lambda: SimpleNamespace(table=lambda: named), deleteExpr=lambda: condition)


class Catalyst:
    """Knows the kind of such a condition."""

    def kind(self, condition: tuple[str, str]) -> str:
        return condition[0]


@pytest.mark.parametrize(
    ("kind", "said", "fields", "stays"),
    [
        ("AppendData", {}, ["p"], "appends"),
        ("AppendData", {"table": "StagedSparkTable"}, ["p"], None),
        ("OverwriteByExpression", {"condition": ("EqualNullSafe", "p <=> 1")}, ["p"], "replaces_part"),
        ("OverwritePartitionsDynamic", {}, ["p"], "replaces_part"),
        ("OverwritePartitionsDynamic", {}, [], None),
        ("ReplaceData", {}, [], "replaces_part"),
        ("WriteDelta", {}, [], "replaces_part"),
    ],
)
def test_a_command_says_what_stays_of_a_table(
    kind: str, said: dict[str, Any], fields: list[str], stays: str | None
) -> None:
    catalyst: Any = Catalyst()
    assert what_stays(catalyst, command(**said), kind, fields) == stays


class Unlike:
    """A write of an Iceberg that names its fields otherwise."""

    def describe(self) -> str:
        raise RuntimeError("no field outputSpecId")


def rows(*columns: str) -> Any:
    """A query with these columns."""
    return SimpleNamespace(output=lambda: [SimpleNamespace(name=lambda one=one: one) for one in columns])


def test_a_table_that_is_not_known_costs_its_files_and_no_more() -> None:
    catalyst: Any = SimpleNamespace(
        iceberg=SimpleNamespace(write=lambda _: Unlike()),
        items=list,
        number=lambda number: number,
        same=lambda column, number: (column.name(), number),
    )
    with pytest.raises(UnknownTableError, match="outputSpecId"):
        of_command(catalyst, command(), "AppendData", rows("id"))
    assert of_unknown(catalyst, command(), "AppendData", rows("id")) is None
    written = of_unknown(catalyst, command(), "WriteDelta", rows("__row_operation", "id"))
    assert written is not None
    assert written.left_out is not None
    assert written.left_out() == ("__row_operation", 1)
    assert written.files() == (None, [])


def test_a_statement_that_does_not_say_what_it_does_with_rows_is_not_followed() -> None:
    catalyst: Any = SimpleNamespace(items=list)
    written = of_unknown(catalyst, command(), "WriteDelta", rows("id"))
    assert written is not None
    assert written.left_out is not None
    with pytest.raises(UncoveredError, match="what it does with each row"):
        written.left_out()
