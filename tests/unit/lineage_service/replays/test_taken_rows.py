"""Rows that a program took by an action before it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lineage_service.lineage import (
    ActionState,
    Graph,
    Node,
    Record,
    RecordPage,
    RowSet,
    RowSetFile,
    RowSetSource,
    RowSetSplit,
)
from lineage_service.queries import RecordQuery, RowSetQuery
from lineage_service.replays.specification import row_set_json
from lineage_service.replays.taken_rows import with_taken_rows

APP = "app-1"


def node(
    number: int,
    name: str,
    kind: Any = "sink",
    records: int | None = 1,
    state: ActionState | None = "complete",
) -> Node:
    return Node(
        node_id=f"{APP}#{number}",
        node=number,
        name=name,
        description="",
        kind=kind,
        call_site=f"/home/ann/job.py:{number}",
        exact=True,
        reason="",
        dataset=None,
        records=records,
        has_values=False,
        state=state,
    )


def row_set(*rows: int, is_whole: bool = False) -> RowSet:
    """Of one source with two partitions of ten rows."""
    ranges = {split: tuple((row % 10, 1) for row in rows if row // 10 == split) for split in (0, 1)}
    source = RowSetSource(
        node=0,
        name="textFile",
        call_site=None,
        path="/in.csv",
        whole=is_whole,
        why=None,
        partitions=2,
        total=20,
        files=(RowSetFile(path="/in.csv", size=1, modified=1, rows=tuple((row, 1) for row in rows)),)
        if rows
        else (),
        splits=tuple(
            RowSetSplit(split=split, positions=positions) for split, positions in ranges.items() if positions
        ),
        listed=(),
    )
    return RowSet(application=APP, sources=(source,), asked=(), exact=True, complete=True, how=None)


class Took:
    """An application whose actions took these rows of its source."""

    def __init__(self, nodes: Sequence[Node], taken: RowSet) -> None:
        self._nodes, self._taken = nodes, taken
        self.actions: list[str | None] = []

    def graph(self, application_id: str) -> Graph:
        return Graph(application_id=application_id, nodes=tuple(self._nodes), edges=())

    def records(self, application_id: str, query: RecordQuery) -> RecordPage:
        record = Record(record_id="0#0", partition=0, offset=0)
        return RecordPage(node_id=query.node, total=1, records=(record,), next=None)

    def row_set(self, application_id: str, query: RowSetQuery) -> RowSet:
        self.actions = [start.node for start in query.starts]
        return self._taken


def joined(rows: RowSet, taken: RowSet, *nodes: Node, before: int | None = 9) -> tuple[Any, str, Took]:
    took = Took(nodes, taken)
    row_set_, note = with_taken_rows(took, APP, row_set_json(rows), before)  # type: ignore[arg-type]
    return row_set_["sources"][0], note, took


def test_a_header_that_was_taken_before_is_added() -> None:
    source, note, _ = joined(row_set(3, 4, 12), row_set(0), node(2, "first"))
    assert source["splits"] == [
        {"split": 0, "positions": [[0, 1], [3, 2]]},
        {"split": 1, "positions": [[2, 1]]},
    ]
    assert source["files"][0]["rows"] == [[0, 1], [3, 2], [12, 1]]
    assert note == "1 row was added that the program took by first (job.py:2)"


def test_a_partition_of_which_no_row_was_there_is_added() -> None:
    source, _, _ = joined(row_set(12), row_set(0, 1), node(2, "take", records=2))
    assert [split["split"] for split in source["splits"]] == [0, 1]


def test_rows_that_are_there_are_not_added_again() -> None:
    before = row_set(0, 3)
    source, note, _ = joined(before, row_set(0), node(2, "first"))
    assert note == ""
    assert source == row_set_json(before)["sources"][0]


@pytest.mark.parametrize(
    "other",
    [
        node(12, "first"),  # after what was asked for
        node(2, "first", state="failed"),
        node(2, "first", kind="operator"),
        node(2, "take", records=101),
        node(2, "take", records=0),
        node(2, "collect"),
    ],
)
def test_other_actions_give_nothing(other: Node) -> None:
    _, note, took = joined(row_set(3), row_set(0), other)
    assert (note, took.actions) == ("", [])


def test_of_a_failure_each_action_that_ended_well_counts() -> None:
    _, _, took = joined(row_set(3), row_set(0), node(12, "first"), node(2, "take"), before=None)
    assert took.actions == [f"{APP}#12", f"{APP}#2"]


def test_a_source_that_is_read_whole_or_not_at_all_stays_as_it_is() -> None:
    for rows in (row_set(is_whole=True), row_set()):
        _, note, took = joined(rows, row_set(0), node(2, "first"))
        assert (note, took.actions) == ("", [])
    source, note, _ = joined(row_set(3), row_set(is_whole=True), node(2, "first"))
    assert (note, source["splits"]) == ("", [{"split": 0, "positions": [[3, 1]]}])
