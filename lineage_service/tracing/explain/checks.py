"""What others have checked of explanations: on which rows a job gave which records again.

Promises that a check counts only for exactly the records that were asked for, and that it is said to be of
the rows of an answer only where these are exactly the rows that ran. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.explain.meeting_point import Rows
from lineage_service.tracing.walk.result import Position

__all__ = ["MOST_ROWS", "Check", "checks_of"]

#: Of one check: no writer sends more, and what claims to have more is not unfolded.
MOST_ROWS = 1_000_000

_Record = tuple[int, int, int]
"""(node, partition, offset)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Rows on which the job gave the records again, as it was found at `time` (Unix time, ms).

    `added` are those of them that an answer does not list, `left_out` is how many of the answer's rows they
    lack. Both are nothing where the answer has exactly these rows.
    """

    time: int
    runs: int
    added_by_runs: int
    is_minimal: bool
    notes: tuple[str, ...]
    total: int
    added: Rows
    added_total: int
    left_out: int

    @property
    def is_of_these_rows(self) -> bool:
        return not self.added_total and not self.left_out


def checks_of(events: Iterable[Mapping[str, Any]], records: Collection[Position], rows: Rows) -> list[Check]:
    """The checks of exactly these records, beside an answer with `rows`: those of its rows first, then the
    newest. `events` are of the type `explanation_checked`."""
    asked = {_place(position): position.run for position in records}
    fitting = [event for event in events if _is_of(event, asked) and _size(event) <= MOST_ROWS]
    checks = [_check(event, rows) for event in fitting]
    return sorted(checks, key=lambda check: (not check.is_of_these_rows, -check.time))


def _place(position: Position) -> _Record:
    return position.node, position.partition, position.offset


def _is_of(event: Mapping[str, Any], asked: Mapping[_Record, int]) -> bool:
    """A run is compared where both name a real one: another one may have computed the record differently."""
    checked = {(one["node"], one["split"], one["position"]): one.get("run") for one in event["records"]}
    return checked.keys() == asked.keys() and all(
        run is None or asked[place] < 0 or run == asked[place] for place, run in checked.items()
    )


def _check(event: Mapping[str, Any], rows: Rows) -> Check:
    ran = _rows_of(event["rows"])
    added = dict(_without(ran, _by_place(rows)))
    left_out = sum(len(positions) for _, positions in _without(_by_place(rows), ran))
    by_node: dict[int, dict[int, Integers]] = defaultdict(dict)
    for (node, partition), positions in sorted(added.items()):
        by_node[node][partition] = positions
    return Check(
        time=event["time"],
        runs=event["runs"],
        added_by_runs=event["added"],
        is_minimal=event["minimal"],
        notes=tuple(event.get("notes") or ()),
        total=sum(map(len, ran.values())),
        added=dict(by_node),
        added_total=sum(map(len, added.values())),
        left_out=left_out,
    )


_Rows = Mapping[tuple[int, int], Integers]
"""(source, partition) -> ascending offsets."""


def _size(event: Mapping[str, Any]) -> int:
    return sum(count for entry in event["rows"] for _, count in entry["positions"])


def _rows_of(entries: Iterable[Mapping[str, Any]]) -> _Rows:
    parts: dict[tuple[int, int], list[Integers]] = defaultdict(list)
    for entry in entries:
        for first, count in entry["positions"]:
            parts[entry["node"], entry["split"]].append(np.arange(first, first + count, dtype=np.int64))
    return {place: np.unique(np.concatenate(ranges)) for place, ranges in parts.items()}


def _by_place(rows: Rows) -> _Rows:
    return {
        (node, partition): offsets
        for node, by_partition in rows.items()
        for partition, offsets in by_partition.items()
    }


def _without(rows: _Rows, others: _Rows) -> Iterator[tuple[tuple[int, int], Integers]]:
    """The rows that `others` lack."""
    nothing = np.empty(0, np.int64)
    for place, positions in rows.items():
        lacking = np.setdiff1d(positions, others.get(place, nothing), assume_unique=True)
        if len(lacking):
            yield place, lacking
