"""The jobs that are triggered here, with what the paper needed for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lineage_service.triggering.changes.changed_elements import Elements
from perf.trigger import air_quality, flights, linear_road, waves
from perf.trigger.air_quality import Break
from perf.trigger.waves import Job

#: Executions of waves in the paper, by bound: figure 12.
PAPER: Mapping[str, Mapping[float, float]] = {
    "air quality": {0.05: 0.80, 0.10: 0.60, 0.20: 0.40},
    "Linear Road": {0.05: 0.70, 0.10: 0.42, 0.20: 0.25},
}
#: The reference of hotspots after it changed without a word.
OTHER_REFERENCE = 6.0


def air_quality_jobs(count: int, horizon: int, seed: int) -> list[Job]:
    """The steps, each of which reads what the one before it writes; and all of them as one job."""
    hours = air_quality.hours(count, seed)
    detectors, zones, hotspots, indices = (
        [step(values) for values in hours]
        for step in (air_quality.concentrations, air_quality.zones, air_quality.hotspots, air_quality.index)
    )
    both = [
        Elements(means.keys, np.hstack([means.values, above.values]))
        for means, above in zip(zones, hotspots, strict=True)
    ]
    of_detectors = waves.seen(["concentration"], detectors, horizon, waves.hourly)
    of_zones = waves.seen(["mean"], zones, horizon, waves.hourly)
    of_both = waves.seen(["mean", "above"], both, horizon, waves.hourly)
    return [
        of_detectors.job("air quality", "3a zones", zones),
        of_zones.job("air quality", "4 zones over the reference", hotspots),
        of_both.job("air quality", "5 index", indices),
        of_detectors.job("air quality in one job", "zones over the reference", hotspots),
        of_detectors.job("air quality in one job", "index", indices),
    ]


def linear_road_jobs(count: int, horizon: int, seed: int) -> list[Job]:
    reports = list(linear_road.waves(count, seed))
    traffic = [linear_road.traffic(reports[max(wave - 20, 0) : wave + 1]) for wave in range(count)]
    tolls = [linear_road.tolls(now) for now in traffic]
    clock = waves.of_cycle(linear_road.RUSH_CYCLE)
    cars = waves.seen(["speed", "position"], [linear_road.reports(wave) for wave in reports], horizon, clock)
    segments = waves.seen(["speed", "cars", "stopped"], [now.together for now in traffic], horizon, clock)
    paid = waves.seen(["toll"], tolls, horizon, clock)
    return [
        cars.job("Linear Road", "2a positions", [linear_road.positions(wave) for wave in reports]),
        cars.job("Linear Road", "3a speeds", [now.speed for now in traffic]),
        cars.job("Linear Road", "3b cars", [now.cars for now in traffic]),
        cars.job("Linear Road", "3c accidents", [now.accidents for now in traffic]),
        segments.job("Linear Road", "4 tolls", tolls),
        paid.job("Linear Road", "5a areas", [linear_road.areas(toll) for toll in tolls]),
    ]


def flight_jobs(horizon: int) -> list[Job]:
    return flights.jobs(horizon)


@dataclass(frozen=True, slots=True)
class Broken:
    """A job whose pattern breaks at a wave."""

    job: Job
    wave: int


def broken_jobs(count: int, wave: int, horizon: int, seed: int) -> list[Broken]:
    """Air quality with weather that is four times as strong, with values that are higher, and by another
    rule.

    Of the last, no input says anything: the job takes another reference for hotspots.
    """
    broken = []
    for name, disturbed, reference in (
        ("louder weather", Break(wave, louder=4), air_quality.REFERENCE),
        ("higher values", Break(wave, higher=25), air_quality.REFERENCE),
        ("another reference", None, OTHER_REFERENCE),
    ):
        hours = air_quality.hours(count, seed, disturbed)
        detectors = [air_quality.concentrations(values) for values in hours]
        seen = waves.seen(["concentration"], detectors, horizon, waves.hourly)
        outputs = [
            air_quality.hotspots(values, air_quality.REFERENCE if hour < wave else reference)
            for hour, values in enumerate(hours)
        ]
        broken.append(Broken(seen.job("a break", name, outputs), wave))
    return broken
