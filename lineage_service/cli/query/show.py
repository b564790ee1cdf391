"""`lineage show`: the records of one operation, page by page, or those that hold a text or have a key."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import Output, add_format_flags, plain, print_line
from lineage_service.cli.query.records import line_of
from lineage_service.cli.query.start import add_application, add_page_flags, store_queries, whole_number
from lineage_service.lineage import RecordPage
from lineage_service.newest_application import application_named
from lineage_service.queries import RecordQuery
from lineage_service.result_tables import RECORD_COLUMNS, record_lines
from lineage_service.settings import Settings

__all__ = ["command", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    parser.add_argument("node", help="a node of `lineage graph`, by its number")
    parser.add_argument("--text", help="only records that hold this text, in any case")
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="only records whose columns fulfil it: \"airport = 'EWR' and delay > 40\"",
    )
    parser.add_argument("--key", help="only records with this key")
    parser.add_argument(
        "--partition", type=whole_number(0), metavar="N", help="only records of this partition"
    )
    parser.add_argument(
        "--offset", type=whole_number(0), metavar="N", help="only records from this one of --partition on"
    )
    add_page_flags(parser, "a page")
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    query = RecordQuery(
        node=options.node,
        text=options.text,
        where=options.where,
        key=options.key,
        partition=options.partition,
        offset=options.offset,
        limit=options.limit,
        cursor=options.cursor,
    )
    with output.working("reading records"), store_queries(settings) as queries:
        page = queries.records(application_named(queries, options.application), query)
    notes = (
        [*page.warnings] if page.next is None else [*page.warnings, f"there are more: --cursor {page.next}"]
    )
    is_search = not query.text is query.where is query.key is None
    output.give(
        page,
        RECORD_COLUMNS,
        record_lines(page),
        lambda console: _show(console, page, is_search=is_search),
        notes,
    )
    return 0


def _show(console: Console, page: RecordPage, *, is_search: bool) -> None:
    for record in page.records:
        # Behind it is where `trace` and `values` go on: with a row's place alone they could not.
        place = Text() if record.source is None else plain(record.record_id, "dim") + Text("  ")
        print_line(console, place + line_of(record))
    total = "an unknown number of" if page.total is None else f"{page.total:,}"
    what = "matching records" if is_search else "records"
    console.print(plain(f"{len(page.records):,} of {total} {what} of {page.node_id}", "bold"), soft_wrap=True)
