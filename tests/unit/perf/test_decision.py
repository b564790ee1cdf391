"""The inputs and the page of `perf.decision`: it measures nothing here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from perf.decision import ADDED, ALL, FILES, ZONES, Asked, Case, changes, page

ROWS = 1_000


def read(folder: Path) -> pa.Table:
    options = csv.ReadOptions(column_names=["detector", "zone", "ozone", "dust", "dioxide"])
    return pa.concat_tables(csv.read_csv(path, read_options=options) for path in sorted(folder.glob("*.csv")))


@pytest.mark.parametrize("change", [ADDED, ALL])
def test_each_wave_changes_what_it_says(tmp_path: Path, change: str) -> None:
    waves = changes(tmp_path / "in", change, ROWS, np.random.default_rng(1))
    next(waves)
    first = read(tmp_path / "in")
    assert len(list((tmp_path / "in").iterdir())) == FILES
    for wave in (1, 2):
        before = read(tmp_path / "in")
        next(waves)
        now = read(tmp_path / "in")
        detectors = now["detector"].to_pylist()
        assert detectors == list(range(len(detectors)))
        assert now["zone"].to_pylist() == [detector % ZONES for detector in detectors]
        if change == ADDED:
            assert len(now) == ROWS + wave * (ROWS // 100)
            assert now.slice(0, len(before)).equals(before)
        else:
            assert len(now) == ROWS
            moved = np.abs(np.array(now["ozone"]) - np.array(first["ozone"]))
            assert (moved > 0).mean() > 0.5
            assert moved.max() < 0.5


def test_the_page_has_medians_ranges_and_shares() -> None:
    case = Case(ADDED, jobs=[90.0, 110.0, 100.0])
    case.asked += [Asked("command", "tolerated", "application", cpu, 1.0, 0.5) for cpu in (1.5, 2.0, 2.5)]
    case.asked += [Asked("HTTP", "tolerated", "application", 1.0, 1.0, 0.5)]
    text = page({"machine": "one", "cases": []}, [case])
    assert "| in charge, by the command | 2.00 s (1.50-2.50) |" in text
    assert "| share of the job, by the command | 2.0% |" in text
    assert "| share of the job, over HTTP | 1.0% |" in text
    assert "| CPU of a job of which it is 2% | 100 s |" in text
