"""How often a bound was kept, and what may be concluded from that: exact binomial bounds.

Clopper and Pearson (Biometrika 26, 1934). They hold for waves that are independent and alike. Waves that
follow one another are neither quite: a bound of theirs is a little too narrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: The probability with which a bound of one side is right.
BOUND_CONFIDENCE = 0.95
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Compliance:
    """So many of `waves` were `within` the bound."""

    within: int
    waves: int

    @property
    def share(self) -> float:
        return self.within / self.waves if self.waves else math.nan

    @property
    def lower(self) -> float:
        """The least share that is not refuted at 95 %: 0 without any wave."""
        return lower_bound(self.within, self.waves)

    @property
    def upper(self) -> float:
        """The largest share that is not refuted at 95 %: 1 without any wave."""
        return 1 - lower_bound(self.waves - self.within, self.waves)


def lower_bound(successes: int, trials: int, confidence: float = BOUND_CONFIDENCE) -> float:
    """The p at which `successes` or more of `trials` have the probability 1 - confidence."""
    if not successes:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_least(successes, trials, middle) > 1 - confidence:
            high = middle
        else:
            low = middle
    return low


def _at_least(successes: int, trials: int, probability: float) -> float:
    """The binomial probability of so many successes or more, summed from its shorter side."""
    if probability in (0.0, 1.0):
        return probability
    logs = math.log(probability), math.log1p(-probability)
    below = successes <= trials - successes
    counts = range(successes) if below else range(successes, trials + 1)
    total = math.fsum(
        math.exp(_log_binomial(trials, count) + count * logs[0] + (trials - count) * logs[1])
        for count in counts
    )
    return 1 - total if below else total


def _log_binomial(trials: int, count: int) -> float:
    return math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
