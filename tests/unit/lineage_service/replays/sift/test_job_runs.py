"""What one process of several runs has printed in the last of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lineage_service.replays.sandbox import Sandbox
from lineage_service.replays.sift.job_runs import JobRuns, for_short_runs, last_line


def test_of_a_dead_process_only_what_this_run_printed_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(tmp_path)
    sandbox.stderr.write_text('File "job.py", line 3\nValueError: of the run before\n')
    original: Any = None
    runs = JobRuns(original, sandbox, {}, ["python", "job.py"], (), ())

    def killed() -> int:
        with sandbox.stderr.open("a") as file:
            file.write("Killed\n")
        return -9

    monkeypatch.setattr(runs, "_process", SimpleNamespace(poll=killed))
    code, printed = runs._ended(Sandbox(tmp_path / "1"))
    assert (code, printed.strip()) == (137, "Killed")


def test_the_last_line_of_what_was_printed() -> None:
    assert last_line("one\ntwo\n\n") == "two"
    assert last_line(" \n") == "it printed nothing"


def test_jvms_compile_less_and_take_what_the_user_wants_of_them() -> None:
    assert for_short_runs({})["SPARK_SUBMIT_OPTS"] == "-XX:TieredStopAtLevel=1"
    assert (
        for_short_runs({"SPARK_SUBMIT_OPTS": "-Da=b"})["SPARK_SUBMIT_OPTS"] == "-XX:TieredStopAtLevel=1 -Da=b"
    )
