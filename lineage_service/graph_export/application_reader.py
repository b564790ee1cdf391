"""Reads all records of an application and every flow from one to the next: the application graph.

What a trace lists for one start, for all at once, by the same steps (`walk_to_public`), with the same ids.
Only runs that an output was made from have a part in it. Bounded: an application with more than `max_flows`
records, or flows between them, is not read beyond that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from lineage_service.graph.application_rows import ApplicationGraph, NodeRecords
from lineage_service.graph_export.file_rows import FileRow, FileRowReader
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.walk.frontiers import Frontiers, TooManyError
from lineage_service.tracing.walk.page_flows import walk_to_public
from spark_agent import contract

__all__ = ["TooManyFlows", "application_graph"]

#: A flow may be found more than once (a record set joined with itself) before it is counted as one.
_REPEATED = 4


@dataclass(frozen=True, slots=True)
class TooManyFlows:
    """The application has more flows than was asked for; `records` are all of its records."""

    records: int


@dataclass(frozen=True, slots=True)
class _Split:
    """Records [0, count) of one split of a node; `first` is the place of the first one in the graph."""

    first: int
    count: int
    counts: Mapping[int, int]  # run -> how many of them it holds: another action may have taken a few only


def application_graph(
    opened: OpenedApplication[Snapshot], max_flows: int, reader: FileRowReader | None = None
) -> ApplicationGraph | TooManyFlows:
    """All flows of an application that is complete. Without a reader, no file is opened."""
    snapshot = opened.snapshot
    public = [node for _, node in sorted(snapshot.graph.topology.nodes.items()) if node.is_public]
    splits, records = _splits(snapshot, public)
    if records > max_flows:
        return TooManyFlows(records)
    cursor = snapshot.cursor()
    links, is_exact = np.empty((2, 0), np.int64), all(snapshot.graph.is_exact(node.number) for node in public)
    try:
        for node in public:
            start = _start(splits[node.number])
            side = walk_to_public(snapshot, node.number, start, _REPEATED * max_flows)
            for other in sorted((side.nodes() & splits.keys()) - {node.number}):
                node_links, are_the_same = _links(snapshot, side, other, splits[other])
                links = np.concatenate([links, node_links], axis=1)
                is_exact &= are_the_same
                if links.shape[1] > max_flows:
                    return TooManyFlows(records)
            is_exact &= side.is_exact
    except TooManyError:
        return TooManyFlows(records)
    targets, sources = links
    order = np.lexsort((sources, targets))
    targets, sources = targets[order], sources[order]
    return ApplicationGraph(
        columns=tuple(_columns(opened, cursor, public, splits, sources, targets, reader)),
        sources=sources.tolist(),
        targets=targets.tolist(),
        is_exact=bool(is_exact),
    )


def _splits(snapshot: Snapshot, nodes: list[TopologyNode]) -> tuple[dict[int, dict[int, _Split]], int]:
    """The splits of each node, and how many records there are in all."""
    splits: dict[int, dict[int, _Split]] = {}
    total = 0
    for node in nodes:
        counts: dict[int, dict[int, int]] = {}
        for number in snapshot.graph.topology.runs_of.get(node.number, ()):
            if number in snapshot.graph.live:
                split = snapshot.graph.topology.runs[number].partition
                counts.setdefault(split, {})[number] = snapshot.graph.count(node.number, number)
        splits[node.number] = {}
        for split in sorted(counts):
            count = max(counts[split].values())
            splits[node.number][split] = _Split(total, count, counts[split])
            total += count
    return splits, total


def _start(splits: Mapping[int, _Split]) -> Iterator[tuple[int, Integers, Integers]]:
    for split in splits.values():
        for run, count in split.counts.items():
            offsets = np.arange(count, dtype=np.int64)
            yield run, offsets + split.first, offsets


def _links(
    snapshot: Snapshot, side: Frontiers, node: int, splits: Mapping[int, _Split]
) -> tuple[Integers, bool]:
    """(targets, sources) at `node`, each once; and whether all runs of a split say the same.

    Runs of one split are two computations of it, for two actions. Where they put their records in another
    order, a record here stands for one of each.
    """
    parts: dict[int, list[tuple[int, Integers]]] = {}
    for run, (origins, offsets) in side.at(node).items():
        assert origins is not None
        split = snapshot.graph.topology.runs[run].partition
        is_counted = offsets < splits[split].count
        pairs = np.stack([offsets[is_counted] + splits[split].first, origins[is_counted]])
        parts.setdefault(split, []).append((run, np.unique(pairs, axis=1)))
    are_the_same = True
    for split, (first_part, *other_parts) in parts.items():
        run, first = first_part
        for other_run, other in other_parts:
            counts = splits[split].counts
            both = splits[split].first + min(counts[run], counts[other_run])
            are_the_same &= np.array_equal(first[:, first[0] < both], other[:, other[0] < both])
    links = [pairs for split_parts in parts.values() for _, pairs in split_parts]
    return np.unique(np.concatenate(links, axis=1), axis=1), are_the_same


def _columns(
    opened: OpenedApplication[Snapshot],
    cursor: StoreCursor,
    nodes: list[TopologyNode],
    splits: Mapping[int, Mapping[int, _Split]],
    sources: Integers,
    targets: Integers,
    reader: FileRowReader | None,
) -> Iterator[NodeRecords]:
    if reader is not None:
        reader.begin()
    flow_ids: dict[int, list[str]] = {}
    every: list[str] = []
    for node in nodes:
        prefix = contract.node_id(opened.application.application_id, node.number)
        flow_ids[node.number] = [
            f"{prefix}#{contract.record_id(node.kind, number, offset)}"
            for number, split in splits[node.number].items()
            for offset in range(split.count)
        ]
        every += flow_ids[node.number]
    # Whose hashIn: those that one link leads to.
    linked, first, link_counts = np.unique(targets, return_index=True, return_counts=True)
    single = link_counts == 1
    inputs = dict(zip(linked[single].tolist(), sources[first[single]].tolist(), strict=True))
    at = 0
    for node in nodes:
        node_ids = flow_ids[node.number]
        if node_ids:
            vals = _vals(opened.snapshot, cursor, node.number, splits[node.number], len(node_ids))
            rows = _rows(opened, node, splits[node.number], reader)
            yield NodeRecords(
                node=node.number,
                flow_ids=node_ids,
                hash_ins=[
                    None if (source := inputs.get(place)) is None else every[source]
                    for place in range(at, at + len(node_ids))
                ],
                vals=vals
                if not any(rows)
                else [_text(row) or val for row, val in zip(rows, vals, strict=True)],
                files=[None if row is None else row.file for row in rows] if any(rows) else (),
                lines=[None if row is None else row.line for row in rows] if any(rows) else (),
            )
        at += len(node_ids)


def _rows(
    opened: OpenedApplication[Snapshot],
    node: TopologyNode,
    splits: Mapping[int, _Split],
    reader: FileRowReader | None,
) -> list[FileRow | None]:
    """The row of a file that each record is, as far as it is known."""
    places = [(number, offset) for number, split in splits.items() for offset in range(split.count)]
    rows = {} if reader is None else reader.of(opened, node, places)
    return [rows.get(place) for place in places]


def _text(row: FileRow | None) -> str | None:
    return None if row is None else row.text


def _vals(
    snapshot: Snapshot,
    cursor: StoreCursor,
    node: int,
    splits: Mapping[int, _Split],
    count: int,
) -> list[str | None]:
    """The value of each record where one was captured, else its key."""
    vals: list[str | None] = [None] * count
    if node not in snapshot.graph.blocks.keyed:
        return vals
    begin = min(split.first for split in splits.values())
    for split in splits.values():
        # Of several runs that hold a record, the one with the lowest number is shown, as in a trace.
        for run in sorted(split.counts, reverse=True):
            rows = cursor.execute(
                "SELECT pos, arg_max(text, kind) FROM records "
                "WHERE node = ? AND run = ? AND pos < ? AND kind IN ('key', 'value') GROUP BY pos",
                [node, run, split.count],
            ).fetchall()
            for pos, text in rows:
                vals[split.first - begin + pos] = text
    return vals
