"""`lineage failures`: which records made tasks of an application fail."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rich.console import Console

from lineage_service.cli.query.output import Output, add_format_flags, plain, print_line, without_folders
from lineage_service.cli.query.start import add_application, store_queries
from lineage_service.lineage import Failure, Failures
from lineage_service.newest_application import application_named
from lineage_service.result_tables import FAILURE_COLUMNS, failure_lines
from lineage_service.settings import Settings

__all__ = ["command", "configure"]

#: No failure is known.
_NOTHING = 3
#: Input rows of a failure that are shown at a terminal. JSON and CSV have all that are listed.
_MOST_SHOWN = 10


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    with output.working("looking"), store_queries(settings) as queries:
        failures = queries.failures(application_named(queries, options.application))
    output.give(
        failures,
        FAILURE_COLUMNS,
        failure_lines(failures),
        lambda console: _show(console, failures),
        list(_notes(failures)),
    )
    return 0 if failures.failures else _NOTHING


def _show(console: Console, failures: Failures) -> None:
    for failure in failures.failures:
        error = f"{failure.error}: {failure.message}" if failure.message else failure.error
        print_line(console, plain(f"{failure.failure}  ", "dim") + plain(error, "red"))
        print_line(console, plain(f"   {', '.join(_circumstances(failure))}", "dim"))
        if failure.record is not None:
            number = failure.record.node_id.rpartition("#")[2]
            value = "" if failure.record.value is None else f"  {failure.record.value}"
            print_line(
                console, plain(f"   record {number}#{failure.record.record_id}", "cyan") + plain(value)
            )
        for row in failure.sources[:_MOST_SHOWN]:
            text = "" if row.text is None else f"  {row.text}"
            print_line(console, plain(f"   {row.path}:{row.line}", "cyan") + plain(text))
        more = failure.sources_total - len(failure.sources[:_MOST_SHOWN])
        if more > 0:
            print_line(console, plain(f"   and {more:,} more input records", "dim"))
        if failure.record is not None and failure.sources:
            again = f"lineage replay {failures.application_id} --failure {failure.failure} -- YOUR COMMAND"
            print_line(console, plain(f"   again, on these rows only: {again}", "dim"))
        if not failure.exact:
            print_line(console, plain(f"   not exact: {failure.reason}", "yellow"))


def _circumstances(failure: Failure) -> Iterator[str]:
    if failure.name is not None:
        site = f" at {without_folders(failure.call_site)}" if failure.call_site else ""
        yield f"{failure.name}{site}"
    if failure.frame is not None:
        yield f"raised at {without_folders(failure.frame)}"
    if failure.partition is not None:
        yield f"partition {failure.partition}"
    if failure.stage is not None:
        yield f"stage {failure.stage}"
    if failure.attempts:
        yield f"{failure.attempts} attempt{'' if failure.attempts == 1 else 's'}"
    if failure.recovered:
        yield "a later one ended well"


def _notes(failures: Failures) -> Iterator[str]:
    if failures.how:
        yield failures.how
    if not failures.failures:
        yield "No failure is known."
