"""The jobs of air quality and Linear Road make what their NumPy twins make, which stand for them in
perf.trigger.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from lineage_service.triggering.changes.changed_elements import Elements
from perf.trigger import air_quality, linear_road

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
HOURS, WAVES = (3, 40), (60, 130)
#: Both jobs in one JVM.
RUN = """
import sys
from perf.workloads import air_quality, linear_road
for path in sys.argv[1].split(","):
    air_quality.main(path, path + "-out", air_quality.REFERENCE)
for path in sys.argv[2].split(","):
    linear_road.main(path, path + "-out")
"""
SUBMIT = "--master local[2] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 pyspark-shell"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trigger")
    hours = air_quality.hours(max(HOURS) + 1, 5)
    for hour in HOURS:
        write(folder / f"hour-{hour}", air_quality.records(hours[hour]))
    waves = list(linear_road.waves(max(WAVES) + 1, 5))
    for wave in WAVES:
        lines = (line for reports in waves[wave - 20 : wave + 1] for line in reports.records())
        write(folder / f"wave-{wave}", lines)
    inputs = [
        ",".join(str(folder / f"{name}-{at}") for at in several)
        for name, several in (("hour", HOURS), ("wave", WAVES))
    ]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *inputs],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": SUBMIT},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def rows(folder: Path) -> dict[int, float]:
    """Key -> number; a table of one number has the key 0."""
    lines = [
        line for part in sorted(folder.glob("part-*")) for line in csv.reader(part.read_text().splitlines())
    ]
    return {int(line[0]) if len(line) > 1 else 0: float(line[-1]) for line in lines}


def of_twin(elements: Elements) -> dict[int, float]:
    return {int(key): float(value) for key, value in zip(elements.keys, elements.values[:, -1], strict=True)}


@pytest.mark.parametrize("hour", HOURS)
def test_air_quality_is_that_of_its_twin(folder: Path, hour: int) -> None:
    values = air_quality.hours(hour + 1, 5)[hour]
    out = folder / f"hour-{hour}-out"
    for name in ("zones", "hotspots", "index"):
        assert rows(out / name) == pytest.approx(of_twin(getattr(air_quality, name)(values)))


@pytest.mark.parametrize("wave", WAVES)
def test_linear_road_is_that_of_its_twin(folder: Path, wave: int) -> None:
    reports = list(linear_road.waves(wave + 1, 5))
    now = linear_road.traffic(reports[-21:])
    toll = linear_road.tolls(now)
    twins = {
        "positions": linear_road.positions(reports[-1]),
        "traffic": now.cars,
        "accidents": now.accidents,
        "tolls": toll,
        "areas": linear_road.areas(toll),
    }
    out = folder / f"wave-{wave}-out"
    assert {name: rows(out / name) for name in twins} == {name: of_twin(twin) for name, twin in twins.items()}
    assert twins["tolls"].values.size
