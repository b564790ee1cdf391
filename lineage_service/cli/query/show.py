"""`lineage show`: the records of one operation, page by page, or those that hold a text or have a key."""

from __future__ import annotations

import argparse

from rich.console import Console

from lineage_service.cli.query.output import Output, add_format_flags, plain
from lineage_service.cli.query.row_table import print_records
from lineage_service.cli.query.start import (
    add_application,
    add_page_flags,
    add_row_flags,
    columns_of,
    store_queries,
    whole_number,
)
from lineage_service.lineage import RecordPage
from lineage_service.newest_application import application_named
from lineage_service.queries import RecordQuery
from lineage_service.result_tables import record_table
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
    add_row_flags(parser)
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
        columns=columns_of(options),
        limit=options.limit,
        cursor=options.cursor,
    )
    with output.working("reading records"), store_queries(settings) as queries:
        page = queries.records(application_named(queries, options.application), query)
    notes = (
        [*page.warnings] if page.next is None else [*page.warnings, f"there are more: --cursor {page.next}"]
    )
    is_search = not query.text is query.where is query.key is None
    columns, lines = record_table(page, query)
    output.give(
        page,
        columns,
        lines,
        lambda console: _show(console, page, is_search=is_search, is_full=options.full),
        notes,
    )
    return 0


def _show(console: Console, page: RecordPage, *, is_search: bool, is_full: bool) -> None:
    # The ids are what `trace` and `values` take: with a row's place alone they could not go on.
    print_records(console, page.records, page.schema, is_full=is_full, has_ids=True)
    total = "an unknown number of" if page.total is None else f"{page.total:,}"
    what = "matching records" if is_search else "records"
    console.print(plain(f"{len(page.records):,} of {total} {what} of {page.node_id}", "bold"), soft_wrap=True)
