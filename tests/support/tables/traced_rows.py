"""Rows of outputs, and the rows of inputs that traces lead to, in tests of tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lineage_service.lineage import Trace
from lineage_service.queries import Queries, TraceQuery

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


def rows_behind(queries: Queries, application_id: str, path: Path, row: int) -> set[Row]:
    """The rows of the inputs that a row of an output is traced to; the trace is exact and complete."""
    return inputs_of(queries, application_id, TraceQuery(direction="backward", path=str(path), row=row))


def inputs_of(queries: Queries, application_id: str, query: TraceQuery) -> set[Row]:
    """The same of any trace."""
    trace = queries.trace(application_id, replace(query, limit=1000))
    assert trace.complete, trace
    assert trace.exact, trace
    return input_rows(trace)
