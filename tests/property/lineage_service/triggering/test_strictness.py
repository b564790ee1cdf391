"""The stricter threshold: it never skips what the tested one runs, and what looks show decides about it."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.triggering.learning import drift
from lineage_service.triggering.learning.compliance import Compliance
from lineage_service.triggering.learning.drift import Looks
from lineage_service.triggering.learning.phases import (
    APPLICATION,
    Policy,
    Progress,
    executed,
    progress_of_json,
    skipped,
    threshold_now,
    verdict,
)

LETTERS = (
    *(drift.SKIPPED, drift.RUN, drift.UNLIKE_RUN, drift.KEPT, drift.BROKEN),
    *(drift.SPARED_KEPT, drift.SPARED_BROKEN),
)
recents = st.lists(st.sampled_from(LETTERS), max_size=120).map("".join)
tests = st.integers(20, 400).flatmap(
    lambda waves: st.integers(waves * 9 // 10, waves).map(lambda within: Compliance(within, waves))
)
probabilities = st.floats(0, 1)


def in_charge(recent: str, tested: Compliance, threshold: float = 0.4, strangeness: float = 0.0) -> Progress:
    looks = Looks(recent=recent, strangeness=strangeness)
    return Progress(phase=APPLICATION, reason="", threshold=threshold, compliance=tested, looks=looks)


@given(
    recents,
    tests,
    st.integers(1, 40).map(lambda step: step / 50),
    st.floats(0, drift.STRANGE),
    probabilities,
    st.text(max_size=4),
)
def test_it_never_skips_what_the_tested_threshold_runs(
    recent: str, tested: Compliance, threshold: float, strangeness: float, probability: float, wave: str
) -> None:
    policy, strict = Policy(bound=0.1), in_charge(recent, tested, threshold, strangeness)
    calm = in_charge(recent, tested, threshold)
    assert (threshold_now(strict, policy) or 0) <= (threshold_now(calm, policy) or 0)
    loose = replace(strict, compliance=None)
    asked = {"job": "j", "wave": wave, "age": 1, "probability": probability}
    answer, loosely = (
        verdict(progress, policy, **asked)  # type: ignore[arg-type]
        for progress in (strict, loose)
    )
    assert 0 < (threshold_now(strict, policy) or 0) <= threshold
    assert answer.run or not loosely.run
    kept = progress_of_json(json.loads(json.dumps(strict.to_json())))
    assert verdict(kept, policy, **asked) == answer  # type: ignore[arg-type]


@given(recents, tests, st.data())
def test_one_more_wrong_skip_never_loosens(recent: str, tested: Compliance, data: st.DataObject) -> None:
    policy = Policy(bound=0.1)
    before = threshold_now(in_charge(recent, tested), policy)
    for right, wrong in ((drift.KEPT, drift.BROKEN), (drift.SPARED_KEPT, drift.SPARED_BROKEN)):
        places = [at for at, letter in enumerate(recent) if letter == right]
        if places:
            at = data.draw(st.sampled_from(places))
            after = threshold_now(in_charge(recent[:at] + wrong + recent[at + 1 :], tested), policy)
            assert (after or 0) <= (before or 0)


@given(tests, st.lists(st.tuples(probabilities, st.booleans()), min_size=1, max_size=120))
def test_without_a_wrong_skip_the_tested_threshold_stays(
    tested: Compliance, waves: list[tuple[float, bool]]
) -> None:
    """Where the test showed what is wanted, as it always has before a job is in charge."""
    policy, progress = Policy(bound=0.1, confidence=min(tested.share, 0.99)), in_charge("", tested)
    for wave, (probability, is_above) in enumerate(waves):
        answer = verdict(progress, policy, job="j", wave=str(wave), age=1, probability=probability)
        assert answer.threshold == progress.threshold
        error = 0.2 if is_above and probability >= 0.4 else 0.0
        progress = (
            executed(progress, policy, answer, wave=wave, error=error) if answer.run else skipped(progress)
        )
