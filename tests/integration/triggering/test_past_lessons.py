"""Training from executions that nobody asked about, over a real flow store, real files and Delta tables."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lineage_service.cli import main
from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.lineage import PastTraining, Trigger
from lineage_service.store.errors import StoreConflictError
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.triggering.changes.impact import TIMES
from lineage_service.triggering.learning import phases
from lineage_service.triggering.learning.terms import terms_of
from lineage_service.triggering.stored_jobs import StoredJobs
from lineage_service.triggering.waves.question import Question
from lineage_service.triggering.waves.wave_history import WaveHistory, job_key
from lineage_service.triggering.weighing import execution_labels
from lineage_service.triggering.weighing.kept_elements import KeptPairs
from lineage_service.triggering.weighing.past_lessons import PastLearner
from lineage_service.triggering.weighing.weigher import last_experience
from spark_agent import contract
from spark_agent.contract.program_code import hash_of_files
from tests.support.dataset_applications import Job, dataset, store_all

JOB = "sums"
SHOPS = 4
HOUR_MS = 3_600_000
#: Ahead of the machine's clock: the time of an inode cannot be set.
BEGAN = (time.time_ns() // 1_000_000 // HOUR_MS + 24) * HOUR_MS
TERMS: dict[str, Any] = {
    "bound": 0.05,
    "error": "relative:total",
    "keys": ["shop"],
    "training": 8,
    "confidence": 0.55,
    "horizon": 6,
    "audit": 0,
}


@dataclass
class PastJob:
    """A job that writes the sum of the amounts of each shop into a Delta table. Its input is a Delta table as
    well (`has_files` False), or a folder to which a file of JSON is added for each day.
    """

    folder: Path
    has_files: bool = False
    hours: int = 0
    executions: int = 0
    name: str = JOB
    place: str = "in"
    sums: list[np.ndarray[Any, Any]] = field(default_factory=list)
    days: list[np.ndarray[Any, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = DeltaFlowStore(self.folder / "flows")
        self.jobs = StoredJobs(self.store)
        self.chance = np.random.default_rng(5)
        self.amounts = self.chance.uniform(50, 90, 40)
        self.script = self.folder / "job.py"
        self.script.write_text("version = 1\n")

    @property
    def input(self) -> Path:
        return self.folder / self.place

    @property
    def output(self) -> Path:
        return self.folder / "out"

    @property
    def now_ms(self) -> int:
        return BEGAN + self.hours * HOUR_MS

    def change(self, jump: float = 0.0) -> None:
        """The input of the next hour."""
        self.hours += 1
        if not self.has_files:
            self.amounts = self.amounts + self.chance.uniform(-0.2, 0.2, len(self.amounts)) + jump
            numbers = [f"s{at}" for at in range(len(self.amounts))]
            self.commit(self.input, pa.table({"sale": numbers, "amount": self.amounts}), 0)
            return
        self.input.mkdir(exist_ok=True)
        day = self.chance.uniform(50, 90, SHOPS)
        file = self.input / f"part-{len(self.days):03}.json"
        rows = [
            {"sale": f"{len(self.days)}-{shop}", "amount": amount} for shop, amount in enumerate(day.tolist())
        ]
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        self.days.append(day)
        os.utime(file, ns=(self.now_ms * 1_000_000,) * 2)

    def total(self) -> np.ndarray[Any, Any]:
        if self.has_files:
            return np.sum(self.days, axis=0)
        return self.amounts.reshape(SHOPS, -1).sum(axis=1)

    def commit(self, table: Path, rows: pa.Table, minutes: int, mode: Any = "overwrite") -> None:
        write_deltalake(str(table), rows, mode=mode)
        version = DeltaTable(str(table)).version()
        moment = (self.now_ms + minutes * 60_000) * 1_000_000
        os.utime(table / "_delta_log" / f"{version:020}.json", ns=(moment, moment))

    def run(self, wave: str | None = None, **changes: Any) -> str:
        """Half an hour later, for ten minutes; the id of its application."""
        self.executions += 1
        about: dict[str, Any] = {"code": hash_of_files([str(self.script)]), "code_files": [str(self.script)]}
        about |= {} if wave is None else {"wave": wave}
        began = self.now_ms + 30 * 60_000
        job = Job(f"app-{self.executions}", self.name, began=began, **{**about, **changes})
        read = job.node(
            "source",
            contract.SOURCE,
            name="Scan",
            dataset=dataset(str(self.input), "json" if self.has_files else "delta"),
        )
        if self.has_files:
            parts = [
                {"split": at, "parts": [{"path": str(file), "first": 0, **state(file)}]}
                for at, file in enumerate(sorted(self.input.iterdir()))
            ]
            job.tell(contract.PARTITIONS, node=read, partitions=parts)
        total = self.total()
        self.sums.append(total)
        shops = [f"shop{at}" for at in range(SHOPS)]
        self.commit(self.output, pa.table({"shop": shops, "total": total}), 35)
        job.write(str(self.output), [read], dataset=dataset(str(self.output), "delta"))
        job.time = began + 10 * 60_000
        job.end()
        store_all(self.store, job)
        return job.application_id

    def time_ns(self) -> int:
        """When it is asked about: ten minutes after the input was written, and as much before it runs."""
        return (self.now_ms + 10 * 60_000) * 1_000_000

    def past(self, count: int) -> None:
        for _ in range(count):
            self.change()
            self.run()

    def question(self, wave: str | None = None, **terms: Any) -> Question:
        return Question(
            job=self.name,
            wave=wave,
            at_least_every_s=1e9,
            is_steady=True,
            terms=terms_of(**{**TERMS, **terms}),
        )

    def learn(self, **terms: Any) -> PastTraining:
        return StoredJobs(self.store).learn(self.question(**terms))

    def ask(self, wave: str, **terms: Any) -> Trigger:
        return self.jobs.decide(self.question(wave, **terms))


def state(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "modified": status.st_mtime_ns // 1_000_000}


def error_of(stale: np.ndarray[Any, Any], correct: np.ndarray[Any, Any]) -> float:
    """Equation 3 of the paper, once more."""
    pairs = list(zip(stale.tolist(), correct.tolist(), strict=True))
    changed = sum(then != now for then, now in pairs)
    distance = sum(abs(then - now) for then, now in pairs)
    return changed * distance / (len(pairs) * sum(max(abs(then), abs(now)) for then, now in pairs))


def past_job(folder: Path, patch: pytest.MonkeyPatch, *, has_files: bool = False) -> PastJob:
    folder.mkdir(exist_ok=True)
    job = PastJob(folder, has_files)
    for module in ("evidence", "file_looks"):
        patch.setattr(f"lineage_service.triggering.certain.{module}.time", _Time(job))
    return job


class _Time:
    """The module `time`, but for what day it is."""

    def __init__(self, job: PastJob) -> None:
        self.time_ns = job.time_ns

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PastJob:
    return past_job(tmp_path, monkeypatch)


@pytest.fixture
def growing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PastJob:
    return past_job(tmp_path, monkeypatch, has_files=True)


def reasons(training: PastTraining) -> dict[str, str]:
    return {entry.application_id: entry.reason for entry in training.left_out}


def test_versions_of_tables_teach_a_job_before_anybody_asks(job: PastJob) -> None:
    """Errors of pairs are those of what was written then; the next changes are decided by a model."""
    job.past(9)
    training = job.learn()
    assert (training.learned, training.executions, training.left_out) == (9, 9, ()), training
    assert (training.phase, training.waves, training.before) == ("application", 9, 0), training.why
    assert training.threshold is not None
    pairs = KeptPairs(job.store.location).of(job_key(JOB), {})
    assert pairs is not None
    expected = {
        (then, now): error_of(job.sums[then], job.sums[now])
        for now in range(9)
        for then in range(max(0, now - TERMS["horizon"]), now)
    }
    measured = dict(
        zip(zip(pairs.references.tolist(), pairs.waves.tolist(), strict=True), pairs.errors, strict=True)
    )
    assert measured == pytest.approx(expected)
    of_job = job.jobs.job(JOB)
    assert (of_job.waves, of_job.runs, of_job.skips, of_job.spent_seconds) == (0, 0, 0, 0)
    assert of_job.in_charge is None
    assert job.jobs.waves(JOB).waves == ()
    assert job.jobs.totals().jobs == ()
    job.change()
    tolerated = job.ask("w1")
    assert (tolerated.decision, tolerated.reason) == ("skip", "tolerated"), tolerated.why
    job.change(jump=30)
    assert (job.ask("w2").decision, job.jobs.job(JOB).waves) == ("run", 2)
    again = job.learn()
    assert (again.learned, again.before, again.phase) == (0, 9, "application")
    assert len(WaveHistory(job.store.location).lessons(JOB)) == 2


@pytest.mark.thorough
def test_a_folder_that_only_grows_teaches_and_learning_goes_on_where_it_ended(growing: PastJob) -> None:
    job = growing
    job.past(4)
    first = job.learn()
    assert (first.learned, first.waves, first.phase) == (4, 4, "training"), first
    assert first.why == "in training, it is run: 4 of 8 waves are done"
    again = job.learn()
    assert (again.learned, again.before, again.waves) == (0, 4, 4)
    before = KeptPairs(job.store.location).of(job_key(JOB), {})
    assert before is not None
    job.past(2)
    more = job.learn()
    assert (more.learned, more.before, more.waves) == (2, 4, 6), more.left_out
    pairs = KeptPairs(job.store.location).of(job_key(JOB), {})
    assert pairs is not None
    assert len(before) == 6
    assert len(pairs) == 15
    assert len({*zip(pairs.references, pairs.waves, strict=True)}) == 15
    job.change()
    answer = job.ask("w1")
    assert "6 of 8 waves are done" in answer.why
    job.run("w1")
    job.change()
    assert "7 of 8 waves are done" in job.ask("w2").why


def test_what_is_learned_is_what_asking_would_have_taught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pairs of two jobs with the same data, but for the minutes between the question and the run."""
    taught = []
    for name in ("asked", "past"):
        job = past_job(tmp_path / name, monkeypatch)
        job.change()
        job.run()
        for at in range(5):
            job.change()
            if name == "asked":
                job.ask(f"w{at}")
            job.run(f"w{at}")
        if name == "past":
            job.learn()
        job.change()
        job.ask("last")
        pairs = KeptPairs(job.store.location).of(job_key(JOB), {})
        assert pairs is not None
        first = 0 if name == "asked" else 1  # nobody could ask before the first
        pairs = pairs.where(pairs.references >= first)
        timeless = [feature for feature in pairs.names if feature not in TIMES]
        pairs = pairs.with_features(timeless)
        taught.append((pairs, pairs.references - first, pairs.waves - first))
    (asked, *asked_steps), (past, *past_steps) = taught
    assert len(asked) == 10
    assert np.array_equal(asked_steps, past_steps)
    assert asked.names == past.names
    assert np.allclose(asked.errors, past.errors, rtol=1e-12)
    # The paths of the inputs differ, and so do the last bits of what is rounded: nothing else.
    assert np.allclose(asked.features, past.features, rtol=1e-9, equal_nan=True)


