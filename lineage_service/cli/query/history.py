"""`lineage history`: the versions of a row of a table, and who wrote each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from lineage_service.cli.query.output import (
    Output,
    add_format_flags,
    moment,
    plain,
    print_line,
    print_table,
    table,
    without_folders,
)
from lineage_service.cli.query.start import add_page_flags, line_of_file, store_queries
from lineage_service.cli.query.trace_start import choose_one, give_choices, time_of
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Choices, RowHistory
from lineage_service.queries import RowQuery, version_named
from lineage_service.result_tables import ROW_HISTORY_COLUMNS, row_history_lines
from lineage_service.settings import Settings

__all__ = ["command", "configure"]

#: Several rows fulfil the condition, and one has to be chosen.
_TO_CHOOSE = 3
_COLOURS = {"inserted": "green", "changed": "yellow", "deleted": "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", help="a table of Delta Lake or Iceberg: db.table, its folder, or its URL")
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        required=True,
        help='the row whose columns fulfil it, in that version: "id = 42"',
    )
    parser.add_argument(
        "--version",
        type=version_named,
        metavar="N",
        help="the version in which the row is looked for (default: the newest); a deleted row is in none "
        "that is later",
    )
    parser.add_argument("--at", type=time_of, metavar="TIME", help="the version of then")
    add_page_flags(parser, "to choose from", "rows")
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    if options.version is not None and options.at is not None:
        raise InvalidQueryError("--version and --at both say which version is meant: leave one out")
    query = RowQuery(
        dataset=line_of_file(options.table)[0],
        where=options.where,
        version=options.version,
        at=options.at,
        limit=options.limit,
        cursor=options.cursor,
    )
    with output.working("reading the log of the table"), store_queries(settings) as queries:
        history = queries.history(query)
    if isinstance(history, Choices):
        give_choices(output, history, choose_one(history))
        return _TO_CHOOSE
    output.give(
        history,
        ROW_HISTORY_COLUMNS,
        row_history_lines(history),
        lambda console: _show(console, history),
        [*history.warnings, *(version.warning for version in history.versions if version.warning)],
    )
    return 0


def _show(console: Console, history: RowHistory) -> None:
    by = "by what was captured" if history.row_id is None else f"row {history.row_id} of the table"
    print_line(console, plain(history.dataset, "bold") + plain(f"  {by}"))
    rows = table("version>", "when", "", "operation", "by~", "row~", "values~")
    before: Mapping[str, Any] = {}
    for version in history.versions:
        place = "" if version.path is None else f"{without_folders(version.path)}:{version.line}"
        who = version.application_name or version.engine
        rows.add_row(
            version.version_name,
            "" if version.time is None else moment(version.time),
            plain(version.change, _COLOURS.get(version.change, "")),
            plain(version.operation),
            plain(f"{who} ({version.application_id})" if version.application_id else who),
            plain(place, "cyan"),
            plain(_values(before, version.columns)),
        )
        before = version.columns or {}
    print_table(console, rows)


def _values(before: Mapping[str, Any], columns: Mapping[str, Any] | None) -> str:
    """All of a new row, else those that have changed."""
    shown = {
        name: value
        for name, value in (columns or {}).items()
        if not before or name not in before or before[name] != value
    }
    return ", ".join(f"{name} = {value}" for name, value in shown.items())
