"""`lineage graph`: the operations of one application, and which sends records to which."""

from __future__ import annotations

import argparse

from rich.console import Console

from lineage_service.answers import Graph
from lineage_service.answers_csv import NODE_COLUMNS, node_lines, sources_of
from lineage_service.newest import application_named
from lineage_service.settings import Settings
from lineage_service.terminal.output import Output, add_format_flags, plain, table
from lineage_service.terminal.start import add_application, asking

__all__ = ["command", "configure"]


def configure(parser: argparse.ArgumentParser) -> None:
    add_application(parser)
    add_format_flags(parser)


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    output = Output(options)
    with output.working("reading the graph"), asking(settings) as questions:
        graph = questions.graph(application_named(questions, options.application))
    notes = [f"{each.node} {each.name} is a bound: {each.reason}" for each in graph.nodes if not each.exact]
    output.give(graph, NODE_COLUMNS, node_lines(graph), lambda console: _show(console, graph), notes)
    return 0


def _show(console: Console, graph: Graph) -> None:
    console.print(plain(graph.application_id, "bold"))
    rows = table("node>", "operation", "from>", "records>", "call site", "file or folder")
    for each in graph.nodes:
        rows.add_row(
            str(each.node),
            plain(each.name, "bold" if each.kind != "operator" else ""),
            " ".join(sources_of(graph, each.node_id)),
            "not counted" if each.records is None else f"{each.records:,}",
            plain(each.call_site),
            plain(each.dataset.name if each.dataset is not None else ""),
        )
    console.print(rows)
