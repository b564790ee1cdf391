"""Failures from what is stored: which attempts are one, what is exact, what is not known."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.queries import RowSetQuery, StartQuery, TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.failed_applications import ERROR, QUERY, SCAN, StoredFailures, run_failed
from tests.support.file_applications import APP, MAP, SINK, SOURCE, splits_of
from tests.support.lineage_messages import block, event

FILTER = 7
OF_INPUTS = "no task has reported it, so it may be any row of the inputs that was read"


@pytest.fixture
def stored(tmp_path: Path) -> StoredFailures:
    return StoredFailures(tmp_path, [4])


@pytest.fixture
def without_runs(tmp_path: Path) -> StoredFailures:
    return StoredFailures(tmp_path, [])


def test_an_application_without_failures_has_none(stored: StoredFailures) -> None:
    assert (stored.failures.failures, stored.failures.complete) == ((), True)


def test_a_failure_names_the_input_row_of_its_record(without_runs: StoredFailures, tmp_path: Path) -> None:
    without_runs.add(run_failed(1, 0), run_failed(2, 1), run_failed(3, 2))
    (failure,) = without_runs.failures.failures
    assert (failure.failure, failure.error, failure.attempts, failure.partition) == (1, "ValueError", 3, 0)
    assert (failure.node_id, failure.name, failure.stage) == (f"{APP}#{MAP}", "map", 2)
    assert failure.record is not None
    assert (failure.record.node_id, failure.record.record_id) == (f"{APP}#{SOURCE}", "read#0#2")
    (row,) = failure.sources
    assert (row.path, row.row, row.line, row.text) == (str(tmp_path / "in.txt"), 2, 3, "c")
    assert (failure.exact, failure.recovered, failure.reason) == (True, False, "")
    assert without_runs.failures.complete


def test_attempts_that_fail_on_other_rows_are_other_failures(without_runs: StoredFailures) -> None:
    without_runs.add(run_failed(1, 0), run_failed(2, 1, position=1), run_failed(3, 2))
    numbers = [(failure.attempts, failure.sources[0].row) for failure in without_runs.failures.failures]
    assert numbers == [(2, 2), (1, 1)]


def test_a_task_that_ended_well_in_the_end_has_recovered(stored: StoredFailures) -> None:
    stored.add(run_failed(1, 0, stage=0, nodes=[MAP, SINK]))
    before = stored.failures.failures[0]
    assert not before.recovered
    stored.add(
        event(
            contract.RUN_COMMITTED, run=9, split=0, attempt=1, stage=0, action=SINK, input=SOURCE,
            nodes=[MAP, SINK], inputs=4, outputs=4,
        )
    )  # fmt: skip
    assert stored.failures.failures[0].recovered


def test_nothing_is_exact_before_the_flows_of_the_failed_run_are_stored(without_runs: StoredFailures) -> None:
    filtered = event(contract.NODE_REGISTERED, node=FILTER, name="filter", relation="flows", exact=True)
    without_runs.add(filtered, run_failed(1, 0, nodes=[FILTER, MAP, SINK], position=1, blocks=1))
    (failure,) = without_runs.failures.failures
    assert not failure.exact
    assert "not stored" in failure.reason
    assert not without_runs.failures.complete
    without_runs.add(blocks=(block(1, 0, contract.POSITIONS, {"in": [0, 2]}, node=FILTER),))
    (failure,) = without_runs.failures.failures
    assert ([row.row for row in failure.sources], failure.exact) == ([2], True)


@pytest.mark.parametrize(
    ("fields", "rows"),
    [
        ({"certain": False}, [2, 0, 1, 3]),
        ({"first": 1, "certain": False}, [1, 2]),
        ({"position": None, "certain": False}, [0, 1, 2]),
    ],
)
def test_what_is_not_certain_is_not_exact(without_runs: StoredFailures, fields: Any, rows: list[int]) -> None:
    without_runs.add(run_failed(1, 0, **fields))
    (failure,) = without_runs.failures.failures
    assert [row.row for row in failure.sources] == rows
    assert not failure.exact
    assert failure.reason
    assert not without_runs.failures.complete


def test_one_of_several_records_is_told_as_a_bound_with_the_reason(without_runs: StoredFailures) -> None:
    of_batch = {"first": 1, "certain": False, "reason": "Python was given rows in batches"}
    without_runs.add(run_failed(1, 0, **of_batch), run_failed(2, 1, **{**of_batch, "first": 0}))
    (failure,) = without_runs.failures.failures
    assert ([row.text for row in failure.sources], failure.sources_total) == (["a", "b", "c"], 3)
    assert (failure.attempts, failure.exact, failure.record) == (2, False, None)
    assert failure.reason == "Python was given rows in batches"
    with pytest.raises(NotFoundError, match="which of several records"):
        without_runs.queries.trace(APP, TraceQuery(direction="backward", failure=1))


def test_a_query_that_failed_names_the_row_of_its_scan(stored: StoredFailures, tmp_path: Path) -> None:
    stored.add_query()
    (failure,) = stored.failures.failures
    assert (failure.name, failure.node_id, failure.attempts) == ("collect", f"{APP}#{QUERY}", 1)
    assert ([row.text for row in failure.sources], failure.exact, failure.reason) == (["c"], True, "")
    assert failure.record is not None
    assert (failure.record.node_id, failure.record.record_id) == (f"{APP}#{SCAN}", "read#0#2")
    trace = stored.queries.trace(APP, TraceQuery(direction="backward", failure=1))
    assert [record.record_id for record in trace.start] == ["read#0#2"]


def test_a_batch_of_a_query_is_a_bound(stored: StoredFailures, tmp_path: Path) -> None:
    stored.add_query(first=1, certain=False, reason="a batch")
    (failure,) = stored.failures.failures
    assert ([row.text for row in failure.sources], failure.reason) == (["b", "c"], "a batch")


def test_a_query_that_failed_changes_no_other_answer(stored: StoredFailures, tmp_path: Path) -> None:
    query = TraceQuery(direction="backward", node=str(SINK), partition=0, offset=1)
    before = asdict(stored.queries.trace(APP, query))
    stored.add_query()
    assert asdict(stored.queries.trace(APP, query)) == before
    nodes = {node.node: node for node in stored.queries.graph(APP).nodes}
    assert nodes[SCAN].records in (None, 0)


def test_a_query_without_time_says_so_of_each_failure(without_runs: StoredFailures) -> None:
    without_runs.add(run_failed(1, 0))
    queries = LineageQueries(DeltaFlowStore(without_runs.path.parent / "flows"), time_budget_s=0)
    (failure,) = queries.failures(APP).failures
    assert (failure.error, failure.sources, failure.exact) == ("ValueError", (), False)
    assert "no time left" in failure.reason


def test_a_trace_of_a_failure_begins_at_its_record(without_runs: StoredFailures) -> None:
    without_runs.add(run_failed(1, 0, record=["str", "c"]))
    trace = without_runs.queries.trace(APP, TraceQuery(direction="backward", failure=1))
    assert [record.record_id for record in trace.start] == ["read#0#2"]
    assert trace.exact
    assert without_runs.failures.failures[0].record is not None
    assert without_runs.failures.failures[0].record.value == "c"


def test_a_record_that_only_a_failed_task_has_read_says_so(without_runs: StoredFailures) -> None:
    without_runs.add(run_failed(1, 0))
    for start in (
        {"node": str(SOURCE), "partition": 0, "offset": 2},
        {"path": str(without_runs.path), "row": 2},
    ):
        with pytest.raises(NotFoundError, match="A task failed there"):
            without_runs.queries.trace(APP, TraceQuery(direction="forward", **start))


def test_a_trace_of_a_failure_that_is_not_there(without_runs: StoredFailures) -> None:
    without_runs.add(run_failed(1, 0, position=None, certain=False))
    with pytest.raises(NotFoundError, match="not known"):
        without_runs.queries.trace(APP, TraceQuery(direction="backward", failure=1))
    with pytest.raises(NotFoundError, match="no failure 2"):
        without_runs.queries.trace(APP, TraceQuery(direction="backward", failure=2))
    with pytest.raises(InvalidQueryError, match="backward"):
        without_runs.queries.trace(APP, TraceQuery(direction="forward", failure=1))


def test_failed_runs_change_no_other_answer(stored: StoredFailures) -> None:
    def answers() -> list[Any]:
        traces = [
            stored.queries.trace(
                APP, TraceQuery(direction="backward", node=str(SINK), partition=0, offset=1)
            ),
            stored.queries.trace(
                APP, TraceQuery(direction="forward", node=str(SOURCE), partition=0, offset=1)
            ),
        ]
        return [asdict(stored.queries.graph(APP)), *map(asdict, traces)]

    before = answers()
    stored.add(run_failed(1, 0), run_failed(2, 1))
    assert len(stored.failures.failures) == 1
    assert answers() == before


def test_an_action_that_no_task_spoke_of_is_a_failure_without_a_record(without_runs: StoredFailures) -> None:
    message = "Job aborted due to stage failure: Task 3 in stage 5.0 failed 4 times"
    without_runs.add(
        event(contract.ACTION_ENDED, node=SINK, state=contract.ACTION_FAILED, time=9,
              error={"type": "SparkException", "message": message})
    )  # fmt: skip
    (failure,) = without_runs.failures.failures
    assert (failure.error, failure.node_id, failure.attempts) == ("SparkException", f"{APP}#{SINK}", 0)
    assert (failure.stage, failure.partition, failure.record, failure.exact) == (5, 3, None, False)
    assert "killed" in without_runs.failures.how


def with_functions_below_queries(stored: StoredFailures, *queries: int) -> StoredFailures:
    """Queries of the mapped RDD have failed. A task has said on which record, but not for which query."""
    for query in queries:
        stored.add(
            event(contract.NODE_REGISTERED, node=query, name="collect", kind="sink",
                  relation=contract.IDENTITY, exact=True),
            event(contract.LINK, source=MAP, target=query),
            event(contract.ACTION_ENDED, node=query, state=contract.ACTION_FAILED, time=30, error=ERROR),
        )  # fmt: skip
    stored.add(run_failed(1, 0, action=None, nodes=[MAP]))
    return stored


def test_a_query_below_which_a_function_has_reported_its_record_is_one_failure(
    without_runs: StoredFailures,
) -> None:
    answer = with_functions_below_queries(without_runs, QUERY).failures
    assert [(failure.name, failure.exact) for failure in answer.failures] == [("map", True)]
    assert answer.complete


def test_of_two_queries_with_the_same_error_it_is_not_known_which_one_has_been_reported(
    without_runs: StoredFailures,
) -> None:
    answer = with_functions_below_queries(without_runs, QUERY, QUERY + 1).failures
    assert [failure.name for failure in answer.failures] == ["map", "collect", "collect"]
    assert not answer.complete


def test_a_query_that_failed_with_another_error_is_a_failure_of_its_own(without_runs: StoredFailures) -> None:
    with_functions_below_queries(without_runs).register_query()
    without_runs.add(event(contract.LINK, source=MAP, target=QUERY))
    without_runs.add_killed("0 in stage 7.0", QUERY)
    assert [failure.error for failure in without_runs.failures.failures] == ["ValueError", "SparkException"]


def test_what_other_tasks_have_made_is_no_bound_of_what_a_failed_one_had(
    with_two_partitions: StoredFailures,
) -> None:
    """It read what its own task made, of which nothing was committed; another partition was."""
    made, failing = 30, 31
    nodes = [
        event(contract.NODE_REGISTERED, node=number, name="map", relation=contract.IDENTITY, exact=True)
        for number in (made, failing)
    ]
    links = [
        event(contract.LINK, source=SOURCE, target=made),
        event(contract.LINK, source=made, target=failing),
    ]
    other = event(
        contract.RUN_COMMITTED, run=40, split=1, stage=3, input=SOURCE, nodes=[made], inputs=2, outputs=2
    )
    failed = run_failed(41, 9, stage=3, input=made, nodes=[failing], failed_node=failing, position=1)
    with_two_partitions.add(*nodes, *links, other, failed)
    (failure,) = with_two_partitions.failures.failures
    assert ([row.row for row in failure.sources], failure.exact) == ([0, 1, 2, 3], False)
    assert "not reported, so it may be any row of the inputs" in failure.reason
    assert failure.record is not None


@pytest.fixture
def with_two_partitions(tmp_path: Path) -> StoredFailures:
    return StoredFailures(tmp_path, [2], 3)


@pytest.mark.parametrize(("partition", "rows"), [(0, ["a", "b"]), (1, ["c", "d"])])
def test_a_task_that_said_nothing_is_bounded_by_its_partition(
    with_two_partitions: StoredFailures, partition: int, rows: list[str]
) -> None:
    """A worker that was killed: the other tasks of its stage say what it has read."""
    with_two_partitions.add_killed(f"{partition} in stage 0.0")
    (failure,) = with_two_partitions.failures.failures
    assert ([row.text for row in failure.sources], failure.sources_total) == (rows, 2)
    assert (failure.exact, failure.stage, failure.partition) == (False, 0, partition)
    assert "any row of its partition" in failure.reason


def test_the_first_task_of_all_is_bounded_by_its_partition_too(without_runs: StoredFailures) -> None:
    without_runs.add_killed("0 in stage 7.0")
    assert without_runs.failures.failures[0].sources_total == 4


def test_a_compressed_file_is_one_partition_of_all_its_rows(tmp_path: Path) -> None:
    compressed = StoredFailures(tmp_path, [], rows=1_000)
    assert compressed.path.stat().st_size < 1_000 * len("the row 999\n") / 2
    compressed.add_killed("0 in stage 7.0")
    (failure,) = compressed.failures.failures
    assert (failure.sources_total, failure.partition) == (1_000, 0)
    compressed.add(run_failed(1, 0, inputs=900, position=899, certain=False))
    (at_hand,) = compressed.failures.failures
    assert (at_hand.sources_total, at_hand.sources[0].row, at_hand.exact) == (1_000, 899, False)


def test_a_line_of_a_compressed_file_that_could_not_be_read_is_one_behind(tmp_path: Path) -> None:
    compressed = StoredFailures(tmp_path, [], rows=1_000)
    compressed.add(run_failed(1, 0, failed_node=SOURCE, inputs=900, position=None, certain=False))
    (failure,) = compressed.failures.failures
    assert (failure.sources_total, failure.sources[0].row) == (100, 900)


def test_a_line_behind_all_that_are_known_is_none_of_them(without_runs: StoredFailures) -> None:
    without_runs.add(run_failed(1, 0, failed_node=SOURCE, inputs=4, position=None, certain=False))
    (failure,) = without_runs.failures.failures
    assert (failure.sources_total, failure.exact) == (0, False)
    assert "it is not one of those that were read before" in failure.reason


def test_a_task_that_reads_several_partitions_is_bounded_by_the_inputs(
    with_two_partitions: StoredFailures,
) -> None:
    coalesced, sink = 30, 31
    with_two_partitions.add(
        event(contract.NODE_REGISTERED, node=coalesced, name="coalesce", relation=contract.STATIC,
              exact=True),
        event(contract.NODE_REGISTERED, node=sink, name="collect", kind="sink", exact=True),
        event(contract.LINK, source=MAP, target=coalesced),
        event(contract.LINK, source=coalesced, target=sink),
        event(contract.RUN_COMMITTED, run=40, split=1, stage=3, action=sink, input=SOURCE, nodes=[MAP],
              inputs=2, outputs=2),
    )  # fmt: skip
    with_two_partitions.add_killed("0 in stage 3.0", sink)
    (failure,) = with_two_partitions.failures.failures
    assert (failure.sources_total, failure.reason) == (4, OF_INPUTS)


def test_a_task_of_a_union_is_bounded_by_all_its_inputs(stored: StoredFailures) -> None:
    """The tasks of one side have said what they read, and that of the other was killed."""
    other, union, sink = 29, 30, 31
    path = stored.path.parent / "other.txt"
    path.write_text("x\ny\n")
    stored.add(
        event(contract.NODE_REGISTERED, node=other, name="textFile", kind="source", relation=contract.SOURCE,
              exact=True, dataset={"namespace": "file", "name": "other", "format": "text"}),
        event(contract.PARTITIONS, node=other, partitions=splits_of(path)),
        event(contract.NODE_REGISTERED, node=union, name="union", relation=contract.STATIC, exact=True),
        event(contract.NODE_REGISTERED, node=sink, name="collect", kind="sink", exact=True),
        event(contract.LINK, source=other, target=union, port=0),
        event(contract.LINK, source=MAP, target=union, port=1),
        event(contract.LINK, source=union, target=sink),
        event(contract.RUN_COMMITTED, run=40, split=0, stage=3, action=sink, input=SOURCE, nodes=[MAP],
              inputs=4, outputs=4),
    )  # fmt: skip
    stored.add_killed("0 in stage 3.0", sink)
    (failure,) = stored.failures.failures
    assert (failure.sources_total, failure.reason) == (6, OF_INPUTS)
    assert {row.text for row in failure.sources} == {"a", "b", "c", "d", "x", "y"}


def test_a_task_of_an_action_that_runs_some_partitions_is_bounded_by_the_inputs(
    with_two_partitions: StoredFailures,
) -> None:
    take = 31
    with_two_partitions.add(
        event(contract.NODE_REGISTERED, node=take, name="take", kind="sink", relation=contract.FLOWS,
              exact=True),
        event(contract.LINK, source=MAP, target=take),
    )  # fmt: skip
    with_two_partitions.add_killed("0 in stage 3.0", take)
    (failure,) = with_two_partitions.failures.failures
    assert (failure.sources_total, failure.reason) == (4, OF_INPUTS)


def test_a_task_of_a_stage_that_is_tried_again_has_no_known_partition(
    with_two_partitions: StoredFailures,
) -> None:
    with_two_partitions.add_killed("1 in stage 0.1")
    (failure,) = with_two_partitions.failures.failures
    assert (failure.stage, failure.partition) == (0, None)
    assert (failure.sources_total, failure.reason) == (4, OF_INPUTS)


@pytest.mark.parametrize(("gives", "total"), [(True, 0), (False, 2)])
def test_a_killed_task_of_a_query_is_bounded_only_behind_a_shuffle(
    stored: StoredFailures, gives: bool, total: int
) -> None:
    """Where the stage that read the scan gave rows to the action, the next job may read more of the scan."""
    stored.register_query()
    fields: dict[str, Any] = {"split": 0, "nodes": [], "action": QUERY, "inputs": 2, "outputs": 2}
    stored.add(
        event(contract.RUN_COMMITTED, run=50, stage=5, input=SCAN, **{**fields, "action": None}),
        event(contract.RUN_COMMITTED, run=51, stage=5 if gives else 6, input=QUERY, **fields),
    )
    stored.add_killed("0 in stage 7.0", QUERY)
    (failure,) = stored.failures.failures
    assert (failure.sources_total, failure.exact) == (total, False)
    assert failure.reason == (OF_INPUTS if total else "no task has reported it")


def test_a_killed_task_of_a_stage_that_scans_has_no_bound(stored: StoredFailures) -> None:
    stored.register_query()
    stored.add(event(contract.RUN_COMMITTED, run=50, stage=5, split=0, input=SCAN, nodes=[], action=QUERY,
                     inputs=2, outputs=2))  # fmt: skip
    stored.add_killed("1 in stage 5.0", QUERY)
    (failure,) = stored.failures.failures
    assert (failure.sources_total, failure.reason) == (0, "no task has reported it")


def test_a_task_behind_a_shuffle_that_said_nothing_is_bounded_by_the_inputs(stored: StoredFailures) -> None:
    stored.add_killed("0 in stage 1.0")
    (failure,) = stored.failures.failures
    assert (failure.sources_total, failure.record) == (4, None)
    assert failure.reason == OF_INPUTS


def test_an_error_of_the_program_is_a_failure_without_an_operation(without_runs: StoredFailures) -> None:
    end = event(contract.APPLICATION_ENDED, time=1 << 41, state=contract.FAILED, error=ERROR)
    without_runs.add(end)
    (failure,) = without_runs.failures.failures
    assert (failure.error, failure.message, failure.node_id) == ("ValueError", ERROR["message"], None)
    assert not without_runs.failures.complete


def test_the_rows_of_a_failure_are_a_row_set(without_runs: StoredFailures, tmp_path: Path) -> None:
    without_runs.add(run_failed(1, 0), run_failed(2, 1, position=0, certain=False))
    first = RowSetQuery(starts=(StartQuery(failure=1),))
    (source,) = without_runs.queries.row_set(APP, first).sources
    assert [file.rows for file in source.files] == [((2, 1),)]
    both = RowSetQuery(starts=(StartQuery(failure=1), StartQuery(failure=2)))
    row_set = without_runs.queries.row_set(APP, both)
    assert [file.rows for file in row_set.sources[0].files] == [((0, 1), (2, 1))]
    assert not row_set.exact
    assert row_set.how == "Of failure 2, it is the last record that was read, or one of a group."
    with pytest.raises(NotFoundError, match="no failure 3"):
        without_runs.queries.row_set(APP, RowSetQuery(starts=(StartQuery(failure=3),)))


def test_failures_and_records_are_starts_of_one_row_set(stored: StoredFailures) -> None:
    stored.add(run_failed(1, 0))
    record = StartQuery(node=str(SINK), partition=0, offset=3)
    row_set = stored.queries.row_set(APP, RowSetQuery(starts=(StartQuery(failure=1), record)))
    assert [file.rows for file in row_set.sources[0].files] == [((2, 2),)]
    assert [(asked.node, asked.record_id) for asked in row_set.asked] == [
        (SOURCE, "read#0#2"),
        (SINK, "write#0#3"),
    ]


def test_rows_that_a_failed_task_did_not_report_are_not_left_out(without_runs: StoredFailures) -> None:
    filtered = event(contract.NODE_REGISTERED, node=FILTER, name="filter", relation="flows", exact=True)
    without_runs.add(filtered, run_failed(1, 0, nodes=[FILTER, MAP, SINK], position=1, blocks=1))
    row_set = without_runs.queries.row_set(APP, RowSetQuery(starts=(StartQuery(failure=1),)))
    assert [(source.whole, source.files) for source in row_set.sources] == [(True, ())]
    assert not row_set.exact
    assert "not stored" in (row_set.how or "")


def test_a_query_that_read_a_shuffle_is_bounded_by_all_that_was_read(stored: StoredFailures) -> None:
    committed = event(
        contract.RUN_COMMITTED, run=50, split=0, stage=1, input=SCAN, nodes=[], inputs=3, outputs=3
    )
    stored.add_query(position=None, certain=False, reason="a shuffle", inputs=0, stage=7)
    stored.add(committed)
    (failure,) = stored.failures.failures
    assert ([row.text for row in failure.sources], failure.sources_total) == (["a", "b", "c"], 3)
    assert (failure.exact, failure.record) == (False, None)
    assert failure.reason == "a shuffle, so it may be any row of the inputs that was read"


def test_a_scan_that_no_task_has_begun_adds_nothing_to_a_bound(stored: StoredFailures) -> None:
    dataset = {"namespace": "file", "name": "other", "format": "text"}
    stored.add_query(position=None, certain=False, reason="several", inputs=1, outputs=1)
    stored.add(
        event(contract.NODE_REGISTERED, node=22, name="Scan text", kind="source", relation=contract.SOURCE,
              exact=True, by_id=True, dataset=dataset),
        event(contract.LINK, source=22, target=QUERY, port=1),
    )  # fmt: skip
    (failure,) = stored.failures.failures
    assert ([row.text for row in failure.sources], failure.sources_total) == (["a"], 1)


def test_a_bound_says_so_where_not_all_that_was_read_may_be_stored(stored: StoredFailures) -> None:
    stored.add_query(position=None, certain=False, reason="a shuffle", inputs=0, stage=7)
    # A block of it is missing.
    stored.add(event(contract.RUN_COMMITTED, run=50, split=0, stage=1, input=SCAN, nodes=[], inputs=3,
                     outputs=3, blocks=1))  # fmt: skip
    (failure,) = stored.failures.failures
    assert failure.sources_total == 3
    assert "inputs that was read, as far as is stored" in failure.reason


def test_a_function_is_bounded_by_the_inputs_of_its_action_alone(without_runs: StoredFailures) -> None:
    """Another action has joined its file with one whose rows are not known."""
    pickled, joined = 30, 31
    without_runs.add(
        event(contract.NODE_REGISTERED, node=pickled, name="pickleFile", kind="source",
              relation=contract.SOURCE, exact=True,
              dataset={"namespace": "file", "name": "pickled", "format": "pickle"}),
        event(contract.NODE_REGISTERED, node=joined, name="zip", relation=contract.ZIP, exact=True),
        event(contract.LINK, source=MAP, target=joined, port=0),
        event(contract.LINK, source=pickled, target=joined, port=1),
        run_failed(1, 0, certain=False),
    )  # fmt: skip
    (failure,) = without_runs.failures.failures
    assert ([row.text for row in failure.sources], failure.sources_total) == (["c", "a", "b", "d"], 4)


def test_a_function_of_an_rdd_does_not_say_what_its_task_has_scanned(stored: StoredFailures) -> None:
    stored.register_query()
    rows, failing = 30, 31
    stored.add(
        event(contract.NODE_REGISTERED, node=rows, name="Project", relation=contract.FLOWS, exact=True,
              by_id=True),
        event(contract.NODE_REGISTERED, node=failing, name="map", exact=True),
        event(contract.LINK, source=SCAN, target=rows),
        event(contract.LINK, source=SCAN, target=rows, ids=True),
        event(contract.LINK, source=rows, target=failing),
        event(contract.RUN_COMMITTED, run=50, split=1, stage=7, input=SCAN, nodes=[], action=SINK, inputs=2,
              outputs=2),
        run_failed(1, 0, stage=7, input=rows, nodes=[failing], failed_node=failing, certain=False),
    )  # fmt: skip
    (failure,) = stored.failures.failures
    assert (failure.sources_total, failure.exact) == (0, False)


def test_what_a_task_read_of_other_scans_is_part_of_the_bound(stored: StoredFailures) -> None:
    stored.add_query(
        position=None,
        certain=False,
        reason="several",
        inputs=1,
        outputs=1,
        scans=[{"node": SCAN, "split": 1, "rows": 9}],
    )
    (failure,) = stored.failures.failures
    assert (failure.sources_total, [row.text for row in failure.sources]) == (10, ["a"])


def test_a_row_that_was_not_a_record_yet_is_not_among_those_that_were_read(stored: StoredFailures) -> None:
    stored.add_query(position=None, first=3, certain=False, reason="not a record yet")
    (failure,) = stored.failures.failures
    assert (failure.sources, failure.sources_total, failure.reason) == ((), 0, "not a record yet")


def test_a_row_at_hand_that_may_have_met_others_comes_first(stored: StoredFailures) -> None:
    stored.add_query(certain=False, reason="a join")
    (failure,) = stored.failures.failures
    assert ([row.text for row in failure.sources], failure.sources_total) == (["c", "a", "b"], 3)
    assert failure.record is not None


def test_a_line_that_could_not_be_read_is_one_behind_those_that_were(without_runs: StoredFailures) -> None:
    without_runs.add(run_failed(1, 0, failed_node=SOURCE, position=None, certain=False))
    (failure,) = without_runs.failures.failures
    assert ([row.text for row in failure.sources], failure.exact) == (["d"], False)
    assert "behind those that were read before" in failure.reason


def test_a_task_that_had_read_nothing_has_no_rows(without_runs: StoredFailures) -> None:
    without_runs.add(run_failed(1, 0, inputs=0, position=None, certain=False))
    (failure,) = without_runs.failures.failures
    assert (failure.sources, failure.reason) == ((), "the task had read no record yet")


def test_what_a_failed_task_had_made_itself_leads_to_its_rows(with_two_partitions: StoredFailures) -> None:
    """The first function of a task has ended and reported what it made; the second one failed."""
    made, failing = 30, 31
    nodes = [
        event(contract.NODE_REGISTERED, node=number, name="map", relation=contract.IDENTITY, exact=True)
        for number in (made, failing)
    ]
    links = [
        event(contract.LINK, source=SOURCE, target=made),
        event(contract.LINK, source=made, target=failing),
    ]
    kept = event(
        contract.RUN_KEPT, run=40, split=0, attempt=9, stage=3, input=SOURCE, nodes=[made], inputs=2,
        outputs=2,
    )  # fmt: skip
    failed = run_failed(
        41, 9, stage=3, input=made, nodes=[failing], failed_node=failing, position=1, inputs=2
    )
    with_two_partitions.add(*nodes, *links, kept, failed)
    (failure,) = with_two_partitions.failures.failures
    assert ([row.text for row in failure.sources], failure.exact, failure.reason) == (["b"], True, "")
