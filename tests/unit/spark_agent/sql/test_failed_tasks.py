"""What is said of a task of a query that failed: which record, when it is certain, and why not."""

from __future__ import annotations

from typing import Any

import pytest

from spark_agent import contract
from spark_agent.contract.event_checks import decode_event
from spark_agent.delivery.settings import AgentSettings
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.runtime.failed_tasks import FailedTasks

SCAN, OTHER, SINK = 1, 8, 9
#: The ids of records of partition 3 of the scan.
FIRST_ID = 3 << 33
DIVIDED = (
    "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== DataFrame ==\n"
    '"divide" was called from\n/jobs/job.py:12\n'
)
RAISED = (
    "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
    'Traceback (most recent call last):\n  File "/jobs/job.py", line 7, in f\n    return 1 / x\n'
    "ZeroDivisionError: division by zero\n"
)


def plan(*operators: str, **of_scan: Any) -> list[PlanNode]:
    """A scan, operators one over the other, and an output. A union has rows of others, too."""
    nodes = [PlanNode(SCAN, "Scan csv", kind="source", **of_scan)]
    for name in operators:
        before = nodes[-1].number
        parents = [before, OTHER] if name == "Union" else [before]
        nodes.append(PlanNode(before + 1, name, parents=parents, call_site=f"/jobs/job.py:{10 + before}"))
    return [*nodes, PlanNode(SINK, "collect", kind="sink", parents=[nodes[-1].number])]


def scan(rows: int, **fields: Any) -> dict[str, Any]:
    part = {"path": "file:/data/in%20put.csv", "start": 0, "length": 900, "first": 0}
    said: dict[str, Any] = {"node": SCAN, "split": 3, "run": 77, "rows": rows, "passes": 1}
    said |= {"is_within_file": True, "parts": [part]}
    return {**said, **fields}


def tap(last: int | None, node: int = SINK) -> dict[str, Any]:
    sources, ids = ([], []) if last is None else ([SCAN], [FIRST_ID + last])
    return {"node": node, "split": 3, "run": 78, "sources": sources, "ids": ids}


class Tasks:
    def __init__(
        self,
        *plans: list[PlanNode],
        is_streamed: bool = True,
        has_files: bool = True,
        batch: int | None = None,
        **settings: Any,
    ) -> None:
        self.events: list[dict[str, Any]] = []
        agent_settings = AgentSettings(bootstrap_servers="", **settings)
        self._tasks = FailedTasks(self._emit, agent_settings, lambda _node: has_files)
        for nodes in plans:
            self._tasks.add_plan(nodes, is_streamed=is_streamed, batch=batch)

    def _emit(self, event_type: str, **fields: Any) -> None:
        self.events.append(decode_event(contract.encode_event(event_type, "app", 1, fields)))

    def failed(self, *scans: dict[str, Any], origin: str = "row", **fields: Any) -> dict[str, Any]:
        report: dict[str, Any] = {
            "split": 3,
            "attempt": 12,
            "stage": 4,
            "origin": origin,
            "error": "org.apache.spark.SparkArithmeticException",
            "message": DIVIDED,
            "scans": list(scans),
            "taps": [tap(None)],
        }
        self._tasks.failed({**report, **fields})
        return self.events[-1]


def found(event: dict[str, Any]) -> tuple[int | None, int | None, bool]:
    return event["first"], event["position"], event["certain"]


@pytest.mark.parametrize(
    "operators", [(), ("Project",), ("Filter", "Project", "Generate"), ("Union", "Project")]
)
def test_the_row_at_hand_is_the_last_one_of_the_scan(operators: tuple[str, ...]) -> None:
    event = Tasks(plan(*operators)).failed(scan(41))
    assert found(event) == (None, 40, True)
    assert event["reason"] is None


def test_the_event_has_the_run_the_error_and_the_files() -> None:
    event = Tasks(plan("Filter", "Project")).failed(scan(41))
    assert (event["run"], event["split"], event["attempt"], event["stage"]) == (77, 3, 12, 4)
    assert (event["input"], event["nodes"], event["action"], event["inputs"]) == (SCAN, [], SINK, 41)
    assert (event["error"], event["frame"]) == ("SparkArithmeticException", "/jobs/job.py:12")
    assert event["message"].startswith("[DIVIDE_BY_ZERO] Division by zero")
    assert event["parts"][0]["path"] == "/data/in put.csv"


def test_the_operator_is_the_one_at_the_line_that_the_error_names() -> None:
    assert Tasks(plan("Filter", "Project")).failed(scan(41))["failed_node"] == 3
    assert Tasks(plan("Filter", "Project")).failed(scan(41), message="[X] y")["failed_node"] == SINK


