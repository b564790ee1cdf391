"""Runs of a job without one input row after the other, and what becomes of an output row in each.

On the rows of its lineage but one, or on all rows of the inputs but one. The latter is what the job gives
without that row by definition: the row is left out of each source that reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lineage_service.errors import NothingMatchesError
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.sift.candidate_sets import SourceRows
from lineage_service.replays.sift.candidates import Candidates
from lineage_service.replays.sift.failing_outputs import OutputRow
from lineage_service.replays.sift.job_runs import JobRun, JobRuns, last_line
from lineage_service.replays.specification import Plan, row_set_json, with_blocks
from spark_agent.contract.half_groups import Estimate, NoEstimateError, estimate
from spark_agent.contract.row_alignment import are_close
from spark_agent.contract.row_counterparts import Counterpart, counterpart
from spark_agent.contract.smallest_rows import OutOfTimeError

__all__ = ["InputRow", "LeftOutRuns", "why_inferred", "why_not_restricted"]

#: Rows that are left out one by one behind the halves.
_MOST_COMPUTED = 36
_NEVER_AGAIN = (
    "the row does not come out again, not even of all input rows: nothing can be said of one of them. "
    "`lineage replay --twice` shows whether the job gives the same in each run"
)


class InputRow:
    """A row of a file, or another record of a source. `numbers` are its records among the candidates.

    Several sources may read the same row. `name` is for people.
    """

    def __init__(self, numbers: Sequence[int], place: tuple[str, int] | None, name: str) -> None:
        self.numbers, self.place, self.name = tuple(numbers), place, name


class LeftOutRuns:
    """Of one output row."""

    def __init__(
        self, application_id: str, texts: SourceRows, runs: JobRuns, template: Plan, output: OutputRow
    ) -> None:
        self._application_id, self._texts, self._runs = application_id, texts, runs
        self._template, self._output = template, output
        #: Numbers of input rows without which the command failed, and those of which the result is a guess.
        self.failed: set[int] = set()
        self.unsure: set[int] = set()
        self.notes: list[str] = []

    def of_lineage(
        self, candidates: Candidates, rows: Sequence[InputRow], before: Sequence[str]
    ) -> list[str | None]:
        """The output row without each of the rows, of the first ones where the time is over.

        `before` are the outputs of a run on all candidates.
        """
        everything = range(len(candidates.rows))
        plans = (
            candidates.plan(self._template, [number for number in everything if number not in row.numbers])
            for row in rows
        )
        return self._without(rows, plans, before)

    def of_halves(self, candidates: Candidates, rows: Sequence[InputRow], before: Sequence[str]) -> Estimate:
        """The same of more rows: an estimate. Raises ReplayError, also where the time is over."""
        was = self._was(before)
        own = {number for row in rows for number in row.numbers}
        others = [number for number in range(len(candidates.rows)) if number not in own]

        def output_of(numbers: Sequence[int]) -> Counterpart:
            chosen = sorted([*others, *(of for number in numbers for of in rows[number].numbers)])
            plan = candidates.plan(self._template, chosen)
            try:
                run = self._run(plan)
            except OutOfTimeError:
                raise ReplayError("the halves did not end within --seconds: give more of them") from None
            why = why_not_restricted(run, plan)
            if why:
                raise ReplayError(f"nothing can be said: {why}")
            if run.exit_code:
                if len(numbers) == len(rows) - 1:
                    (left_out,) = set(range(len(rows))).difference(numbers)
                    self._has_failed(left_out, rows[left_out], run)
                return Counterpart(None, is_sure=False)
            return self._counterpart(was, before, run)

        try:
            halves = estimate(output_of, len(rows), self._output.text, _MOST_COMPUTED)
        except NoEstimateError as reason:
            raise ReplayError(f"nothing can be said: {reason}") from None
        for number in self.failed:
            halves.changes[number] = None
        return halves

    def of_all(self, candidates: Candidates, rows: Sequence[InputRow]) -> list[str | None]:
        """The same of all rows of the inputs. Raises NothingMatchesError, ReplayError."""
        try:
            run = self._run(replace(self._template, mode="all", sources=()))
        except OutOfTimeError:
            raise ReplayError("the job did not end within --seconds: give more of them") from None
        if run.exit_code:
            raise ReplayError(
                f"the command ended with exit code {run.exit_code}: {last_line(run.printed)[:500]}"
            )
        before = run.rows[self._output.node]
        if not any(are_close(self._output.text, text) for text in before):
            raise NothingMatchesError(_NEVER_AGAIN)
        return self._without(rows, (self._plan_without(candidates, row) for row in rows), before)

    def _plan_without(self, candidates: Candidates, row: InputRow) -> Plan:
        if row.place is None:
            sources: Iterable[dict[str, object]] = candidates.plan(self._template, row.numbers).sources
        else:
            sources = row_set_json(self._texts.named(self._application_id, [row.place]))["sources"]
        named = [
            {name: value for name, value in source.items() if name not in ("texts", "blocks")}
            for source in sources
            if not source["whole"] and source.get("splits")
        ]
        placed = with_blocks(self._application_id, named, self._texts)
        return replace(self._template, mode="without", sources=placed)

    def _without(
        self, rows: Sequence[InputRow], plans: Iterator[Plan], before: Sequence[str]
    ) -> list[str | None]:
        texts: list[str | None] = []
        was = self._was(before)
        for number, (row, plan) in enumerate(zip(rows, plans, strict=True)):
            try:
                run = self._run(plan)
            except OutOfTimeError:
                self.notes.append(f"the time was over: only the first {len(texts):,} rows were left out")
                break
            why = why_not_restricted(run, plan)
            if why:
                raise ReplayError(f"nothing can be said: {why}")
            if run.exit_code:
                self._has_failed(number, row, run)
                texts.append(None)
                continue
            instead = self._counterpart(was, before, run)
            if not instead.is_sure:
                self.unsure.add(number)
                self.notes.append(
                    f"without {row.name} several rows of the output are others: which one stands in the "
                    "place of this one is a guess"
                )
            texts.append(instead.text)
        return texts

    def _has_failed(self, number: int, row: InputRow, run: JobRun) -> None:
        self.failed.add(number)
        self.notes.append(f"without {row.name} the command ended with exit code {run.exit_code}")

    def _counterpart(self, was: str, before: Sequence[str], run: JobRun) -> Counterpart:
        """What stands for the output row, which may be the very row."""
        instead = counterpart(was, before, run.rows.get(self._output.node, ()))
        return Counterpart(self._output.text, instead.is_sure) if instead.text == was else instead

    def _was(self, before: Sequence[str]) -> str:
        """The output row, as a run on all rows gives it."""
        return next(text for text in before if are_close(self._output.text, text))

    def _run(self, plan: Plan) -> JobRun:
        return self._runs.run(plan, [self._output.node])


def why_inferred(names: Sequence[str]) -> str:
    """What it means that columns were inferred, as the agent has noticed; empty where none were."""
    if not names:
        return ""
    return (
        f"the columns of {', '.join(names)} were inferred from all rows, also from those that were left out: "
        "without these they may have other types"
    )


def why_not_restricted(run: JobRun, plan: Plan) -> str:
    """Why a run did not have the rows of its plan; empty where it had."""
    nodes = {source["node"]: source["name"] for source in plan.restricted}
    for source in run.report.sources:
        if source.way == "whole" and source.node in nodes:
            return f"{source.name} was read whole: {source.why}"
    missing = nodes.keys() - {source.node for source in run.report.sources}
    if missing and not run.exit_code:
        name = nodes[min(missing)]
        return f"{name} was not read as in the original, so it could not be restricted to its rows"
    return ""
