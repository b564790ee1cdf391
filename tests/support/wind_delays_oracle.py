"""The answer of examples/wind_delays.py worked out a second, stupid way, with the input rows of each line.

Reads the two CSV files with the csv module and pairs every flight with every reading of its airport and day.
An output line comes from all rows of all pairs of its airport and month: an operator that combines (the day's
strongest wind) comes from everything that it combined. A row in no pair is the source of nothing. Shares no
code with the job; knows nothing of Spark.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path

#: File name and physical row in it, from 0; the header is row 0.
InputRow = tuple[str, int]


def sources_of_lines(weather_csv: Path, flights_csv: Path) -> dict[str, set[InputRow]]:
    """Every output line, in the order of the output, and the input rows that it comes from."""
    readings: defaultdict[tuple[str, ...], dict[InputRow, float]] = defaultdict(dict)
    for row, fields in _rows(weather_csv):
        if fields["wind_speed"] != "NA":
            day = (fields["origin"], fields["year"], fields["month"], fields["day"])
            readings[day][weather_csv.name, row] = float(fields["wind_speed"])

    sources: defaultdict[tuple[str, str], set[InputRow]] = defaultdict(set)
    winds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    delays: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, fields in _rows(flights_csv):
        day = (fields["origin"], fields["year"], fields["month"], fields["day"])
        if fields["dep_delay"] == "NA" or day not in readings:
            continue
        month = (fields["origin"], f"{fields['year']}-{fields['month'].zfill(2)}")
        sources[month].add((flights_csv.name, row))
        sources[month].update(readings[day])
        winds[month].append(max(readings[day].values()))
        delays[month].append(int(fields["dep_delay"]))

    lines = {}
    for month in sorted(sources):
        flights = len(delays[month])
        wind, delay = math.fsum(winds[month]) / flights, sum(delays[month]) / flights
        lines[f"{month[0]},{month[1]},{wind:.2f},{delay:.2f},{flights}"] = sources[month]
    return lines


def lines_of_sources(sources: dict[str, set[InputRow]]) -> dict[InputRow, set[str]]:
    """The same flows forward: every input row that went anywhere, and the output lines that it reached."""
    lines: defaultdict[InputRow, set[str]] = defaultdict(set)
    for line, rows in sources.items():
        for row in rows:
            lines[row].add(line)
    return dict(lines)


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    with path.open(newline="") as file:
        return list(enumerate(csv.DictReader(file), start=1))


BAD_READING = ("weather.csv", 1010)


WRONG_LINE = "EWR,2013-02,57.81,13.07,8608"
