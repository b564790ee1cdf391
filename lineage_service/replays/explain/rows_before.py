"""All rows before some rows of a source, which an operation needs that counts records: `zipWithIndex`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lineage_service.replays.errors import ReplayError
from lineage_service.replays.explain.chosen_rows import chosen_rows
from lineage_service.replays.joined_rows import rows_of, without_places
from lineage_service.replays.original import Original
from lineage_service.replays.sift.candidate_sets import SourceRows
from lineage_service.replays.specification import Source
from spark_agent.contract.row_cover import Row

__all__ = ["with_rows_before"]

#: More are not named one by one.
_MOST_ROWS = 100_000


def with_rows_before(original: Original, sources: Sequence[Source], texts: SourceRows) -> list[Source]:
    """The sources with all rows up to the last one of each. Raises ReplayError where these are many."""
    last: dict[int, tuple[int, int]] = {}
    for node, split, position in rows_of(sources):
        last[node] = max(last.get(node, (split, position)), (split, position))
    rows = _rows_before(original, last)
    plain = [without_places(source) for source in sources]
    return chosen_rows(original.application_id, plain, rows, texts)


def _rows_before(original: Original, last: Mapping[int, tuple[int, int]]) -> list[Row]:
    rows: list[Row] = []
    for node, (last_split, last_position) in last.items():
        for split in range(last_split + 1):
            count = last_position + 1 if split == last_split else original.records(node, split)
            if count is None or len(rows) + count > _MOST_ROWS:
                raise ReplayError(
                    f"all rows before it count, and these are more than {_MOST_ROWS:,}, or not known. "
                    "`lineage replay` runs the command on all rows"
                )
            rows += _of_split(node, split, range(count))
    return rows


def _of_split(node: int, split: int, positions: Iterable[int]) -> list[Row]:
    return [(node, split, position) for position in positions]
