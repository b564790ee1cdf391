"""`--compare APP2` of `lineage explain`: the same record in another run, and which input rows differ."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import plain, print_line
from lineage_service.cli.query.records import line_of
from lineage_service.cli.query.start import start_of
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import ComparedExplanation, ExplainedRow
from lineage_service.queries import StartQuery

__all__ = ["add_compare", "compared_starts_of", "show_compared"]

_MOST_STARTS = 3


def add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compare",
        metavar="APP2",
        help="also say which rows explain the same record in another run of the job, and which no longer do",
    )
    parser.add_argument(
        "--compare-start",
        action="append",
        default=[],
        metavar="START",
        help="with --compare: the record in APP2, where it is not found by its key or its text; repeatable",
    )


def compared_starts_of(options: argparse.Namespace) -> tuple[StartQuery, ...]:
    """Raises InvalidQueryError."""
    if options.compare_start and options.compare is None:
        raise InvalidQueryError("--compare-start needs --compare: the application that has the record")
    return tuple(StartQuery(**start_of(text, None, None)) for text in options.compare_start)


def show_compared(console: Console, compared: ComparedExplanation) -> None:
    print_line(console, plain(f"compared with {compared.application_id} ({compared.name})", "bold"))
    for start in compared.starts:
        for record in start.records[:_MOST_STARTS]:
            number = start.node_id.rpartition("#")[2]
            print_line(console, Text(f"  {number} ", "dim") + line_of(record))
    differ = f"{compared.gone_total:,} gone, {compared.new_total:,} new"
    print_line(console, plain(f"  {compared.same:,} rows are the same, {differ}"))
    _show_rows(console, "-", "red", compared.gone, compared.gone_total)
    _show_rows(console, "+", "green", compared.new, compared.new_total)


def _show_rows(console: Console, sign: str, style: str, rows: Sequence[ExplainedRow], total: int) -> None:
    for row in rows:
        place = row.record_id if row.path is None else f"{row.path}:{row.line}"
        line = plain(f"  {sign} ", style) + plain(place, "cyan")
        print_line(console, line if row.text is None else line + Text("  ") + plain(row.text))
    if total > len(rows):
        print_line(console, plain(f"  {sign} and {total - len(rows):,} more", "dim"))
