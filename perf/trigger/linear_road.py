"""Position reports of cars on an expressway, every 30 seconds, and the steps that make tolls of them.

The records are those of the Linear Road benchmark (Arasu et al., VLDB 2004): type 0, time, car, speed in
miles an hour, expressway, lane, direction, segment of a mile, position in feet. The traffic is simulated
here, not the benchmark's: cars enter by rush hours, slow down where many are, drive between 10 and 40 miles,
and two of them now and then stop in an accident, for 5 to 15 minutes, behind which others slow down. The same
seed gives the same cars.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lineage_service.triggering.changes.changed_elements import Elements, Numbers

WAVE_S, SEGMENTS, DIRECTIONS = 30, 50, 2
FEET = 5280
#: Waves from one rush hour to the next; cars that enter in a wave, at least and at most.
RUSH_CYCLE, QUIET, RUSH = 120, 14.0, 60.0
_FREE_SPEED, _CROWD = 60.0, 60.0
_ACCIDENT = 0.08
_AVERAGED = 10
#: Reports with the same position of a car that has stopped.
_STOPPED = 4
#: A segment is congested, and costs a toll, above so many cars and below this speed.
TOLL_CARS, TOLL_SPEED = 50, 40.0
#: No toll so many segments before an accident.
_DETOUR = 5
AREA = 5

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Reports:
    """One wave, a report of each car: columns of one length."""

    time: int
    car: Integers
    speed: Integers
    direction: Integers
    segment: Integers
    position: Integers

    @property
    def place(self) -> Integers:
        """Direction and segment as one number."""
        return self.direction * SEGMENTS + self.segment

    def records(self) -> Iterator[str]:
        """The lines of the benchmark's file: what is no position report's is -1."""
        for car, speed, direction, segment, position in zip(
            self.car, self.speed, self.direction, self.segment, self.position, strict=True
        ):
            yield f"0,{self.time},{car},{speed},0,1,{direction},{segment},{position},-1,-1,-1,-1,-1,-1"


@dataclass(slots=True)
class _Cars:
    car: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    direction: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    miles: Numbers = field(default_factory=lambda: np.zeros(0))
    left: Numbers = field(default_factory=lambda: np.zeros(0))
    manner: Numbers = field(default_factory=lambda: np.zeros(0))
    stands: Integers = field(default_factory=lambda: np.zeros(0, np.int64))

    def keep(self, chosen: npt.NDArray[np.bool_]) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name)[chosen])

    def enter(self, count: int, first: int, chance: np.random.Generator) -> None:
        new = (
            np.arange(first, first + count),
            chance.integers(0, DIRECTIONS, count),
            chance.uniform(0, SEGMENTS, count),
            chance.uniform(10, 40, count),
            chance.normal(0, 5, count),
            np.zeros(count, np.int64),
        )
        for name, column in zip(self.__slots__, new, strict=True):
            setattr(self, name, np.concatenate([getattr(self, name), column]))


def waves(count: int, seed: int) -> Iterator[Reports]:
    chance = np.random.default_rng(seed)
    cars, first = _Cars(), 0
    for wave in range(-2 * RUSH_CYCLE, count):  # the road fills first
        rush = (1 + np.sin(2 * np.pi * wave / RUSH_CYCLE)) / 2
        entering = int(chance.poisson(QUIET + (RUSH - QUIET) * rush**2))
        cars.enter(entering, first, chance)
        first += entering
        speeds = _speeds(cars, chance)
        cars.miles += speeds * WAVE_S / 3600
        cars.left -= speeds * WAVE_S / 3600
        cars.stands = np.maximum(cars.stands - 1, 0)
        cars.keep((cars.left > 0) & (cars.miles < SEGMENTS))
        _accident(cars, chance)
        if wave >= 0:
            yield _reports(wave, cars, chance)


def _speeds(cars: _Cars, chance: np.random.Generator) -> Numbers:
    places = cars.direction * SEGMENTS + cars.miles.astype(np.int64)
    crowd = np.bincount(places, minlength=DIRECTIONS * SEGMENTS).astype(float)
    stuck = np.bincount(places, weights=cars.stands > 0, minlength=DIRECTIONS * SEGMENTS)
    for back in (1, 2, 3):
        stuck[:-back] = np.maximum(stuck[:-back], (stuck[back:] > 0) * (4 - back) / 4)
    speed = _FREE_SPEED / (1 + (crowd[places] / _CROWD) ** 3) + cars.manner
    speed = np.where(stuck[places] > 0, speed * 0.4, speed) + chance.normal(0, 2, len(places))
    return np.where(cars.stands > 0, 0.0, np.clip(speed, 3, 100))


def _accident(cars: _Cars, chance: np.random.Generator) -> None:
    if chance.random() >= _ACCIDENT or len(cars.car) < 2:
        return
    one = int(chance.integers(len(cars.car)))
    same = (cars.direction == cars.direction[one]) & (np.floor(cars.miles) == np.floor(cars.miles[one]))
    nearby = np.flatnonzero(same)[:2]
    if len(nearby) == 2:
        cars.stands[nearby] = int(chance.integers(10, 30))
        cars.miles[nearby] = cars.miles[nearby[0]]


def _reports(wave: int, cars: _Cars, chance: np.random.Generator) -> Reports:
    moving = np.where(cars.stands > 0, 0.0, 1.0)
    shown = np.clip(np.round(_speeds(cars, chance) * moving), 0, 100).astype(np.int64)
    segment = cars.miles.astype(np.int64)
    position = (cars.miles * FEET).astype(np.int64)
    return Reports(wave * WAVE_S, cars.car.copy(), shown, cars.direction.copy(), segment, position)


# -- the steps ---------------------------------------------------------------------------------------

_PLACES = np.arange(DIRECTIONS * SEGMENTS, dtype=np.uint64)


def reports(wave: Reports) -> Elements:
    """What is read: of each car its speed and its position."""
    return Elements(wave.car.astype(np.uint64), np.column_stack([wave.speed, wave.position]).astype(float))


def positions(wave: Reports) -> Elements:
    """Step 2a: the mile at which each car is, counted from 1."""
    return Elements(wave.car.astype(np.uint64), (wave.segment + 1).astype(np.float64)[:, None])


@dataclass(frozen=True, slots=True)
class Traffic:
    """What step 3 makes, by direction and segment: `speed` (3a), `cars` (3b), `accidents` (3c, where there
    are).
    """

    speed: Elements
    cars: Elements
    accidents: Elements

    @property
    def together(self) -> Elements:
        """What step 4 reads."""
        stopped = np.zeros((len(_PLACES), 1))
        stopped[self.accidents.keys.astype(np.int64)] = self.accidents.values
        return Elements(_PLACES, np.hstack([self.speed.values, self.cars.values, stopped]))


def traffic(recent: list[Reports]) -> Traffic:
    """From the reports of the last waves, the newest last: a mean speed is of five minutes."""
    averaged = recent[-_AVERAGED:]
    places = np.concatenate([wave.place for wave in averaged])
    seen = np.bincount(places, minlength=len(_PLACES))
    sums = np.bincount(places, np.concatenate([wave.speed for wave in averaged]), len(_PLACES))
    now = recent[-1]
    cars = np.bincount(now.place, minlength=len(_PLACES)).astype(float)
    stopped = _accidents(recent[-_STOPPED:])
    where = np.flatnonzero(stopped)
    speed: Numbers = np.full(len(_PLACES), _FREE_SPEED, np.float64)
    speed[seen > 0] = sums[seen > 0] / seen[seen > 0]
    return Traffic(
        Elements(_PLACES, speed[:, None]),
        Elements(_PLACES, cars[:, None]),
        Elements(where.astype(np.uint64), stopped[where][:, None]),
    )


def _accidents(recent: list[Reports]) -> Numbers:
    """How many cars of each place are in an accident: two or more with the same position in four reports."""
    now = recent[-1]
    stands = np.full(len(now.car), len(recent) == _STOPPED)
    for before in recent[:-1]:
        at = np.minimum(np.searchsorted(before.car, now.car), len(before.car) - 1)
        stands &= (before.car[at] == now.car) & (before.position[at] == now.position)
    spots = (now.direction * SEGMENTS * FEET + now.position)[stands]
    _, spot, cars = np.unique(spots, return_inverse=True, return_counts=True)
    together = cars[spot] >= 2
    counts = np.bincount(now.place[stands][together], minlength=len(_PLACES))
    return np.asarray(counts, np.float64)


def tolls(now: Traffic) -> Elements:
    """Step 4: congestion, as the benchmark's toll: 2 (cars - 50)^2 where more drive slowly, none near
    accidents.
    """
    cars, speed = now.cars.values[:, 0], now.speed.values[:, 0]
    toll = np.where((cars > TOLL_CARS) & (speed < TOLL_SPEED), 2 * (cars - TOLL_CARS) ** 2, 0.0)
    for place in now.accidents.keys.astype(np.int64):
        toll[max(place - _DETOUR, place // SEGMENTS * SEGMENTS) : place + 1] = 0
    where = np.flatnonzero(toll)
    return Elements(where.astype(np.uint64), toll[where][:, None])


def areas(toll: Elements) -> Elements:
    """Step 5a: the class of each area of five segments, from 1 (free) to 4, by its mean toll."""
    dense = np.zeros(len(_PLACES))
    dense[toll.keys.astype(np.int64)] = toll.values[:, 0]
    means = dense.reshape(-1, AREA).mean(axis=1)
    classes = 1.0 + np.digitize(means, [1, 100, 400])
    return Elements(np.arange(len(means), dtype=np.uint64), classes[:, None])
