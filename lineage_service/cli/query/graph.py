"""`lineage graph`: the operations of one application, and which sends records to which."""

from __future__ import annotations

import argparse

from rich.console import Console

from lineage_service.cli.query.output import (
    Output,
    add_format_flags,
    error_text,
    plain,
    print_table,
    table,
    without_folders,
)
from lineage_service.cli.query.start import add_application, store_queries
from lineage_service.lineage import Graph, Node
from lineage_service.newest_application import application_named
from lineage_service.result_tables import NODE_COLUMNS, node_lines, sources_of
from lineage_service.settings import Settings

__all__ = ["command", "configure"]

#: Of an expression in the table; `--json` and `--csv` have all of it.
_MOST_CHARACTERS = 80


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    with output.working("reading the graph"), store_queries(settings) as queries:
        graph = queries.graph(application_named(queries, options.application))
    notes = [note for node in graph.nodes if (note := _note(node))]
    output.give(graph, NODE_COLUMNS, node_lines(graph), lambda console: _show(console, graph), notes)
    return 0


def _note(node: Node) -> str:
    if node.state == "failed":
        why = f": {error_text(node.error)}" if node.error is not None else ""
        return f"{node.node} {node.name} failed{why}. Its records are those of tasks that had ended before"
    if node.state == "aborted":
        return f"{node.node} {node.name} was cancelled. Its records are those of tasks that had ended before"
    return "" if node.exact else f"{node.node} {node.name} is an upper bound: {node.reason}"


def _show(console: Console, graph: Graph) -> None:
    console.print(plain(graph.application_id, "bold"))
    rows = table("node>", "operation~", "from>", "records>", "call site~", "what it does~")
    for node in graph.nodes:
        rows.add_row(
            str(node.node),
            plain(node.name, "bold" if node.kind != "operator" else ""),
            " ".join(sources_of(graph, node.node_id)),
            "not counted" if node.records is None else f"{node.records:,}",
            plain(without_folders(node.call_site)),
            plain(_what_it_does(node)),
        )
    print_table(console, rows)


def _what_it_does(node: Node) -> str:
    """The file or folder that it reads or writes, else its expressions, cut."""
    if node.dataset is not None:
        return node.dataset.name
    text = "" if node.description == node.name else node.description
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
