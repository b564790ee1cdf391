"""Whatever runs come between: of as many skips as the share says, exactly one is looked at; of the first
skips, of half as many.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.triggering.learning.drift import EARLY, Looks
from lineage_service.triggering.learning.phases import (
    APPLICATION,
    Policy,
    Progress,
    executed,
    progress_of_json,
    skipped,
    verdict,
)

IN_CHARGE = Progress(phase=APPLICATION, reason="", threshold=0.5, executions=100, tried=100, fitted=99)


@given(
    st.sampled_from([0.02, 0.05, 0.1, 0.25, 0.5, 1.0]),
    st.sampled_from([0, EARLY]),
    st.text(max_size=5),
    st.lists(st.booleans(), min_size=1, max_size=150),
)
@settings(max_examples=60)
def test_each_group_of_skips_has_one_audit(share: float, skips: int, job: str, risky: list[bool]) -> None:
    policy, of_skips = Policy(bound=0.1, audit=share), ""
    progress = replace(IN_CHARGE, looks=Looks(skips=skips))
    for wave, is_risky in enumerate(risky):
        asked = {"job": job, "wave": str(wave), "age": 1, "probability": 0.9 if is_risky else 0.0}
        answer = verdict(progress, policy, **asked)  # type: ignore[arg-type]
        assert answer == verdict(progress_of_json(progress.to_json()), policy, **asked)  # type: ignore[arg-type]
        assert answer.run or not is_risky
        if not is_risky:
            of_skips += "a" if answer.is_audit else "s"
        if answer.run:
            progress = executed(progress, policy, answer, wave=100 + wave, error=0.0)
        else:
            progress = skipped(progress)
    size, early = round(1 / share), EARLY - skips
    parts = (of_skips[:early], max(size // 2, 1)), (of_skips[early:], size)
    for part, group in parts:
        groups = [part[at : at + group] for at in range(0, len(part), group)]
        assert all(group_of.count("a") == 1 for group_of in groups if len(group_of) == group)
        assert all(group_of.count("a") <= 1 for group_of in groups)
