"""Forests that are kept say what new ones would say, and are never used for other pairs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.triggering.learning import phases
from lineage_service.triggering.learning.phases import Policy, Progress
from lineage_service.triggering.learning.training_pairs import TrainingPairs
from lineage_service.triggering.weighing.kept_lessons import KeptLessons

pytest.importorskip("sklearn")

JOB = "0123"
PROGRESS, POLICY = Progress(fitted=30), Policy(bound=0.5)


def pairs(seed: int = 0) -> TrainingPairs:
    chance = np.random.default_rng(seed)
    waves = np.arange(1, 41)
    return TrainingPairs(("size", "age"), waves - 1, waves, chance.random((40, 2)), chance.random(40))


@pytest.fixture
def grown(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs there were each time that forests were grown."""
    lesson, seen = phases.lesson, list[int]()

    def counted(progress: Progress, pairs: TrainingPairs, policy: Policy) -> phases.Lesson:
        seen.append(len(pairs))
        return lesson(progress, pairs, policy)

    monkeypatch.setattr(phases, "lesson", counted)
    return seen


def test_kept_forests_are_those_of_the_same_pairs(tmp_path: Path, grown: list[int]) -> None:
    location = DeltaFlowStore(tmp_path / "flows").location
    row = np.array([0.2, 9.0])
    lesson = phases.lesson(PROGRESS, pairs(), POLICY)
    fresh = (
        float(lesson.forest.probability(row[None, :])[0]),
        float(lesson.errors.expected(row[None, :])[0]),
        lesson.unlike(row),
    )
    grown.clear()
    first = KeptLessons(location).expected(JOB, PROGRESS, pairs(), POLICY, row)
    again = KeptLessons(location).expected(JOB, PROGRESS, pairs(), POLICY, row)
    assert first == again == fresh
    assert fresh[2] == "age"
    # Pairs of waves behind the last fit teach nothing yet.
    later = pairs()
    later.errors[35:] = 0
    assert KeptLessons(location).expected(JOB, PROGRESS, later, POLICY, row) == fresh
    assert len(grown) == 1


def test_of_other_pairs_or_terms_they_are_grown_anew(tmp_path: Path, grown: list[int]) -> None:
    lessons, row = KeptLessons(DeltaFlowStore(tmp_path / "flows").location), np.array([0.2, 0.4])
    for progress, others, policy in (
        (PROGRESS, pairs(), POLICY),
        (PROGRESS, pairs(1), POLICY),
        (PROGRESS, pairs(1), replace(POLICY, bound=0.9)),
        (replace(PROGRESS, fitted=40), pairs(1), POLICY),
    ):
        lesson = phases.lesson(progress, others, policy)
        expected = lessons.expected(JOB, progress, others, policy, row)
        assert expected.probability == lesson.forest.probability(row[None, :])[0]
        assert expected.size == lesson.errors.expected(row[None, :])[0]
    assert len(grown) == 8
    lessons.forget(JOB)
    assert not list((tmp_path / "flows" / "wave_forests").glob("key=*"))
    lessons.expected(JOB, PROGRESS, pairs(1), POLICY, row)
    assert len(grown) == 9
