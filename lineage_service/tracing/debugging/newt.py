"""Newt's rule for outliers among selectivities, for comparison (De, thesis, UCSD 2012, sections 4.2.2-4.2.3).

Figure 4.2: with mean m and standard deviation d of the numbers s, each stands at (s - m) / d. The range from
the least to the largest is cut into bins one wide. Every number in a bin of fewer than half the mean bin size
is an outlier. Two corrections: the least number is in the first bin, and where all are equal there is no
outlier.

A task with an outlier scores 1, and one whose mean is an outlier among more than two scores 1 more.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, sqrt

import numpy as np

from lineage_service.tracing.debugging.findings import Finding, Findings, IsAmong, Unit
from lineage_service.tracing.debugging.means import LEAST_OTHERS
from lineage_service.tracing.debugging.profiles import Profile
from lineage_service.tracing.debugging.tallies import Tally

__all__ = ["newt", "outliers"]


def newt(profile: Profile, is_among: IsAmong) -> Findings:
    """Both steps, over outputs per input."""
    findings = Findings()
    for siblings in profile.siblings:
        if siblings.feature != "outputs":
            continue
        everyone, means = Tally.together(siblings.tallies), tuple(tally.mean for tally in siblings.tallies)
        odd_means = [False] * len(means)
        if len(means) >= LEAST_OTHERS:
            odd_means = outliers(means, [1] * len(means))
        for at, (run, tally) in enumerate(zip(siblings.runs, siblings.tallies, strict=True)):
            if not is_among(siblings.node, run):
                continue
            value = _outlier(tally)
            if value is not None:
                findings.add(Finding(siblings.node, run, "outputs", 1.0, Unit(value, everyone)))
            if odd_means[at]:
                findings.add(Finding(siblings.node, run, "outputs", 1.0, mean=means[at], means=means))
    return findings


def _outlier(tally: Tally) -> int | None:
    """The outlier of a task that is farthest from its mean."""
    values: list[int] = tally.values.tolist()
    odd = outliers(values, tally.counts.tolist())
    chosen = [value for value, is_odd in zip(values, odd, strict=True) if is_odd]
    return max(chosen, key=lambda value: abs(value - tally.mean), default=None)


def outliers(values: Sequence[float], counts: Sequence[int]) -> list[bool]:
    """For each value, which occurs `counts` times: is it an outlier?"""
    size = sum(counts)
    if not size:
        return [False] * len(values)
    exact = [value if isinstance(value, int) else Fraction(value) for value in values]
    total = sum(value * count for value, count in zip(exact, counts, strict=True))
    squares = sum(value * value * count for value, count in zip(exact, counts, strict=True))
    mean = float(Fraction(total, size))
    deviation = sqrt(Fraction(squares * size - total * total, size * size))
    if not deviation:
        return [False] * len(values)
    distances = [(value - mean) / deviation for value in values]
    least, largest = min(distances), max(distances)
    bins = ceil(largest - least)
    bin_of = [max(ceil(distance - least), 1) for distance in distances]
    sizes = np.bincount(bin_of, weights=counts, minlength=bins + 1)
    mean_size = size / bins
    return [bool(sizes[at] < mean_size / 2) for at in bin_of]
