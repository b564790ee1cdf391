"""`lineage sift`: the fewest input rows on which an application's unmodified command still fails."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from lineage_service.cli.job_flags import add_job_flags, job_options
from lineage_service.cli.original_files import changed_inputs, input_paths, output_paths
from lineage_service.cli.query.output import Output, plain, print_line
from lineage_service.cli.query.start import start_of, store_queries
from lineage_service.cli.query.starts import add_starts, start_queries
from lineage_service.cli.stores import open_lineage
from lineage_service.errors import InvalidQueryError, LineageError
from lineage_service.lineage import Failure, Sift
from lineage_service.newest_application import LAST, application_named
from lineage_service.queries import StartQuery
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.original import Original
from lineage_service.replays.sift.guarded_runs import GuardedRuns, RunsInterruptedError
from lineage_service.replays.sift.sift_runs import sifted
from lineage_service.replays.sift.sift_search import CheckKind, SiftRequest
from lineage_service.replays.specification import row_set_json
from lineage_service.settings import Settings
from lineage_service.store.flow_store import existing_store
from lineage_service.tracing.query.service import LineageQueries

__all__ = ["command", "configure"]

_INTERRUPTED = 130
_MOST_LISTED = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "%(prog)s APP [START..] --fails EXPR | --test MODULE:FUNCTION | --wrong START | --crash  "
        "[--seconds N] [--extract DIR] [--anyway] [--keep] [--show] [--json] -- COMMAND..."
    )
    parser.add_argument("application", help=f"an applicationId of `lineage apps`, or {LAST!r} for the newest")
    add_starts(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--fails",
        metavar="EXPR",
        help="an output row fails if this holds: Python of `line`, the row's text, or a function of it",
    )
    what.add_argument(
        "--test",
        metavar="MODULE:FUNCTION",
        help="an output fails if this function says so of the list of its rows",
    )
    what.add_argument(
        "--wrong",
        metavar="START",
        help="an output row that is too large, too small or missing: the test is made of it",
    )
    what.add_argument(
        "--crash", action="store_true", help="the job fails as it did: the same error at the same line"
    )
    parser.add_argument(
        "--extract", type=Path, metavar="DIR", help="write files of just these rows below a new folder"
    )
    add_job_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    if not options.words:
        raise InvalidQueryError("say which command runs the job, behind two dashes: -- spark-submit job.py")
    output = Output(options)
    with store_queries(settings):
        queries = open_lineage(settings)
        application_id = application_named(queries, options.application)
        original = Original(existing_store(settings), application_id)
        request = _request(queries, application_id, options)
        inputs, outputs = input_paths(queries, original), output_paths(queries, original)
        guarded = GuardedRuns(original, settings.home, inputs, outputs)
        if options.extract is not None:
            queries.extraction.check_folder(application_id, options.extract)
        try:
            with output.working("sifting"):
                sift = sifted(guarded, queries, queries.source_files, request, job_options(options))
        except RunsInterruptedError as interrupted:
            sys.stderr.write(f"lineage: {interrupted}\n")
            return _INTERRUPTED
        if options.extract is not None:
            sift = _extracted(queries, sift, options.extract)
    output.give(sift, (), (), lambda console: _show(console, sift), list(sift.notes))
    return 0


def _request(queries: LineageQueries, application_id: str, options: argparse.Namespace) -> SiftRequest:
    why = changed_inputs(queries, application_id)
    if why is not None and not options.anyway:
        raise ReplayError(f"{why}. Put it back, or go on with --anyway")
    has_starts = any((options.start, options.where, options.key))
    kind: CheckKind = "crash"
    starts: tuple[StartQuery, ...] = ()
    failure: Failure | None = None
    if options.crash:
        if has_starts:
            raise InvalidQueryError("--crash takes no START: --failure N says which one is meant")
        failure = _failure(queries, application_id, options.failure)
    elif options.failure:
        raise InvalidQueryError("--failure is for --crash")
    elif options.wrong is not None:
        if has_starts:
            raise InvalidQueryError("--wrong names the output row itself: give no other START")
        kind, starts = "wrong", (StartQuery(**start_of(options.wrong, None, options.node)),)
    else:
        kind = "fails" if options.fails is not None else "test"
        starts = start_queries(options) if has_starts else ()
    return SiftRequest(
        kind=kind,
        text=options.fails or options.test or "",
        starts=starts,
        failure=failure,
        notes=() if why is None else (why,),
    )


def _failure(queries: LineageQueries, application_id: str, numbers: list[int]) -> Failure:
    """That which is named, else the first from which the job did not recover."""
    failures = queries.failures(application_id).failures
    if len(numbers) > 1:
        raise InvalidQueryError("give one --failure")
    if numbers:
        chosen = [failure for failure in failures if failure.failure == numbers[0]]
    else:
        chosen = [failure for failure in failures if not failure.recovered]
    if not chosen:
        raise InvalidQueryError("there is no such failure: `lineage failures` lists them")
    if chosen[0].record is None:
        raise ReplayError(
            f"failure {chosen[0].failure} names no record, so no rows are known to sift: {chosen[0].reason}"
        )
    return chosen[0]


def _extracted(queries: LineageQueries, sift: Sift, folder: Path) -> Sift:
    """With the files of the rows written, or a note why they are not."""
    rows = [(row.path, row.row) for row in sift.rows if row.path is not None and row.row is not None]
    notes = list(sift.notes)
    if len(rows) < sift.total:
        notes.append(
            f"{sift.total - len(rows):,} rows are not in {folder}: they are no rows of files, or too many"
        )
    if not rows:
        return replace(sift, notes=tuple(notes))
    try:
        row_set = row_set_json(queries.source_files.named(sift.application_id, rows))
        extraction = queries.extraction.extract(row_set, folder)
    except LineageError as error:
        return replace(sift, notes=(*notes, f"{folder} was not written: {error}"))
    notes += [f"not written: {what}: {why}" for what, why in extraction.left_out.items()]
    return replace(sift, saved=str(folder.absolute()), notes=tuple(notes))


def _show(console: Console, sift: Sift) -> None:
    rows = f"{sift.total:,} of {sift.of:,} row{'' if sift.of == 1 else 's'}"
    tests = f"{sift.tests:,} test{'' if sift.tests == 1 else 's'}"
    are = "is" if sift.total == 1 else "are"
    console.print(
        plain(f"{rows} {are} enough to fail: {tests}, {sift.seconds:.1f} s", "bold"), soft_wrap=True
    )
    console.print(plain(f"the test: {sift.test}", "dim"), soft_wrap=True)
    for row in sift.rows[:_MOST_LISTED]:
        place = row.record if row.path is None else f"{row.path}:{row.line}"
        print_line(console, plain(place, "cyan") + plain("" if row.text is None else f"  {row.text}"))
    if sift.total > _MOST_LISTED:
        print_line(console, plain(f"and {sift.total - _MOST_LISTED:,} more (--json has 1,000)", "dim"))
    for sentence in _findings(sift):
        print_line(console, plain(sentence))
    if sift.saved is not None:
        print_line(console, plain("wrote ", "dim") + plain(sift.saved, "cyan"))


def _findings(sift: Sift) -> list[str]:
    minimal = "no single one of them can be left out" if sift.minimal else "fewer may do"
    necessary = {
        True: "on the other rows that were looked at the job does not fail",
        False: "without them the job fails as well: other rows are wrong, too",
        None: "whether the job fails without them is not known",
    }[sift.necessary]
    return [f"sufficient: on them alone the job fails; {minimal}", f"necessary: {necessary}"]
