"""`lineage dataset`: the history of one dataset, and what is before and behind it."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lineage_service.cli.local_paths import is_there
from lineage_service.cli.query.datasets import COLOURS, more_notes
from lineage_service.cli.query.output import (
    Output,
    add_format_flags,
    error_text,
    moment,
    plain,
    print_line,
    print_table,
    table,
    without_folders,
)
from lineage_service.cli.query.start import add_page_flags, store_queries, whole_number
from lineage_service.datasets.summaries import FAILED
from lineage_service.lineage import DatasetGraph, DatasetGraphNode, DatasetPage
from lineage_service.queries import DatasetQuery
from lineage_service.result_tables import HISTORY_COLUMNS, history_lines
from lineage_service.settings import Settings

__all__ = ["command", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="a path, s3a://BUCKET/..., db.table, or an ending of it that is unique")
    parser.add_argument(
        "--namespace", metavar="NAME", help="where it is, if several have the name: file, s3://BUCKET, ..."
    )
    parser.add_argument(
        "--direction", choices=("backward", "forward"), help="only what is before it, or behind it"
    )
    parser.add_argument(
        "--depth", type=whole_number(0), metavar="N", help="follow at most this many jobs in each direction"
    )
    add_page_flags(parser, "a page", "writes and reads")
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    query = DatasetQuery(
        name=_whole(options.name),
        namespace=options.namespace,
        direction=options.direction,
        depth=options.depth,
        limit=options.limit,
        cursor=options.cursor,
    )
    with output.working("reading what applications wrote and read"), store_queries(settings) as queries:
        page = queries.dataset(query)
    output.give(
        page, HISTORY_COLUMNS, history_lines(page), lambda console: _show(console, page), _notes(page)
    )
    return 0


def _whole(name: str) -> str:
    """As jobs name it: from the root, where it is a file or folder of this machine."""
    is_relative = not name.startswith("/") and "://" not in name
    return str(Path(name).absolute()) if is_relative and is_there(name) else name


def _notes(page: DatasetPage) -> list[str]:
    notes = [page.dataset.remark] if page.dataset.remark else []
    notes += dict.fromkeys(
        f"{use.name} ({use.application_id}) is an upper bound: {use.reason}"
        for use in page.history
        if not use.exact and use.state not in FAILED
    )
    notes += [
        f"{use.name} ({use.application_id}) failed: {error_text(use.error)}"
        for use in page.history
        if use.error is not None
    ]
    return notes + more_notes(page.next, page.unread_applications)


def _show(console: Console, page: DatasetPage) -> None:
    dataset = page.dataset
    console.print(plain(dataset.path, "bold") + plain(f"  {dataset.format}"), soft_wrap=True)
    if dataset.aliases:
        console.print(plain(f"also {', '.join(dataset.aliases)}"), soft_wrap=True)
    if dataset.schema:
        columns = ", ".join(f"{column.name} {column.type}" for column in dataset.schema)
        print_line(console, plain(f"columns: {columns}"))
    if dataset.partitions:
        console.print(plain(f"partitioned by {', '.join(dataset.partitions)}"), soft_wrap=True)
    console.print()
    _show_history(console, page)
    if len(page.graph.nodes) > 1:
        console.print()
        _show_graph(console, page.graph)


def _show_history(console: Console, page: DatasetPage) -> None:
    rows = table("when", "", "job~", "application", "operation~", "call site~", "rows>", "state")
    for use in page.history:
        state = use.state if use.complete else f"{use.state}, lineage incomplete"
        rows.add_row(
            moment(use.at),
            "wrote" if use.kind == "write" else "read",
            plain(use.name, "bold"),
            plain(use.application_id),
            plain(use.operation),
            plain(without_folders(use.call_site)),
            "not counted" if use.rows is None else f"{use.rows:,}",
            plain(state, COLOURS.get(use.state, "" if use.complete else "yellow")),
        )
    print_table(console, rows)
    console.print(plain(f"{len(page.history):,} of {page.total:,} writes and reads", "bold"), soft_wrap=True)


def _show_graph(console: Console, graph: DatasetGraph) -> None:
    """Each job with what it reads and writes, from left to right."""
    names = {node.id: node for node in graph.nodes}
    for job in (node for node in graph.nodes if node.kind == "job"):
        reads = [names[edge.source] for edge in graph.edges if edge.target == job.id]
        writes = [names[edge.target] for edge in graph.edges if edge.source == job.id]
        line = Text(" + ").join(map(_place, reads)) + Text(" -> " if reads else "-> ")
        line += plain(job.name, "bold") + Text(f" ({_runs(job)})")
        if writes:
            line += Text(" -> ") + Text(" + ").join(map(_place, writes))
        console.print(line, soft_wrap=True)
        if job.remark:
            console.print(plain(f"    {job.remark}", "yellow"), soft_wrap=True)
    if graph.truncated:
        console.print(plain("there is more before or behind these", "yellow"), soft_wrap=True)


def _place(node: DatasetGraphNode) -> Text:
    if node.namespace == "file":
        return plain(node.name)
    return plain(f"{node.namespace}/{node.name.lstrip('/')}")


def _runs(job: DatasetGraphNode) -> str:
    failed = f", {job.failed_runs} failed" if job.failed_runs else ""
    return f"{job.runs} run{'s' if job.runs != 1 else ''}{failed}, last {moment(job.at or 0)}"
