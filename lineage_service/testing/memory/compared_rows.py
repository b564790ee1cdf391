"""The rows that applications wrote, compared by their texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lineage_service.lineage import ComparedRow, ComparedRun
from lineage_service.testing.memory.lineages import LineageIndex


def sink_rows(index: LineageIndex) -> list[tuple[ComparedRow, str]]:
    rows = []
    for hash_, (node, record) in index.records.items():
        if node.kind == "sink" and record.source is not None and record.source.text is not None:
            source = record.source
            row = ComparedRow(
                key=None,
                record=hash_,
                path=source.path,
                row=source.row,
                columns={"value": source.text},
                because=None,
            )
            rows.append((row, record.source.text))
    return rows


def uncommon(rows: Iterable[tuple[ComparedRow, str]], common: Counter[str]) -> list[ComparedRow]:
    """Those that are not among these texts, each as often as it is there."""
    todo = Counter(common)
    others = []
    for row, text in rows:
        if todo[text]:
            todo[text] -= 1
        else:
            others.append(row)
    return others


def compared_run(index: LineageIndex, rows: Sequence[object]) -> ComparedRun:
    application = index.lineage.application
    sink = next(node for node in index.nodes.values() if node.kind == "sink")
    return ComparedRun(
        application_id=application.application_id,
        name=application.name,
        started=application.started,
        node_id=sink.node_id,
        dataset="" if sink.dataset is None else sink.dataset.name,
        rows=len(rows),
        complete=application.complete,
    )
