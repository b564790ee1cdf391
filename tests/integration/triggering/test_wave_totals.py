"""Sums over the answers of a real table, which commands and services write."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli import main
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.triggering.learning.drift import BROKEN, KEPT, SKIPPED, Looks
from lineage_service.triggering.learning.phases import APPLICATION, Policy, Progress
from lineage_service.triggering.stored_jobs import StoredJobs
from lineage_service.triggering.waves import wave_totals
from lineage_service.triggering.waves.savings import Durations
from lineage_service.triggering.waves.wave_history import Wave, WaveHistory
from lineage_service.triggering.waves.wave_totals import WaveTotals
from lineage_service.triggering.weighing.experience import Experience
from tests.support.dataset_applications import Job, store_all

ENDED = {"decision": "run", "reason": "changed", "why": "an input has changed", "phase": "certain"}


@pytest.fixture
def store(tmp_path: Path) -> DeltaFlowStore:
    return DeltaFlowStore(tmp_path / "flows")


def add(history: WaveHistory, job: str, number: int, **changes: Any) -> None:
    values: dict[str, Any] = {**ENDED, **changes}
    history.add(Wave(job=job, wave=f"w{number}", number=number, time=1_000 * number, **values), number)


def test_what_commands_decide_is_in_the_sums_of_a_service(store: DeltaFlowStore, tmp_path: Path) -> None:
    service = StoredJobs(store)
    assert service.totals().jobs == ()
    for _ in range(2):
        assert main.main(["trigger", "nightly", "--store", str(tmp_path / "flows")]) == 0
    [totals] = service.totals().jobs
    assert (totals.job, totals.decisions, totals.phase) == ("nightly", {("run", "never_ran"): 2}, "certain")
    assert totals.spent_seconds > 0
    assert sum(totals.seconds) == 2
    service.forget("nightly")
    assert service.totals().jobs == ()


def test_sums_are_those_of_all_rows_whatever_was_joined(
    store: DeltaFlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lineage_service.triggering.waves.wave_history._JOINED", 4)
    store_all(store, Job("app-1", "nightly", began=1_000).end())  # it took a millisecond
    history, watch = WaveHistory(store.location), StoredJobs(store)
    expected = Counter[tuple[str, str]]()
    for number in range(9):
        decision = "skip" if number % 3 else "run"
        expected[decision, f"reason{number % 2}"] += 1
        add(
            history,
            "nightly",
            number,
            decision=decision,
            reason=f"reason{number % 2}",
            application_id="app-1",
        )
        [totals] = watch.totals().jobs
        assert totals.decisions == expected
    assert totals.saved_seconds == pytest.approx(0.006)


def test_only_jobs_of_which_something_came_are_read_again(store: DeltaFlowStore) -> None:
    history = WaveHistory(store.location)
    for job in ("one", "other"):
        add(history, job, 0)
    read: list[str] = []

    class Counted(WaveHistory):
        def columns(self, key: str, names: Any) -> list[dict[str, Any]]:
            rows = super().columns(key, names)
            read.extend({row["job"] for row in rows})
            return rows

    watch = WaveTotals(Counted(store.location), Durations(store))
    watch.look()
    watch.look()
    assert sorted(read) == ["one", "other"]
    add(history, "other", 1)
    assert [sum(job.decisions.values()) for job in watch.look().jobs] == [1, 2]
    assert sorted(read) == ["one", "other", "other"]


def test_jobs_are_bounded_and_one_look_is_short(
    store: DeltaFlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wave_totals, "MOST_JOBS", 3)
    history = WaveHistory(store.location)
    for number, job in enumerate("abcd"):
        add(history, job, 0)
        add(history, job, 1, decision="skip", application_id=f"app-{number}")
        history.add(Wave(job=job, wave="late", number=2, time=10**6 + number, **ENDED), 2)
    totals = WaveTotals(history, Durations(store)).look()
    assert ([job.job for job in totals.jobs], totals.unread) == (["b", "c", "d"], 1)
    clock = iter([0.0, *[math.inf] * 100])  # the time is up at once
    hurried = WaveTotals(history, Durations(store), lambda: next(clock))
    assert (hurried.look().jobs, hurried.look().unread) == ((), 4)
    steps = iter([0.0, 0.0, 0.0, *[math.inf] * 3, *[0.0] * 100])  # it is up after the first job
    slow = WaveTotals(history, Durations(store), lambda: next(steps))
    assert len(slow.look().jobs) == 1
    assert len(slow.look().jobs) == 3


def test_the_list_of_jobs_follows_the_store_and_knows_no_replay(store: DeltaFlowStore) -> None:
    service, history = StoredJobs(store), WaveHistory(store.location)
    store_all(
        store,
        Job("app-1", "nightly", began=1_000).end(),
        Job("app-2", "other.py", began=2_000, job="hourly").end(),
        Job("app-3", "nightly", began=9_000, replay={"of": "app-1"}).end(),
    )
    add(history, "asked", 0)
    listed = [(job.job, job.application_id, job.began, job.waves) for job in service.jobs().jobs]
    assert listed == [("hourly", "app-2", 2_000, 0), ("nightly", "app-1", 1_000, 0), ("asked", None, None, 1)]
    store_all(store, Job("app-4", "nightly", began=4_000))
    add(history, "asked", 1)
    add(history, "nightly", 0)
    listed = [(job.job, job.application_id, job.began, job.waves) for job in service.jobs().jobs]
    assert listed == [("nightly", "app-4", 4_000, 1), ("hourly", "app-2", 2_000, 0), ("asked", None, None, 2)]
    assert service.jobs().unread_applications == 0
    service.forget("asked")
    assert [job.job for job in service.jobs().jobs] == ["nightly", "hourly"]


def test_what_came_of_a_model_is_said_by_the_terminal_and_in_the_sums(
    store: DeltaFlowStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history, service = WaveHistory(store.location), StoredJobs(store)
    progress = Progress(phase=APPLICATION, looks=Looks(recent=SKIPPED * 6 + KEPT * 3 + BROKEN))
    learned = Experience(terms="", policy=Policy(bound=0.05), progress=progress).to_json()
    add(history, "nightly", 0, bound=0.05, confidence=0.95, learned=learned)
    for number in (1, 2):
        add(history, "nightly", number, bound=0.05, confidence=0.95)
    [totals] = service.totals().jobs
    assert totals.in_charge is not None
    assert totals.in_charge == service.job("nightly").in_charge
    assert totals.in_charge.compliance == pytest.approx(1 - 0.6 / 4)
    assert main.main(["trigger", "show", "nightly", "--store", str(tmp_path / "flows")]) == 0
    shown = capsys.readouterr().out
    assert "in charge of 10 waves: 6 skipped, 4 looked at, 1 of these above the bound" in shown
    assert "within it in 85.0% (95 % lower bound" in shown
    assert service.retrain("nightly").in_charge is None
