"""Whose an operation is, for people: the name and the id of its application."""

from __future__ import annotations

from rich.text import Text

from lineage_service.cli.query.output import plain
from lineage_service.lineage import TracedNode, ValueStep

__all__ = ["application_heading", "operation_label"]


def application_heading(of: TracedNode | ValueStep) -> Text:
    """`application NAME (ID)`; the id alone where it has no name."""
    heading = Text("application ", "dim")
    if not of.application_name:
        return heading + plain(of.application_id, "bold")
    return heading + plain(of.application_name, "bold") + plain(f" ({of.application_id})")


def operation_label(node: TracedNode) -> str:
    """`NODE_ID (OPERATION of APPLICATION)`."""
    of = f" of {node.application_name}" if node.application_name else ""
    return f"{node.node_id} ({node.name}{of})"
