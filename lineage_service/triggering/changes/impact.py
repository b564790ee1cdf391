"""How much a job's input changed since its last execution: the impact of the paper, and features of it.

Esteves, Galhardas, Veiga (INESC-ID TR 9/2016), section 2, with m changed elements of n, x now and x'
before, 0 for an element that was not there:
- Eq. 1: m * sum |x - x'|
- Eq. 2: m * sum |x - x'| / (n * sum max(|x|, |x'|)), from 0 to 1.
An impact is 0 if and only if nothing changed: one that rounds to 0, as of an added element with the
number 0, is the smallest positive number. Numbers that are not finite count as 0 in sums. Each column
stands by itself: a mean of several would hide one that changed behind one that did not. Further features,
such as lineage's, are appended by `joined`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.triggering.changes.changed_elements import Changes, Elements, Numbers

#: What any change is at least.
SMALLEST = float(np.finfo(np.float64).tiny)
#: What a number counts as at most: sums over a million of them, times a million, are finite.
LARGEST = 1e290
#: One element that jumps may move an output of few. Of that rank is the other large change that is a feature.
LARGE = 5
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
#: Features of the time of a wave.
TIMES = ("hour_sine", "hour_cosine", "weekday_sine", "weekday_cosine")


@dataclass(frozen=True, slots=True)
class Level:
    """Where the numbers of a container are now.

    `absolute`: their sum, `mean`, and the share of `zeros` (columns); `quantiles` (QUANTILES, columns).
    """

    count: int
    absolute: Numbers
    mean: Numbers
    quantiles: Numbers
    zeros: Numbers


@dataclass(frozen=True, slots=True)
class Impact:
    """Eq. 1 and Eq. 2 of each column."""

    total: Numbers
    relative: Numbers


@dataclass(frozen=True, slots=True)
class Features:
    """What a forest is asked: `names` and `values` have one length. A value that is not known is NaN."""

    names: tuple[str, ...]
    values: Numbers


def level(elements: Elements) -> Level:
    numbers = _finite(elements.values)
    columns = numbers.shape[1]
    if not len(elements):
        nothing = np.zeros(columns)
        return Level(0, nothing, nothing, np.zeros((len(QUANTILES), columns)), nothing)
    places = [min(int(share * len(numbers)), len(numbers) - 1) for share in QUANTILES]
    quantiles = np.empty((len(QUANTILES), columns))
    for at, column in enumerate(numbers.T):
        quantiles[:, at] = np.partition(column, places)[places]
    zeros = (numbers == 0).mean(axis=0)
    return Level(len(elements), np.abs(numbers).sum(axis=0), numbers.mean(axis=0), quantiles, zeros)


def impact(changes: Changes, now: Level) -> Impact:
    """Eq. 1 and 2 of changes that have led to the level of now."""
    old, new = _finite(changes.old), _finite(changes.new)
    differs = changes.differs()
    changed = differs.sum(axis=0)
    distance = np.abs(new - old).sum(axis=0)
    largest = np.maximum(np.abs(old), np.abs(new)).sum(axis=0)
    # What did not change has the same size on both sides. The difference may round below 0.
    sizes = np.maximum(now.absolute - np.abs(new).sum(axis=0), 0) + largest
    elements = now.count + int(changes.removed.sum())
    relative = changed / max(elements, 1) * np.minimum(distance / np.where(sizes > 0, sizes, 1), 1)
    return Impact(_positive(changed * distance, changed), _positive(relative, changed))


def features(
    columns: Sequence[str], changes: Changes, then: Level, now: Level, impacts_since: Sequence[Impact]
) -> Features:
    """What one input says of the changes since the last execution, when its level was `then`.

    `impacts_since`: of each wave since then, this one included, from wave to wave. Their sum sees what
    was changed back; the net changes do not.

    """
    net = impact(changes, now)
    old, new = _finite(changes.old), _finite(changes.new)
    net_sum = (new - old).sum(axis=0)
    largest = _largest(np.abs(new - old))
    # Shares, and no counts: an input that grows leaves the range of those that training saw.
    elements = max(now.count + int(changes.removed.sum()), 1)
    names = ["changed", "added", "removed"]
    values = [len(changes) / elements, changes.added.sum() / elements, changes.removed.sum() / elements]
    for at, column in enumerate(columns):
        by_name = {
            "impact": net.total[at],
            "relative_impact": net.relative[at],
            "cumulative_impact": sum(past.total[at] for past in impacts_since),
            "cumulative_relative_impact": sum(past.relative[at] for past in impacts_since),
            "signed_change": net_sum[at] / max(now.count, 1),
            "largest_change": largest[0, at],
            f"change_{LARGE}": largest[-1, at],
            "mean": now.mean[at],
            "zeros": now.zeros[at],
            "zeros_then": then.zeros[at],
        }
        for q, share in enumerate(QUANTILES):
            present, past = now.quantiles[q, at], then.quantiles[q, at]
            by_name |= {
                f"quantile_{share}": present,
                f"quantile_{share}_then": past,
                f"quantile_{share}_change": present - past,
            }
        names += [f"{column}.{name}" for name in by_name]
        values += by_name.values()
    return Features(tuple(names), np.array(values, np.float64))


def age(waves: int, hours: float) -> Features:
    """How long ago the last execution was."""
    return Features(("waves_since", "hours_since"), np.array([waves, hours], np.float64))


def time_of(hour: float, weekday: float) -> Features:
    """The hour (0 to 24) and the weekday (0 to 7) as points on circles, for jobs that saw two cycles."""
    day, week = 2 * math.pi * hour / 24, 2 * math.pi * weekday / 7
    return Features(TIMES, np.array([math.sin(day), math.cos(day), math.sin(week), math.cos(week)]))


def joined(*parts: Features) -> Features:
    """The features of several inputs, of time and of lineage as one row."""
    names = tuple(name for part in parts for name in part.names)
    return Features(names, np.concatenate([part.values for part in parts]))


def _finite(numbers: Numbers) -> Numbers:
    return np.clip(np.where(np.isfinite(numbers), numbers, 0.0), -LARGEST, LARGEST)


def _largest(distances: Numbers) -> Numbers:
    """The `LARGE` largest of each column, 0 where there are fewer changes."""
    ranked = np.zeros((LARGE, distances.shape[1]))
    first = max(len(distances) - LARGE, 0)
    for at, column in enumerate(distances.T if len(distances) else ()):
        top = np.sort(np.partition(column, first)[first:])[::-1]
        ranked[: len(top), at] = top
    return ranked


def _positive(impacts: Numbers, changed: Numbers) -> Numbers:
    positive: Numbers = np.where(changed > 0, np.maximum(impacts, SMALLEST), 0.0)
    return positive
