from __future__ import annotations

from dataclasses import replace

from lineage_service.replays.agent_report import AgentReport
from lineage_service.replays.failure_check import is_same_crash
from lineage_service.replays.sift.checks import CrashCheck, ReadyCheck
from lineage_service.replays.sift.job_runs import JobRun
from lineage_service.replays.sift.ready_test import ready_test
from tests.support.failure import FAILURE, PRINTED

WELL = JobRun(0, "", AgentReport(), {3: ["x 1", "x 99"], 4: []})


def test_an_output_fails_by_its_rows_and_a_run_that_ended_badly_is_unresolved() -> None:
    check = ReadyCheck(ready_test("x 99", ["x 1", "x 2", "x 3"]))
    assert check.failing(["x 1", "x 99", "x 98"]) == [1, 2]
    assert check.fails(WELL)
    assert not check.fails(replace(WELL, rows={3: ["x 1"]}))
    assert check.unresolved == 0
    assert not check.fails(JobRun(2, "oh\nZeroDivisionError: mean of nothing\n", AgentReport(), {}))
    assert check.unresolved == 1
    assert check.why == "the command ended with exit code 2: ZeroDivisionError: mean of nothing"


def test_a_crash_is_the_same_type_at_the_same_line() -> None:
    check = CrashCheck(FAILURE)
    assert check.description == "ZeroDivisionError at /jobs/job.py:41"
    assert check.fails(JobRun(1, PRINTED, AgentReport(), {}))
    assert check.fails(JobRun(1, PRINTED.replace("by zero", "of 3 by zero"), AgentReport(), {}))
    assert not check.fails(WELL)
    assert check.unresolved == 0
    assert not check.fails(JobRun(1, PRINTED.replace("line 41", "line 42"), AgentReport(), {}))
    assert not check.fails(JobRun(1, PRINTED.replace("ZeroDivision", "Value"), AgentReport(), {}))
    assert check.unresolved == 2
    assert not is_same_crash(FAILURE, 0, PRINTED)
