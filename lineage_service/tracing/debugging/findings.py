"""From the features of tasks to findings: which task is how odd, and by what.

Knows nothing of where features come from. What a finding is shown with is made when it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import log2

from lineage_service.tracing.debugging.profiles import FEATURES, Feature, Profile, Siblings
from lineage_service.tracing.debugging.scores import Scored, scored
from lineage_service.tracing.debugging.tallies import NOTHING, Tally
from lineage_service.tracing.debugging.unit_tallies import Stream

__all__ = ["FALSE_ALARMS", "Finding", "Findings", "IsAmong", "Unit", "graded", "threshold"]

#: In so many applications without anything odd, one has an unusual suspect.
FALSE_ALARMS = 20

IsAmong = Callable[[int, int], bool]
"""Is this node in this run one of the tasks that are asked for?"""


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit that stands out among all of its operation, or of some of them."""

    value: int
    everyone: Tally
    position: int | None = None  # None: it is to be looked for
    bad: int = 0  # bad outputs that are made of it
    good: int = 0
    is_one: bool = True  # of `everyone`

    @property
    def others(self) -> Tally:
        return self.everyone.without_one(self.value) if self.is_one else self.everyone


@dataclass(frozen=True, slots=True)
class Finding:
    """What is odd about one task by one feature. `bits` is the surprise of one comparison.

    Without a unit it is `mean`, one of `means`: those of all tasks of the operation.
    """

    node: int
    run: int
    feature: Feature
    bits: float
    unit: Unit | None = None
    mean: float = 0.0
    means: tuple[float, ...] = ()
    of_lineages: float = 0.0  # bits that lie in what lineages it is in: part of the score alone

    @property
    def score(self) -> float:
        return self.bits + self.of_lineages


@dataclass(slots=True)
class Findings:
    """By task, and how many comparisons were made."""

    by_task: dict[Stream, list[Finding]] = field(default_factory=dict)
    tests: int = 0

    def add(self, finding: Finding) -> None:
        self.by_task.setdefault((finding.node, finding.run), []).append(finding)


def threshold(tests: int) -> float:
    """Bits from which a comparison is unusual where so many are made."""
    return log2(FALSE_ALARMS * max(tests, 1))


def graded(profile: Profile, is_among: IsAmong) -> Findings:
    """Of the tasks that are asked for. They are compared with all tasks of their operation."""
    findings = Findings()
    for siblings in profile.siblings:
        sides, has_means = FEATURES[siblings.feature]
        everyone = Tally.together(siblings.tallies) if siblings.feature != "records" else NOTHING
        means = tuple(tally.mean for tally in siblings.tallies)
        if siblings.feature == "outputs" and everyone.high <= 1:
            has_means = False  # the share of dropped inputs says the same
        scores = scored(siblings.tallies, sides, has_means=has_means)
        for at, score in enumerate(scores):
            if is_among(siblings.node, siblings.runs[at]):
                findings.tests += score.tests
                for finding in _findings(siblings, at, score, everyone, means):
                    findings.add(finding)
    return findings


def _findings(
    siblings: Siblings, at: int, score: Scored, everyone: Tally, means: tuple[float, ...]
) -> Iterator[Finding]:
    extreme, node, feature, run = score.extreme, siblings.node, siblings.feature, siblings.runs[at]
    if extreme is not None and extreme.bits > 0:
        if feature == "records":  # the task is the unit
            yield Finding(node, run, feature, extreme.bits, mean=means[at], means=means)
        else:
            position = siblings.units[at].low if extreme.is_low else siblings.units[at].high
            yield Finding(node, run, feature, extreme.bits, Unit(extreme.value, everyone, position))
    if score.mean_bits > 0:
        yield Finding(node, run, feature, score.mean_bits, mean=means[at], means=means)
