"""Detectors of ozone, fine dust and nitrogen dioxide, hour by hour, and the steps of an air quality index.

After the workflow of Esteves, Galhardas, Veiga (INESC-ID TR 9/2016, section 5): values from 0 to 100 by
smooth functions. Here these are a cycle of the day and one of the week, weather over the whole field
(autoregressive), and noise of each detector. The same seed gives the same hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lineage_service.triggering.changes.changed_elements import Elements, Numbers

SIDE, ZONES_OF_SIDE = 20, 4
DETECTORS, ZONES = SIDE * SIDE, ZONES_OF_SIDE * ZONES_OF_SIDE
GASES = ("ozone", "dust", "dioxide")
#: Mean, half of the day's swing, the hour of its peak, of each gas.
_MEAN = np.array([46.0, 40.0, 43.0])
_SWING = np.array([14.0, 13.0, 16.0])
_PEAK = np.array([15.0, 19.0, 9.0])
_WEEKEND = np.array([1.0, -2.0, -3.0])
#: How much of the weather stays from hour to hour, and the size of its fields.
_PERSISTENCE, _WEATHER, _FIELDS = 0.95, 9.0, 6
_NOISE = 1.5


@dataclass(frozen=True, slots=True)
class Break:
    """From this hour on, the weather is `louder` times as strong, and all values are `higher`."""

    hour: int
    louder: float = 1.0
    higher: float = 0.0


def hours(count: int, seed: int, disturbed: Break | None = None) -> list[Numbers]:
    """Of each hour the values (DETECTORS, GASES)."""
    chance = np.random.default_rng(seed)
    fields = _fields(chance)
    weather = chance.normal(size=(_FIELDS, len(GASES)))
    values = []
    for hour in range(count):
        step = np.sqrt(1 - _PERSISTENCE**2) * chance.normal(size=weather.shape)
        louder, higher = (
            (disturbed.louder, disturbed.higher) if disturbed and hour >= disturbed.hour else (1, 0)
        )
        weather = _PERSISTENCE * weather + louder * step
        smooth = (
            _MEAN
            + higher
            + _SWING * np.cos(2 * np.pi * (hour - _PEAK) / 24)
            + _WEEKEND * (hour // 24 % 7 > 4)
        )
        noise = chance.normal(scale=_NOISE, size=(DETECTORS, len(GASES)))
        values.append(np.clip(smooth + _WEATHER * fields @ weather + noise, 0, 100))
    return values


def _fields(chance: np.random.Generator) -> Numbers:
    """Smooth patterns over the detectors (DETECTORS, _FIELDS); the first is the same everywhere."""
    down, across = np.divmod(np.arange(DETECTORS), SIDE)
    waves = chance.uniform(0.5, 1.5, size=(_FIELDS, 2)) * np.pi / SIDE
    phases = chance.uniform(0, 2 * np.pi, size=_FIELDS)
    patterns = np.cos(np.outer(down, waves[:, 0]) + np.outer(across, waves[:, 1]) + phases)
    patterns[:, 0] = 1
    return np.asarray(patterns / np.sqrt(_FIELDS))


def records(values: Numbers) -> Iterator[str]:
    """The lines of an hour: detector, zone, and the value of each gas."""
    width = SIDE // ZONES_OF_SIDE
    for detector, gases in enumerate(values.tolist()):
        zone = detector // SIDE // width * ZONES_OF_SIDE + detector % SIDE // width
        yield f"{detector},{zone}," + ",".join(map(repr, gases))


# -- the steps ---------------------------------------------------------------------------------------

#: A zone above this concentration is a hotspot.
REFERENCE = 9.0


def concentrations(values: Numbers) -> Elements:
    """Step 2: the product of a detector's values, from 0 to 100."""
    products = (values / 100).prod(axis=1) * 100
    return Elements(np.arange(DETECTORS, dtype=np.uint64), products[:, None])


def zones(values: Numbers) -> Elements:
    """Step 3a: the mean concentration of each zone."""
    width = SIDE // ZONES_OF_SIDE
    square = concentrations(values).values.reshape(ZONES_OF_SIDE, width, ZONES_OF_SIDE, width)
    return Elements(np.arange(ZONES, dtype=np.uint64), square.mean(axis=(1, 3)).reshape(-1, 1))


def hotspots(values: Numbers, reference: float = REFERENCE) -> Elements:
    """Step 4: the concentration of each zone above the reference, 0 for the others."""
    means = zones(values)
    return Elements(means.keys, np.where(means.values > reference, means.values, 0.0))


def index(values: Numbers, reference: float = REFERENCE) -> Elements:
    """Step 5: one number, the hotspots and the mean concentration."""
    above = (hotspots(values, reference).values > 0).sum()
    return Elements(np.zeros(1, np.uint64), np.array([[above + zones(values).values.mean()]]))
