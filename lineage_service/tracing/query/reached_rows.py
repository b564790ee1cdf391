"""All rows that a trace reached at one node: in the order of a column, and what stands out of them.

They are read in pieces, so that what was read in time can be used.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from time import monotonic

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Remark, SourceRow
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.remarks import remarks_on
from lineage_service.tracing.query.requested_columns import no_such_column, request_of
from lineage_service.tracing.query.row_order import Place, ordered
from spark_agent import contract

__all__ = ["MOST_ORDERED", "SAMPLE_SIZE", "ReachedRows", "spread_places"]

_PIECE = 20_000
#: More rows are not ordered.
MOST_ORDERED = 1_000_000
#: More rows are not looked at for a remark.
_MOST_LOOKED_AT = 200_000
#: Records of a sample.
SAMPLE_SIZE = 5


class _TimeOver(Exception):
    """What was read until now is all that is used."""


def spread_places(arrived: Mapping[int, Integers], most: int) -> list[Place]:
    """So many places at even distances among all, by partition and offset; all where they are fewer."""
    partitions = sorted(arrived)
    ends = list(accumulate(len(arrived[partition]) for partition in partitions))
    total = ends[-1] if ends else 0
    count = min(most, total)
    places: list[Place] = []
    for index in ((2 * at + 1) * total // (2 * count) for at in range(count)):
        nth = bisect_right(ends, index)
        offsets = arrived[partitions[nth]]
        places.append((partitions[nth], int(offsets[index - ends[nth] + len(offsets)])))
    return places


class ReachedRows:
    """`arrived` are the offsets that were reached, by partition."""

    def __init__(
        self,
        locations: RecordLocations,
        node: TopologyNode,
        arrived: Mapping[int, Integers],
        ended: int | None,
    ) -> None:
        """`ended` is when the application did."""
        self._locations, self._node, self._arrived = locations, node, arrived
        self._ended = ended

    def places(self) -> list[Place]:
        """All of them, by partition and offset."""
        return [place for piece in self._pieces() for place in piece]

    def ordered(self, column: str, check: Check, *, desc: bool) -> list[Place]:
        """All places by a column of their rows. Raises InvalidQueryError."""
        total = sum(map(len, self._arrived.values()))
        if total > MOST_ORDERED:
            raise InvalidQueryError(
                f"{total:,} rows are not ordered, {MOST_ORDERED:,} at most: leave sort out"
            )
        request = request_of(self._node, (column,))
        request.has_text = False
        values: dict[Place, object] = {}
        places: list[Place] = []
        for piece in self._pieces():
            rows = self._locations.rows_of(self._node, piece, check, ended=self._ended, columns=request)
            places += piece
            values |= {place: row.columns.get(column) for place, row in rows.items() if row.columns}
        if column not in request.types:
            raise self._without(column, places[:1], check)
        return ordered(places, values, request.types[column], desc=desc)

    def _without(self, column: str, places: Sequence[Place], check: Check) -> InvalidQueryError:
        """What there is in place of a column."""
        every = request_of(self._node)
        self._locations.rows_of(self._node, places, check, ended=self._ended, columns=every)
        if every.types:
            return no_such_column(column, every.types)
        return InvalidQueryError(
            f"the records of {self._node.number} ({self._node.name}) are no rows with columns: leave sort out"
        )

    def remarks(self, check: Check, until: float) -> tuple[tuple[Remark, ...], int]:
        """(what stands out, of how many rows): of those that were read by then, on the monotonic clock."""
        request = request_of(self._node)
        request.has_text = False
        rows: list[tuple[str, SourceRow]] = []

        def check_both() -> None:
            check()
            if monotonic() >= until:
                raise _TimeOver

        try:
            for piece in self._pieces():
                rows_by_place = self._locations.rows_of(
                    self._node, piece, check_both, ended=self._ended, columns=request
                )
                rows += [
                    (contract.record_id(self._node.kind, *place), row)
                    for place, row in sorted(rows_by_place.items())
                    if row.text is not None or row.columns is not None
                ]
                if len(rows) >= _MOST_LOOKED_AT:
                    break
        except _TimeOver:
            pass
        return remarks_on(rows, request.types), len(rows)

    def _pieces(self) -> Iterator[Sequence[Place]]:
        """Some places at a time: those of one huge partition too."""
        piece: list[Place] = []
        for partition in sorted(self._arrived):
            offsets = self._arrived[partition]
            for first in range(0, len(offsets), _PIECE):
                piece += [(partition, offset) for offset in offsets[first : first + _PIECE].tolist()]
                if len(piece) >= _PIECE:
                    yield piece
                    piece = []
        if piece:
            yield piece
