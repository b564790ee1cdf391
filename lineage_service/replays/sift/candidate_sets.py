"""The sets of input rows in which a sift looks, in the order in which they are tried.

Rows that all wrong outputs share come first, then those of the wrong outputs with the fewest, then those of
all. Last come all rows of the inputs: a filter behind a group, say, may let a wrong row pass only because of
rows that are not in its lineage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lineage_service.queries import Queries, RowSetQuery, StartQuery
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.original import Original
from lineage_service.replays.sift.candidates import Candidates
from lineage_service.replays.specification import RowTexts, Source, row_set_json, with_texts
from lineage_service.replays.taken_rows import with_taken_rows
from spark_agent.contract.row_sets import count_rows

__all__ = ["CandidateSets"]

#: Wrong outputs whose rows are looked at one by one, and those that are tried alone.
_MOST_ALONE, _MOST_TRIED = 8, 3
#: Rows in which is looked.
_MOST_ROWS = 2_000_000


class CandidateSets:
    """Of one application. `note` takes sentences for people."""

    def __init__(
        self, original: Original, queries: Queries, texts: RowTexts, note: Callable[[str], None]
    ) -> None:
        self._original, self._queries, self._texts, self._note = original, queries, texts, note
        self._application_id = original.application_id

    def of(self, starts: Sequence[StartQuery]) -> Iterator[Candidates]:
        """For wrong outputs, or records that made a task fail. Raises LineageError."""
        alone = [self.traced([start], has_taken=True) for start in starts[:_MOST_ALONE]]
        alone.sort(key=lambda candidates: len(candidates.rows))
        if len(alone) > 1:
            common = alone[0].common(alone[1:])
            if len(common.rows) < len(alone[0].rows):
                yield common
        yield from alone[:_MOST_TRIED]
        together = alone[0]
        if len(starts) > 1:
            together = self.traced(starts, has_taken=True)
            yield together
        yield self._whole(together)

    def traced(self, starts: Sequence[StartQuery], *, has_taken: bool = False) -> Candidates:
        """The rows that these records were made of. Raises LineageError.

        `has_taken`: those, too, that the program took before.
        """
        row_set = row_set_json(self._queries.row_set(self._application_id, RowSetQuery(starts=tuple(starts))))
        for source in row_set["sources"]:
            if source["whole"]:
                self._note(f"{source['name']} was read whole: {source.get('why')}")
        if row_set["complete"] is False:
            self._note("the lineage is not complete: rows that it takes may be missing")
        if has_taken:
            row_set = self._with_taken(starts, row_set)
        return self._of_sources(row_set["sources"], "the rows that it was made of")

    def _with_taken(self, starts: Sequence[StartQuery], row_set: dict[str, Any]) -> dict[str, Any]:
        is_failure = any(start.failure is not None for start in starts)
        before = None if is_failure else min((record["node"] for record in row_set["asked"]), default=None)
        row_set, note = with_taken_rows(self._queries, self._application_id, row_set, before)
        if note:
            self._note(note)
        return row_set

    def _whole(self, candidates: Candidates) -> Candidates:
        """All rows of the same sources. Raises ReplayError where they are too many."""
        sources = [source if source["whole"] else self._all_of(source) for source in candidates.sources]
        return self._of_sources(
            sources, "the rows of the lineage alone do not fail, and all rows of the inputs", is_whole=True
        )

    def _of_sources(self, sources: Sequence[Source], what: str, *, is_whole: bool = False) -> Candidates:
        total = sum(map(count_rows, sources))
        if total > _MOST_ROWS:
            raise ReplayError(
                f"{what} are {total:,}, too many to be left out one by one: name another output row as START"
            )
        return Candidates(with_texts(self._application_id, sources, self._texts), is_whole=is_whole)

    def _all_of(self, source: Source) -> Source:
        node = source["node"]
        splits = sorted(self._original.sources[node].partitions)
        counts = [(split, self._original.records(node, split)) for split in splits]
        return {
            **source,
            "files": [],
            "splits": [{"split": split, "positions": [[0, count]]} for split, count in counts if count],
        }
