"""`lineage suspects`: which tasks and operations of an application behave oddly."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rich.console import Console

from lineage_service.cli.query.bad_outputs import add_outputs, outputs_of
from lineage_service.cli.query.output import Output, add_format_flags, plain, print_line
from lineage_service.cli.query.start import add_application, add_limit_flag, store_queries
from lineage_service.lineage import Suspect, Suspects
from lineage_service.newest_application import application_named
from lineage_service.queries import SuspectsQuery
from lineage_service.result_tables import SUSPECT_COLUMNS, suspect_lines
from lineage_service.settings import Settings

__all__ = ["command", "configure"]

#: Nothing is odd at all.
_NOTHING = 3


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    add_outputs(parser)
    parser.add_argument(
        "--method",
        choices=("graded", "newt"),
        default="graded",
        help="graded: bits of surprise (default); newt: the rule of Newt, for comparison",
    )
    add_limit_flag(parser, "list at most this many suspects")
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    query = SuspectsQuery(
        bad=outputs_of(options.bad, options.bad_where),
        good=outputs_of(options.good, options.good_where),
        method=options.method,
        limit=options.limit,
    )
    with output.working("comparing tasks"), store_queries(settings) as queries:
        suspects = queries.suspects(application_named(queries, options.application), query)
    output.give(
        suspects,
        SUSPECT_COLUMNS,
        suspect_lines(suspects),
        lambda console: _show(console, suspects),
        list(_notes(suspects)),
    )
    return 0 if suspects.suspects else _NOTHING


def _show(console: Console, suspects: Suspects) -> None:
    for suspect in suspects.suspects:
        style = "red" if suspect.unusual else ""
        score = f"{suspect.score:,.1f}".removesuffix(".0")
        print_line(console, plain(f"{suspect.rank:>3}  {score:>6}  ", "dim") + plain(suspect.why, style))
        print_line(console, plain(f"             {', '.join(_remarks(suspect))}", "dim"))
        for row in suspect.sources:
            text = "" if row.text is None else f"  {row.text}"
            print_line(console, plain(f"             {row.path}:{row.line}", "cyan") + plain(text))
        if suspect.sources_total > len(suspect.sources):
            more = suspect.sources_total - len(suspect.sources)
            print_line(console, plain(f"             and {more:,} more input records", "dim"))


def _remarks(suspect: Suspect) -> Iterator[str]:
    yield "unusual" if suspect.unusual else "may be chance"
    if suspect.follows_from is not None:
        yield f"follows from {suspect.follows_from}"
    if suspect.leads_to_bad is not None:
        yield "leads to a bad output" if suspect.leads_to_bad else "leads to no bad output"
    if suspect.record is not None:
        number = suspect.record.node_id.rpartition("#")[2]
        yield f"record {number}#{suspect.record.record_id}"


def _notes(suspects: Suspects) -> Iterator[str]:
    if not suspects.suspects:
        yield "Nothing is odd."
    elif suspects.total > len(suspects.suspects):
        yield f"{suspects.total - len(suspects.suspects):,} more have a score: --limit"
    yield from suspects.how
