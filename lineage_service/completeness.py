"""Has everything of an application arrived? Counted from its events and from the receipts of its blocks.

Promises never to say "complete" while a block of a committed run, a manifest or the application's end is not
stored, or when the agent had to drop something. A pure function of what the flow store holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_agent import contract


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompleteness:
    """One committed run: it made `blocks`, of which `stored` are here; the agent gave up on `dropped`."""

    run: int
    split: int
    blocks: int
    stored: int
    dropped: int

    @property
    def missing(self) -> int:
        return self.blocks - self.stored

    @property
    def is_complete(self) -> bool:
        return not self.missing and not self.dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """One application. `missing_runs` were committed, says its end, but have no manifest here."""

    has_started: bool
    has_ended: bool
    missing_runs: int
    runs: tuple[RunCompleteness, ...]

    @property
    def missing_blocks(self) -> int:
        return sum(run.missing for run in self.runs)

    @property
    def dropped(self) -> int:
        return sum(run.dropped for run in self.runs)

    @property
    def is_complete(self) -> bool:
        return self.has_ended and not self.missing_runs and all(run.is_complete for run in self.runs)

    def describe(self) -> str:
        """What is missing, for people; empty when nothing is."""
        if not self.has_started and not self.has_ended and not self.runs:
            return "nothing of it has arrived"
        parts = [] if self.has_ended else ["its end has not arrived"]
        if self.missing_runs:
            parts.append(f"manifests of {self.missing_runs} runs have not arrived")
        lacking = [run for run in self.runs if run.missing]
        if lacking:
            first = lacking[0]
            parts.append(
                f"{self.missing_blocks} blocks of {len(lacking)} runs are not stored "
                f"(run {first.run} of split {first.split}: {first.stored} of {first.blocks})"
            )
        if self.dropped:
            parts.append(f"the agent dropped {self.dropped} blocks, which will never arrive")
        return "; ".join(parts)


def completeness(events: Iterable[Mapping[str, Any]], receipts: Iterable[tuple[int, int]]) -> Completeness:
    """How complete one application is, from its decoded events and the (run, seq) of its stored blocks.

    Events and receipts may repeat and come in any order. Blocks of runs without a manifest do not count:
    Spark never accepted them.
    """
    committed: dict[int, Mapping[str, Any]] = {}
    has_started, ended = False, None
    for event in events:
        if event["type"] == contract.RUN_COMMITTED:
            committed[event["run"]] = event
        elif event["type"] == contract.APPLICATION_STARTED:
            has_started = True
        elif event["type"] == contract.APPLICATION_ENDED:
            ended = event
    stored: dict[int, set[int]] = {run: set() for run in committed}
    for run, seq in receipts:
        if run in committed and seq < committed[run]["blocks"]:
            stored[run].add(seq)
    # An agent that counts its runs lets a lost manifest be noticed; others need not.
    counted = ended["counters"].get("runs") if ended is not None else None
    expected = counted if isinstance(counted, int) else 0
    return Completeness(
        has_started=has_started,
        has_ended=ended is not None,
        missing_runs=max(expected - len(committed), 0),
        runs=tuple(
            RunCompleteness(
                run=run,
                split=event["split"],
                blocks=event["blocks"],
                stored=len(stored[run]),
                dropped=event["dropped"],
            )
            for run, event in sorted(committed.items())
        ),
    )
