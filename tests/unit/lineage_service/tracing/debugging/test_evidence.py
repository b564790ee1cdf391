"""Findings in words."""

from __future__ import annotations

import numpy as np
import pytest

from lineage_service.tracing.debugging.drift import Drift, Kept
from lineage_service.tracing.debugging.evidence import drift_evidence, evidence_of
from lineage_service.tracing.debugging.findings import Finding, Unit
from lineage_service.tracing.debugging.tallies import Tally

pytestmark = pytest.mark.unit


def unit(value: int, others: list[int]) -> Unit:
    return Unit(value, Tally.of(np.array([value, *others])))


@pytest.mark.parametrize(
    ("finding", "sentence"),
    [
        (
            Finding(1, 1, "outputs", 9.0, unit(57, [1, 3, 1])),
            "map a.py:1: input 0#3#17 gave 57 outputs; the other 3 gave 1 to 3",
        ),
        (
            Finding(1, 1, "outputs", 9.0, unit(0, [1, 1])),
            "map a.py:1: input 0#3#17 gave 0 outputs; the other 2 gave 1",
        ),
        (
            Finding(1, 1, "inputs", 9.0, unit(1234567, [1, 20])),
            "map a.py:1: output 0#3#17 was made of 1,234,567 inputs; the other 2 of 1 to 20",
        ),
        (Finding(1, 1, "inputs", 9.0, unit(1, [])), "map a.py:1: output 0#3#17 was made of 1 input"),
        (
            Finding(1, 1, "outputs", 9.0, mean=0.3141, means=(0.1, 0.3141, 0.12)),
            "map a.py:1: inputs gave 0.314 outputs on average; the other 2 partitions 0.1 to 0.12",
        ),
        (
            Finding(1, 1, "dropped", 9.0, mean=0.97, means=(0.97, 0.02)),
            "map a.py:1: 97 % of the inputs gave no output; the other partition 2 % to 2 %",
        ),
        (
            Finding(1, 1, "records", 9.0, mean=5000.0, means=(5000.0, 90.0, 110.0)),
            "map a.py:1: 5,000 records were read; the other 2 partitions 90 to 110",
        ),
        (
            Finding(1, 1, "inputs", 9.0, mean=4.0, means=(4.0, 2.0, 2.0)),
            "map a.py:1: outputs were made of 4 inputs on average; the other 2 partitions 2",
        ),
    ],
)
def test_a_finding_is_one_sentence(finding: Finding, sentence: str) -> None:
    evidence = evidence_of(finding, "map a.py:1", None if finding.unit is None else "0#3#17")
    assert evidence.why == sentence


def test_a_drift_names_the_runs_before() -> None:
    drift = Drift(Kept(4, 1000, 0.003), 0.11, 0.13, 7, 20.0)
    evidence = drift_evidence(drift, "filter a.py:5")
    assert evidence.why == "filter a.py:5: 0.003 outputs per input; in the 7 runs before 0.11 to 0.13"
    assert (evidence.low, evidence.high, evidence.others) == (0.11, 0.13, 7)
