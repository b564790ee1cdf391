"""A record as one line for people: where it stands, and what is known of its key and value."""

from __future__ import annotations

from rich.text import Text

from lineage_service.cli.query.output import plain
from lineage_service.lineage import Record

__all__ = ["line_of"]


def line_of(record: Record) -> Text:
    """`FILE:LINE: text` of a row, else the record id with its key and value."""
    source = record.source
    if source is None:
        line = plain(record.record_id, "cyan")
    else:
        line = plain(f"{source.path}:{source.line}", "cyan")
        if source.text is not None:
            line += Text("  ") + plain(source.text)
        if source.warning:
            line += Text("  ") + plain(f"({source.warning})", "yellow")
    if record.operation is not None:
        line += Text(f"  {record.operation}", "dim")
    if record.key is not None and (source is None or source.text is None):
        line += Text("  key ", "dim") + plain(record.key)
    if record.value is not None and (source is None or source.text is None):
        line += Text("  value ", "dim") + plain(record.value)
    return line
