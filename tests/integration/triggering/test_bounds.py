"""Decisions within a bound, over a real flow store and real files: training, skips, audits, and what goes
wrong on the way."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from lineage_service.cli import main
from lineage_service.lineage import Trigger
from lineage_service.triggering.dependence.lineage_features import PREFIX
from lineage_service.triggering.stored_jobs import StoredJobs
from lineage_service.triggering.waves.wave_history import WaveHistory, job_key
from lineage_service.triggering.weighing import element_plans, execution_labels, execution_lineage, weigher
from lineage_service.triggering.weighing.experience import Experience, experience_of_json
from lineage_service.triggering.weighing.kept_elements import KeptElements, KeptPairs
from tests.support.changing_job import DETECTORS, JOB, ChangingJob, changing_job

#: A test of few waves, for a confidence that so few can show.
QUICK: dict[str, Any] = {"training": 8, "confidence": 0.55, "horizon": 6}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChangingJob:
    return changing_job(tmp_path, monkeypatch)


class Still:
    """Weather that hardly changes: no mean moves by more than a hundredth."""

    def __init__(self, job: ChangingJob) -> None:
        self.job, self.base = job, job.readings.copy()
        self.chance = np.random.default_rng(3)

    def wave(self, jump: float = 0.0, **terms: Any) -> Trigger:
        """Changes the input and asks; runs the job if it is to run."""
        answer = self.ask(jump, **terms)
        if answer.run:
            self.job.run(answer.wave)
        return answer

    def ask(self, jump: float = 0.0, **terms: Any) -> Trigger:
        self.job.readings = self.base + self.chance.uniform(-0.3, 0.3, len(self.base)) + jump
        self.job.write_input()
        return self.job.ask(**{**QUICK, "audit": 0, **terms})


@pytest.fixture
def still(job: ChangingJob) -> Still:
    return Still(job)


def trained(still: Still, waves: int = 11) -> list[Trigger]:
    return [still.wave() for _ in range(waves)]


def error_of(stale: np.ndarray[Any, Any], correct: np.ndarray[Any, Any]) -> float:
    """Equation 3 of the paper, once more."""
    pairs = list(zip(stale.tolist(), correct.tolist(), strict=True))
    changed = sum(then != now for then, now in pairs)
    distance = sum(abs(then - now) for then, now in pairs)
    return changed * distance / (len(pairs) * sum(max(abs(then), abs(now)) for then, now in pairs))


def test_a_job_is_trained_and_then_skipped_until_it_jumps(still: Still) -> None:
    answers = trained(still, 9)
    assert [answer.reason for answer in answers] == ["never_ran", *["training"] * 8]
    assert "0 of 8 waves are done" in answers[1].why
    assert (answers[5].bound, answers[5].threshold, answers[5].compliance) == (0.05, None, None)
    skip = still.wave()
    assert (skip.decision, skip.reason, skip.phase) == ("skip", "tolerated", "application"), skip.why
    assert skip.probability is not None
    assert skip.threshold is not None
    assert skip.probability < skip.threshold
    assert skip.compliance_waves == 6
    assert "lower bound" in skip.why
    again = still.job.ask(skip.wave, **QUICK)
    assert again == replace(skip, repeated=True)
    # Whoever asked may have died before the run: nothing is skipped that did not run.
    for _ in range(2):
        jumped = still.ask(jump=20)
        assert (jumped.decision, jumped.reason) == ("run", "unlike"), jumped.why
    still.job.run(jumped.wave)
    still.wave(jump=20)
    waves = still.job.jobs.waves(JOB).waves
    measured = {wave.wave: wave.error for wave in waves if wave.error is not None}
    truth = error_of(still.job.outputs[-3], still.job.outputs[-2])
    assert measured[jumped.wave] == pytest.approx(truth)
    assert measured.keys() & {skip.wave, "w0", "w1"} == set()


@pytest.mark.thorough
def test_training_begins_anew_with_other_code_and_goes_on_with_another_bound(still: Still) -> None:
    trained(still)
    other = still.ask(bound=0.08)
    assert other.phase == "application", other.why  # the test was made again, upon what is known
    still.job.run(other.wave, code="v2")
    assert "1 of 8 waves are done (training has begun anew: the code has changed)" in still.wave().why
    assert still.wave(error="rows").why.endswith(
        "(training has begun anew: errors are measured in another way)"
    )


def test_answers_that_are_certain_teach_too(still: Still) -> None:
    still.wave()
    still.wave()
    still.job.jobs.run_next(JOB)
    assert still.wave().reason == "asked"
    assert "2 of 8 waves are done" in still.wave().why


def test_of_an_output_that_somebody_changed_nothing_is_learned(still: Still) -> None:
    for _ in range(3):
        still.wave()
    (still.job.output / "part-00000.csv").write_text("region,mean\nr0,1\n")
    assert still.wave().reason == "output_changed"
    assert "2 of 8 waves are done" in still.wave().why


def test_inputs_that_were_written_before_the_run_began_are_no_reference(still: Still) -> None:
    for _ in range(4):
        still.wave()
    asked = still.ask()
    still.job.write_input()
    still.job.run(asked.wave)
    still.job.readings[0] += 1
    still.job.write_input()
    answer = still.job.ask(**QUICK)
    assert "3 of 8 waves are done" in answer.why


@pytest.mark.thorough
def test_who_is_killed_before_the_answer_leaves_nothing_that_counts(
    still: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        still.wave()

    def killed(self: WaveHistory, *arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WaveHistory, "add", killed)
        with pytest.raises(KeyboardInterrupt):
            still.ask()
    for done in range(3, 8):
        assert f"{done} of 8 waves are done" in still.wave().why
    for _ in range(QUICK["horizon"] + 2):
        still.wave()
    kept = {path.name for path in (still.job.folder / "flows" / "wave_elements").glob("key=*")}
    known = still.job.jobs._kept()[0]._parts(next(iter(kept)).split("=")[1].split("-")[0])
    assert len(known) <= QUICK["horizon"] + 3


@pytest.mark.thorough
def test_two_who_ask_get_one_answer(still: Still) -> None:
    trained(still)
    still.job.readings = still.base + still.chance.uniform(-0.3, 0.3, len(still.base))
    still.job.write_input()
    questions = [still.job.question(wave, **QUICK) for wave in ("x", "x", "y")]
    still.job.clock.hour()
    barrier = Barrier(len(questions))

    def ask(question: Any) -> Trigger:
        jobs = StoredJobs(still.job.store)
        barrier.wait()
        return jobs.decide(question)

    with ThreadPoolExecutor(len(questions)) as pool:
        one, other, third = pool.map(ask, questions)
    assert replace(one, repeated=False) == replace(other, repeated=False)
    assert sorted([one.repeated, other.repeated]) == [False, True]
    assert third.phase == one.phase == "application", (one.why, third.why)
    assert [wave.number for wave in WaveHistory(still.job.store.location).waves(JOB)] == list(range(13))


def test_labels_count_and_forget_removes_everything(still: Still) -> None:
    answers = trained(still, 5)
    still.job.jobs.label(JOB, answers[3].wave, 0.5)
    [labelled] = [wave for wave in still.job.jobs.waves(JOB).waves if wave.wave == answers[3].wave]
    assert labelled.error == 0.5
    kept = still.job.jobs._kept()
    history = WaveHistory(still.job.store.location)
    said = {wave.number: wave.said for wave in history.waves(JOB) if wave.said is not None}
    key = next(iter(kept[1]._table.contents()))
    pairs = kept[1].of(key, said)
    assert pairs is not None
    assert 0.5 in pairs.errors
    assert (pairs.errors < 0.05).sum() == len(pairs) - 1
    still.job.jobs.retrain(JOB)
    assert "0 of 8 waves are done (training has begun anew: somebody asked for it)" in still.wave().why
    assert still.job.jobs.forget(JOB) == 6
    flows = still.job.folder / "flows"
    assert not [
        path
        for name in ("wave_elements", "wave_pairs", "wave_forests")
        for path in (flows / name).glob("key=*")
    ]
    assert still.job.jobs.waves(JOB).waves == ()
    assert [still.wave().reason for _ in range(3)][1:] == ["training"] * 2


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ({"error": "relative:median"}, "--error median: no output has such a column; there are mean, region"),
        ({"error": "rmse:region"}, "is string and holds no numbers"),
        ({"value": ["volume"]}, "--value volume: no input has such a column"),
        ({"value": ["detector"]}, "holds no numbers"),
        ({"keys": ["town"]}, "--key town"),
        ({"outputs": ["elsewhere"]}, "--output elsewhere: it wrote"),
    ],
)
def test_terms_that_do_not_fit_the_data_are_named(job: ChangingJob, terms: dict[str, Any], says: str) -> None:
    terms = {"values" if name == "value" else name: value for name, value in terms.items()}
    for _ in range(2):
        job.readings = job.readings + 0.1
        job.write_input()
        answer = job.ask(**{**QUICK, **terms})
        job.run(answer.wave)
    job.readings = job.readings + 0.1
    job.write_input()
    answer = job.ask(**{**QUICK, **terms})
    assert (answer.run, answer.reason) == (True, "arguments")
    assert says in answer.why


def test_without_scikit_learn_it_is_run_and_said_how_to_install_it(
    still: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (execution_labels, weigher):
        monkeypatch.setattr(module, "can_fit", lambda: False)
    answers = trained(still, 3)
    assert {answer.reason for answer in answers[1:]} == {"no_model"}
    assert "pip install 'lineage-master[trigger]'" in answers[-1].why


def test_the_command_says_what_is_wrong_with_a_bound(
    job: ChangingJob, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LINEAGE_STORE", str(job.folder / "flows"))
    for flags, says in (
        (["--bound", "1.5"], "--bound 1.5 is out of range"),
        (["--bound", "much"], "--bound much is no number"),
        (["--bound", "0.1", "--confidence", "0.4"], "--confidence 0.4 is out of range"),
        (["--bound", "0.1", "--error", "median:x"], "there is no module 'median'"),
        (["--bound", "0.1", "--key", "a,,b"], "is no list of columns"),
    ):
        assert main.main(["trigger", JOB, *flags]) == 2
        assert says in capsys.readouterr().err
    assert main.main(["trigger", "label", JOB, "w0", "--error", "0.1"]) == 1
    assert "never asked about for the wave 'w0'" in capsys.readouterr().err


def test_with_a_command_terms_that_do_not_fit_run_it(
    job: ChangingJob, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LINEAGE_STORE", str(job.folder / "flows"))
    for _ in range(2):
        job.readings = job.readings + 0.1
        job.write_input()
        job.run(job.ask(**QUICK, error="relative:median").wave)
    job.write_input()
    job.clock.hour()
    words = ["trigger", JOB, "--bound", "0.1", "--error", "relative:median", "--key", "region"]
    assert main.main([*words, "--at-least-every", "900w"]) == 2
    command = [sys.executable, "-c", "raise SystemExit(7)"]
    assert main.main([*words, "--at-least-every", "900w", "--", *command]) == 7
    assert "no output has such a column" in capsys.readouterr().err


@pytest.mark.thorough
def test_in_charge_the_bound_is_kept_in_the_wanted_share_of_waves(job: ChangingJob) -> None:
    """Readings that drift and wander, 135 waves: the truth is what the test computes itself."""
    chance = np.random.default_rng(1)
    errors, answers = [], []
    for _ in range(135):
        noise = chance.normal(0, 1.5, len(job.readings)) + chance.normal(0, 1)
        job.readings = np.clip(50 + (job.readings - 50) * 0.98 + noise, 5, 95)
        job.write_input()
        answer = job.ask(training=80, confidence=0.85, horizon=8, audit=0.1)
        if answer.run:
            job.run(answer.wave)
        errors.append(error_of(job.outputs[-1], job.means()))
        answers.append(answer)
    in_charge = [at for at, answer in enumerate(answers) if answer.phase == "application"]
    skips = [at for at in in_charge if not answers[at].run]
    assert len(in_charge) > 40, [answer.why for answer in answers[-3:]]
    assert len(skips) >= 10
    assert any(answers[at].is_audit for at in in_charge)
    assert np.mean([errors[at] <= 0.05 for at in in_charge]) >= 0.85
    for wave in job.jobs.waves(JOB).waves:
        assert wave.decision == "run" or wave.error is None


def test_lineage_of_earlier_executions_says_how_far_outputs_moved(still: Still) -> None:
    """Each mean moves as the readings of its region: the features say the error before it is measured."""
    still.job.has_flows = True
    trained(still, 5)
    pairs = KeptPairs(still.job.store.location).of(job_key(JOB), {})
    assert pairs is not None
    columns = dict(zip(pairs.names, pairs.features.T, strict=True))
    assert (columns["lineage.live"] == 1).all()
    assert (columns["lineage.reach"] == 1).all()
    assert np.allclose(columns["lineage.reading.moved_error_low"], pairs.errors)
    assert (pairs.errors > 0).all()


def test_values_that_are_kept_say_where_new_rows_will_go(still: Still) -> None:
    """Each wave has eight detectors more. Their regions say which means move, and their readings how far."""
    still.job.has_flows = still.job.has_regions = True
    for wave in range(5):
        more = still.chance.uniform(20, 80, 8 * wave)
        still.base = np.concatenate([still.base[:DETECTORS], more])
        still.wave()
    pairs = KeptPairs(still.job.store.location).of(job_key(JOB), {})
    assert pairs is not None
    columns = dict(zip(pairs.names, pairs.features.T, strict=True))
    assert (columns["lineage.routed_reach"] == 1).all()
    assert (columns["lineage.unroutable"] == 0).all()
    assert np.allclose(columns["lineage.routed_share_most"], [2 / 14, 4 / 16, 2 / 16])
    assert np.allclose(columns["lineage.reading.routed_error_mean"], pairs.errors)
    assert not np.allclose(columns["lineage.reading.moved_error_low"], pairs.errors)


def test_of_redacted_columns_no_numbers_are_kept(still: Still) -> None:
    """A reading only equals or differs. So it is still known which rows changed, and that outputs did."""
    job = still.job
    job.jobs = StoredJobs(job.store, "town, READING")
    answers = [still.wave(error="rows") for _ in range(4)]
    assert answers[-1].phase == "training", answers[-1].why
    refused = still.ask(error="rows", values=["reading"])
    assert (refused.reason, refused.decision) == ("arguments", "run")
    assert "reading" in refused.why
    kept = KeptElements(job.store.location)
    containers = [one for step in last_experience(still).steps for one in kept.of(step.part)]
    assert {one.is_output for one in containers} == {False, True}
    numbers = {number for one in containers for number in one.elements.values.ravel().tolist()}
    assert not numbers & {float(reading) for reading in job.readings.tolist()}
    pairs = KeptPairs(job.store.location).of(job_key(JOB), {})
    assert pairs is not None
    assert (pairs.errors == 1).all()


def test_of_many_rows_those_that_are_kept_are_followed(still: Still, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(element_plans, "MOST_ELEMENTS", 20)
    still.job.has_flows = True
    trained(still, 5)
    pairs = KeptPairs(still.job.store.location).of(job_key(JOB), {})
    assert pairs is not None
    columns = dict(zip(pairs.names, pairs.features.T, strict=True))
    assert (columns["lineage.live"] == 1).all()
    assert (columns["lineage.share_most"] == 1).all()
    moved = columns["lineage.reading.moved_error_low"]
    assert (moved > 0).all()
    assert not np.allclose(moved, pairs.errors)  # by half of the readings
    assert np.allclose(moved, pairs.errors, rtol=1)


def test_lineage_that_saves_nothing_is_not_walked(still: Still, monkeypatch: pytest.MonkeyPatch) -> None:
    still.job.has_flows = True
    answers = trained(still, 10)
    assert answers[-1].phase == "application", answers[-1].why
    assert PREFIX in last_experience(still).dropped  # all of it is skipped without, too
    monkeypatch.setattr(execution_lineage, "relation_of", None)
    assert still.ask().decision == "skip"


def last_experience(still: Still) -> Experience:
    waves = WaveHistory(still.job.store.location).waves(JOB)
    return experience_of_json(waves[-1].learned or "")


def test_maintenance_leaves_the_pairs_of_a_training_and_no_others(
    still: Still, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next answers are those of a store that was never maintained."""
    monkeypatch.setenv("LINEAGE_STORE", str(still.job.folder / "flows"))
    pairs, key = KeptPairs(still.job.store.location), job_key(JOB)
    trained(still, 4)
    assert main.main(["maintain"]) == 0
    assert JOB not in capsys.readouterr().out
    still.job.jobs.retrain(JOB)
    trained(still, 4)
    before, since = pairs.of(key, {}), last_experience(still).progress.since
    assert before is not None
    of_training = before.where(before.references >= since)
    assert 0 < len(of_training) < len(before)
    assert main.main(["maintain"]) == 0
    assert f"job {JOB}: " in capsys.readouterr().out
    after = pairs.of(key, {})
    assert after is not None
    assert after.names == before.names
    for kept, expected in (
        (after.references, of_training.references),
        (after.waves, of_training.waves),
        (after.errors, of_training.errors),
        (after.features, of_training.features),
    ):
        assert np.array_equal(kept, expected, equal_nan=True)
    assert main.main(["maintain"]) == 0
    assert JOB not in capsys.readouterr().out
    assert "4 of 8 waves are done" in still.wave().why
