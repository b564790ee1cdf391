"""Actions that read a plan again which an RDD or a checkpoint was made of."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from spark_agent import contract
from spark_agent.sql.runtime.re_executions import ReExecutions, action_of

NODE = 3


class Recorded:
    """What became of runs, and the nodes that were made."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.reads = ReExecutions(
            itertools.count(10).__next__,
            lambda type, **fields: self.events.append((type, fields)),
            self.runs.append,
        )
        self.reads.add(NODE)

    @property
    def sinks(self) -> list[tuple[int, str]]:
        return [
            (fields["node"], fields["name"])
            for type, fields in self.events
            if type == contract.NODE_REGISTERED
        ]


def run(node: int = NODE, **fields: Any) -> dict[str, Any]:
    return {"run": 7, "input": node, "action": None, **fields}


def test_runs_of_an_execution_wait_for_its_end_and_get_a_sink_of_its_name() -> None:
    record = Recorded()
    assert record.reads.takes(run(execution=1))
    assert not record.runs
    record.reads.end(NODE, "collectToPython", is_failed=False)
    assert record.sinks == [(10, "collect")]
    assert [task_run["action"] for task_run in record.runs] == [10]
    assert (contract.LINK, {"source": NODE, "target": 10, "port": 0}) in record.events


def test_each_execution_has_a_sink_of_its_own() -> None:
    record = Recorded()
    for _ in range(2):
        record.reads.takes(run(execution=1))
        record.reads.end(NODE, "collectToPython", is_failed=False)
    assert record.sinks == [(10, "collect"), (11, "collect")]


@pytest.mark.parametrize("other", [run(), run(node=4, execution=1)])
def test_runs_of_no_execution_and_of_other_plans_do_not_wait(other: dict[str, Any]) -> None:
    assert not Recorded().reads.takes(other)


@pytest.mark.parametrize(
    ("name", "is_failed"), [("collectToPython", True), ("checkpoint", False), ("localCheckpoint", False)]
)
def test_what_gives_nobody_records_has_no_sink(name: str, is_failed: bool) -> None:
    record = Recorded()
    record.reads.takes(run(execution=1))
    record.reads.end(NODE, name, is_failed=is_failed)
    assert not record.sinks
    assert [task_run["action"] for task_run in record.runs] == [None]


def test_an_execution_that_nobody_said_the_end_of_is_told_at_the_end_of_the_application() -> None:
    record = Recorded()
    record.reads.takes(run(execution=1))
    record.reads.end_all()
    assert len(record.runs) == 1
    assert not record.sinks


def test_an_end_without_runs_makes_nothing() -> None:
    record = Recorded()
    record.reads.end(NODE, "collectToPython", is_failed=False)
    assert not record.events


def test_a_plan_that_others_read_has_no_actions() -> None:
    record = Recorded()
    record.reads.leave_out(NODE)
    assert not record.reads.takes(run(execution=1))


@pytest.mark.parametrize(
    ("heard", "name"),
    [
        ("collectToPython", "collect"),
        ("collectAsArrowToPython", "collect"),
        ("tailToPython", "tail"),
        ("toPythonIterator", "toLocalIterator"),
        ("foreach", "foreach"),
        ("", "query"),
    ],
)
def test_actions_have_the_names_that_people_call(heard: str, name: str) -> None:
    assert action_of(heard) == name
