"""perf.trigger: generators are their seeds, noise is run always, and the page says what targets were met."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lineage_service.triggering.changes.changed_elements import Elements, Numbers, difference
from lineage_service.triggering.changes.output_error import relative_error
from lineage_service.triggering.learning import forest
from lineage_service.triggering.learning.phases import Policy
from lineage_service.triggering.weighing.coded_columns import codes_of_elements
from perf.trigger import air_quality, flights, lineage, linear_road, waves
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


def test_zones_of_one_job_know_which_detectors_reach_them() -> None:
    means, hotspots, _ = lineage.jobs(3, HORIZON, 0)
    names = means.pairs.names
    assert hotspots.step == "zones over the reference"
    features = dict(zip(names, hotspots.pairs.features[0].tolist(), strict=True))
    first, second = (air_quality.concentrations(hour).values for hour in air_quality.hours(2, 0))
    of_zones = [
        (np.abs(now - then).sum(), np.maximum(now, then).sum())
        for then, now in zip(by_zone(first), by_zone(second), strict=True)
    ]
    assert (features["lineage.live"], features["lineage.reach"]) == (1, 1)
    masses = [change / size for change, size in of_zones]
    assert np.isclose(features["lineage.concentration.mass_most"], max(masses))
    assert np.isclose(features["lineage.concentration.mass_mean"], sum(masses) / len(masses))


def test_new_flights_go_where_the_columns_that_the_product_keeps_say() -> None:
    at, count = np.arange(400), 300
    names = [np.array(["EWR", "JFK", "LGA"])[at % 3], np.array(["AA", "B6", "UA", "WN"])[at // 3 % 4]]
    table = pa.table({"origin": names[0], "carrier": names[1], "flight": at // 2 % 180, "hour": at % 24})
    group = np.unique([" ".join(name) for name in zip(*names, strict=True)], return_inverse=True)[1]
    delays = np.where(at % 17 == 0, np.nan, 5.0 + at % 13)
    both = [Elements(at[:end].astype(np.uint64), delays[:end, None]) for end in (count, len(at))]
    means = flights._means(group, delays, np.array([count, len(at)]))
    codes = codes_of_elements(table, both[1], at.astype(np.int32), ["origin", "carrier"])
    further = flights._further(both, group, means, codes)(0, 1, difference(*both))
    known = dict(zip(further.names, further.values.tolist(), strict=True))
    assert np.isclose(known["lineage.dep_delay.routed_error_mean"], relative_error(*means))
    assert (known["lineage.unroutable"], known["lineage.new_outputs"]) == (0, 0)


def by_zone(values: Numbers) -> list[Numbers]:
    """The detectors of each zone, by what their records say."""
    zones: dict[str, list[float]] = {}
    records = air_quality.records(np.zeros((air_quality.DETECTORS, 3)))
    for record, value in zip(records, values[:, 0].tolist(), strict=True):
        zones.setdefault(record.split(",")[1], []).append(value)
    return [np.array(zone) for zone in zones.values()]


def test_the_page_compares_a_step_with_lineage_and_without() -> None:
    one = measured(steady_job(130), 100)
    page_of_both = page({}, [one, replace(one, workflow="with lineage", has_lineage=False)], [])
    section = page_of_both.partition("## With lineage and without")[2].partition("\n## ")[0]
    assert "| mean | 10% |" in section
    assert "| 0 of 1 |" in section
    assert "## With lineage" not in page({}, [one], [])


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
    again = replace(broken.ours, returns=[(140, "unlike")], promotions=[120, 170])
    text = page(
        {}, [], [replace(broken, ours=again), replace(broken, ours=replace(again, promotions=[120, 145]))]
    )
    assert "| louder | 10% | 0 | was in training | - |" in text
    assert "| louder | 10% | 0 | no | - |" in text
    assert "| 0 of 1 | no |" in text
