"""How much an output row moves without each of the input rows that it was made of.

The job runs once on these rows. As it saves the output, the agent folds its aggregations
(`local_evaluation`). Where that cannot be done, the job runs once without each row.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from lineage_service.errors import InvalidQueryError, NothingMatchesError
from lineage_service.lineage import FailingOutput, Influence, InfluenceWay, InfluentialRow
from lineage_service.queries import Queries, RowSetQuery, StartQuery
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.sandbox import Sandbox
from lineage_service.replays.sift.candidate_sets import CandidateSets
from lineage_service.replays.sift.candidates import Candidates
from lineage_service.replays.sift.failing_outputs import OutputRow
from lineage_service.replays.sift.guarded_runs import GuardedRuns, JobOptions
from lineage_service.replays.sift.job_runs import JobRun, JobRuns, last_line
from lineage_service.replays.sift.sift_search import SourceRows, output_row, sifted_rows
from lineage_service.replays.sift.smallest_rows import OutOfTimeError
from lineage_service.replays.specification import Plan
from lineage_service.result_json import json_bytes
from spark_agent.contract.row_alignment import are_close, corresponding_texts, difference

__all__ = ["INFLUENCE_FILE", "influence_of"]

INFLUENCE_FILE = "influence.json"
#: Runs without one row; rows of the result.
_MOST_RUNS, _MOST_LISTED = 200, 1_000
_NOT_AGAIN = (
    "the row does not come out again from its input rows alone, so nothing can be said of one of them: "
    "`lineage replay` names the rows that lack"
)


def influence_of(
    guarded: GuardedRuns, queries: Queries, texts: SourceRows, start: StartQuery, options: JobOptions
) -> Influence:
    """Raises LineageError, RunsInterruptedError."""
    began = time.monotonic()
    with guarded.begun(options) as (sandbox, runs):
        search = _Search(guarded, queries, texts, runs, options.template)
        influence = search.influence(sandbox, start)
        influence = replace(influence, seconds=round(time.monotonic() - began, 3))
        sandbox.write_text(INFLUENCE_FILE, json_bytes(influence, indent=2))
    return influence


class _Search:
    """Of one output row."""

    def __init__(
        self, guarded: GuardedRuns, queries: Queries, texts: SourceRows, runs: JobRuns, template: Plan
    ) -> None:
        self._original, self._queries, self._texts = guarded.original, queries, texts
        self._runs, self._template = runs, template
        self._notes: dict[str, None] = {}
        self._why = ""
        #: Numbers of rows without which the command failed.
        self._failed: set[int] = set()

    def influence(self, sandbox: Sandbox, start: StartQuery) -> Influence:
        application_id = self._original.application_id
        asked = self._queries.row_set(application_id, RowSetQuery(starts=(start,))).asked
        if len(asked) != 1:
            raise InvalidQueryError("an influence is that of one output row: give one START")
        output = output_row(self._original, asked[0])
        sets = CandidateSets(self._original, self._queries, self._texts, self._note)
        candidates = sets.traced([start])
        if not candidates.rows:
            raise ReplayError("no source of the job can be restricted to some of its rows")
        without, way = self._without(candidates, output)
        rows = sifted_rows(application_id, self._texts, candidates.rows)
        inputs = [
            InfluentialRow(
                record=row.record,
                path=row.path,
                row=row.row,
                line=row.line,
                text=row.text,
                change=None if text is None else difference(output.text, text),
                failed=number in self._failed,
                without=text,
            )
            for number, (row, text) in enumerate(zip(rows, without, strict=False))
        ]
        inputs.sort(key=lambda row: float("-inf") if row.change is None else -row.change)
        return Influence(
            influence=sandbox.id,
            application_id=application_id,
            output=FailingOutput(path=output.path, row=output.row, line=output.row + 1, text=output.text),
            inputs=tuple(inputs[:_MOST_LISTED]),
            total=len(candidates.rows),
            way=way,
            why=self._why,
            tests=self._runs.count,
            exact=not self._failed
            and len(without) == len(candidates.rows)
            and not any(source["whole"] for source in candidates.sources),
            sandbox=str(sandbox.folder),
            seconds=0.0,
            notes=tuple(self._notes),
        )

    def _note(self, sentence: str) -> None:
        self._notes[sentence] = None

    def _without(
        self, candidates: Candidates, output: OutputRow
    ) -> tuple[Sequence[str | None], InfluenceWay]:
        """The output row without each of the candidates; of the first ones, where the time is over."""
        numbers = range(len(candidates.rows))
        template = replace(self._template, saved_row=(output.node, output.text))
        try:
            run = self._runs.run(candidates.plan(template, numbers), [output.node])
        except OutOfTimeError:
            raise ReplayError("the job did not end within --seconds: give more of them") from None
        self._check(run, candidates, output)
        computed = run.influence or {"why": "the agent followed no saved row of its sink"}
        nodes = {row[0] for row in candidates.rows}
        texts = computed.get("without")
        if texts is not None and len(texts) == len(candidates.rows) and nodes == {computed.get("node")}:
            return texts, "folds"
        self._why = str(computed.get("why") or "its rows are of several sources")
        if len(candidates.rows) > _MOST_RUNS:
            raise ReplayError(
                f"{self._why}, so the job has to run without each of {len(candidates.rows):,} rows; at most "
                f"{_MOST_RUNS:,} are tried"
            )
        return self._by_runs(candidates, output), "runs"

    def _check(self, run: JobRun, candidates: Candidates, output: OutputRow) -> None:
        """Raises NothingMatchesError, ReplayError."""
        nodes = {row[0] for row in candidates.rows}
        for source in run.report.sources:
            if source.way == "whole" and source.node in nodes:
                raise ReplayError(f"nothing can be said: {source.name} was read whole: {source.why}")
        for difference_ in run.report.differences:
            self._note(difference_)
        if run.exit_code:
            raise ReplayError(
                f"the command ended with exit code {run.exit_code}: {last_line(run.printed)[:500]}"
            )
        if nodes - {source.node for source in run.report.sources}:
            raise ReplayError("nothing can be said: a source cannot be restricted to its rows")
        if not any(are_close(output.text, text) for text in run.rows[output.node]):
            raise NothingMatchesError(_NOT_AGAIN)

    def _by_runs(self, candidates: Candidates, output: OutputRow) -> list[str | None]:
        texts: list[str | None] = []
        for left_out in range(len(candidates.rows)):
            numbers = [number for number in range(len(candidates.rows)) if number != left_out]
            try:
                run = self._runs.run(candidates.plan(self._template, numbers), [output.node])
            except OutOfTimeError:
                self._note(f"the time was over: only the first {len(texts):,} rows were left out")
                break
            if run.exit_code:
                self._failed.add(left_out)
                self._note(f"without row {left_out + 1} the command ended with exit code {run.exit_code}")
            texts.append(_counterpart(output.text, run.rows.get(output.node, ())))
        return texts


def _counterpart(was: str, texts: Sequence[str]) -> str | None:
    """The row that stands in the place of another one; None if none does."""
    same = next((text for text in texts if are_close(was, text)), None)
    if same is not None:
        return same
    pairs = corresponding_texts([was], texts)
    return texts[pairs[0][1]] if pairs else None
