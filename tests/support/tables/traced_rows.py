"""Rows of outputs, and the rows of inputs that traces lead to, in tests of tables."""

from __future__ import annotations

from pathlib import Path

from lineage_service.lineage import Trace

Row = tuple[str, int]
"""(name of a file, row in it)."""


def out_rows(folder: Path) -> list[tuple[Path, int, list[str]]]:
    """(file, row, columns) of the rows of a folder of CSV."""
    return [
        (path, row, line.split(","))
        for path in sorted(folder.glob("part-*.csv"))
        for row, line in enumerate(path.read_text().splitlines())
    ]


def input_rows(trace: Trace) -> set[Row]:
    """The rows of CSV files that it has read."""
    return {
        (Path(record.source.path).name, record.source.row)
        for node in trace.nodes
        for record in node.records
        if record.source is not None and record.source.path.endswith(".csv") and node.kind == "source"
    }
