"""The steps of a replay at a terminal: operation by operation, what went in and what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import plain, print_line, without_folders
from lineage_service.lineage import ReplayStep, StepRecord

__all__ = ["show_steps"]

#: Outputs of an operation, and inputs of each.
_MOST_SHOWN = 5


def show_steps(console: Console, steps: Sequence[ReplayStep]) -> None:
    """From the inputs on. An output stands below what went in for it."""
    records = {f"{step.node_id}#{record.record_id}": record for step in steps for record in step.records}
    for step in steps:
        number = step.node_id.rpartition("#")[2]
        site = f" at {without_folders(step.call_site)}" if step.call_site else ""
        bound = "" if step.exact else ", an upper bound of what went in"
        count = f": {step.total:,} record{'' if step.total == 1 else 's'}{bound}"
        print_line(console, Text(f"{number} ", "dim") + plain(step.name, "bold") + plain(f"{site}{count}"))
        for record in step.records[:_MOST_SHOWN]:
            _show_record(console, record, records)
        _show_rest(console, step.total - _MOST_SHOWN, "  ")


def _show_record(console: Console, record: StepRecord, records: Mapping[str, StepRecord]) -> None:
    for name in record.made_of[:_MOST_SHOWN]:
        if name in records:
            print_line(console, Text("     ") + _shown(records[name]))
    _show_rest(console, len(record.made_of) - _MOST_SHOWN, "     ")
    print_line(console, Text("  -> " if record.made_of else "     ") + _shown(record))


def _show_rest(console: Console, count: int, indent: str) -> None:
    if count > 0:
        print_line(console, plain(f"{indent}and {count:,} more: --json has up to 100", "dim"))


def _shown(record: StepRecord) -> Text:
    if record.value_type == "error":
        return plain(record.value, "red")
    if record.path is not None:
        place = plain(f"{record.path.rpartition('/')[2]}:{record.line}", "cyan")
    else:
        place = plain(record.record_id, "cyan")
    value = record.value if record.value is not None else "" if record.key is None else f"key {record.key}"
    return place + plain(f"  {value}" if value else "")
