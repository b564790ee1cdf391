"""`lineage apps`: the applications of the flow store, newest first."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console

from lineage_service.application_pages import applications_page, is_no_replay, named
from lineage_service.cli.query.output import (
    Output,
    add_format_flags,
    error_text,
    moment,
    plain,
    print_table,
    table,
)
from lineage_service.cli.query.start import add_page_flags, store_queries
from lineage_service.lineage import Application, Applications
from lineage_service.result_tables import APPLICATION_COLUMNS, application_lines
from lineage_service.settings import Settings
from lineage_service.store.flow_store import NoStoreError, location_text

__all__ = ["command", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    add_format_flags(parser)
    parser.add_argument(
        "--name", metavar="TEXT", help="only those whose name or id holds this text, in any case"
    )
    parser.add_argument("--replays", action="store_true", help="also replays of other applications")
    add_page_flags(parser, "in a page", "applications")


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    with output.working("reading applications"):
        try:
            with store_queries(settings) as queries:
                newest = queries.newest_applications()
                is_named = named(options.name)
                page = applications_page(
                    newest,
                    options.limit,
                    options.cursor,
                    lambda application: (
                        is_named(application) and (options.replays or is_no_replay(application))
                    ),
                )
        except NoStoreError:
            page = Applications(applications=(), next=None)
    chosen = page.applications
    output.give(
        page,
        APPLICATION_COLUMNS,
        application_lines(chosen),
        lambda console: _show(console, chosen, _nothing(settings, options.name)),
        [] if page.next is None else [f"there are more: --cursor {page.next}"],
    )
    return 0


#: Of states that people should see.
_COLOURS = {"failed": "red", "lost": "magenta"}


def _nothing(settings: Settings, name: str | None) -> str:
    such = f" with {name!r} in their name or id" if name else ""
    return f"no applications{such} in {location_text(settings)}"


def _show(console: Console, applications: Sequence[Application], nothing: str) -> None:
    if not applications:
        console.print(plain(nothing), soft_wrap=True)
        return
    rows = table("application", "name~", "started", "state", "failed>", "flows>", "lineage")
    for application in applications:
        started = moment(application.started)
        missing = plain(application.missing or "runs", "yellow")
        lineage = plain("complete", "green") if application.complete else missing
        flows = f"{application.counters.get('flows', 0):,}"
        state = plain(application.state, _COLOURS.get(application.state, ""))
        failed = application.counters.get("failed_runs", 0)
        name = application.name
        if application.replay_of is not None:
            name = f"{name} (replay of {application.replay_of})"
        ids = plain(application.application_id), plain(name)
        rows.add_row(*ids, started, state, plain(f"{failed:,}" if failed else "", "red"), flows, lineage)
    print_table(console, rows)
    for application in applications:
        if application.error is not None:
            failure = f"{application.application_id} failed: {error_text(application.error)}"
            console.print(plain(failure), soft_wrap=True)
