"""`lineage apps`: the applications of the flow store, newest first."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime

from rich.console import Console

from lineage_service.answers import Application
from lineage_service.answers_csv import APPLICATION_COLUMNS, application_lines
from lineage_service.settings import Settings
from lineage_service.terminal.output import Output, add_format_flags, plain, table
from lineage_service.tracing import open_questions

__all__ = ["command", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    add_format_flags(parser)
    parser.add_argument("--name", metavar="TEXT", help="only those whose name holds this text, in any case")


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    with output.working("reading applications"):
        found = open_questions(settings).applications()
    wanted = (options.name or "").casefold()
    chosen = tuple(each for each in found if wanted in each.name.casefold())
    output.give(
        {"applications": chosen, "next": None},
        APPLICATION_COLUMNS,
        application_lines(chosen),
        lambda console: _show(console, chosen),
    )
    return 0


def _show(console: Console, applications: Sequence[Application]) -> None:
    if not applications:
        console.print("no applications")
        return
    rows = table("application", "name", "started", "state", "flows>", "lineage")
    for each in applications:
        started = datetime.fromtimestamp(each.started / 1000).strftime("%Y-%m-%d %H:%M:%S")
        lineage = plain("complete", "green") if each.complete else plain(each.missing or "runs", "yellow")
        flows = f"{each.counters.get('flows', 0):,}"
        rows.add_row(plain(each.application_id), plain(each.name), started, each.state, flows, lineage)
    console.print(rows)
