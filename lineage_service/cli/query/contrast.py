"""`lineage contrast`: what the input rows of bad outputs have in common, and those of good ones have not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rich.console import Console

from lineage_service.cli.query.bad_outputs import add_outputs, outputs_of
from lineage_service.cli.query.output import Output, add_format_flags, plain, print_table, table
from lineage_service.cli.query.start import add_application, add_limit_flag, store_queries
from lineage_service.lineage import Contrast
from lineage_service.newest_application import application_named
from lineage_service.queries import ContrastQuery
from lineage_service.result_tables import CONTRAST_COLUMNS, contrast_lines
from lineage_service.settings import Settings

__all__ = ["command", "configure"]

#: No property is more common among bad outputs.
_NOTHING = 3


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    add_outputs(parser)
    parser.add_argument(
        "--failures", action="store_true", help="the records that made tasks fail are bad, too"
    )
    add_limit_flag(parser, "list at most this many properties")
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    query = ContrastQuery(
        bad=outputs_of(options.bad, options.bad_where),
        good=outputs_of(options.good, options.good_where),
        failures=options.failures,
        limit=options.limit,
    )
    with output.working("reading input rows"), store_queries(settings) as queries:
        contrast = queries.contrast(application_named(queries, options.application), query)
    output.give(
        contrast,
        CONTRAST_COLUMNS,
        contrast_lines(contrast),
        lambda console: _show(console, contrast),
        list(_notes(contrast)),
    )
    return 0 if contrast.properties else _NOTHING


def _show(console: Console, contrast: Contrast) -> None:
    rows = table("property", "bad>", "good>", "")
    for shared in contrast.properties:
        rows.add_row(
            plain(shared.property),
            f"{shared.bad:,} of {shared.of_bad:,}",
            f"{shared.good:,} of {shared.of_good:,}",
            plain("" if shared.unusual else "may be chance", "dim"),
        )
    if contrast.properties:
        print_table(console, rows)


def _notes(contrast: Contrast) -> Iterator[str]:
    if not contrast.properties:
        yield "The input rows of bad outputs have nothing that those of good ones have less often."
    yield from contrast.how
