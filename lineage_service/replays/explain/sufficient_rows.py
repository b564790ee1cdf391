"""Rows on which the unmodified command gives output rows again: the concise ones, with what lacks added.

1. The rows that decided, those that must be among them, and those that the program took before.
2. The command runs on them, as a replay. Where the outputs do not come out, `RowRepair` adds rows. Where it
   knows of none, ever larger parts of the plain trace are added (`GrowingRepair`).
So a deterministic job ends with rows that are enough. Behind `zipWithIndex` all rows before count, too. Where
else places of records decide, nothing is begun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import AskedRecord, Replay
from lineage_service.queries import Queries, RowSetQuery, StartQuery
from lineage_service.replays.agent_report import read_report
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.explain.grown_rows import GrowingRepair
from lineage_service.replays.explain.rows_before import with_rows_before
from lineage_service.replays.joined_rows import joined, rows_of, without_places
from lineage_service.replays.original import Original
from lineage_service.replays.places import counts_rows_before, depends_on_places
from lineage_service.replays.replay_runs import Repair, RepairLimits, ReplayRuns, Request
from lineage_service.replays.sandbox import SPEC_FILE, Sandbox
from lineage_service.replays.sift.candidate_sets import SourceRows
from lineage_service.replays.specification import (
    Plan,
    Source,
    asked_records,
    row_set_json,
    with_places,
)
from lineage_service.replays.taken_rows import with_taken_rows
from spark_agent.contract.row_cover import Row

__all__ = ["FirstRows", "ProofRequest", "SufficientRows", "first_rows", "sufficient_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRequest:
    """Which output rows are to come out again, and of what. `included`: rows (path, row) that must be used.

    `template` has the flags of the runs.
    """

    starts: tuple[StartQuery, ...]
    words: tuple[str, ...]
    template: Plan
    included: tuple[tuple[str, int], ...] = ()
    runs: int = 50
    seconds: float = 600.0
    is_kept: bool = False
    is_shown: bool = False


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The row set of the first run, and all that took part, as sources of row sets.

    `needed` are rows that stay: those that were included, and those that the program took. `decided` are
    those of the first run without what is only counted.
    """

    row_set: Mapping[str, Any]
    bound: tuple[Source, ...]
    asked: tuple[AskedRecord, ...]
    needed: frozenset[Row]
    decided: frozenset[Row]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SufficientRows:
    """The rows of the last run. `is_whole`: it read all rows of the inputs, and there are no sources.

    `why_not`: why it does not show that these rows are enough; empty if it does.
    """

    replay: Replay
    sources: tuple[Source, ...]
    is_whole: bool
    why_not: str

    @property
    def rows(self) -> frozenset[Row]:
        return rows_of(self.sources)


def first_rows(original: Original, queries: Queries, texts: SourceRows, request: ProofRequest) -> FirstRows:
    """Raises LineageError, also where no part of the rows can give the outputs again."""
    application_id = original.application_id
    concise = row_set_json(queries.row_set(application_id, RowSetQuery(starts=request.starts, concise=True)))
    asked = asked_records(concise)
    if any(record.node not in original.sinks for record in asked) or not asked:
        raise InvalidQueryError("only rows of outputs can come out again: name one, such as out/part-0:3")
    if any(record.text is None for record in asked):
        raise ReplayError("the text of the output row cannot be read, so nothing can be compared with it")
    graph, sinks = queries.graph(application_id), {record.node for record in asked}
    place = depends_on_places(graph, sinks)
    if place is not None and not counts_rows_before(graph, sinks):
        site = place.call_site.rpartition("/")[2]
        raise ReplayError(
            f"{place.name} ({site}) depends on the places of records, so no part of the rows can be shown to "
            "be enough. `lineage replay` runs the command on all rows"
        )
    bound = row_set_json(queries.row_set(application_id, RowSetQuery(starts=request.starts)))["sources"]
    included = []
    if request.included:
        included = row_set_json(texts.named(application_id, request.included))["sources"]
    with_included = {**concise, "sources": joined(concise["sources"], included)}
    before = min(record.node for record in asked)
    row_set, note = with_taken_rows(queries, application_id, with_included, before)
    needed = rows_of(included) | (rows_of(row_set["sources"]) - rows_of(with_included["sources"]))
    notes, decided = [note] if note else [], rows_of(row_set["sources"])
    if place is not None:
        row_set = {**row_set, "sources": with_rows_before(original, row_set["sources"], texts)}
        notes.append(f"{place.name} ({place.call_site.rpartition('/')[2]}) counts all rows before it")
    return FirstRows(row_set, tuple(bound), asked, needed, decided, tuple(notes))


def sufficient_rows(
    original: Original,
    repair: Repair,
    texts: SourceRows,
    runs_with: Callable[[Repair], ReplayRuns],
    first: FirstRows,
    request: ProofRequest,
) -> SufficientRows:
    """Raises ReplayError, ReplayInterrupted."""
    application_id = original.application_id
    sources = with_places(application_id, first.row_set["sources"], texts)
    growing = GrowingRepair(repair, application_id, first.bound, texts)
    replay = runs_with(growing).replay(
        Request(
            plan=_plan(request.template, sources),
            words=request.words,
            row_set=first.row_set,
            asked=first.asked,
            limits=RepairLimits(
                rounds=request.runs, times=None, seconds=request.seconds, after_failures=True
            ),
            is_kept=request.is_kept,
            is_shown=request.is_shown,
            notes=first.notes,
        )
    )
    sandbox = Sandbox(Path(replay.sandbox))
    spec = sandbox.read(SPEC_FILE)
    is_whole = spec["mode"] == "all"
    used = () if is_whole else tuple(map(without_places, spec["sources"]))
    return SufficientRows(
        replay=replay,
        sources=used,
        is_whole=is_whole,
        why_not=_why_not(replay, sandbox, used, is_whole=is_whole),
    )


def _plan(template: Plan, sources: Sequence[Source]) -> Plan:
    return Plan(
        mode="only",
        sources=tuple(sources),
        runs_foreach=template.runs_foreach,
        allows_processes=template.allows_processes,
    )


def _why_not(replay: Replay, sandbox: Sandbox, sources: Sequence[Source], *, is_whole: bool) -> str:
    if replay.verdict == "refused":
        return "the run was refused"
    if replay.verdict not in ("reproduced", "close"):
        if replay.exit_code:
            return f"the command ended with exit code {replay.exit_code}{', on all rows' if is_whole else ''}"
        if is_whole:
            return "not deterministic: not even all rows of the inputs give it again"
        return f"it did not come out again in {replay.rounds:,} runs"
    nodes = {source["node"] for source in sources if not source["whole"]}
    report = read_report(sandbox.read(sandbox.report.name), sandbox.notes())
    for source in report.sources:
        if source.way == "whole" and source.node in nodes:
            return f"it came out again, but {source.name} was read whole: {source.why}"
    missing = nodes - {source.node for source in report.sources}
    if missing:
        return "it came out again, but the command did not read all sources as the original did"
    return ""
