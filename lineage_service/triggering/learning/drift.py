"""Is tomorrow still like the training? What is seen while the forest is in charge, and when that is an
alarm.

Nobody sees the error of a wave that was skipped. So a share of skips is run all the same (`audit`), and
these waves say how often skipping was wrong. Four alarms:
- leak: the exact upper bound of the compliance over the last waves is below what is wanted. It is asked after
  each wave, so its bound is right with `LEAK_CONFIDENCE`, and not with 95 %;
- wrong skips: skips that were looked at are above the bound oftener than the forest says, by a CUSUM of
  log-likelihood ratios (Page, Biometrika 41, 1954) against one half. After one that was little expected,
  each skip is looked at until the CUSUM has fallen again;
- strange errors: those that executions measure are further above what was expected than in the test, by a
  CUSUM of their squared deviations. Audits are rare; this asks every execution. Near the alarm each
  skip is looked at, too: it costs few runs, and a break shows sooner. That errors are smaller is no alarm:
  steps with a threshold have errors of 0 now and then, and the bound is kept;
- unlike: waves have features that training did not have, oftener than now and then, by a CUSUM of their
  number. Weather that is louder than any before comes and goes: no stretch of it needs to be long.

Between trust and an alarm lies a stricter threshold (`Looks.strictness`). The tested one is taken as long as
the test and the audits together show no more waves above the bound than are wanted. Else it is lowered by as
many times as they are too many. What only the stricter one runs says what the tested one would have done.

A forest that learned something wrong is wrong from its first wave on: of the first skips, twice as many are
looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lineage_service.triggering.learning.compliance import Compliance, lower_bound

#: The waves that a leak is judged by, and how sure it must be.
RECENT, LEAK_CONFIDENCE = 400, 0.99
#: After a break a skip is as likely wrong as right, whatever the forest says.
AFTER_BREAK = 0.5
#: Of the CUSUM of wrong skips: three that the forest took for right, hardly one that was right between them.
#: The first is reason enough to look at each skip.
ALARM, CLOSE = 5.0, 1.0
#: Squared deviations: the largest that counts, what is usual at most, the alarm, and from when on each skip
#: is looked at.
LARGEST_SQUARE, USUAL_SQUARE, ALARMING, STRANGE = 9.0, 2.5, 10.0, 7.0
#: Squares count so often where an error above the bound was impossible, and not at all where it was certain.
#: So one that is three usual deviations too large is an alarm where it was all but impossible, and it takes
#: more of them elsewhere.
WHERE_IMPOSSIBLE = 2.0
#: A probability is never taken for more certain than that.
LEAST_PROBABILITY = 0.05
#: Of the CUSUM of waves unlike the training's: so many in a row are an alarm, and each other wave takes back
#: a quarter of one. About so much it says against a break, if one of 20 waves is unlike before a break and
#: half of them are after it.
UNLIKE, ALIKE = 6, 0.25
#: After a wave that is unlike, so many are suspicious.
SUSPICIOUS = 10
#: What the test showed counts as much as so many looks at skips.
LOOKS_OF_TEST = 5
#: Of so many skips, the first ones, twice as many are looked at.
EARLY = 100

#: What a wave shows. The last two are those that only the stricter threshold runs.
SKIPPED, RUN, UNLIKE_RUN, KEPT, BROKEN, SPARED_KEPT, SPARED_BROKEN = "s", "r", "u", "k", "b", "w", "a"


@dataclass(frozen=True, slots=True, kw_only=True)
class InCharge:
    """What is known of so many waves that a forest decided: `skips` were not run; of the skips that were
    looked at all the same, `audits`, `broken` were above the bound. Executed waves keep any bound.
    """

    waves: int
    skips: int
    audits: int
    broken: int

    @property
    def compliance(self) -> float:
        """The estimated share of waves within the bound; NaN before the first audit of skips."""
        if not self.skips:
            return 1.0
        return 1 - self.skips / self.waves * (self.broken / self.audits if self.audits else math.nan)

    @property
    def lower(self) -> float:
        """The lower bound, at 95 %."""
        kept = lower_bound(self.audits - self.broken, self.audits)
        return 1 - self.skips / self.waves * (1 - kept) if self.skips else 1.0

    @property
    def upper(self) -> float:
        """The upper bound, at `LEAK_CONFIDENCE`."""
        above = lower_bound(self.broken, self.audits, LEAK_CONFIDENCE)
        return 1 - self.skips / self.waves * above if self.skips else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """What has come of decisions, one letter a wave; `surprise` and `strangeness` are the CUSUMs.
    Can be kept as JSON.
    """

    recent: str = ""
    surprise: float = 0.0
    strangeness: float = 0.0
    skips: int = 0

    def in_charge(self) -> InCharge:
        audits, broken = self.recent.count(KEPT) + self.recent.count(BROKEN), self.recent.count(BROKEN)
        return InCharge(
            waves=len(self.recent), skips=self.recent.count(SKIPPED), audits=audits, broken=broken
        )

    @property
    def is_close(self) -> bool:
        """Should each skip be looked at? After a surprise, and while errors are strange."""
        return self.surprise >= CLOSE or self.is_strange

    @property
    def why_close(self) -> str:
        """Why each skip is looked at, as half of a sentence."""
        if self.surprise >= CLOSE:
            return "a skip was above the bound against what was expected"
        return "errors are larger than expected"

    @property
    def is_strange(self) -> bool:
        """Are errors near an alarm?"""
        return self.strangeness >= STRANGE

    @property
    def unlikeness(self) -> float:
        """The CUSUM of waves with features that training did not have."""
        level = 0.0
        for letter in self.recent:
            level = level + 1 if letter == UNLIKE_RUN else max(level - ALIKE, 0.0)
        return level

    @property
    def is_suspicious(self) -> bool:
        """May this be a break? Then nothing is learned from it, lest the forest takes it for the pattern."""
        return self.is_close or UNLIKE_RUN in self.recent[-SUSPICIOUS:]

    def seen(self, letter: str) -> Looks:
        skips = self.skips + (letter in (SKIPPED, KEPT, BROKEN))
        return replace(self, recent=(self.recent + letter)[-RECENT:], skips=skips)

    def group_of(self, share: float) -> int:
        """Of so many skips one is looked at."""
        return max(round(1 / share) // (2 if self.skips < EARLY else 1), 1)

    def place_of(self, count: int) -> tuple[int, bool]:
        """Skips come in groups of so many: the place of the next one, and whether its group has an audit."""
        place = self.skips % count
        of_skips = [letter for letter in self.recent if letter in (SKIPPED, KEPT, BROKEN)]
        return place, any(letter != SKIPPED for letter in of_skips[len(of_skips) - place :])

    def surprised(self, probability: float, exceeds: bool) -> Looks:
        """A skip that was looked at: was the error above the bound?"""
        before = min(max(probability, LEAST_PROBABILITY), 1 - LEAST_PROBABILITY)
        after = max(before, AFTER_BREAK)
        ratio = math.log(after / before) if exceeds else math.log((1 - after) / (1 - before))
        return replace(self, surprise=max(self.surprise + ratio, 0.0))

    def strictness(self, tested: Compliance, confidence: float) -> float:
        """By what the tested threshold is multiplied, from 0 to 1 (not 0).

        The estimated share of waves that it would let be above the bound: by audits, each of which stands for
        all skips of its group, together with the test; and those that only the stricter threshold ran.
        """
        if BROKEN not in self.recent and SPARED_BROKEN not in self.recent:
            return 1.0
        seen, spared = self.in_charge(), self.recent.count(SPARED_BROKEN)
        shown = (seen.skips + seen.audits) / seen.waves * seen.broken / seen.audits if seen.audits else 0.0
        looks, of_test = seen.audits, LOOKS_OF_TEST * (1 - tested.share)
        above = (looks * shown + of_test) / (looks + LOOKS_OF_TEST) + spared / seen.waves
        return min(1.0, (1 - confidence) / above)

    def measured(self, deviation: float, probability: float) -> Looks:
        """An execution measured the error: so many usual deviations from the expected size.

        `probability`: of one above the bound, as it was decided by.
        """
        square = min(max(deviation, 0.0) ** 2, LARGEST_SQUARE) * WHERE_IMPOSSIBLE * (1 - probability)
        return replace(self, strangeness=max(self.strangeness + square - USUAL_SQUARE, 0.0))

    def alarm(self, confidence: float) -> str:
        """Why the forest is no longer trusted; empty: it is."""
        seen = self.in_charge()
        if seen.audits and seen.upper < confidence:
            return (
                f"the bound was kept in at most {seen.upper:.1%} of the last {seen.waves} waves, "
                f"and {confidence:.0%} is wanted"
            )
        if self.surprise >= ALARM:
            return "errors above the bound come more often than the training said"
        if self.strangeness >= ALARMING:
            return "errors are larger than the training said"
        if self.unlikeness >= UNLIKE:
            return "the inputs are unlike those of the training"
        return ""


NO_LOOKS = Looks()
