"""perf.trigger over 800 waves: in charge a bound is kept, breaks end it, and noise never begins it."""

from __future__ import annotations

import pytest

from lineage_service.triggering.learning.phases import Policy
from perf.trigger import cases, waves
from perf.trigger.charge import charge

pytestmark = [pytest.mark.unit, pytest.mark.thorough]

HORIZON, SEED = 24, 20
POLICY = Policy(bound=0.1, horizon=HORIZON, seed=SEED)


def test_the_air_quality_index_stays_within_its_bound_in_charge() -> None:
    index = next(job for job in cases.air_quality_jobs(800, HORIZON, SEED) if job.step == "5 index")
    ours = charge(index, POLICY, 300)
    assert ours.began == 301
    assert ours.outcome.waves == 500
    assert ours.outcome.compliance.share >= 0.95
    assert ours.outcome.runs < 0.85


def test_values_that_rise_lead_back_to_training_within_thirty_waves() -> None:
    broken = next(
        broken.job
        for broken in cases.broken_jobs(440, 400, HORIZON, SEED)
        if broken.job.step == "higher values"
    )
    ours = charge(broken, POLICY, 300)
    assert ours.began == 301
    assert [wave for wave, _ in ours.returns if 400 <= wave <= 430]


def test_noise_is_run_always() -> None:
    ours = charge(waves.random_job(380, HORIZON, SEED), POLICY, 300)
    assert ours.outcome.runs == 1
    assert ours.began is None
    assert ours.reason.startswith("no threshold holds")