@pytest.mark.parametrize("operator", ["Sort", "Aggregate", "Window"])
def test_before_an_operator_that_takes_all_rows_the_row_is_certain_while_its_file_is_read(
    operator: str,
) -> None:
    tasks = Tasks(plan("Project", operator, "Project"))
    assert found(tasks.failed(scan(41))) == (None, 40, True)
    behind = tasks.failed(scan(41, is_within_file=False), taps=[tap(40)])
    assert found(behind) == (0, 40, False)
    assert "takes all rows" in behind["reason"]


def test_a_sum_that_is_too_large_is_not_the_fault_of_its_last_row() -> None:
    tasks, message = Tasks(plan("Project", "Aggregate")), "[ARITHMETIC_OVERFLOW] long overflow."
    event = tasks.failed(scan(41), message=message)
    assert found(event) == (0, 40, False)
    assert "group" in event["reason"]
    assert found(Tasks(plan("Project")).failed(scan(41), message=message)) == (None, 40, True)


def test_a_sum_that_is_too_large_may_have_rows_of_several_files() -> None:
    message = "[ARITHMETIC_OVERFLOW] long overflow."
    before = scan(90, split=2, is_within_file=False)
    several = Tasks(plan("Repartition", "Aggregate")).failed(before, scan(41), message=message)
    of_union = Tasks(plan("Union", "Aggregate")).failed(scan(41), message=message)
    for event in (several, of_union):
        assert found(event) == (None, None, False)
        assert "group" in event["reason"]


def test_a_limit_may_end_the_reading_of_a_file_before_a_sort_gives_rows() -> None:
    event = Tasks(plan("LocalLimit", "Sort", "Project")).failed(scan(41))
    assert found(event) == (0, 40, False)
    assert found(Tasks(plan("LocalLimit", "Project")).failed(scan(41))) == (None, 40, True)


def test_a_file_that_an_rdd_reads_is_none_of_the_scan() -> None:
    tasks = Tasks(plan("Sort"), has_files=False)
    event = tasks.failed(scan(41))
    assert (*found(event), event["parts"]) == (0, 40, False, [])


def test_what_is_not_raised_for_one_row_may_be_about_any() -> None:
    event = Tasks(plan("Project")).failed(scan(41), origin="elsewhere", taps=[tap(39)])
    assert found(event) == (0, 40, False)


def test_where_there_is_no_file_it_is_not_known_whether_a_sort_has_all_rows() -> None:
    assert found(Tasks(plan("Sort")).failed(scan(41, is_within_file=False, parts=[]))) == (0, 40, False)
    assert found(Tasks(plan("Project")).failed(scan(41, is_within_file=False, parts=[]))) == (None, 40, True)


def test_where_there_is_no_file_the_other_side_of_a_union_may_be_read() -> None:
    in_memory = scan(41, is_within_file=False, parts=[])
    event = Tasks(plan("Union", "Repartition", "Project")).failed(in_memory)
    assert found(event) == (None, None, False)
    assert "several inputs" in event["reason"]
    joined = [*plan("Join")[:2], PlanNode(SINK, "collect", kind="sink", parents=[2])]
    joined[1].parents = [SCAN, OTHER]
    assert found(Tasks(joined).failed(in_memory)) == (None, 40, False)


def test_a_row_that_may_have_met_others_is_not_certain() -> None:
    event = Tasks(plan("Project", "Join", "Project")).failed(scan(41))
    assert found(event) == (None, 40, False)
    assert "other side of a join" in event["reason"]
    subquery = [PlanNode(5, "ScalarSubquery"), PlanNode(6, "Filter", parents=[SCAN, 5])]
    event = Tasks([plan()[0], *subquery, PlanNode(SINK, "collect", kind="sink", parents=[6])]).failed(
        scan(41)
    )
    assert found(event) == (None, 40, False)


def test_python_has_a_batch_behind_the_last_row_that_came_out() -> None:
    tasks = Tasks(plan("Filter", "BatchEvalPython", "Project"))
    for taps, first in (([tap(None)], 0), ([tap(99)], 99)):
        event = tasks.failed(scan(250), origin="python", message=RAISED, taps=taps)
        assert found(event) == (first, 249, False)
        assert "batches" in event["reason"]
        assert (event["error"], event["message"]) == ("ZeroDivisionError", "division by zero")
        assert (event["frame"], event["failed_node"]) == ("/jobs/job.py:7", 3)


