"""What skips saved and answers cost, and the sums that metrics are made of."""

from __future__ import annotations

import random
from typing import Any

from lineage_service.decode.batches import event_batch
from lineage_service.lineage.trigger_totals import DECISION_SECONDS
from lineage_service.testing.flow_store import MemoryFlowStore
from lineage_service.triggering.waves.savings import Durations, savings_of
from lineage_service.triggering.waves.wave_totals import AnswerRow, totals_of
from spark_agent import contract
from tests.support.lineage_messages import event, messages


def row(number: int, decision: str = "run", **changes: Any) -> AnswerRow:
    values: dict[str, Any] = {
        "job": "nightly",
        "number": number,
        "decision": decision,
        "reason": "unchanged" if decision == "skip" else "changed",
        "phase": "certain",
        "application_id": "app-1",
        "bound": None,
        "confidence": None,
        "probability": None,
        "compliance": None,
        "seconds": None,
    }
    return AnswerRow(**{**values, **changes})


def test_a_skip_saves_what_the_execution_before_it_took() -> None:
    rows = [
        row(0, seconds=0.5),
        row(1, "skip", seconds=0.25),
        row(2, "skip", application_id="app-2", seconds=0.25),
        row(3, "skip", application_id="forgotten"),
        row(4, "skip", application_id=None),
    ]
    savings = savings_of(rows, {"app-1": 60.0, "app-2": 90.5, "other": 1_000.0})
    assert (savings.saved_seconds, savings.saved_unknown) == (150.5, 2)
    assert (savings.spent_seconds, savings.spent_unknown) == (1.0, 2)


def test_an_execution_takes_from_its_start_to_its_last_word_of_an_end() -> None:
    store = MemoryFlowStore()
    ends = {"app-1": [61_000], "app-2": [70_000, 91_500], "running": []}
    for name, times in ends.items():
        store.write_events(
            event_batch(
                f"g/{name}",
                messages(
                    event(contract.APPLICATION_STARTED, application_id=name, name="nightly", time=1_000),
                    *(event(contract.APPLICATION_ENDED, application_id=name, time=time) for time in times),
                ),
            )
        )
    rows = [row(at, "skip", application_id=name) for at, name in enumerate([*ends, "forgotten", None])]
    durations = Durations(store)
    assert durations.within(rows, lambda: False) is None  # there was no time
    assert durations.of(rows) == {"app-1": 60.0, "app-2": 90.5}
    assert durations.within(rows[:2], lambda: False) == {
        "app-1": 60.0,
        "app-2": 90.5,
    }  # nothing is read again


def test_sums_are_of_all_answers_and_the_rest_of_the_last_under_the_last_bound() -> None:
    model = {"bound": 0.05, "confidence": 0.95}
    rows = [
        row(0, bound=0.1, confidence=0.9, phase="application", compliance=0.5, probability=0.9),
        row(1, phase="training", **model),
        row(2, "skip", phase="application", probability=0.04, compliance=0.98, **model),
        row(3, phase="application", probability=0.6, compliance=None, **model),
        row(4, "skip", seconds=0.02, **model),
    ]
    random.Random(3).shuffle(rows)
    totals = totals_of(rows, {"app-1": 60.0})
    assert totals.decisions == {("run", "changed"): 3, ("skip", "unchanged"): 2}
    assert (totals.phase, totals.probability) == ("application", 0.6)
    assert (totals.tested_compliance, totals.confidence) == (0.98, 0.95)
    assert totals.saved_seconds == 120.0


def test_a_job_that_is_asked_about_without_a_bound_again_has_no_compliance() -> None:
    rows = [
        row(0, phase="application", bound=0.05, confidence=0.95, compliance=0.5, probability=0.4),
        row(1, "skip"),
    ]
    totals = totals_of(rows, {})
    assert (totals.phase, totals.tested_compliance, totals.confidence, totals.probability) == (
        "certain",
        None,
        None,
        None,
    )


def test_times_of_answers_are_counted_within_their_bounds() -> None:
    times = [0.0, DECISION_SECONDS[0], DECISION_SECONDS[0] * 1.01, DECISION_SECONDS[-1] * 2, None]
    counts = totals_of([row(at, seconds=time) for at, time in enumerate(times)], {}).seconds
    assert counts == (2, 1, *[0] * (len(DECISION_SECONDS) - 2), 1)
