"""Rows without each of which an output row does not come out again, found by running the command.

Delta debugging, then row by row (`smallest_rows`): the answer is 1-minimal. Rows that must be there stay.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lineage_service.replays.explain.asked_outputs import AskedOutputs
from lineage_service.replays.sift.candidates import Candidates
from lineage_service.replays.sift.job_runs import JobRuns
from lineage_service.replays.sift.left_out_runs import why_not_restricted
from lineage_service.replays.specification import Plan, Source
from spark_agent.contract.row_cover import Row
from spark_agent.contract.smallest_rows import OutOfTimeError, SmallestRows, Subset

__all__ = ["MinimalRows", "minimal_rows"]


@dataclass(frozen=True, slots=True)
class MinimalRows:
    """`is_minimal`: each row was left out, and the output did not come out. Else these are the fewest so far.

    None of them where the output did not come out of all of them.
    """

    rows: tuple[Row, ...] | None
    is_minimal: bool


def minimal_rows(
    runs: JobRuns,
    sources: Sequence[Source],
    needed: Collection[Row],
    asked: AskedOutputs,
    template: Plan,
    most_runs: int,
) -> MinimalRows:
    """Of the rows of `sources`, which have their texts or blocks, in so many runs. Raises ReplayError."""
    candidates = Candidates(sources)
    free = [number for number, row in enumerate(candidates.rows) if row not in needed]
    fixed = [number for number, row in enumerate(candidates.rows) if row in needed]

    def comes_out(chosen: Subset) -> bool:
        if runs.count >= most_runs:
            raise OutOfTimeError
        numbers = sorted([*fixed, *(free[at] for at in chosen)])
        plan = candidates.plan(template, numbers)
        run = runs.run(plan, asked.sinks)
        return not run.exit_code and not why_not_restricted(run, plan) and asked.verdict(run.rows) != "no"

    search = SmallestRows(len(free), comes_out)
    search.search()
    if search.best is None:
        return MinimalRows(None, False)
    numbers = sorted([*fixed, *(free[at] for at in search.best)])
    return MinimalRows(tuple(candidates.rows[number] for number in numbers), search.is_minimal)
