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

    def __init__(
        self, way: str = "literal", most: int = 1_000, needed: float | None = None, is_list: bool = False
    ) -> None:
        self.count, self._way, self._most = 0, way, most
        self._needed, self.is_list = needed, is_list

    def run(self, plan: Plan, sinks: Sequence[int]) -> JobRun:
        if self.count == self._most:
            raise OutOfTimeError
        self.count += 1
        numbers = [float(line) for source in plan.sources for line in source["texts"]["0"]]
        report = AgentReport(is_there=True, sources=(ReportedSource(0, "textFile", self._way, "so it is"),))
        is_bad = 13 in numbers and len(numbers) == 2
        if is_bad or (self._needed is not None and self._needed not in numbers):
            return JobRun(7, "ValueError: 13", report, {})
        value = numbers if self.is_list else sum(numbers)
        return JobRun(0, "", report, {SINK: [f"total,{value}"] if numbers else []})


class FailsWithout(Sums):
    """Fails only where this number alone is not there."""

    def __init__(self, needed: float) -> None:
        super().__init__()
        self._left_out = needed

    def run(self, plan: Plan, sinks: Sequence[int]) -> JobRun:
        run = super().run(plan, sinks)
        lines = [line for source in plan.sources for line in source["texts"]["0"]]
        if len(lines) == 220 and str(self._left_out) not in lines:
            return JobRun(7, "ValueError", run.report, {})
        return run


def runs_of(numbers: Sequence[int], job: Sums) -> tuple[LeftOutRuns, Candidates, list[InputRow], list[str]]:
    texts = [str(number) for number in numbers]
    source: dict[str, Any] = {
        "node": 0,
        "name": "textFile",
        "whole": False,
        "splits": [{"split": 0, "positions": [[0, len(texts)]]}],
        "texts": {"0": texts},
    }
    before = [f"total,{[float(number) for number in numbers] if job.is_list else float(sum(numbers))}"]
    template = Plan(mode="only", sources=())
    runs: Any = LeftOutRuns("app-1", None, job, template, OutputRow(SINK, "/out", 0, before[0]))  # type: ignore[arg-type]
    rows = [InputRow([at], None, f"/in:{at + 1}") for at in range(len(texts))]
    return runs, Candidates([source]), rows, before


def test_the_row_without_each_row() -> None:
    runs, candidates, rows, before = runs_of([1, 2, 4], Sums())
    assert runs.of_lineage(candidates, rows, before) == ["total,6.0", "total,5.0", "total,3.0"]
    assert (runs.failed, runs.unsure, runs.notes) == (set(), set(), [])
    together = [InputRow([0, 1], ("/in", 0), "/in:1"), InputRow([2], ("/in", 1), "/in:2")]
    assert runs.of_lineage(candidates, together, before) == ["total,4.0", "total,3.0"]


def test_a_run_that_fails_and_one_that_is_too_late_are_said() -> None:
    runs, candidates, rows, before = runs_of([1, 13, 2], Sums(most=2))
    assert runs.of_lineage(candidates, rows, before) == [None, "total,3.0"]
    assert (runs.failed, runs.unsure) == ({0}, set())
    assert runs.notes == [
        "without /in:1 the command ended with exit code 7",
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


def test_a_run_without_one_of_many_rows_that_fails_says_so() -> None:
    numbers = [*[1] * 220, 900]
    runs, candidates, rows, before = runs_of(numbers, Sums(needed=900))
    with pytest.raises(ReplayError, match="nothing can be said: how much each row matters cannot be"):
        runs.of_halves(candidates, rows, before)  # of two halves one fails
    job = FailsWithout(900)
    runs, candidates, rows, before = runs_of(numbers, job)
    halves = runs.of_halves(candidates, rows, before)
    assert (halves.without[220], halves.changes[220]) == (None, None)
    assert (runs.failed, runs.notes) == ({220}, ["without /in:221 the command ended with exit code 7"])


def test_halves_that_give_no_row_of_the_same_form_estimate_nothing() -> None:
    runs, candidates, rows, before = runs_of(list(range(201)), Sums(is_list=True))
    with pytest.raises(ReplayError, match="halves of the rows give no row of the same form"):
        runs.of_halves(candidates, rows, before)


def test_a_row_that_is_nearly_the_same_is_the_row() -> None:
    runs, candidates, rows, before = runs_of([*[0] * 220, 1], Sums())
    text = "total,0.9999999999999999"
    runs._output = OutputRow(SINK, "/out", 0, text)
    halves = runs.of_halves(candidates, rows, before)
    assert {*halves.without} == {None, text, "total,0.0"}
