"""`lineage values`: what one record looked like on its way."""

from __future__ import annotations

import argparse

from rich.console import Console

from lineage_service.cli.query.output import Output, add_format_flags, plain, print_table, table
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
    is_of_several = len({step.node_id.rpartition("#")[0] for step in values.steps}) > 1
    of = ("application",) if is_of_several else ()
    rows = table(*of, "node>", "operation~", "record", "value~")
    for step in values.steps:
        application_id, _, number = step.node_id.rpartition("#")
        own = (plain(application_id),) if is_of_several else ()
        rows.add_row(*own, number, plain(step.name), plain(step.record_id, "cyan"), plain(step.value))
    print_table(console, rows)
