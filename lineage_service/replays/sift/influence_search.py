"""How much an output row moves without each of the input rows that it was made of.

1. The job runs once on these rows. As it saves the output, the agent folds its aggregations
   (`local_evaluation`). Where a function takes a large group at once, it estimates (`half_groups`).
2. Where that cannot be done, the job runs once without each row, on the other rows of the lineage. If they
   are many, it runs on halves of them.
3. Where rows that are not in the lineage may matter, it runs on all rows of the inputs but one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import (
    FailingOutput,
    Graph,
    Influence,
    InfluenceWay,
    InfluentialRow,
    SiftedRow,
)
from lineage_service.queries import Queries, RecordQuery, RowSetQuery, StartQuery
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.sandbox import INFLUENCE_FILE, Sandbox
from lineage_service.replays.sift.candidate_sets import CandidateSets, SourceRows
from lineage_service.replays.sift.candidates import Candidates
from lineage_service.replays.sift.failing_outputs import OutputRow
from lineage_service.replays.sift.guarded_runs import GuardedRuns, JobOptions
from lineage_service.replays.sift.job_runs import JobRun, JobRuns, last_line
from lineage_service.replays.sift.left_out_runs import (
    InputRow,
    LeftOutRuns,
    why_inferred,
    why_not_restricted,
)
from lineage_service.replays.sift.sift_search import output_row, sifted_rows
from lineage_service.replays.sift.whole_groups import chosen_before, sources_before, why_others_count
from lineage_service.replays.specification import Plan, SavedRow
from lineage_service.result_json import json_bytes
from spark_agent.contract.row_alignment import are_close, difference
from spark_agent.contract.smallest_rows import OutOfTimeError

__all__ = ["influence_of"]

#: Runs without one row; rows of the result; records of an action that stay.
_MOST_RUNS, _MOST_LISTED, _MOST_KEPT = 200, 1_000, 100
_NOT_FOLDED = "its rows are of several sources"
_NOTHING_SAID: Mapping[str, Any] = {
    "why": "the agent did not say what values the program took",
    "others": True,
}
_ESTIMATED = (
    "the rows are many and cannot be folded: random halves of them say which matter most. Without each of "
    "these the row is computed; how far it moves without another one is an estimate"
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """An output row, the rows that it was made of, and the candidates: these and rows that stay.

    `kept` are the actions that chose the latter.
    """

    output: OutputRow
    graph: Graph
    candidates: Candidates
    records: Sequence[SiftedRow]
    rows: Sequence[InputRow]
    kept: tuple[int, ...]
    #: Is the lineage complete, and each source on the way known by its rows?
    is_known: bool


class _Search:
    """Of one output row."""

    def __init__(
        self, guarded: GuardedRuns, queries: Queries, texts: SourceRows, runs: JobRuns, template: Plan
    ) -> None:
        self._original, self._queries, self._texts = guarded.original, queries, texts
        self._application_id = guarded.original.application_id
        self._runs, self._template = runs, template
        self._sets = CandidateSets(self._original, queries, texts, self._note)
        self._notes: dict[str, None] = {}
        self._why, self._is_of_all, self._is_inferred = "", False, False
        #: By number of the candidate, how far the row is thought to move where that is not computed.
        self._estimated: dict[int, float] = {}

    def _note(self, sentence: str) -> None:
        self._notes[sentence] = None

    def _note_inferred(self, run: JobRun) -> None:
        inferred = why_inferred(run.report.inferred)
        if inferred:
            self._is_inferred = True
            self._note(inferred)

    def influence(self, sandbox: Sandbox, start: StartQuery) -> Influence:
        asked = self._asked(start)
        output = asked.output
        runs = LeftOutRuns(self._application_id, self._texts, self._runs, self._template, output)
        without, way = self._without(asked, runs)
        if way == "halves":
            self._note(_ESTIMATED)
        for sentence in runs.notes:
            self._note(sentence)
        inputs = [
            _influential(
                asked.records[row.numbers[0]],
                output.text,
                text,
                failed=number in runs.failed,
                estimated=self._estimated.get(row.numbers[0]),
            )
            for number, (row, text) in enumerate(zip(asked.rows, without, strict=False))
        ]
        inputs.sort(key=lambda row: float("-inf") if row.change is None else -row.change)
        is_sure = not runs.failed and not runs.unsure and len(without) == len(asked.rows)
        return Influence(
            influence=sandbox.id,
            application_id=self._application_id,
            output=FailingOutput(path=output.path, row=output.row, line=output.row + 1, text=output.text),
            inputs=tuple(inputs[:_MOST_LISTED]),
            total=len(asked.rows),
            way=way,
            why=self._why,
            whole=self._is_of_all,
            tests=self._runs.count,
            exact=asked.is_known and is_sure and way != "halves" and not self._is_inferred,
            sandbox=str(sandbox.folder),
            seconds=0.0,
            notes=tuple(self._notes),
        )

    # -- the rows ----------------------------------------------------------------------------------------

    def _asked(self, start: StartQuery) -> _Asked:
        row_set = self._queries.row_set(self._application_id, RowSetQuery(starts=(start,)))
        if len(row_set.asked) != 1:
            raise InvalidQueryError("an influence is that of one output row: give one START")
        output = output_row(self._original, row_set.asked[0])
        graph = self._queries.graph(self._application_id)
        lineage = self._sets.traced([start])
        if not lineage.rows:
            raise ReplayError("no source of the job can be restricted to some of its rows")
        kept = self._kept(graph, output.node, lineage)
        candidates = lineage
        if kept:
            stay = [record for records in kept.values() for record in records]
            candidates = self._sets.traced([start, *stay])
        behind = sources_before(graph, output.node)
        is_whole = any(source["whole"] and source["node"] in behind for source in lineage.sources)
        records = sifted_rows(self._application_id, self._texts, candidates.rows)
        rows = _input_rows(records, candidates, lineage)
        is_known = row_set.complete and not is_whole
        return _Asked(output, graph, candidates, records, rows, tuple(kept), is_known)

    def _kept(self, graph: Graph, sink: int, lineage: Candidates) -> dict[int, list[StartQuery]]:
        """Records that the program chose before, such as a header, by their actions.

        They are the same without another row. So they stay, and none of their rows is left out.
        """
        kept: dict[int, list[StartQuery]] = {}
        for node in chosen_before(graph, sink):
            name = str(node.node)
            page = self._queries.records(self._application_id, RecordQuery(node=name, limit=_MOST_KEPT))
            starts = [StartQuery(node=name, record=record.record_id) for record in page.records]
            if starts and page.next is None:
                rows = self._sets.traced(starts).rows
                if rows and not set(rows) & set(lineage.rows):
                    kept[node.node] = starts
        return kept

    # -- without each of them ----------------------------------------------------------------------------

    def _without(self, asked: _Asked, runs: LeftOutRuns) -> tuple[Sequence[str | None], InfluenceWay]:
        """The output row without each of the rows; of the first ones, where the time is over."""
        candidates, output = asked.candidates, asked.output
        saved = SavedRow(output.node, output.text, asked.kept)
        plan = candidates.plan(replace(self._template, saved_row=saved), range(len(candidates.rows)))
        try:
            run = self._runs.run(plan, [output.node])
        except OutOfTimeError:
            raise ReplayError("the job did not end within --seconds: give more of them") from None
        why = why_not_restricted(run, plan)
        if why:
            raise ReplayError(f"nothing can be said: {why}")
        self._note_inferred(run)
        computed = run.influence or _NOTHING_SAID
        why_of_all = _why_not_alone(run, output)
        if not why_of_all:
            for difference_ in run.report.differences:
                self._note(difference_)
            texts = _folded(computed, candidates)
            if texts is not None:
                changes = computed.get("estimated")
                self._estimated = {n: change for n, change in enumerate(changes or ()) if change is not None}
                way: InfluenceWay = "folds" if changes is None else "halves"
                return [texts[row.numbers[0]] for row in asked.rows], way
            why_of_all = _why_taken(computed) or why_others_count(asked.graph, output.node)
        self._is_of_all = bool(why_of_all)
        self._why = why_of_all or str(computed.get("why") or _NOT_FOLDED)
        if not why_of_all and len(asked.rows) > _MOST_RUNS:
            halves = runs.of_halves(candidates, asked.rows, run.rows[output.node])
            self._estimated = {
                asked.rows[number].numbers[0]: change
                for number, change in enumerate(halves.changes)
                if change is not None
            }
            return halves.without, "halves"
        if not why_of_all:
            return runs.of_lineage(candidates, asked.rows, run.rows[output.node]), "runs"
        if len(asked.rows) > _MOST_RUNS:
            raise ReplayError(
                f"{self._why}, so the job has to run without each of {len(asked.rows):,} rows; at most "
                f"{_MOST_RUNS:,} are tried"
            )
        return runs.of_all(candidates, asked.rows), "runs"


def _input_rows(records: Sequence[SiftedRow], candidates: Candidates, lineage: Candidates) -> list[InputRow]:
    """The rows of the lineage, each once, with their records among the candidates."""
    of_lineage = set(lineage.rows)
    numbers: dict[object, list[int]] = {}
    for number, record in enumerate(records):
        if candidates.rows[number] in of_lineage:
            numbers.setdefault(_place_of(record) or record.record, []).append(number)
    return [
        InputRow(of_row, _place_of(records[of_row[0]]), _name_of(records[of_row[0]]))
        for of_row in numbers.values()
    ]


def _place_of(record: SiftedRow) -> tuple[str, int] | None:
    return None if record.path is None or record.row is None else (record.path, record.row)


def _name_of(record: SiftedRow) -> str:
    """FILE:LINE, as lists name it; else the record."""
    return record.record if record.path is None else f"{record.path}:{record.line}"


def _influential(
    record: SiftedRow, was: str, text: str | None, *, failed: bool, estimated: float | None
) -> InfluentialRow:
    return InfluentialRow(
        record=record.record,
        path=record.path,
        row=record.row,
        line=record.line,
        text=record.text,
        change=estimated if text is None else difference(was, text),
        failed=failed,
        without=text,
        estimated=estimated is not None,
    )


def _folded(computed: Mapping[str, Any], candidates: Candidates) -> list[str | None] | None:
    """What the agent computed, if it is of the records of the candidates."""
    texts: list[str | None] | None = computed.get("without")
    if texts is None or len(texts) != len(candidates.rows):
        return None
    return texts if {row[0] for row in candidates.rows} == {computed.get("node")} else None


def _why_not_alone(run: JobRun, output: OutputRow) -> str:
    """Why the rows of the lineage alone say nothing; empty if the row came out again."""
    if run.exit_code:
        return (
            f"on its rows alone the command ended with exit code {run.exit_code}: "
            + (last_line(run.printed)[:300])
        )
    if not any(are_close(output.text, text) for text in run.rows[output.node]):
        return "the row does not come out again from its input rows alone"
    return ""


def _why_taken(computed: Mapping[str, Any]) -> str:
    """Of values that Spark gave the program, or that its functions have kept."""
    taken = computed.get("taken")
    if not taken:
        return str(computed.get("why") or "") if computed.get("others") else ""
    return f"the program took values from {', '.join(map(str, taken))}, which its functions may use"