def test_a_function_for_rows_failed_in_its_next_batch() -> None:
    raised = {"origin": "python", "message": RAISED}
    tasks = Tasks(plan("Project", "BatchEvalPython", "Project"), batch=100)
    assert found(tasks.failed(scan(5_000), **raised, taps=[tap(199)])) == (200, 299, False)
    assert found(tasks.failed(scan(5_000), **raised, taps=[tap(None)])) == (0, 99, False)
    assert found(tasks.failed(scan(50), **raised, taps=[tap(None)])) == (0, 49, False)
    killed = {"origin": "python", "message": "Python worker exited unexpectedly (crashed)"}
    assert found(tasks.failed(scan(5_000), **killed, taps=[tap(199)])) == (199, 4_999, False)
    assert found(tasks.failed(scan(5_000), origin="row", taps=[tap(199)])) == (199, 4_999, False)


def test_a_worker_that_says_the_place_in_its_batch_makes_the_record_certain() -> None:
    raised = {"origin": "python", "message": RAISED}
    tasks = Tasks(plan("Project", "BatchEvalPython", "Project"), batch=100)
    assert found(tasks.failed(scan(5_000), **raised, taps=[tap(199)], call=[7, 100])) == (None, 207, True)
    assert found(tasks.failed(scan(250), **raised, taps=[tap(199)], call=[7, 50])) == (None, 207, True)
    arrow = Tasks(plan("ArrowEvalPython"))
    assert found(arrow.failed(scan(5_000), **raised, taps=[tap(41)], call=[0, 9])) == (None, 42, True)


@pytest.mark.parametrize(
    ("operators", "last", "call"),
    [
        (("BatchEvalPython",), 199, None),
        (("BatchEvalPython",), 199, [7, 50]),
        (("BatchEvalPython",), 150, [7, 100]),
        (("BatchEvalPython",), 199, [100, 100]),
        (("BatchEvalPython",), 4_999, [7, 100]),
        (("Filter", "BatchEvalPython"), 199, [7, 100]),
        (("BatchEvalPython", "ArrowEvalPython"), 199, [7, 100]),
        (("MapInPandas",), 199, [7, 100]),
    ],
)
def test_a_place_that_fits_no_batch_makes_nothing_certain(
    operators: tuple[str, ...], last: int, call: list[int] | None
) -> None:
    tasks = Tasks(plan(*operators), batch=100)
    event = tasks.failed(scan(5_000), origin="python", message=RAISED, taps=[tap(last)], call=call)
    assert not event["certain"]


@pytest.mark.parametrize("operator", ["Filter", "Generate", "ArrowEvalPython", "BatchEvalPython"])
def test_where_rows_are_left_out_or_prefetched_a_batch_may_be_anywhere(operator: str) -> None:
    tasks = Tasks(plan(operator, "BatchEvalPython"), batch=100)
    event = tasks.failed(scan(5_000), origin="python", message=RAISED, taps=[tap(199)])
    assert found(event) == (199, 4_999, False)


def test_rows_before_an_aggregate_bound_a_batch_too() -> None:
    nodes = plan("BatchEvalPython", "Aggregate")
    nodes.insert(3, PlanNode(7, "Aggregate: rows", kind="step", operation=3))
    event = Tasks(nodes).failed(scan(250), origin="python", message=RAISED, taps=[tap(99, node=7)])
    assert found(event) == (99, 249, False)


def test_ids_of_other_partitions_bound_nothing() -> None:
    other = {**tap(99), "ids": [(4 << 33) + 99]}
    event = Tasks(plan("BatchEvalPython")).failed(scan(250), origin="python", message=RAISED, taps=[other])
    assert found(event) == (0, 249, False)


def test_what_a_worker_of_an_rdd_has_reported_is_not_reported_again() -> None:
    of_two_queries = (scan(41), scan(7, node=OTHER))
    for operator in ("Project", "BatchEvalPython"):
        tasks = Tasks(plan(operator), batch=4)
        tasks.failed(scan(41))
        for scans in ((scan(41),), of_two_queries):
            tasks.failed(*scans, origin="rdd", message=RAISED, taps=[tap(39)])
        assert len(tasks.events) == 1


def test_what_python_gave_to_a_query_that_calls_none_is_no_row_yet() -> None:
    tasks = Tasks(plan("Project"))
    tasks.failed(scan(41))
    tasks.failed(scan(41), origin="python", message=RAISED)
    assert len(tasks.events) == 1


def test_an_input_that_cannot_be_read_has_no_record() -> None:
    event = Tasks(plan("Project")).failed(scan(41), origin="scan")
    assert found(event) == (41, None, False)
    assert "behind this many of its records: 41" in event["reason"]


def test_a_file_that_cannot_be_read_from_its_first_byte_is_none_that_was_read() -> None:
    done, begun = scan(10, split=2, is_within_file=False), scan(0, is_within_file=False, parts=[])
    event = Tasks(plan("Repartition")).failed(done, begun, origin="scan")
    assert event["position"] is None
    assert "several inputs" in event["reason"]


