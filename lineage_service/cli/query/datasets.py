"""`lineage datasets`: what any application wrote or read, the latest written first."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import Output, add_format_flags, moment, plain, print_table, table
from lineage_service.cli.query.start import add_page_flags, store_queries
from lineage_service.lineage import Datasets, DatasetSummary
from lineage_service.queries import DatasetsQuery
from lineage_service.result_tables import DATASET_COLUMNS, dataset_lines
from lineage_service.settings import Settings
from lineage_service.store.flow_store import NoStoreError, location_text

__all__ = ["command", "configure"]

#: Of states that people should see.
COLOURS = {"failed": "red", "aborted": "red", "lost": "magenta", "running": "yellow"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", help="only those whose name holds this text, in any case")
    add_page_flags(parser, "a page", "datasets")
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    query = DatasetsQuery(text=options.text, limit=options.limit, cursor=options.cursor)
    with output.working("reading what applications wrote and read"):
        try:
            with store_queries(settings) as queries:
                page = queries.datasets(query)
        except NoStoreError:
            page = Datasets(datasets=(), total=0, next=None)
    nothing = f"no datasets in {location_text(settings)}"
    if options.text:
        nothing = f"no datasets with {options.text!r} in their name in {location_text(settings)}"
    output.give(
        page,
        DATASET_COLUMNS,
        dataset_lines(page),
        lambda console: _show(console, page, nothing),
        _notes(page),
    )
    return 0


def _notes(page: Datasets) -> list[str]:
    notes = [f"{dataset.path}: {dataset.remark}" for dataset in page.datasets if dataset.remark]
    return notes + more_notes(page.next, page.unread_applications)


def more_notes(cursor: str | None, unread_applications: int) -> list[str]:
    """What a page lacks."""
    notes = [] if cursor is None else [f"there are more: --cursor {cursor}"]
    if unread_applications:
        notes.append(f"{unread_applications} applications cannot be read now: what they used is not known")
    return notes


def _show(console: Console, page: Datasets, nothing: str) -> None:
    if not page.datasets:
        console.print(plain(nothing), soft_wrap=True)
        return
    rows = table("dataset~", "format", "last written", "by~", "rows>", "state", "writers>", "readers>")
    for dataset in page.datasets:
        rows.add_row(plain(dataset.path, "bold"), plain(dataset.format), *_cells(dataset))
    print_table(console, rows)
    console.print(plain(f"{len(page.datasets):,} of {page.total:,} datasets", "bold"), soft_wrap=True)


def _cells(dataset: DatasetSummary) -> Sequence[str | Text]:
    users = str(dataset.writers), str(dataset.readers)
    written = dataset.written
    if written is None:
        return ("", "", "", "only read", *users)
    rows = "not counted" if written.rows is None else f"{written.rows:,}"
    state = written.state if written.complete else f"{written.state}, lineage incomplete"
    failed = f" ({dataset.failed_runs} of {dataset.runs} failed)" if dataset.failed_runs else ""
    return (
        moment(written.at),
        plain(f"{written.name} ({written.application_id})"),
        rows,
        plain(state + failed, COLOURS.get(written.state, "" if written.complete else "yellow")),
        *users,
    )