def test_executions_that_cannot_be_read_as_they_were_are_left_out_by_name(growing: PastJob) -> None:
    job = growing
    job.past(2)
    job.change()
    job.run(code="sha256:other")
    job.change()
    first, second = sorted(job.input.iterdir())[:2]
    os.utime(second, ns=((job.now_ms + 45 * 60_000) * 1_000_000,) * 2)  # after app-2 had read it
    job.run()
    job.run()
    job.past(1)
    job.commit(job.output, pa.table({"shop": ["x"], "total": [1.0]}), 36)  # beside app-6
    job.past(1)
    training = job.learn()
    assert reasons(training) == {
        "app-2": "changed",
        "app-3": "code",
        "app-4": "written",
        "app-5": "written",
        "app-6": "output_changed",
    }
    assert (training.learned, training.executions) == (2, 7)
    first.unlink()
    gone = PastJob.learn(job, keys=[])  # other terms, so all are looked at again
    assert set(reasons(gone).values()) >= {"changed"}
    assert gone.waves == 0


@pytest.mark.thorough
def test_one_test_is_made_of_all_however_many_were_due(job: PastJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """No execution that nobody decided upon counts as a wave of a model that came into charge meanwhile."""
    monkeypatch.setattr(phases, "RETEST", 2)
    tests = []
    choice = execution_labels.feature_choice

    def counted(pairs: Any, *arguments: Any) -> Any:
        tests.append(len(np.unique(pairs.waves)))
        return choice(pairs, *arguments)

    monkeypatch.setattr(execution_labels, "feature_choice", counted)
    job.past(9)
    first = job.learn(bound=1e-9)
    assert (first.phase, tests) == ("training", [8]), first.why
    job.past(5)
    more = job.learn(bound=1e-9)
    assert (more.phase, more.learned, more.waves) == ("training", 5, 14)
    assert tests == [8, 13]
    assert "the test after 14 failed" in more.why


@pytest.mark.thorough
def test_of_an_output_that_is_replaced_only_the_last_is_there(job: PastJob) -> None:
    job.past(5)
    DeltaTable(str(job.output)).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    training = job.learn()
    assert reasons(training) == dict.fromkeys([f"app-{at}" for at in range(1, 5)], "unread")
    assert training.learned == 1


@pytest.mark.thorough
def test_a_table_that_was_written_meanwhile_and_equal_inputs_teach_nothing(job: PastJob) -> None:
    job.past(2)
    job.run()
    job.change()
    job.commit(job.input, pa.table({"sale": ["x"], "amount": [1.0]}), 33)
    job.run()
    training = job.learn()
    assert reasons(training) == {
        "app-2": "output_changed",  # two executions within the ten minutes of both
        "app-3": "output_changed",
        "app-4": "written",
    }


@pytest.mark.thorough
def test_who_dies_while_learning_leaves_nothing_that_counts(
    job: PastJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.past(4)

    def killed(self: PastLearner, *arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lineage_service.triggering.weighing.past_lessons._is_last", killed)
        with pytest.raises(KeyboardInterrupt):
            job.learn()
    [reserved] = WaveHistory(job.store.location).lessons(JOB)
    kept = last_experience([reserved])
    assert kept is not None
    assert (kept[1].progress.executions, kept[1].next_step) == (0, 4)
    training = job.learn()
    assert (training.learned, training.before) == (4, 0)
    pairs = KeptPairs(job.store.location).of(job_key(JOB), {})
    assert pairs is not None
    assert (len(pairs), pairs.references.min()) == (6, 4)  # those of the dead are gone
    steps = zip(pairs.references - 4, pairs.waves - 4, strict=True)
    expected = [error_of(job.sums[then], job.sums[now]) for then, now in steps]
    assert pairs.errors.tolist() == pytest.approx(expected)


@pytest.mark.thorough
def test_who_asks_meanwhile_is_answered_and_nothing_is_learned_then(
    job: PastJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.past(4)
    job.change()
    steps = PastLearner._steps

    def asked(self: PastLearner, *arguments: Any) -> Any:
        taught = steps(self, *arguments)
        assert job.ask("w1").run
        return taught

    with monkeypatch.context() as patch:
        patch.setattr(PastLearner, "_steps", asked)
        with pytest.raises(StoreConflictError, match="meanwhile"):
            job.learn()
    assert job.learn().learned == 4


def test_a_job_that_reads_another_place_each_day_is_always_run_and_teaches_nothing(job: PastJob) -> None:
    job.place = f"dt={datetime.fromtimestamp(BEGAN / 1000, timezone.utc):%Y-%m-%d}"
    job.past(2)
    training = job.learn()
    assert reasons(training) == {"app-1": "other_input", "app-2": "other_input"}
    assert (training.learned, training.waves) == (0, 0)
    assert "another place each day: such a job is always run" in training.left_out[0].why
    assert WaveHistory(job.store.location).lessons(JOB) == []


@pytest.mark.thorough
def test_training_begins_anew_with_all_of_them(job: PastJob) -> None:
    job.past(4)
    job.learn()
    job.change()
    job.run(job.ask("w1").wave)
    job.jobs.retrain(JOB)
    training = job.learn()
    assert (training.learned, training.waves, training.before) == (5, 5, 0), training.left_out
    assert not job.jobs.job(JOB).retrain
    job.change()
    assert "5 of 8 waves are done" in job.ask("w2").why


def test_terms_and_jobs_that_do_not_fit_are_named(
    job: PastJob, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NotFoundError, match="never seen to run"):
        job.learn()
    job.past(3)
    with pytest.raises(InvalidQueryError, match="no output has such a column"):
        job.learn(error="relative:median")
    with pytest.raises(InvalidQueryError, match="without a bound"):
        job.learn(bound=0)
    monkeypatch.setenv("LINEAGE_STORE", str(job.folder / "flows"))
    words = ["trigger", "learn", JOB, "--bound"]
    assert main.main([*words, "0"]) == 2
    assert main.main([*words, "0.05", "--error", "relative:median"]) == 2
    assert "no output has such a column; there are shop, total" in capsys.readouterr().err
    assert main.main(["trigger", "learn", "nobody", "--bound", "0.1"]) == 1
    assert main.main([*words, "0.05", "--error", "relative:total", "--key", "shop"]) == 0
    said = capsys.readouterr().out
    assert "learned from 3 of 3 past executions" in said
    assert "3 of 100 waves are done" in said
    assert main.main([*words, "0.05", "--error", "relative:total", "--key", "shop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["before"] == 3
