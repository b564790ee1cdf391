"""Phases, decision by decision; and the pairs that are all that is kept."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from lineage_service.triggering.learning import drift, forest
from lineage_service.triggering.learning.compliance import Compliance
from lineage_service.triggering.learning.drift import NO_LOOKS, Looks
from lineage_service.triggering.learning.phases import (
    APPLICATION,
    LEAST_DEVIATION,
    REFIT,
    RETEST,
    TRAINING,
    Policy,
    Progress,
    Verdict,
    chance_of,
    executed,
    is_test_due,
    lesson,
    progress_of_json,
    promoted,
    skipped,
    threshold_in_words,
    threshold_now,
    verdict,
)
from lineage_service.triggering.learning.training_pairs import TrainingPairs, pairs_of_table

pytestmark = pytest.mark.unit

POLICY = Policy(bound=0.1, horizon=6, training=100)
IN_CHARGE = Progress(phase=APPLICATION, reason="", threshold=0.2, executions=100, tried=100, fitted=99)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "TREES", 15)


def random_walk(count: int, seed: int = 0, moves: float = 0.04) -> TrainingPairs:
    levels = np.cumsum(np.random.default_rng(seed).normal(0, moves, count))
    references, waves = np.array(
        [(first, wave) for wave in range(1, count) for first in range(max(0, wave - 6), wave)]
    ).T
    distance = np.abs(levels[waves] - levels[references])
    return TrainingPairs(
        ("impact", "age"), references, waves, np.column_stack([distance, waves - references]), distance
    )


def decided(**changed: object) -> Verdict:
    asked = {"job": "aqhi", "wave": "w", "age": 1, "probability": 0.1, **changed}
    return verdict(IN_CHARGE, replace(POLICY, audit=0.0), **asked)  # type: ignore[arg-type]


def test_each_reason_to_run() -> None:
    assert not decided().run
    assert decided(probability=0.2).reason == "P(error > 0.1) = 0.20, threshold 0.2"
    assert decided(age=7).reason == "the last execution is 7 waves old"
    assert decided(unlike="mean").is_unlike
    assert all(decided(**changed).run for changed in ({"probability": 0.2}, {"age": 7}, {"unlike": "mean"}))
    training = verdict(Progress(), POLICY, job="aqhi", wave="w", age=1, probability=0.0)
    assert (training.run, training.phase, training.reason) == (True, TRAINING, "training has begun")


def test_an_audit_is_decided_by_job_and_wave() -> None:
    later = replace(IN_CHARGE, looks=Looks(skips=drift.EARLY))
    audits = [
        verdict(later, POLICY, job="aqhi", wave=str(wave), age=1, probability=0.0) for wave in range(2000)
    ]
    assert 60 < sum(audit.run for audit in audits) < 140
    assert all(audit.is_audit == audit.run for audit in audits)
    again = verdict(later, POLICY, job="aqhi", wave="7", age=1, probability=0.0)
    assert again == audits[7]
    assert chance_of("aqhi", "7") != chance_of("other", "7")


def test_training_ends_with_a_threshold_and_learns_the_same_again() -> None:
    pairs = random_walk(101)
    progress = Progress()
    for wave in range(1, 101):
        assert not is_test_due(progress, POLICY)
        progress = executed(progress, POLICY, decided(), wave=wave, error=0.0)
    assert is_test_due(progress, POLICY)
    progress = promoted(progress, POLICY, pairs, 100)
    assert progress.phase == APPLICATION
    assert progress.compliance is not None
    assert progress.compliance.lower >= 0.95
    kept = json.loads(json.dumps(progress.to_json()))
    assert progress_of_json(kept) == progress
    again = pairs_of_table(pairs.to_table().take(np.random.default_rng(0).permutation(len(pairs))))
    one, other = (lesson(progress, table, POLICY) for table in (pairs, again))
    asked = np.array([[0.0, 1], [0.09, 2], [0.3, 3]])
    assert np.array_equal(one.forest.probability(asked), other.forest.probability(asked))
    assert one.forest.probability(asked)[0] < 0.2 < 0.8 < one.forest.probability(asked)[2]
    sizes = one.errors.expected(asked)
    assert np.array_equal(sizes, other.errors.expected(asked))
    assert sizes[0] < -1 < -0.5 < sizes[1] < 0.5 < sizes[2]
    assert progress.deviation < 0.5
    assert one.unlike(np.array([9.0, 1])) == "impact"
    assert one.unlike(np.array([0.1, 1])) == ""


def test_an_output_without_a_pattern_is_run_always_and_tested_again() -> None:
    pairs = random_walk(101)
    noise = np.random.default_rng(1).permutation(pairs.errors * 5)
    no_pattern = replace_errors(pairs, noise)
    progress = promoted(Progress(executions=100), POLICY, no_pattern, 100)
    assert progress.phase == TRAINING
    assert progress.reason.startswith("no threshold holds")
    assert not is_test_due(progress, POLICY)
    assert is_test_due(replace(progress, executions=100 + RETEST), POLICY)
    assert verdict(progress, POLICY, job="j", wave="w", age=1).reason == progress.reason


def test_a_few_waves_are_not_tested() -> None:
    progress = promoted(Progress(executions=60), POLICY, random_walk(61), 60)
    assert progress.phase == TRAINING
    assert progress.reason.startswith("too few waves for a test: 41 without a fault would show 93")


def replace_errors(pairs: TrainingPairs, errors: np.ndarray) -> TrainingPairs:  # type: ignore[type-arg]
    return TrainingPairs(pairs.names, pairs.references, pairs.waves, pairs.features, errors)


def test_a_feature_that_old_waves_do_not_have_is_not_known() -> None:
    pairs = random_walk(20)
    wider = pairs_of_table(pairs.to_table(), ("impact", "reach", "age"))
    assert np.isnan(wider.features[:, 1]).all()
    assert np.array_equal(wider.features[:, [0, 2]], pairs.features)


def test_a_forest_is_fitted_again_after_so_many_executions() -> None:
    progress = IN_CHARGE
    for wave in range(200, 200 + REFIT):
        assert progress.fitted == 99
        progress = executed(progress, POLICY, decided(probability=0.9), wave=wave, error=0.2)
    assert progress.fitted == 200 + REFIT - 1


def test_audits_that_broke_the_bound_lead_back_to_training() -> None:
    audit = Verdict(
        run=True, reason="audit", phase=APPLICATION, probability=0.0, threshold=0.2, is_audit=True
    )
    progress = IN_CHARGE
    for _ in range(20):
        progress = skipped(progress)
    progress = executed(progress, POLICY, audit, wave=200, error=0.05)
    assert progress.looks.recent == 20 * drift.SKIPPED + drift.KEPT
    for wave in range(201, 204):
        progress = executed(progress, POLICY, audit, wave=wave, error=0.5)
        if progress.phase == TRAINING:
            break
    assert progress.phase == TRAINING
    assert progress.since == wave
    assert "back to training" in progress.reason


def test_inputs_unlike_the_training_lead_back() -> None:
    unlike = Verdict(run=True, reason="", phase=APPLICATION, probability=0.5, is_unlike=True)
    progress = IN_CHARGE
    for wave in range(200, 200 + drift.UNLIKE):
        assert progress.phase == APPLICATION
        progress = executed(progress, POLICY, unlike, wave=wave, error=0.5)
    assert progress.reason == "back to training: the inputs are unlike those of the training"


def test_inputs_unlike_the_training_lead_back_though_others_come_between() -> None:
    looks, waves = NO_LOOKS, 0
    while not looks.alarm(0.95):
        for letter in (*2 * drift.UNLIKE_RUN, *4 * drift.RUN):
            looks, waves = looks.seen(letter), waves + 1
            if looks.alarm(0.95):
                break
    assert looks.alarm(0.95) == "the inputs are unlike those of the training"
    assert waves == 4 * 6 + 2
    rare = Looks(recent=(drift.UNLIKE_RUN + 4 * drift.SKIPPED) * 80)
    assert rare.unlikeness == 0
    assert rare.alarm(0.95) == ""


def test_of_twenty_skips_one_is_an_audit_and_of_the_first_hundred_one_of_ten() -> None:
    progress, letters = IN_CHARGE, ""
    for wave in range(400):
        answer = verdict(progress, POLICY, job="aqhi", wave=str(wave), age=1, probability=0.0)
        letters += "a" if answer.is_audit else "s"
        progress = (
            executed(progress, POLICY, answer, wave=wave, error=0.0) if answer.run else skipped(progress)
        )
    groups = [letters[at : at + 10] for at in range(0, 100, 10)]
    groups += [letters[at : at + 20] for at in range(100, 400, 20)]
    assert [group.count("a") for group in groups] == [1] * 25
    assert len({group.index("a") for group in groups}) > 5


def test_after_an_audit_above_the_bound_each_skip_is_looked_at_until_it_is_calm_again() -> None:
    audit = Verdict(
        run=True, reason="audit", phase=APPLICATION, probability=0.01, threshold=0.2, is_audit=True
    )
    progress = executed(IN_CHARGE, POLICY, audit, wave=200, error=0.5)
    assert progress.looks.is_close
    closer = 0
    while True:
        answer = verdict(progress, replace(POLICY, audit=0.0), job="j", wave="w", age=1, probability=0.01)
        if not answer.run:
            break
        assert "a closer look, since a skip was above the bound" in answer.reason
        progress = executed(progress, POLICY, answer, wave=201 + closer, error=0.0)
        closer += 1
    assert 1 <= closer < 10
    for wave in range(300, 310):
        progress = executed(progress, POLICY, audit, wave=wave, error=0.5)
        if progress.phase == TRAINING:
            break
    assert wave < 304
    assert (
        progress.reason == "back to training: errors above the bound come more often than the training said"
    )


def test_after_wrong_skips_a_stricter_threshold_is_taken_until_looks_show_that_they_are_rare() -> None:
    """At a compliance of 97.5 % in the test, 95 % is wanted; one of two audits was above the bound."""
    looks = Looks(recent=drift.SKIPPED * 38 + drift.KEPT + drift.BROKEN + drift.RUN * 60)
    progress = replace(IN_CHARGE, compliance=Compliance(195, 200), looks=looks)
    above = (2 * 0.4 / 2 + drift.LOOKS_OF_TEST * 0.025) / (2 + drift.LOOKS_OF_TEST)
    strict = threshold_now(progress, POLICY)
    assert strict == round(0.2 * 0.05 / above, 4) == 0.1333
    assert threshold_in_words(progress, POLICY) == (
        "0.133 (stricter than 0.2 of the test, since skips were wrong too often)"
    )
    spared = verdict(progress, POLICY, job="j", wave="w", age=1, probability=0.15)
    assert (spared.run, spared.threshold, spared.is_audit) == (True, strict, False)
    assert spared.reason.startswith("P(error > 0.1) = 0.15, threshold 0.133 (stricter than 0.2")
    worse = executed(progress, POLICY, spared, wave=200, error=0.2)
    assert worse.looks.recent[-1] == drift.SPARED_BROKEN
    assert (threshold_now(worse, POLICY) or 0) < strict
    for wave in range(200, 300):
        progress = executed(progress, POLICY, spared, wave=wave, error=0.0)
        assert progress.looks.recent[-1] == drift.SPARED_KEPT
        if threshold_now(progress, POLICY) == 0.2:
            break
    assert wave > 200
    assert threshold_in_words(progress, POLICY) == "0.2"
    assert progress.looks.in_charge().audits == 2


def test_errors_that_are_larger_than_expected_lead_back() -> None:
    run = Verdict(run=True, reason="", phase=APPLICATION, probability=0.5, threshold=0.2, expected=0.0)
    progress = replace(IN_CHARGE, deviation=0.5)
    for wave in range(200, 260):
        progress = executed(progress, POLICY, run, wave=wave, error=0.1 * (1.4 if wave % 2 else 0.7))
    for wave in range(260, 280):
        progress = executed(progress, POLICY, run, wave=wave, error=0.001)
    assert progress.phase == APPLICATION
    for wave in range(300, 303):
        progress = executed(progress, POLICY, run, wave=wave, error=0.9)
        if progress.phase == TRAINING:
            break
    assert progress.reason == "back to training: errors are larger than the training said"
    once = executed(replace(IN_CHARGE, deviation=0.5), POLICY, run, wave=300, error=0.9)
    assert once.phase == APPLICATION
    assert once.looks.is_strange is False
    skip = replace(run, probability=0.05, is_audit=True)
    assert executed(replace(IN_CHARGE, deviation=0.5), POLICY, skip, wave=300, error=0.9).phase == TRAINING
    likely = replace(run, probability=0.35)
    near = executed(replace(IN_CHARGE, deviation=0.5), POLICY, likely, wave=300, error=0.9)
    assert (near.phase, near.looks.is_strange) == (APPLICATION, True)
    looked = verdict(near, replace(POLICY, audit=0.0), job="j", wave="w", age=1, probability=0.01)
    assert (looked.run, looked.reason.split(";")[0]) == (
        True,
        "a closer look, since errors are larger than expected",
    )
    unknown = executed(IN_CHARGE, POLICY, replace(run, expected=None), wave=300, error=0.9)
    assert unknown.looks.strangeness == 0


def test_where_the_test_runs_nothing_errors_have_a_usual_deviation_as_well() -> None:
    policy = replace(POLICY, bound=50.0)
    progress = promoted(Progress(executions=100), policy, random_walk(101), 100)
    assert progress.phase == APPLICATION
    assert progress.deviation == LEAST_DEVIATION


def test_nothing_is_learned_of_what_may_be_a_break() -> None:
    due = replace(IN_CHARGE, executions=100 + REFIT)
    assert executed(due, POLICY, decided(probability=0.9), wave=200, error=0.2).fitted == 200
    unlike = Verdict(run=True, reason="", phase=APPLICATION, probability=0.5, is_unlike=True)
    assert executed(due, POLICY, unlike, wave=200, error=0.2).fitted == 99


def in_doubt(pairs: TrainingPairs) -> Progress:
    """In charge after 100 waves; an alarm at the next; 25 executions since."""
    progress = promoted(Progress(executions=100), POLICY, pairs.where(pairs.waves <= 100), 100)
    assert progress.phase == APPLICATION
    unlike = Verdict(run=True, reason="", phase=APPLICATION, probability=0.5, is_unlike=True)
    progress = replace(progress, looks=Looks(recent=drift.UNLIKE_RUN * drift.UNLIKE))
    progress = executed(progress, POLICY, unlike, wave=101, error=0.0)
    assert (progress.phase, progress.since, progress.threshold) == (TRAINING, 101, None)
    assert progress.oldest == 0
    assert progress_of_json(json.loads(json.dumps(progress.to_json()))) == progress
    for wave in range(102, 102 + RETEST):
        assert not is_test_due(progress, POLICY)
        progress = executed(progress, POLICY, decided(), wave=wave, error=0.0)
    assert is_test_due(progress, POLICY)
    return progress


def test_after_a_false_alarm_what_was_learned_decides_again() -> None:
    pairs = random_walk(102 + RETEST)
    doubted = in_doubt(pairs)
    progress = promoted(doubted, POLICY, pairs, 101 + RETEST)
    assert doubted.former is not None
    assert progress.phase == APPLICATION
    assert (progress.since, progress.fitted, progress.former) == (0, 101 + RETEST, None)
    assert progress.threshold == doubted.former.threshold
    assert progress.executions == progress.tried == 101 + RETEST
    assert progress.looks == Looks()


@pytest.mark.parametrize("what", ["errors", "features"])
def test_after_a_break_what_was_learned_is_forgotten(what: str) -> None:
    pairs = random_walk(102 + RETEST)
    later = pairs.waves > 101
    if what == "errors":
        pairs = replace_errors(pairs, np.where(later, 0.3 - pairs.errors, pairs.errors))
    else:
        pairs = replace(pairs, features=np.where(later[:, None], pairs.features + 50, pairs.features))
    progress = promoted(in_doubt(pairs), POLICY, pairs, 101 + RETEST)
    assert (progress.phase, progress.since, progress.former) == (TRAINING, 101, None)
    assert progress.oldest == 101
    assert "unlike those of the training" in progress.reason
    assert not is_test_due(progress, POLICY)
    assert is_test_due(replace(progress, executions=POLICY.training), POLICY)


@pytest.mark.parametrize(("above", "phase"), [(3, APPLICATION), (4, TRAINING)])
def test_four_of_25_waves_above_the_bound_refute_what_was_learned(above: int, phase: str) -> None:
    """Waves that hardly changed anything, and of which some are far from all others for no reason."""
    pairs = random_walk(102 + RETEST)
    later, jumps = pairs.waves > 101, [103, 105, 110, 117][:above]  # 108, 115 and 122 are run: too old
    features = np.where(later[:, None], np.array([0.01, 1.0]), pairs.features)
    errors = np.where(later, np.isin(pairs.waves, jumps) * 0.5, pairs.errors)
    pairs = replace(pairs, features=features, errors=errors)
    assert promoted(in_doubt(pairs), POLICY, pairs, 101 + RETEST).phase == phase


def test_what_is_known_in_charge_comes_from_audits() -> None:
    looks = Looks(recent=drift.RUN * 20 + drift.SKIPPED * 76 + drift.KEPT * 3 + drift.BROKEN)
    seen = looks.in_charge()
    assert (seen.waves, seen.skips, seen.audits, seen.broken) == (100, 76, 4, 1)
    assert seen.compliance == pytest.approx(1 - 0.76 / 4)
    assert seen.lower == pytest.approx(1 - 0.76 * (1 - Compliance(3, 4).lower))
    assert seen.lower < seen.compliance < seen.upper
    assert Looks(recent=drift.SKIPPED * 10).in_charge().lower == 0
