"""`lineage replay`: runs an application's unmodified command again on some of its input rows."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lineage_service.cli.job_flags import add_run_flags
from lineage_service.cli.local_paths import is_file, is_there
from lineage_service.cli.original_files import changed_inputs, input_paths, output_paths
from lineage_service.cli.query.output import Output
from lineage_service.cli.query.start import store_queries
from lineage_service.cli.query.starts import add_starts, start_queries
from lineage_service.cli.replay_chain import add_chain_flag, give_chain, jobs_of
from lineage_service.cli.replay_text import show_replay
from lineage_service.cli.stores import open_lineage
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import AskedRecord, Failure, Replay, RowSet
from lineage_service.newest_application import LAST, application_named
from lineage_service.queries import RowSetQuery, StartQuery
from lineage_service.replays.affected_rows import AffectedRequest, AffectedRows
from lineage_service.replays.agent_report import read_report
from lineage_service.replays.arrival import Arrival
from lineage_service.replays.chain import StandIn, replay_chain, with_stand_ins
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.original import Original
from lineage_service.replays.places import depends_on_places
from lineage_service.replays.repair import RowRepair
from lineage_service.replays.replay_runs import ReplayInterrupted, ReplayRuns, Request
from lineage_service.replays.requested_rows import named_rows, replacement
from lineage_service.replays.sandbox import Sandbox, Sandboxes
from lineage_service.replays.specification import (
    Plan,
    asked_records,
    changed_rows,
    check_rows,
    row_set_json,
    watched_sources,
    with_blocks,
    with_places,
)
from lineage_service.replays.steps import StepReader
from lineage_service.replays.taken_rows import with_taken_rows
from lineage_service.settings import Settings
from lineage_service.store.flow_store import existing_store
from lineage_service.tracing.query.service import LineageQueries
from spark_agent.contract.errors import ContractError
from spark_agent.contract.row_sets import decode_row_set

__all__ = ["command", "configure"]

_REFUSED, _NOT_REACHED, _INTERRUPTED = 1, 3, 130


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "%(prog)s APP START.. | --only ROWS | --without ROWS [--affected] | --replace FILE:LINE=TEXT |\n"
        "           --failure N | --skip-failing\n"
        "           [--step] [--twice] [--anyway] [--keep] [--show] [--json] -- COMMAND...\n"
        "       %(prog)s START.. --job APP -- COMMAND... --job APP -- COMMAND...\n"
        "       %(prog)s --clean [ID]"
    )
    parser.add_argument(
        "application", nargs="?", help=f"an applicationId of `lineage apps`, or {LAST!r} for the newest"
    )
    add_starts(parser)
    add_chain_flag(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--only",
        metavar="ROWS",
        help="run on these rows only: the file of a row set (`lineage rows`), or FILE:LINE,FILE:LINE-LINE",
    )
    what.add_argument("--without", metavar="ROWS", help="run on all other rows, and say what comes out then")
    what.add_argument(
        "--replace",
        metavar="FILE:LINE=TEXT",
        action="append",
        help="give a row another text, and say what comes out then; may be given several times",
    )
    what.add_argument(
        "--skip-failing",
        action="store_true",
        help="run on all rows, leave out each record that makes a function fail, and list them",
    )
    parser.add_argument(
        "--affected",
        action="store_true",
        help="with --without: run only the rows whose outputs can change, or say why that is not known",
    )
    parser.add_argument(
        "--step",
        action="store_true",
        help="show what went into each operation and came out, on the way of what was asked for",
    )
    parser.add_argument(
        "--twice", action="store_true", help="run the same rows twice, and say what is not deterministic"
    )
    add_run_flags(parser)
    parser.add_argument("--json", action="store_true", help="answer as the HTTP API does")
    parser.add_argument(
        "--clean",
        nargs="?",
        const="",
        metavar="ID",
        help="remove the sandbox of this replay, or those of all replays that do not run",
    )
    parser.set_defaults(csv=False)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    if options.clean is not None:
        return _clean(settings, options)
    chained = jobs_of(options)
    if not chained and options.application is None:
        raise InvalidQueryError("say which application: `lineage replay APP ... -- COMMAND`")
    if not options.words:
        raise InvalidQueryError("say which command runs the job, behind two dashes: -- spark-submit job.py")
    output = Output(options)
    with store_queries(settings):
        queries = open_lineage(settings)
        jobs = [_Job(settings, queries, job) for job in chained or [options]]
        try:
            with output.working("replaying"):
                if chained:
                    replays = replay_chain(jobs, start_queries(chained[-1]))
                else:
                    replays = (jobs[0].replay_of(jobs[0].chosen.request()),)
        except ReplayInterrupted as interrupted:
            sys.stderr.write(f"lineage: {interrupted}\n")
            return _INTERRUPTED
    replay = replays[-1]
    if chained:
        give_chain(output, replays)
    else:
        output.give(replay, (), (), lambda console: show_replay(console, replay), list(replay.notes))
    code = _exit_code(replay, has_steps=options.step)
    return code if len(replays) == len(jobs) else code or _NOT_REACHED


class _Job:
    """An application, and the command that runs it again."""

    def __init__(self, settings: Settings, queries: LineageQueries, options: argparse.Namespace) -> None:
        application_id = application_named(queries, options.application)
        self._settings, self._queries = settings, queries
        self.original = Original(existing_store(settings), application_id)
        self._arrival = Arrival(queries, wait_s=settings.trace_seconds)
        self.chosen = _Chosen(queries, self.original, options, self._arrival)

    def replay_of(self, request: Request) -> Replay:
        """Raises ReplayError, ReplayInterrupted."""
        queries, original = self._queries, self.original
        inputs, outputs = input_paths(queries, original), output_paths(queries, original)
        repair = RowRepair(queries, original.application_id, queries.source_files, self._arrival)
        steps = StepReader(queries, original.application_id, self._arrival)
        return ReplayRuns(original, self._settings.home, inputs, outputs, repair, steps).replay(request)

    # -- as one of a chain ---------------------------------------------------------------------------

    def input_files(self, node: int) -> list[str]:
        files = self._queries.source_files.input_files(self.original.application_id, [node])
        return [file.path for file in files]

    def row_set(self, starts: Sequence[StartQuery]) -> dict[str, Any]:
        query = RowSetQuery(starts=tuple(starts))
        return row_set_json(self._queries.row_set(self.original.application_id, query))

    def replay(self, row_set: Mapping[str, Any] | None, stand_ins: Sequence[StandIn]) -> Replay:
        return self.replay_of(self.chosen.request_of(row_set, stand_ins))

    def written(self, replay: Replay, sink: int) -> str | None:
        sandbox = Sandbox(Path(replay.sandbox))
        report = read_report(sandbox.read(sandbox.report.name))
        reported = self.original.reported(self.original.sinks[sink], report.sinks)
        return None if reported is None else reported.to


def _clean(settings: Settings, options: argparse.Namespace) -> int:
    if options.application is not None or options.words:
        raise InvalidQueryError("--clean removes sandboxes: give it alone, or with the id of one")
    gone = Sandboxes(settings.home).clean(options.clean or None)
    names = f"replay{'' if len(gone) == 1 else 's'} {', '.join(gone)}" if gone else "nothing"
    sys.stdout.write(f"removed: {names}\n")
    return 0


def _exit_code(replay: Replay, *, has_steps: bool) -> int:
    if replay.verdict == "refused":
        return _REFUSED
    if has_steps and replay.steps is None:
        return _NOT_REACHED
    is_comparison = replay.diff is not None and replay.verdict == "changed"
    return 0 if replay.verdict in ("reproduced", "close") or is_comparison else _NOT_REACHED


class _Chosen:
    """What the options ask for. Raises LineageError."""

    def __init__(
        self,
        queries: LineageQueries,
        original: Original,
        options: argparse.Namespace,
        arrival: Arrival,
    ) -> None:
        self._queries, self._original, self._options = queries, original, options
        self._arrival = arrival
        self._application_id = original.application_id
        self._notes: list[str] = []

    def request(self) -> Request:
        self._check_inputs()
        options = self._options
        has_starts = any((options.start, options.where, options.failure, options.key))
        others = (options.only, options.without, options.replace, options.skip_failing)
        if has_starts == any(others):
            raise InvalidQueryError(
                "say what to replay: output rows (FILE:LINE), or one of --failure, --only, --without, "
                "--replace, --skip-failing"
            )
        if options.step and any((options.without, options.replace, options.skip_failing)):
            raise InvalidQueryError(
                "--step shows the way of output rows, of a --failure or of --only rows: give one of these"
            )
        if options.affected and (not options.without or options.twice):
            raise InvalidQueryError("--affected goes with --without, and without --twice")
        if options.replace:
            return self._request(Plan(mode="replace", sources=self._replaced()))
        if options.skip_failing:
            return self._request(Plan(mode="all", sources=(), skips_failing=True))
        if options.without:
            return self._without()
        return self._only()

    def _check_inputs(self) -> None:
        why = changed_inputs(self._queries, self._application_id)
        if why is None:
            return
        if not self._options.anyway:
            raise ReplayError(f"{why}. Put it back, or go on with --anyway")
        self._notes.append(why)

    def request_of(self, row_set: Mapping[str, Any] | None, stand_ins: Sequence[StandIn]) -> Request:
        """Of rows that a chain needs, or of all, with what earlier replays wrote in the place of inputs."""
        self._check_inputs()
        folders = tuple((stand_in.path, stand_in.folder) for stand_in in stand_ins)
        if row_set is None:
            return self._request(Plan(mode="all", sources=(), stand_ins=folders))
        self._note(row_set)
        sources = with_stand_ins(row_set["sources"], stand_ins)
        request = self._of_rows({**row_set, "sources": sources})
        return replace(request, plan=replace(request.plan, stand_ins=folders))

    # -- rows ---------------------------------------------------------------------------------------

    def _only(self) -> Request:
        options = self._options
        failure = None
        if options.only:
            row_set = self._rows(options.only)
        else:
            starts = start_queries(options)
            failure = self._failure(options.failure[0]) if options.failure else None
            if failure is not None and len(starts) > 1:
                raise InvalidQueryError("a failure is replayed alone: give one --failure, and no START")
            row_set = row_set_json(self._queries.row_set(self._application_id, RowSetQuery(starts=starts)))
            self._note(row_set)
        return self._of_rows(row_set, failure)

    def _of_rows(self, row_set: dict[str, Any], failure: Failure | None = None) -> Request:
        options = self._options
        asked = () if failure else asked_records(row_set)
        if asked and not any(record.node in self._original.sinks for record in asked):
            raise InvalidQueryError("START is no row of an output: give one, or rows of inputs with --only")
        place = depends_on_places(
            self._queries.graph(self._application_id), {record.node for record in asked}
        )
        if place is not None:
            self._notes.append(
                f"{place.name} ({place.call_site.rpartition('/')[2]}) depends on the places of records, so "
                "all rows were replayed: nothing is known of the rows of the lineage alone"
            )
            watched = watched_sources(row_set["sources"]) if options.step else ()
            plan = Plan(mode="all", sources=(), strategy="watch", watched=watched)
            return self._request(plan, row_set, asked)
        if not options.only:
            before = min((record.node for record in asked), default=None)
            row_set, note = with_taken_rows(self._queries, self._application_id, row_set, before)
            self._notes += [note] if note else []
        sources = with_places(self._application_id, row_set["sources"], self._queries.source_files)
        return self._request(Plan(mode="only", sources=sources), row_set, asked, failure)

    def _without(self) -> Request:
        row_set = self._rows(self._options.without)
        sources = []
        for source in row_set["sources"]:
            if source["whole"]:
                self._notes.append(f"the row set has all of {source['name']}, so it was left as it is")
            elif source.get("splits"):
                sources.append(source)
        if not sources:
            raise InvalidQueryError("the row set names no rows to leave out")
        files = self._queries.source_files
        if not self._options.affected:
            plan = Plan(mode="without", sources=with_blocks(self._application_id, sources, files))
            return self._request(plan, row_set)
        plan = Plan(mode="without", sources=tuple(sources))
        reader = AffectedRows(self._queries, self._application_id, files, self._arrival)
        first = reader.begin(plan)
        request = self._request(first.plan, row_set)
        return replace(request, affected=AffectedRequest(reader, plan, first))

    def _replaced(self) -> tuple[dict[str, Any], ...]:
        changes = [replacement(text, _whole) for text in self._options.replace]
        return changed_rows(self._original, changes, self._queries.source_files)

    def _rows(self, text: str) -> dict[str, Any]:
        """A row set from its file, or of rows that are named."""
        path = Path(text)
        if not is_file(text):
            rows = named_rows(text, _whole)
            return self._checked(text, row_set_json(self._named(rows)))
        try:
            row_set = decode_row_set(path.read_bytes())
        except OSError as error:
            raise ReplayError(f"{text} cannot be read: {error.strerror or error}") from None
        except ContractError as error:
            raise ReplayError(f"{text} is no row set: {error}") from None
        return self._checked(text, row_set)

    def _named(self, rows: list[tuple[str, int]]) -> RowSet:
        return self._queries.source_files.named(self._application_id, rows)

    def _checked(self, text: str, row_set: dict[str, Any]) -> dict[str, Any]:
        try:
            check_rows(self._original, row_set)
        except ReplayError as error:
            raise ReplayError(f"{text[:200]}: {error}") from None
        return row_set

    def _failure(self, number: int) -> Failure:
        failures = self._queries.failures(self._application_id).failures
        failure = next((failure for failure in failures if failure.failure == number), None)
        if failure is None:
            raise InvalidQueryError(f"there is no failure {number}: `lineage failures` lists them")
        return failure

    def _note(self, row_set: Mapping[str, Any]) -> None:
        if row_set.get("complete") is False:
            self._notes.append("the lineage is not complete: rows that it takes may be missing")
        if row_set.get("exact") is False:
            self._notes.append(f"the rows are an upper bound: {row_set.get('how') or 'more than it takes'}")

    def _request(
        self,
        plan: Plan,
        row_set: dict[str, Any] | None = None,
        asked: tuple[AskedRecord, ...] = (),
        failure: Failure | None = None,
    ) -> Request:
        options = self._options
        plan = replace(
            plan,
            runs_foreach=options.run_foreach,
            allows_processes=options.allow_processes,
            has_steps=options.step,
        )
        return Request(
            plan=plan,
            words=tuple(options.words),
            row_set=row_set,
            asked=asked,
            failure=failure,
            is_twice=options.twice,
            is_kept=options.keep,
            is_shown=options.show,
            notes=tuple(self._notes),
        )


def _whole(path: str) -> str:
    """As jobs name it: from the root, where it is on this machine."""
    return str(Path(path).absolute()) if is_there(path) else path
