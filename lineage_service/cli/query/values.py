"""`lineage values`: what one record looked like on its way."""

from __future__ import annotations

import argparse
from itertools import groupby

from rich.console import Console

from lineage_service.cli.query.operations import application_heading
from lineage_service.cli.query.output import (
    Output,
    add_format_flags,
    plain,
    print_line,
    print_table,
    table,
)
from lineage_service.cli.query.start import add_application, store_queries
from lineage_service.lineage import Values
from lineage_service.newest_application import application_named
from lineage_service.result_tables import VALUE_COLUMNS, value_lines
from lineage_service.settings import Settings

__all__ = ["command", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    parser.add_argument("record", help="a record id such as write#0#12 or 30#write#0#12")
    parser.add_argument("--node", metavar="N", help="its operation, where the record id alone is ambiguous")
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    with output.working("following the record"), store_queries(settings) as queries:
        application_id = application_named(queries, options.application)
        values = queries.values(application_id, options.record, options.node)
    notes = [values.how] if values.how else []
    output.give(values, VALUE_COLUMNS, value_lines(values), lambda console: _show(console, values), notes)
    return 0


def _show(console: Console, values: Values) -> None:
    for _, steps in groupby(values.steps, key=lambda step: step.application_id):
        rows = table("node>", "operation~", "record", "value~")
        first = None
        for step in steps:
            first = first or step
            number = step.node_id.rpartition("#")[2]
            rows.add_row(number, plain(step.name), plain(step.record_id, "cyan"), plain(step.value))
        assert first is not None  # of each group
        print_line(console, application_heading(first))
        print_table(console, rows)
