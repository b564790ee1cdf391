"""Runs without one row after the other, of a job that sums its lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lineage_service.replays.agent_report import AgentReport, ReportedSource
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.sift.candidates import Candidates
from lineage_service.replays.sift.failing_outputs import OutputRow
from lineage_service.replays.sift.job_runs import JobRun
from lineage_service.replays.sift.left_out_runs import InputRow, LeftOutRuns
from lineage_service.replays.specification import Plan
from spark_agent.contract.smallest_rows import OutOfTimeError

SINK = 2


class Sums:
    """What JobRuns does of a plan, for a job that sums the lines of one source."""

    def __init__(self, way: str = "literal", most: int = 1_000) -> None:
        self.count, self._way, self._most = 0, way, most

    def run(self, plan: Plan, sinks: Sequence[int]) -> JobRun:
        if self.count == self._most:
            raise OutOfTimeError
        self.count += 1
        numbers = [float(line) for source in plan.sources for line in source["texts"]["0"]]
        report = AgentReport(is_there=True, sources=(ReportedSource(0, "textFile", self._way, "so it is"),))
        if 13 in numbers and len(numbers) == 2:
            return JobRun(7, "ValueError: 13", report, {})
        return JobRun(0, "", report, {SINK: [f"total,{sum(numbers)}"] if numbers else []})


def runs_of(numbers: Sequence[int], job: Sums) -> tuple[LeftOutRuns, Candidates, list[InputRow], list[str]]:
    texts = [str(number) for number in numbers]
    source: dict[str, Any] = {
        "node": 0,
        "name": "textFile",
        "whole": False,
        "splits": [{"split": 0, "positions": [[0, len(texts)]]}],
        "texts": {"0": texts},
    }
    before = [f"total,{float(sum(numbers))}"]
    template = Plan(mode="only", sources=())
    runs: Any = LeftOutRuns("app-1", None, job, template, OutputRow(SINK, "/out", 0, before[0]))  # type: ignore[arg-type]
    return runs, Candidates([source]), [InputRow([at], None) for at in range(len(texts))], before


def test_the_row_without_each_row() -> None:
    runs, candidates, rows, before = runs_of([1, 2, 4], Sums())
    assert runs.of_lineage(candidates, rows, before) == ["total,6.0", "total,5.0", "total,3.0"]
    assert (runs.failed, runs.unsure, runs.notes) == (set(), set(), [])
    together = [InputRow([0, 1], ("/in", 0)), InputRow([2], ("/in", 1))]
    assert runs.of_lineage(candidates, together, before) == ["total,4.0", "total,3.0"]


def test_a_run_that_fails_and_one_that_is_too_late_are_said() -> None:
    runs, candidates, rows, before = runs_of([1, 13, 2], Sums(most=2))
    assert runs.of_lineage(candidates, rows, before) == [None, "total,3.0"]
    assert (runs.failed, runs.unsure) == ({0}, set())
    assert runs.notes == [
        "without row 1 the command ended with exit code 7",
        "the time was over: only the first 2 rows were left out",
    ]


def test_rows_that_are_not_restricted_say_nothing() -> None:
    runs, candidates, rows, before = runs_of([1, 2], Sums(way="whole"))
    with pytest.raises(ReplayError, match="nothing can be said: textFile was read whole: so it is"):
        runs.of_lineage(candidates, rows, before)
    with pytest.raises(ReplayError, match="nothing can be said: textFile was read whole: so it is"):
        runs.of_halves(candidates, rows, before)


def test_of_many_rows_halves_are_run_and_the_largest_changes_computed() -> None:
    job = Sums()
    numbers = [*[1] * 120, 900, *[2] * 100]
    runs, candidates, rows, before = runs_of(numbers, job)
    halves = runs.of_halves(candidates, rows, before)
    assert job.count == 64 + 36
    assert (halves.without[120], halves.changes[120]) == (f"total,{float(sum(numbers) - 900)}", None)
    assert sum(change is not None for change in halves.changes) == len(numbers) - 36