def test_a_condition_that_fails_on_the_first_row_of_a_file_is_about_none_that_was_read() -> None:
    done, begun = scan(10, split=2, is_within_file=False), scan(0, is_within_file=False, parts=[])
    tasks = Tasks(plan("Filter", "Repartition", is_prefiltered=True))
    event = tasks.failed(done, begun)
    assert event["position"] is None
    assert "several inputs" in event["reason"]
    assert found(tasks.failed(begun)) == (0, None, False)


def test_a_condition_that_fails_before_rows_are_counted_names_none() -> None:
    nodes = plan("Filter", is_prefiltered=True)
    assert found(Tasks(nodes).failed(scan(41))) == (41, None, False)
    of_several = Tasks(nodes).failed(scan(41), scan(7, split=4))
    assert found(of_several) == (41, None, False)
    assert "several inputs" in of_several["reason"]


def test_behind_a_shuffle_no_row_is_known() -> None:
    event = Tasks(plan("Join")).failed()
    assert found(event) == (None, None, False)
    assert (event["input"], event["run"], event["failed_node"]) == (SINK, 78, SINK)
    assert "a shuffle" in event["reason"]


def test_of_several_partitions_the_one_counts_whose_file_is_being_read() -> None:
    done = scan(90, split=2, is_within_file=False)
    assert found(Tasks(plan("Union")).failed(done, scan(41))) == (None, 40, True)
    both = Tasks(plan("Union")).failed(scan(90, split=2), scan(41))
    assert found(both) == (None, None, False)
    assert "several inputs" in both["reason"]


def test_a_partition_that_is_read_twice_is_several() -> None:
    assert found(Tasks(plan("Union")).failed(scan(41, passes=2))) == (None, None, False)


@pytest.mark.parametrize("operators", [("MapInPandas",), ("SomethingNew",)])
def test_operators_that_are_not_known_make_it_a_bound(operators: tuple[str, ...]) -> None:
    assert found(Tasks(plan(*operators)).failed(scan(41), taps=[tap(30)])) == (0, 40, False)


def test_rows_that_are_persisted_make_it_a_bound() -> None:
    assert found(Tasks(plan("Project"), is_streamed=False).failed(scan(41))) == (0, 40, False)


def test_what_the_task_read_of_other_scans_is_said_too() -> None:
    done = scan(90, split=2, is_within_file=False)
    event = Tasks(plan("Join")).failed(done, scan(41))
    (other,) = event["scans"]
    assert (event["split"], event["inputs"]) == (3, 41)
    assert (other["node"], other["split"], other["rows"]) == (SCAN, 2, 90)
    assert other["parts"][0]["path"] == "/data/in put.csv"


def test_behind_a_union_other_rows_may_be_to_blame_than_those_of_the_scan() -> None:
    assert found(Tasks(plan("Union", "Project")).failed(scan(41))) == (None, 40, True)
    behind = Tasks(plan("Union", "Sort")).failed(scan(41, is_within_file=False), taps=[tap(40)])
    assert found(behind) == (None, None, False)


def test_of_a_plan_that_is_not_known_nothing_is_said() -> None:
    event = Tasks().failed(scan(41))
    assert (*found(event), event["failed_node"], event["action"]) == (None, None, False, SCAN, None)


def test_python_behind_a_join_is_not_known() -> None:
    event = Tasks(plan("Join", "BatchEvalPython")).failed(scan(41), origin="python", message=RAISED)
    assert found(event) == (None, None, False)


def test_a_bound_is_of_one_partition() -> None:
    done = scan(90, split=2, is_within_file=False)
    event = Tasks(plan("BatchEvalPython")).failed(done, scan(41), origin="python", message=RAISED)
    assert found(event) == (None, None, False)


def test_an_error_before_the_first_row_has_none() -> None:
    event = Tasks(plan("Project")).failed(scan(0, is_within_file=False))
    assert found(event) == (None, None, False)
    assert "before" in event["reason"]


def test_plans_that_disagree_say_nothing() -> None:
    of_rdd = {"kind": "operator", "parents": [SCAN]}
    plans = [
        [
            PlanNode(20, "LogicalRDD", **of_rdd),
            PlanNode(21, name, parents=[20]),
            PlanNode(SINK, "x", parents=[21]),
        ]
        for name in ("Project", "MapInPandas")
    ]
    here = scan(41, is_within_file=False, parts=[])
    assert found(Tasks(plans[0]).failed(here)) == (None, 40, True)
    assert found(Tasks(*plans).failed(here)) == (None, None, False)


def redacted(_operation: str, kind: str, text: str) -> str:
    return f"{kind} of {len(text)} characters"


def test_what_the_error_says_goes_through_the_redaction() -> None:
    event = Tasks(plan("Project"), redact=f"{__name__}:redacted").failed(scan(41))
    assert event["message"].startswith("error of ")
    assert "Division" not in str(event)
