"""The page that `python -m perf.capture` writes: ratios, targets, equality; no time is measured here."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from perf.capture import report
from perf.capture.cases import CASES, DETAILED, LINEAGE, MODES, NOLIN, RATIOS, STOCK, WORKLOADS
from perf.capture.report import Run, Spread

RUN = Run(
    case="wordcount",
    megabytes=100,
    round=1,
    mode=STOCK,
    cpu_s=10.0,
    workers_s=8.0,
    wall_s=6.0,
    kafka_cpu_s=0.1,
    load=0.5,
    input_bytes=100_000_000,
    output_rows=8_000,
    output_sha256="aa",
    sent_bytes=0,
    blocks=0,
    dropped=0,
)


def rounds(mode: str, *cpu_s: float) -> list[Run]:
    return [replace(RUN, mode=mode, round=number, cpu_s=each) for number, each in enumerate(cpu_s, 1)]


def test_a_ratio_is_made_within_a_round() -> None:
    # The second round ran on a machine three times as slow; medians of seconds would say 27 / 10.
    runs = [*rounds(STOCK, 10, 30, 10), *rounds(LINEAGE, 9, 27, 30)]
    assert report.ratios(runs, LINEAGE, STOCK, "cpu_s") == Spread(0.9, 0.9, 3.0)


def test_a_round_without_its_pair_is_not_counted() -> None:
    assert report.ratios([*rounds(STOCK, 10), *rounds(NOLIN, 9, 1)], NOLIN, STOCK, "cpu_s") == Spread(
        0.9, 0.9, 0.9
    )
    assert report.ratios(rounds(STOCK, 10), LINEAGE, STOCK, "cpu_s") is None


def test_another_output_and_lost_blocks_are_named() -> None:
    lineage = replace(RUN, mode=LINEAGE)
    assert report.unequal([RUN, lineage]) == []
    assert report.unequal([RUN, replace(lineage, output_sha256="bb")]) == ["2 different outputs"]
    assert report.unequal([RUN, replace(lineage, dropped=3)]) == ["lineage, round 1: 3 blocks lost"]


def test_the_page_holds_ratios_against_their_targets() -> None:
    runs = [*rounds(STOCK, 10, 10), *rounds(LINEAGE, 8.9, 9.0), *rounds(DETAILED, 13, 13)]
    runs[-3] = replace(runs[-3], sent_bytes=7_000_000, flows=16_000_000, blocks=900)
    page = report.markdown(report.as_json(runs, {"seed": 1}, ["WordCount, nolin: no mirror of Zip"]))
    row = next(line for line in page.splitlines() if "met" in line)
    assert row == (
        "| WordCount, 100 MB | 0.90 (0.89-0.90), **met**: <= 0.90 | 1.30 (1.30-1.30), missed: <= 1.20 |"
    )
    assert (
        "| WordCount, 100 MB | lineage | 7,000,000 | 0.07000 | 16,000,000 | 0.438, **met**: <= 0.45 | 900 |"
        in page
    )
    assert "- WordCount, nolin: no mirror of Zip" in page
    assert "The outputs of all modes are equal" in page


def test_the_page_says_what_is_not_equal() -> None:
    runs = [RUN, replace(RUN, mode=LINEAGE, output_rows=1)]
    page = report.markdown(report.as_json(runs, {}, []))
    assert "- WordCount, 100 MB: 2 different outputs" in page
    assert "are equal" not in page


def test_the_result_file_gives_the_page_again() -> None:
    result = report.as_json([RUN, replace(RUN, mode=LINEAGE)], {"seed": 1}, [])
    assert report.markdown(json.loads(json.dumps(result))) == report.markdown(result)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_case_has_a_job_and_targets_that_are_published(case: object) -> None:
    assert isinstance(case, type(CASES["grep"]))
    assert (WORKLOADS / case.job).is_file()
    assert set(case.targets) <= set(RATIOS)
    assert {mode for modes in RATIOS.values() for mode in modes} <= set(MODES)
