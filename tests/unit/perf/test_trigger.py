"""perf.trigger: generators are their seeds, noise is run always, and the page says what targets were met."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lineage_service.triggering import forest
from lineage_service.triggering.changed_elements import Elements
from lineage_service.triggering.phases import Policy
from perf.trigger import air_quality, linear_road, waves
from perf.trigger.charge import charge
from perf.trigger.policies import others, recipe
from perf.trigger.report import BrokenMeasured, Measured, page

pytestmark = pytest.mark.unit

HORIZON = 6
POLICY = Policy(bound=0.1, horizon=HORIZON)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "TREES", 15)


def measured(job: waves.Job, training: int) -> Measured:
    ours = charge(job, POLICY, training)
    return Measured(
        workflow=job.workflow,
        step=job.step,
        bound=POLICY.bound,
        seed=0,
        ours=ours,
        others=others(job, POLICY.bound, training, HORIZON, ours.outcome.runs, 0),
        recipe=recipe(job, POLICY.bound, training, HORIZON, 0),
        cpu_s=0,
    )


def steady_job(count: int) -> waves.Job:
    """An output that is the input's mean."""
    level = 10 + np.cumsum(np.random.default_rng(3).normal(0, 0.4, count))
    keys = np.arange(5, dtype=np.uint64)
    inputs = [Elements(keys, np.full((5, 1), value)) for value in level]
    outputs = [Elements(keys[:1], wave.values[:1]) for wave in inputs]
    return waves.seen(["value"], inputs, HORIZON, waves.hourly).job("air quality", "mean", outputs)


def test_the_same_seed_gives_the_same_hours_and_cars() -> None:
    assert all(
        np.array_equal(*hours) for hours in zip(air_quality.hours(3, 1), air_quality.hours(3, 1), strict=True)
    )
    one, other = (list(next(iter(linear_road.waves(1, seed))).records()) for seed in (1, 1))
    assert one == other
    assert {len(record.split(",")) for record in one} == {15}
    assert one != list(next(iter(linear_road.waves(1, 2))).records())


def test_an_output_that_has_nothing_to_do_with_its_input_is_run_always() -> None:
    ours = charge(waves.random_job(160, HORIZON, 0), POLICY, 100)
    assert ours.outcome.runs == 1
    assert ours.began is None
    assert ours.reason.startswith("no threshold holds")


def test_an_output_that_follows_its_input_is_skipped_within_the_bound() -> None:
    result = measured(steady_job(180), 120)
    assert result.ours.outcome.runs < 0.9
    assert result.ours.outcome.compliance.share > 0.9
    assert result.by("oracle").compliance.share == 1
    assert result.by("oracle").runs <= result.ours.outcome.runs
    assert result.by("any change").runs == 1
    broken = BrokenMeasured("louder", 0.1, 0, 150, replace(result.ours, returns=[(160, "unlike")]))
    text = page({"commit": "abc"}, [result], [broken])
    assert "| air quality, 10%: runs, of the oracle's | ≤ 1.25 |" in text
    assert "| louder | 10% | 0 | 10 | unlike |" in text
