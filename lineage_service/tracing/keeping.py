"""When which RDDs were persisted or checkpointed, and which tasks can have met there. Pure.

The driver numbers its events: what it said of an RDD (`persisted`) and of the runs that it accepted. A run
was at work between the last number before its job began and the number of its manifest. These numbers are
one clock, so nothing here looks at a machine's time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lineage_service.tracing.elements import Run
from spark_agent import contract

__all__ = ["Keeping", "began", "ended", "ends_of_actions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """From one event of the driver to another an RDD is persisted, or marked to be checkpointed.

    What one period holds may still be there in the next of the same `group`.
    """

    start: float
    end: float
    group: int
    is_checkpoint: bool


_ALWAYS = Period(start=-math.inf, end=math.inf, group=0, is_checkpoint=False)


class Keeping:
    """The periods of each node. Where an application does not tell of any, all may always be kept."""

    def __init__(self, events: Iterable[Mapping[str, Any]], *, is_told: bool) -> None:
        self._is_told = is_told
        self._periods: dict[int, list[Period]] = defaultdict(list)
        since: dict[tuple[int, bool], float] = {}
        groups: dict[int, int] = defaultdict(int)
        for event in events:
            node, how, at = event["node"], event["how"], event.get("event", math.inf)
            if how in (contract.CACHED, contract.CHECKPOINTED):
                since.setdefault((node, how == contract.CHECKPOINTED), at)
                continue
            start = since.pop((node, False), None)
            if start is not None:
                self._periods[node].append(
                    Period(start=start, end=at, group=groups[node], is_checkpoint=False)
                )
            groups[node] += how == contract.DROPPED
        for (node, is_checkpoint), start in since.items():
            # A checkpoint is never given up: what is in it has a group of its own.
            group = -1 if is_checkpoint else groups[node]
            self._periods[node].append(
                Period(start=start, end=math.inf, group=group, is_checkpoint=is_checkpoint)
            )

    def is_ever_kept(self, node: int) -> bool:
        return not self._is_told or node in self._periods

    def periods(self, node: int, run: Run) -> list[Period]:
        """Those during which the run was at work, in part or altogether."""
        if not self._is_told:
            return [_ALWAYS]
        return [
            period
            for period in self._periods.get(node, ())
            if period.start <= ended(run) and began(run) <= period.end
        ]

    def is_kept(self, node: int, run: Run) -> bool:
        """May the task of `run` have read the node from where it is kept, or left it there?"""
        return bool(self.periods(node, run))

    def is_kept_throughout(self, node: int, run: Run) -> bool:
        """Was it kept all the time that the run was at work? So what was computed of it was left there."""
        return any(
            period.start <= began(run) and ended(run) <= period.end for period in self.periods(node, run)
        )

    def may_meet(self, node: int, run: Run, reader: Run) -> bool:
        """May `reader` have read of the node what the task of `run` left there?"""
        groups = {period.group for period in self.periods(node, run)}
        return began(run) <= ended(reader) and any(
            period.group in groups for period in self.periods(node, reader)
        )

    def is_only_checkpointed(self, node: int, runs: Collection[Run]) -> bool:
        """It was not persisted, too, while any of these was at work."""
        return all(period.is_checkpoint for run in runs for period in self.periods(node, run))


def began(run: Run) -> float:
    """It did not begin before this event of the driver."""
    return -math.inf if run.began is None else run.began


def ended(run: Run) -> float:
    """It had ended by this event of the driver."""
    return math.inf if run.event is None else run.event


def ends_of_actions(events: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """By which event of the driver actions had ended: they tell of their files, or that they failed."""
    first: dict[int, int] = {}
    found: dict[int, int] = {}
    for event in events:
        number = event.get("event")
        if number is None:
            continue
        if event["type"] == contract.PARTITIONS:
            found[event["node"]] = number
        elif event["type"] == contract.NODE_REGISTERED and event["kind"] == "sink":
            if event["node"] in first and not event["exact"]:
                found[event["node"]] = number
            first.setdefault(event["node"], number)
    return found
