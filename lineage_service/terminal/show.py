"""`lineage show`: the records of one operation, page by page, or those that hold a text or have a key."""

from __future__ import annotations

import argparse

from rich.console import Console

from lineage_service.answers import RecordPage, RecordQuery
from lineage_service.answers_csv import RECORD_COLUMNS, record_lines
from lineage_service.newest import application_named
from lineage_service.settings import Settings
from lineage_service.terminal.output import Output, add_format_flags
from lineage_service.terminal.records import line_of
from lineage_service.terminal.start import add_application, add_page_flags, asking, whole_number

__all__ = ["command", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    parser.add_argument("node", help="a node of `lineage graph`, by its number")
    parser.add_argument("--text", help="only records that hold this text, in any case")
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
        key=options.key,
        partition=options.partition,
        offset=options.offset,
        limit=options.limit,
        cursor=options.cursor,
    )
    with output.working("reading records"), asking(settings) as questions:
        page = questions.records(application_named(questions, options.application), query)
    notes = (
        [*page.warnings] if page.next is None else [*page.warnings, f"there are more: --cursor {page.next}"]
    )
    output.give(page, RECORD_COLUMNS, record_lines(page), lambda console: _show(console, page), notes)
    return 0


def _show(console: Console, page: RecordPage) -> None:
    for each in page.records:
        console.print(line_of(each))
    total = "" if page.total is None else f" of {page.total:,}"
    console.print(f"{len(page.records):,}{total} records of {page.node_id}", style="bold")
