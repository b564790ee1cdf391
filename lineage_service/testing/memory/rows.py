"""Rows of files that records are: the columns that are asked for, conditions, order, remarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lineage_service.conditions.column_types import LOOSE_TEXT
from lineage_service.conditions.columns import delimited
from lineage_service.conditions.filters import Where
from lineage_service.lineage import Choice, Column, Node, Record, Remark
from lineage_service.queries import ALL_COLUMNS, TraceQuery
from lineage_service.testing.memory.lineages import LineageIndex, position_of
from lineage_service.tracing.files.path_patterns import PathPattern
from lineage_service.tracing.files.searched_database import searched_database
from lineage_service.tracing.query.reached_rows import SAMPLE_SIZE
from lineage_service.tracing.query.remarks import remarks_on
from lineage_service.tracing.query.row_order import ordered


def with_columns(records: Iterable[Record], columns: Sequence[str] | None) -> tuple[Record, ...]:
    """With the columns that are asked for."""
    return tuple(
        record
        if record.source is None
        else replace(record, source=replace(record.source, columns=_chosen(record, columns)))
        for record in records
    )


def _chosen(record: Record, columns: Sequence[str] | None) -> dict[str, Any] | None:
    every = record.source.columns if record.source is not None else None
    if every is None or columns is None:
        return None
    return {name: value for name, value in every.items() if name in columns or ALL_COLUMNS in columns}


def schema_of(records: Iterable[Record], columns: Sequence[str] | None) -> tuple[Column, ...] | None:
    if columns is None:
        return None
    names = dict.fromkeys(name for record in records for name in _chosen(record, columns) or ())
    return tuple(Column(name=name, type="") for name in names)


def selected(index: LineageIndex, hashes: Sequence[str], query: TraceQuery) -> list[str]:
    """Those that fulfil the condition of the query, by the column that it sorts by."""
    if query.filter is not None:
        hashes = fulfilling(index, hashes, query.filter)
    if query.sort is None:
        return list(hashes)
    sources = {position_of(index, hash_): index.records[hash_][1].source for hash_ in hashes}
    values = {place: (source.columns or {}).get(query.sort) for place, source in sources.items() if source}
    by_place = {position_of(index, hash_): hash_ for hash_ in hashes}
    return [by_place[place] for place in ordered(list(by_place), values, desc=query.desc)]


def remarks_of(
    index: LineageIndex, node: Node, hashes: Iterable[str], query: TraceQuery
) -> tuple[Remark, ...] | None:
    end = "source" if query.direction == "backward" else "sink"
    if not query.remarks or node.kind != end:
        return None
    records = (index.records[hash_][1] for hash_ in hashes)
    return remarks_on([(record.record_id, record.source) for record in records if record.source], {})


def sample_of(
    index: LineageIndex, node: Node, hashes: Sequence[str], query: TraceQuery
) -> tuple[str, ...] | None:
    """At even distances among all, which are by partition and offset."""
    end = "source" if query.direction == "backward" else "sink"
    if not query.remarks or node.kind != end:
        return None
    count = min(SAMPLE_SIZE, len(hashes))
    chosen = (hashes[(2 * at + 1) * len(hashes) // (2 * count)] for at in range(count))
    return tuple(index.records[hash_][1].record_id for hash_ in chosen)


def rows_of(index: LineageIndex, dataset: str | None, node: str | None) -> list[str]:
    """The records that are rows of a file, or of a folder."""
    pattern = PathPattern(dataset or "/")
    return [
        hash_
        for hash_, (of, record) in index.records.items()
        if record.source is not None
        and pattern.fits(record.source.path)
        and (node is None or index.node(node) is of)
    ]


def row_of(index: LineageIndex, hash_: str) -> int | None:
    source = index.records[hash_][1].source
    return None if source is None else source.row


def fulfilling(index: LineageIndex, hashes: Sequence[str], where: str) -> list[str]:
    """Records have one column, `value`: the row of the file, else the captured value."""
    compiled = Where(where).on(delimited({"value": LOOSE_TEXT}))
    records = [index.with_value(hash_, index.records[hash_][1]) for hash_ in hashes]
    texts = [record.value if record.source is None else record.source.text for record in records]
    database = searched_database(())
    try:
        rows = pa.table({"record": range(len(texts)), "c0": pa.array(texts, pa.string())})
        database.register("rows", rows)
        query = f"SELECT record FROM rows WHERE {compiled.sql} ORDER BY record"
        matches = database.execute(query, list(compiled.parameters)).fetchall()
    finally:
        database.close()
    return [hashes[at] for (at,) in matches]


def choice_of(index: LineageIndex, hash_: str) -> Choice:
    node, record = index.records[hash_]
    source = record.source
    return Choice(
        node_id=node.node_id,
        record_id=record.record_id,
        path=None if source is None else source.path,
        row=None if source is None else source.row,
        line=None if source is None else source.line,
        columns=None if source is None else {"value": source.text},
        text=record.value if source is None else source.text,
    )
