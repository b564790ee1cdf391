"""Decisions over a real flow store and real files; Spark is left out, its events are not."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lineage_service.cli import main
from lineage_service.errors import NotFoundError
from lineage_service.lineage import Trigger
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.triggering.certain import file_looks
from lineage_service.triggering.decisions import Decider
from lineage_service.triggering.stored_jobs import StoredJobs
from lineage_service.triggering.waves.question import Question
from lineage_service.triggering.waves.wave_history import WaveHistory
from spark_agent import contract
from spark_agent.contract.program_code import hash_of_files
from tests.support.dataset_applications import Job, dataset, store_all

JOB = "nightly"


@pytest.fixture(autouse=True)
def _sharp_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a test are a moment older than what reads them."""
    monkeypatch.setattr(file_looks, "_LOCAL_S", 0.01)


class World:
    """A job that reads all of `in` and writes `out`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, DeltaFlowStore(folder / "flows")
        self.input, self.output, self.script = folder / "in", folder / "out", folder / "job.py"
        self.input.mkdir()
        (self.input / "a.csv").write_text("1\n")
        (self.input / "b.csv").write_text("2\n")
        self.script.write_text("x = 1\n")
        self.count = 0

    def run(self, files: list[Path] | None = None, wave: str | None = None, **ended: Any) -> str:
        """An execution, with what it read of its input; the id of its application."""
        time.sleep(0.03)
        self.count += 1
        files = sorted(self.input.glob("**/*.csv")) if files is None else files
        began = time.time_ns() // 1_000_000
        about = {
            "code": hash_of_files([str(self.script)]),
            "code_files": [str(self.script)],
            **({} if wave is None else {"wave": wave}),
        }
        job = Job(f"app-{self.count}", JOB, began=began, **about)
        read = job.node(
            "source",
            contract.SOURCE,
            name="Scan csv",
            description="in",
            dataset=dataset(str(self.input), "csv"),
        )
        job.tell(
            contract.PARTITIONS,
            node=read,
            partitions=[
                {"split": at, "parts": [{"path": str(file), "first": 0, **status(file)}]}
                for at, file in enumerate(files)
            ],
        )
        self.output.mkdir(exist_ok=True)
        part = self.output / "part-00000"
        part.write_text(f"{self.count}\n")
        sink = job.write(str(self.output), [read])
        job.tell(
            contract.PARTITIONS,
            node=sink,
            partitions=[{"split": 0, "path": str(part), "start": 0, **status(part)}],
        )
        time.sleep(0.01)
        job.time = time.time_ns() // 1_000_000
        job.end(**ended)
        store_all(self.store, job)
        return job.application_id

    def decide(self, wave: str | None = None, **question: Any) -> Trigger:
        time.sleep(0.03)
        return self.decider().decide(Question(job=JOB, wave=wave, **question))

    def decider(self) -> Decider:
        return Decider(self.store, WaveHistory(self.store.location))

    def add(self, name: str) -> Path:
        path = self.input / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("3\n")
        return path


def status(path: Path) -> dict[str, int]:
    file_state = path.stat()
    return {"size": file_state.st_size, "modified": file_state.st_mtime_ns // 1_000_000}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_job_runs_until_nothing_changes(world: World) -> None:
    first = world.decide()
    assert (first.decision, first.reason, first.application_id) == ("run", "never_ran", None)
    application_id = world.run()
    skip = world.decide()
    assert (skip.decision, skip.reason, skip.application_id) == ("skip", "unchanged", application_id)
    new = world.add("c.csv")
    changed = world.decide()
    assert (changed.decision, changed.reason) == ("run", "changed")
    assert str(new) in changed.why
    world.run()
    assert world.decide().decision == "skip"


def test_a_look_before_the_run_knows_what_the_run_did_not_read(world: World) -> None:
    world.run(files=[world.input / "a.csv"])
    assert world.decide().reason == "changed"  # whether b.csv is new is not known
    world.run(files=[world.input / "a.csv"])
    assert world.decide().decision == "skip"
    world.add("day=2/c.csv")
    assert world.decide().reason == "changed"


@pytest.mark.parametrize("what", ["touched", "moved into place", "removed", "link"])
def test_files_are_known_by_more_than_their_names(world: World, what: str) -> None:
    old = world.folder / "old.csv"
    old.write_text("9\n")
    link = world.input / "c.csv"
    link.symlink_to(old)
    (world.folder / "other.csv").write_text("8\n")
    world.run()
    assert world.decide().decision == "skip"
    world.run()
    file = world.input / "b.csv"
    if what == "touched":
        os.utime(file, (1, 1))
    elif what == "moved into place":
        before = file.stat()
        (world.folder / "new.csv").write_text("7\n")
        os.utime(world.folder / "new.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
        (world.folder / "new.csv").rename(file)
    elif what == "removed":
        file.unlink()
    else:
        link.unlink()
        link.symlink_to(world.folder / "other.csv")
    assert world.decide().reason == "changed"


def test_code_that_differs_is_run(world: World) -> None:
    world.run()
    world.script.write_text("x = 2\n")
    assert world.decide().reason == "code"
    world.run()
    assert world.decide().decision == "skip"


def test_a_job_that_failed_is_run_again(world: World) -> None:
    world.run(state=contract.FAILED, error={"type": "ValueError", "message": "no"})
    assert world.decide().reason == "failed"


def test_an_output_that_somebody_else_wrote_is_run_again(world: World) -> None:
    world.run()
    (world.output / "part-00000").write_text("other\n")
    assert world.decide().reason == "output_changed"


def test_the_same_wave_has_the_same_answer(world: World) -> None:
    first = world.decide("w1")
    world.run()
    again = world.decide("w1")
    assert (again.decision, again.reason, again.repeated) == ("run", "never_ran", True)
    skip = world.decide("w2")
    world.add("c.csv")
    assert replace(world.decide("w2"), repeated=False) == skip
    assert replace(again, repeated=False) == first


def test_what_was_decided_and_never_ran_is_decided_again(world: World) -> None:
    world.run()
    world.add("c.csv")
    assert world.decide("w1").decision == "run"  # and whoever asked was killed
    assert world.decide("w2").decision == "run"
    world.run(wave="w2")
    assert world.decide("w3").decision == "skip"


def test_two_who_ask_for_one_wave_get_one_answer(world: World) -> None:
    world.run()
    barrier = Barrier(4)

    def ask(_: int) -> Trigger:
        decider = world.decider()
        barrier.wait()
        return decider.decide(Question(job=JOB, wave="w1"))

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    assert len({replace(answer, repeated=False) for answer in answers}) == 1
    assert [answer.repeated for answer in answers].count(False) == 1
    assert len(StoredJobs(world.store).waves(JOB).waves) == 1


def test_waves_that_are_asked_about_at_a_time_are_all_kept(world: World) -> None:
    world.run()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(world.decide, ["w1", "w2", "w3", "w4"]))
    assert {wave.wave for wave in StoredJobs(world.store).waves(JOB).waves} == {"w1", "w2", "w3", "w4"}
    assert {wave.decision for wave in StoredJobs(world.store).waves(JOB).waves} == {"skip"}


def test_a_delta_input_is_known_by_its_version(world: World) -> None:
    for file in world.input.iterdir():
        file.unlink()
    write_deltalake(str(world.input), pa.table({"n": [1, 2]}))
    world.run(files=[])
    assert world.decide().decision == "skip"
    write_deltalake(str(world.input), pa.table({"n": [3]}), mode="append")
    assert world.decide().reason == "changed"
    world.run(files=[])
    assert world.decide().decision == "skip"


def test_a_store_that_cannot_be_written_is_a_reason_to_run(world: World) -> None:
    world.run()

    class Full:
        def count(self, job: str) -> int:
            return 0

        def waves(self, job: str) -> list[Any]:
            return []

        def add(self, wave: Any, count: int) -> None:
            raise OSError("no space left on device")

        def is_run_next(self, job: str, waves: Any) -> bool:
            return False

    answer = Decider(world.store, Full()).decide(Question(job=JOB))
    assert (answer.decision, answer.reason) == ("run", "error")


def test_answers_are_joined_and_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lineage_service.triggering.waves.wave_history._JOINED", 3)
    world.run()
    for number in range(7):
        assert world.decide(f"w{number}").decision == "skip"
    files = list((world.folder / "flows" / "waves").glob("key=*/*.parquet"))
    assert [wave.wave for wave in StoredJobs(world.store).waves(JOB).waves] == [
        f"w{at}" for at in reversed(range(7))
    ]
    history = WaveHistory(world.store.location)
    assert len(history._table.files(next(iter(history._table.contents())), None)) < len(files)


def test_the_next_wave_is_run_if_somebody_asks_for_it(world: World) -> None:
    jobs = StoredJobs(world.store)
    with pytest.raises(NotFoundError):
        jobs.run_next("nobody")
    world.run()
    assert world.decide("w1").decision == "skip"
    for _ in range(2):  # asked twice, it is one wave
        assert jobs.run_next(JOB).run_next
    assert world.decide("w1").decision == "skip"  # it has its answer
    asked = world.decide("w2")
    assert (asked.decision, asked.reason) == ("run", "asked")
    assert replace(world.decide("w2"), repeated=False) == asked
    assert not jobs.job(JOB).run_next
    assert world.decide("w3").decision == "skip"
    assert jobs.forget(JOB) == 3
    assert world.decide("w4").decision == "skip"  # what was settled stays so
    jobs.run_next(JOB)
    assert jobs.forget(JOB) == 1
    assert world.decide("w5").reason == "asked"


def test_an_answer_that_was_on_its_way_settles_no_request(world: World) -> None:
    world.run()
    history = WaveHistory(world.store.location)
    assert world.decide("w1").decision == "skip"
    skipped = history.waves(JOB)[0]
    history.run_next(JOB)
    history.add(replace(skipped, wave="w2", number=1), 1)  # it was decided upon before
    assert world.decide("w3").reason == "asked"
    assert world.decide("w4").decision == "skip"


def test_jobs_are_shown_and_forgotten(world: World) -> None:
    world.decide("w1")
    world.run()
    world.decide("w2")
    job = StoredJobs(world.store).job(JOB)
    assert (job.application_id, job.complete, job.waves, job.runs, job.skips) == ("app-1", True, 2, 1, 1)
    assert (job.inputs, job.outputs) == ((str(world.input),), (str(world.output),))
    assert StoredJobs(world.store).forget(JOB) == 2
    assert StoredJobs(world.store).waves(JOB).waves == ()
    assert world.decide("w1").decision == "skip"  # it may be asked about again


def lineage(world: World, *arguments: str) -> int:
    return main.main(["trigger", *arguments, "--store", str(world.folder / "flows")])


def test_exit_codes_say_what_to_do(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert lineage(world, JOB) == 0
    assert lineage(world, JOB, "--strict") == 1
    world.run()
    assert lineage(world, JOB, "--wave", "w1") == 99
    assert "skip  nightly · wave w1 · its inputs are as they were" in capsys.readouterr().out
    assert lineage(world, JOB, "--wave", "w1", "--json") == 99
    assert '"repeated":true' in capsys.readouterr().out
    assert lineage(world, JOB, "--bound", "1.5") == 2
    assert lineage(world, JOB, "--at-least-every", "soon") == 2
    assert lineage(world, JOB, "more") == 2
    assert lineage(world, "show", JOB) == 0
    shown = capsys.readouterr().out
    assert "3 asked about" in shown
    assert re.search(r"0\.0 s saved by skips - \d+\.\d s spent on answers = -?\d+\.\d s\n", shown)
    assert lineage(world, "run-next", JOB) == 0
    assert lineage(world, "show", JOB) == 0
    assert "next wave       is run: somebody asked for it" in capsys.readouterr().out
    assert lineage(world, "run-next", "nobody") == 1
    assert lineage(world, "waves", JOB, "--csv") == 0
    assert capsys.readouterr().out.startswith("job,wave,asked,decision")
    assert lineage(world, "forget", JOB) == 0
    assert lineage(world, "show", "nobody") == 1
    assert main.main(["trigger", JOB, "--store", str(world.folder / "nowhere")]) == 0
    assert main.main(["trigger", JOB, "--strict", "--store", str(world.folder / "nowhere")]) == 1


def test_a_command_runs_or_not(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--", sys.executable, "-c", "import os; print(os.environ['LINEAGE_WAVE']); exit(7)")

    def ask(*flags: str, wave: str) -> int:
        return main.main(
            ["trigger", JOB, "--store", str(world.folder / "flows"), "--wave", wave, *flags, *words]
        )

    assert ask(wave="w1") == 7
    assert capfd.readouterr().out == "w1\n"
    world.run(wave="w1")
    assert ask(wave="w2") == 0
    assert ask("--skip-code", "99", wave="w3") == 99
    assert capfd.readouterr().out == ""
    words = ("--", "no-such-command")
    assert ask(wave="w4") == 127


def test_a_job_that_appends_is_refused_and_a_command_is_run(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    world.run()
    old = world.output / "part-00001"
    old.write_text("older\n")
    os.utime(old, (1, 1))
    assert lineage(world, JOB) == 2
    assert "refused" in capfd.readouterr().out
    store = str(world.folder / "flows")
    assert main.main(["trigger", JOB, "--store", store, "--", sys.executable, "-c", "print('ran')"]) == 0
    assert capfd.readouterr().out == "ran\n"


@pytest.mark.thorough
def test_who_is_killed_while_asking_leaves_an_answer_or_none(world: World) -> None:
    time.sleep(2.1)  # clocks of other processes are as they are
    world.run()
    command = [sys.executable, "-m", "lineage_service.cli.main", "trigger", JOB, "--wave", "w1"]
    command += ["--store", str(world.folder / "flows")]
    for delay_s in (0.3, 0.8, 1.2, 1.6, 2.0, 2.4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
    first = world.decide("w1")
    assert first.decision == "skip"
    assert len(StoredJobs(world.store).waves(JOB).waves) == 1
    assert replace(world.decide("w1"), repeated=False) == replace(first, repeated=False)


@pytest.mark.thorough
def test_processes_that_ask_side_by_side_get_one_answer(world: World) -> None:
    time.sleep(2.1)  # clocks of other processes are as they are
    world.run()
    command = [sys.executable, "-m", "lineage_service.cli.main", "trigger", JOB, "--wave", "w1", "--json"]
    command += ["--store", str(world.folder / "flows")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = [process.communicate()[0] for process in processes]
    assert {process.returncode for process in processes} <= {0, 99}
    assert len({answer.replace('"repeated":true', '"repeated":false') for answer in answers}) == 1
    assert len(StoredJobs(world.store).waves(JOB).waves) == 1
