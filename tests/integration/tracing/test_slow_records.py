"""Slow records from what is stored: their input rows, and what is added up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineage_service.lineage import Slow
from lineage_service.queries import SlowQuery
from spark_agent import contract
from tests.support.failed_applications import StoredFailures, run_failed
from tests.support.file_applications import APP, MAP, SINK, SOURCE
from tests.support.lineage_messages import block, event

FILTER = 7


def committed(run: int, slow: list[list[int]], **fields: Any) -> bytes:
    told: dict[str, Any] = {
        **{"run": run, "split": 0, "attempt": run, "stage": 3, "action": SINK, "input": SOURCE},
        **{"nodes": [MAP, SINK], "inputs": 4, "outputs": 4, "slow": slow},
    }
    return event(contract.RUN_COMMITTED, **{**told, **fields})


@pytest.fixture
def stored(tmp_path: Path) -> StoredFailures:
    return StoredFailures(tmp_path, [4])


def slow_of(stored: StoredFailures, limit: int = 20) -> Slow:
    return stored.queries.slow(APP, SlowQuery(limit=limit))


def test_an_application_without_slow_records_says_what_is_timed(stored: StoredFailures) -> None:
    slow = slow_of(stored)
    assert (slow.records, slow.total, slow.complete) == ((), 0, True)
    assert "spark.lineage.pace" in slow.how


def test_a_slow_record_comes_with_its_input_row(stored: StoredFailures, tmp_path: Path) -> None:
    stored.add(committed(9, [[MAP, 2, 310], [SINK, 0, 95]]))
    first, second = slow_of(stored).records
    assert (first.ms, first.node_id, first.name, first.partition) == (310, f"{APP}#{MAP}", "map", 0)
    assert first.record is not None
    assert (first.record.node_id, first.record.record_id) == (f"{APP}#{SOURCE}", "read#0#2")
    assert [(row.path, row.row, row.text) for row in first.sources] == [(str(tmp_path / "in.txt"), 2, "c")]
    assert (first.exact, first.reason, first.sources_total) == (True, "", 1)
    assert second.record is not None
    assert (second.ms, second.record.node_id, second.sources[0].text) == (95, f"{APP}#{MAP}", "a")


def test_times_are_added_up_by_row_operation_and_partition(stored: StoredFailures) -> None:
    stored.add(committed(9, [[MAP, 2, 310], [SINK, 0, 95]]), committed(10, [[SINK, 2, 40]]))
    slow = slow_of(stored)
    assert [(one.ms, one.records, one.source.row) for one in slow.inputs] == [(350, 2, 2), (95, 1, 0)]
    assert [(one.ms, one.records, one.node_id) for one in slow.operations] == [
        (310, 1, f"{APP}#{MAP}"),
        (135, 2, f"{APP}#{SINK}"),
    ]
    assert [(one.ms, one.records, one.partition) for one in slow.partitions] == [(310, 1, 0), (135, 2, 0)]


def test_a_record_behind_an_operation_that_is_not_stored_has_no_input_rows(stored: StoredFailures) -> None:
    stored.add(
        committed(9, [[MAP, 2, 310], [SINK, 0, 95]], nodes=[99, MAP, SINK]), committed(10, [[MAP, 1, 50]])
    )
    records = slow_of(stored).records
    assert [(one.ms, one.exact, len(one.sources)) for one in records] == [
        (310, False, 0),
        (95, False, 0),
        (50, True, 1),
    ]
    assert "not stored" in records[1].reason


def test_a_limit_lists_the_slowest_and_counts_all(stored: StoredFailures) -> None:
    stored.add(committed(9, [[MAP, at, 100 + at] for at in range(4)]))
    slow = slow_of(stored, limit=2)
    assert [record.ms for record in slow.records] == [103, 102]
    assert (slow.total, len(slow.inputs)) == (4, 2)


def test_attempts_that_failed_do_not_count(stored: StoredFailures) -> None:
    stored.add(run_failed(20, 1, slow=[[MAP, 1, 9_000]]), committed(9, [[MAP, 2, 50]]))
    assert [record.ms for record in slow_of(stored).records] == [50]


def test_a_record_behind_a_filter_is_the_one_that_passed(stored: StoredFailures) -> None:
    filtered = event(contract.NODE_REGISTERED, node=FILTER, name="filter", relation="flows", exact=True)
    nodes = [FILTER, MAP, SINK]
    stored.add(
        filtered,
        committed(9, [[MAP, 1, 70], [FILTER, 1, 60]], nodes=nodes, outputs=2, blocks=1),
        blocks=(block(9, 0, contract.POSITIONS, {"in": [0, 3]}, node=FILTER),),
    )
    behind, before = slow_of(stored).records
    assert ([row.text for row in behind.sources], [row.text for row in before.sources]) == (["d"], ["b"])
