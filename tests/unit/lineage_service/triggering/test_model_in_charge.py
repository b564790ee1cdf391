"""What has come of a model since it decides, from what is kept with the answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineage_service.triggering.learning import drift
from lineage_service.triggering.learning.model_in_charge import in_charge
from lineage_service.triggering.learning.phases import APPLICATION, Policy, Progress
from lineage_service.triggering.weighing.experience import Experience
from tests.support.triggering import wave

BOUND = {"bound": 0.05, "confidence": 0.95}


def learned(letters: str, phase: str = APPLICATION) -> str:
    progress = Progress(phase=phase, looks=drift.Looks(recent=letters))
    return Experience(terms="", policy=Policy(bound=0.05), progress=progress).to_json()


def test_it_is_what_audits_have_shown() -> None:
    letters = drift.SKIPPED * 60 + drift.RUN * 36 + drift.KEPT * 3 + drift.BROKEN
    model = in_charge([wave(number=0, learned=learned(letters), **BOUND)], None)
    assert model is not None
    assert (model.waves, model.skips, model.audits, model.broken) == (100, 60, 4, 1)
    assert model.compliance == pytest.approx(1 - 0.6 / 4)
    assert model.compliance_lower is not None
    assert 0.4 < model.compliance_lower < model.compliance


def test_without_an_audit_the_share_is_not_known() -> None:
    model = in_charge([wave(number=0, learned=learned(drift.SKIPPED * 4 + drift.RUN), **BOUND)], None)
    assert model is not None
    assert model.compliance is None
    fresh = in_charge([wave(number=0, learned=learned(""), **BOUND)], None)
    assert fresh is not None
    assert (fresh.waves, fresh.compliance, fresh.compliance_lower) == (0, None, None)


def test_the_last_answer_counts_that_has_something_learned() -> None:
    waves = [
        wave(number=0, learned=learned(drift.RUN), **BOUND),
        wave(number=1, learned=learned(drift.RUN * 2), **BOUND),
        wave(number=2, **BOUND),
    ]
    model = in_charge(waves, None)
    assert model is not None
    assert model.waves == 2
    assert in_charge(waves, 2) is None  # somebody asked for another training after the second
    assert in_charge(waves, 1) is not None


def test_no_model_is_in_charge_before_its_test_nor_without_a_bound() -> None:
    own = wave(number=0, learned=learned(drift.RUN), **BOUND)
    assert in_charge([], None) is None
    assert in_charge([own, wave(number=1)], None) is None
    assert in_charge([replace(own, learned=learned("", "training"))], None) is None
    other = '{"progress": {"looks": {"more": 1}, "compliance": null}}'
    for broken in ("", "[]", "{}", '{"progress": {}}', other):
        assert in_charge([replace(own, learned=broken)], None) is None
