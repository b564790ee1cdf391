"""What one process of several runs has printed in the last of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lineage_service.replays.sandbox import Sandbox
from lineage_service.replays.sift.job_runs import JobRuns, for_short_runs, last_line
from lineage_service.replays.specification import Plan


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
    ended = runs._ended(Sandbox(tmp_path / "1"))
    assert (ended.exit_code, ended.printed.strip()) == (137, "Killed")


def test_the_last_line_of_what_was_printed() -> None:
    assert last_line("one\ntwo\n\n") == "two"
    assert last_line(" \n") == "it printed nothing"


def test_jvms_compile_less_and_take_what_the_user_wants_of_them() -> None:
    assert for_short_runs({})["SPARK_SUBMIT_OPTS"] == "-XX:TieredStopAtLevel=1"
    assert (
        for_short_runs({"SPARK_SUBMIT_OPTS": "-Da=b"})["SPARK_SUBMIT_OPTS"] == "-XX:TieredStopAtLevel=1 -Da=b"
    )


SOURCE = {"node": 0, "name": "textFile", "whole": False, "texts": {"3": ["a"]}, "splits": [
    {"split": 3, "positions": [[7, 1]]}
]}  # fmt: skip


class _Runs(JobRuns):
    """Whose process ends each run at once, and says `looks` and how it read the source."""

    def __init__(self, folder: Path, looks: str = "", way: str = "literal") -> None:
        original: Any = SimpleNamespace(sinks={}, application_id="local-1", name="job")
        super().__init__(original, Sandbox(folder), {}, ["python", "job.py"], (), ())
        self.can_be_compact, self.specs = True, list[Any]()
        self._looks, self._way = looks, way

    def _ended(self, sandbox: Sandbox) -> Any:
        spec = sandbox.read("spec.json")
        self.specs.append(spec)
        source = {"node": 0, "name": "textFile", "way": self._way}
        sandbox.write("report.json", {"application": "local-2", "sources": [source]})
        looks = self._looks if spec.get("compact") else ""
        return SimpleNamespace(exit_code=0, printed="", looks=looks)

    def compact(self, plan: Plan) -> list[bool]:
        """Was each run for this plan one of few partitions?"""
        self.specs.clear()
        self.run(plan, ())
        return [spec.get("compact") is True for spec in self.specs]


def plan_of(**source: Any) -> Plan:
    return Plan(mode="only", sources=({**SOURCE, **source},))


@pytest.fixture
def spec_of_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "lineage_service.replays.sift.job_runs.spec_of",
        lambda original, plan, *_, is_silent, is_compact: {"compact": is_compact},
    )


@pytest.mark.usefixtures("spec_of_any")
def test_few_lines_are_run_in_few_partitions(tmp_path: Path) -> None:
    runs = _Runs(tmp_path)
    assert runs.compact(plan_of()) == [True]
    assert runs.compact(plan_of(whole=True)) == [False]
    many = {"texts": {}, "splits": [{"split": 0, "positions": [[0, 10_001]]}]}
    assert runs.compact(plan_of(**many)) == [False]
    blocks = {name: value for name, value in SOURCE.items() if name != "texts"}
    assert runs.compact(Plan(mode="only", sources=(blocks,))) == [False]
    runs.can_be_compact = False
    assert runs.compact(plan_of()) == [False]


@pytest.mark.usefixtures("spec_of_any")
@pytest.mark.parametrize("sign", [{"looks": "TaskContext"}, {"way": "whole"}])
def test_a_program_that_sees_partitions_gets_all_of_them_from_then_on(
    tmp_path: Path, sign: dict[str, str]
) -> None:
    runs = _Runs(tmp_path, **sign)
    assert runs.compact(plan_of()) == [True, False]
    assert runs.compact(plan_of()) == [False]
