"""`lineage influence`: how much an output row moves without each of its input rows."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from rich.console import Console

from lineage_service.cli.job_flags import add_job_flags, job_options
from lineage_service.cli.original_files import changed_inputs, input_paths, output_paths
from lineage_service.cli.query.output import Output, plain, print_line
from lineage_service.cli.query.start import add_application, start_of, store_queries
from lineage_service.cli.stores import open_lineage
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Influence
from lineage_service.newest_application import application_named
from lineage_service.queries import StartQuery
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.original import Original
from lineage_service.replays.sift.guarded_runs import GuardedRuns, RunsInterruptedError
from lineage_service.replays.sift.influence_search import influence_of
from lineage_service.settings import Settings
from lineage_service.store.flow_store import existing_store

__all__ = ["command", "configure"]

_INTERRUPTED = 130
_MOST_LISTED = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s APP START [--seconds N] [--anyway] [--keep] [--show] [--json] -- COMMAND..."
    add_application(parser)
    parser.add_argument("start", metavar="START", help="FILE:LINE of an output, lines counted from 1")
    parser.add_argument("--node", metavar="N", help="the operation that wrote START, by number")
    add_job_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    if not options.words:
        raise InvalidQueryError("say which command runs the job, behind two dashes: -- spark-submit job.py")
    output = Output(options)
    with store_queries(settings):
        queries = open_lineage(settings)
        application_id = application_named(queries, options.application)
        changed = changed_inputs(queries, application_id)
        if changed is not None and not options.anyway:
            raise ReplayError(f"{changed}. Put it back, or go on with --anyway")
        original = Original(existing_store(settings), application_id)
        inputs, outputs = input_paths(queries, original), output_paths(queries, original)
        guarded = GuardedRuns(original, settings.home, inputs, outputs)
        start = StartQuery(**start_of(options.start, None, options.node))
        try:
            with output.working("leaving out rows"):
                influence = influence_of(guarded, queries, queries.source_files, start, job_options(options))
        except RunsInterruptedError as interrupted:
            sys.stderr.write(f"lineage: {interrupted}\n")
            return _INTERRUPTED
    if changed is not None:
        influence = replace(influence, notes=(changed, *influence.notes))
    output.give(influence, (), (), lambda console: _show(console, influence), list(influence.notes))
    return 0


def _show(console: Console, influence: Influence) -> None:
    output = influence.output
    rows = f"{influence.total:,} input row{'' if influence.total == 1 else 's'}"
    tests = f"{influence.tests:,} run{'' if influence.tests == 1 else 's'}"
    console.print(
        plain(f"without each of its {rows}: {tests}, {influence.seconds:.1f} s", "bold"), soft_wrap=True
    )
    print_line(console, plain(f"{output.path}:{output.line}", "cyan") + plain(f"  {output.text}"))
    if influence.why:
        of_all = ", on all other rows of the inputs" if influence.whole else ""
        console.print(plain(f"the job ran without each{of_all}: {influence.why}", "dim"), soft_wrap=True)
    for row in influence.inputs[:_MOST_LISTED]:
        place = row.record if row.path is None else f"{row.path}:{row.line}"
        change = "other" if row.change is None else f"{row.change:.6g}"
        if row.estimated:
            change = f"about {change}"
        elif row.without is None:
            change = "failed" if row.failed else "gone"
        becomes = "" if row.without is None else f"  -> {row.without}"
        print_line(
            console,
            plain(f"{change:>12}  ", "bold") + plain(place, "cyan") + plain(f"  {row.text or ''}{becomes}"),
        )
    if influence.total > _MOST_LISTED:
        print_line(console, plain(f"and {influence.total - _MOST_LISTED:,} more (--json has 1,000)", "dim"))
