"""The rows among which a sift looks, and the plan of a run on some of them. Pure.

A row is a record of a source: (node, partition, position). They are in this order, which is that of files.
A run reads the lines of a text source from its spec. Of a scan of a DataFrame it reads the files, and keeps
the rows that the spec names in each block.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lineage_service.replays.joined_rows import rows_of, rows_of_source, without_places
from lineage_service.replays.specification import Plan, Source
from spark_agent.contract.row_cover import Row
from spark_agent.contract.row_sets import ranges_of, rows_in

__all__ = ["Candidates", "Row"]

#: Rows of scans that a job's process keeps from one run to the next, so that it reads no file again.
_MOST_KEPT = 100_000


class Candidates:
    """Rows of `sources`, in the JSON shape of a row set; sources that are meant whole stay so.

    They have texts or blocks, as of `with_places`. `is_whole`: they are all rows of the inputs. `shown` are
    texts of rows that no run reads. `taken` are those that the program took before it wrote.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        is_whole: bool = False,
        shown: Mapping[Row, str] | None = None,
        taken: Collection[Row] = (),
    ) -> None:
        self.sources, self.is_whole, self.taken = tuple(sources), is_whole, frozenset(taken)
        self.rows: tuple[Row, ...] = tuple(sorted(rows_of(sources)))
        self._texts, self._shown = _texts_of(sources), shown or {}
        self._places = _places_of(sources)

    def texts(self) -> list[str]:
        """Of all rows, empty where one is not known."""
        return [self._texts.get(row) or self._shown.get(row, "") for row in self.rows]

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
        if "blocks" in source:
            restricted["blocks"] = self._blocks(source, positions)
        return restricted

    def _blocks(self, source: Source, positions: Mapping[int, Sequence[int]]) -> list[dict[str, Any]]:
        """All blocks of a scan, with these rows of it."""
        offsets: dict[int, list[int]] = defaultdict(list)
        for split in sorted(positions):
            for position in positions[split]:
                block, offset = self._places[source["node"], split, position]
                offsets[block].append(offset)
        named = [
            {**block, "rows": ranges_of(offsets[number])} for number, block in enumerate(source["blocks"])
        ]
        if len(self.rows) > _MOST_KEPT:
            return named
        pairs = zip(named, source["blocks"], strict=True)
        return [{**block, "candidates": whole["rows"]} for block, whole in pairs]

    def common(self, others: Sequence[Candidates]) -> Candidates:
        """The rows that all of these have, too. They are of one application."""
        rows = set(self.rows).intersection(*(other.rows for other in others))
        numbers = [number for number, row in enumerate(self.rows) if row in rows]
        sources = self.plan(Plan(mode="only", sources=()), numbers).sources
        return Candidates(sources, shown=self._shown, taken=self.taken)

    def whole_but(self, nodes: Collection[int], why: str) -> Candidates:
        """The same, where these sources cannot be restricted."""
        return Candidates(
            [
                {**without_places(source), "whole": True, "why": why, "files": [], "splits": []}
                if source["node"] in nodes
                else source
                for source in self.sources
            ],
            is_whole=self.is_whole,
            shown=self._shown,
            taken=self.taken,
        )


def _places_of(sources: Iterable[Source]) -> dict[Row, tuple[int, int]]:
    """Of rows of scans: the number of their block, and their place in it. Both are in one order."""
    places: dict[Row, tuple[int, int]] = {}
    for source in sources:
        if source["whole"] or "blocks" not in source:
            continue
        offsets = [
            (number, offset)
            for number, block in enumerate(source["blocks"])
            for offset in rows_in(block["rows"])
        ]
        places.update(zip(rows_of_source(source), offsets, strict=True))
    return places


def _texts_of(sources: Iterable[Source]) -> dict[Row, str]:
    texts: dict[Row, str] = {}
    for source in sources:
        if source["whole"] or "texts" not in source:
            continue
        for split in source.get("splits", ()):
            number = split["split"]
            of_split = source["texts"][str(number)]
            for position, text in zip(rows_in(split["positions"]), of_split, strict=True):
                texts[source["node"], number, position] = text
    return texts
