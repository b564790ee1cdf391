"""The rows of files that records of a whole application are, as far as they can be read in time.

A file that is gone, or that this process may not read, has no texts. Its places are known all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import NamedTuple

from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["FileRow", "FileRowReader"]

logger = logging.getLogger(__name__)

#: For all rows of one application: the claim on it ends sooner than twice that (application_writer.CLAIM_S).
READ_S = 20.0
_PIECE = 10_000

Place = tuple[int, int]
"""(partition, offset)."""


class FileRow(NamedTuple):
    file: str
    line: int
    text: str | None


class _TimeOver(Exception):
    """What was not read until now has no texts."""


class FileRowReader:
    """For one application after the other. `most_characters` of a row are kept; 0: no row is read."""

    def __init__(self, most_characters: int, seconds: float = READ_S) -> None:
        self._most_characters, self._seconds = most_characters, seconds
        self._locations = RecordLocations()
        self._until = 0.0

    def begin(self) -> None:
        """The time of the next application begins."""
        self._until = monotonic() + self._seconds

    def of(
        self, opened: OpenedApplication[Snapshot], node: TopologyNode, places: Sequence[Place]
    ) -> dict[Place, FileRow]:
        """The rows that records of a source or sink are."""
        rows: dict[Place, FileRow] = {}
        if not self._most_characters or node.kind not in ("source", "sink"):
            return rows
        try:
            for piece in _pieces(places):
                rows_by_place = self._locations.rows_of(
                    node, piece, self._check, ended=opened.application.ended
                )
                rows |= {
                    place: FileRow(row.path, row.line, self._cut(row.text))
                    for place, row in rows_by_place.items()
                }
        except _TimeOver:
            logger.warning(
                "%s: the rows of node %d are not all in the graph: reading them took longer than %g s",
                opened.application.application_id,
                node.number,
                self._seconds,
            )
        return rows

    def _check(self) -> None:
        if monotonic() >= self._until:
            raise _TimeOver

    def _cut(self, text: str | None) -> str | None:
        if text is None or len(text) <= self._most_characters:
            return text
        return f"{text[: self._most_characters]}…"


def _pieces(places: Sequence[Place]) -> Iterator[list[Place]]:
    left = iter(places)
    while piece := list(islice(left, _PIECE)):
        yield piece
