"""The rows among which a sift looks, and the plan of a run on some of them. Pure.

A row is a record of a source: (node, partition, position). They are in this order, which is that of files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lineage_service.replays.specification import Plan, Source
from spark_agent.contract.row_sets import ranges_of, rows_in

__all__ = ["Candidates", "Row"]

Row = tuple[int, int, int]


class Candidates:
    """Rows of `sources`, in the JSON shape of a row set; sources that are meant whole stay so.

    `texts` are those of `with_texts`, in the sources. `is_whole`: they are all rows of the inputs.
    """

    def __init__(self, sources: Sequence[Source], *, is_whole: bool = False) -> None:
        self.sources, self.is_whole = tuple(sources), is_whole
        self.rows: tuple[Row, ...] = tuple(sorted(_rows_of(sources)))
        self._texts = _texts_of(sources)

    def texts(self) -> list[str]:
        """Of all rows, empty where one is not known."""
        return [self._texts.get(row, "") for row in self.rows]

    def plan(self, template: Plan, numbers: Iterable[int]) -> Plan:
        """On the rows of these numbers, with the flags of `template`."""
        positions: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number in numbers:
            node, split, position = self.rows[number]
            positions[node][split].append(position)
        sources = tuple(self._restricted(source, positions[source["node"]]) for source in self.sources)
        return replace(template, mode="only", sources=sources)

    def _restricted(self, source: Source, positions: Mapping[int, Sequence[int]]) -> Source:
        if source["whole"]:
            return source
        splits = sorted(positions)
        restricted = {
            **source,
            "files": [],  # nobody traces this run
            "splits": [{"split": split, "positions": ranges_of(positions[split])} for split in splits],
        }
        if "texts" in source:
            node = source["node"]
            restricted["texts"] = {
                str(split): [self._texts[node, split, position] for position in positions[split]]
                for split in splits
            }
        return restricted

    def common(self, others: Sequence[Candidates]) -> Candidates:
        """The rows that all of these have, too. They are of one application."""
        rows = set(self.rows).intersection(*(other.rows for other in others))
        numbers = [number for number, row in enumerate(self.rows) if row in rows]
        return Candidates(self.plan(Plan(mode="only", sources=()), numbers).sources)

    def whole_but(self, nodes: Collection[int], why: str) -> Candidates:
        """The same, where these sources cannot be restricted."""
        return Candidates(
            [
                {**_without_texts(source), "whole": True, "why": why, "files": [], "splits": []}
                if source["node"] in nodes
                else source
                for source in self.sources
            ],
            is_whole=self.is_whole,
        )


def _rows_of(sources: Iterable[Mapping[str, Any]]) -> Iterable[Row]:
    return (
        (source["node"], split["split"], position)
        for source in sources
        if not source["whole"]
        for split in source.get("splits", ())
        for position in rows_in(split["positions"])
    )


def _texts_of(sources: Iterable[Mapping[str, Any]]) -> dict[Row, str]:
    texts: dict[Row, str] = {}
    for source in sources:
        lines = source.get("texts") or {}
        for split in source.get("splits", ()) if not source["whole"] else ():
            number = split["split"]
            of_split = lines.get(str(number), ())
            for position, text in zip(rows_in(split["positions"]), of_split, strict=False):
                texts[source["node"], number, position] = text
    return texts


def _without_texts(source: Source) -> Source:
    return {name: value for name, value in source.items() if name != "texts"}
