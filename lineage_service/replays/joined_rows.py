"""The rows of sources in the shape of row sets: which they are, and those of two row sets together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lineage_service.replays.specification import Source
from spark_agent.contract.row_cover import Row
from spark_agent.contract.row_sets import ranges_of, rows_in

__all__ = ["joined", "joined_source", "rows_of", "rows_of_source", "without_places"]


def rows_of(sources: Iterable[Source]) -> frozenset[Row]:
    """The rows that sources of a row set name."""
    return frozenset(row for source in sources if not source["whole"] for row in rows_of_source(source))


def rows_of_source(source: Source) -> Iterable[Row]:
    return (
        (source["node"], split["split"], position)
        for split in source.get("splits", ())
        for position in rows_in(split["positions"])
    )


def joined(sources: Iterable[Source], others: Iterable[Source]) -> list[Source]:
    """Sources, each with the rows that another row set has of it, too. Without contents of their rows."""
    by_node = {source["node"]: source for source in others}
    return [
        without_places(joined_source(source, by_node[source["node"]]))
        if source["node"] in by_node
        else without_places(source)
        for source in sources
    ]


def joined_source(source: Source, other: Source) -> Source:
    """A source with the rows of another row set of it."""
    if source["whole"] or other["whole"]:
        return source
    positions = {split["split"]: split["positions"] for split in other.get("splits", ())}
    for split in source.get("splits", ()):
        number = split["split"]
        positions[number] = _joined(split["positions"], positions.get(number, []))
    files = {file["path"]: file for file in other.get("files", ())}
    for file in source.get("files", ()):
        path = file["path"]
        files[path] = {**file, "rows": _joined(file["rows"], files.get(path, {}).get("rows", []))}
    return {
        **source,
        "splits": [{"split": number, "positions": positions[number]} for number in sorted(positions)],
        "files": [files[path] for path in sorted(files)],
    }


def _joined(ranges: list[list[int]], others: list[list[int]]) -> list[list[int]]:
    return ranges_of([*rows_in(ranges), *rows_in(others)])


def without_places(source: Mapping[str, object]) -> Source:
    """Without the lines or blocks of its rows: it is to have other rows."""
    return {name: value for name, value in source.items() if name not in ("texts", "blocks")}
