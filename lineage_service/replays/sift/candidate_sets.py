"""The sets of input rows in which a sift looks, in the order in which they are tried.

Rows that all wrong outputs share come first, then those of the wrong outputs with the fewest, then those of
all. Last come all rows of the inputs: a filter behind a group, say, may let a wrong row pass only because of
rows that are not in its lineage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from lineage_service.lineage import SourceRow
from lineage_service.queries import Queries, RowSetQuery, StartQuery
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.joined_rows import rows_of, without_places
from lineage_service.replays.original import Original
from lineage_service.replays.sift.candidates import Candidates, Row
from lineage_service.replays.specification import RowTexts, Source, row_set_json, with_places
from lineage_service.replays.taken_rows import with_taken_rows
from spark_agent.contract.row_sets import count_rows, rows_in

__all__ = ["CandidateSets", "SourceRows"]

#: Wrong outputs whose rows are looked at one by one, and those that are tried alone.
_MOST_ALONE, _MOST_TRIED = 8, 3
#: Rows in which is looked; rows of scans whose texts are read, for the order of tests.
_MOST_ROWS, _MOST_SHOWN = 2_000_000, 20_000


class SourceRows(RowTexts, Protocol):
    """Also says which rows of files records are."""

    def rows(
        self, application_id: str, node: int, split: int, positions: Sequence[int]
    ) -> Mapping[int, SourceRow]: ...


class CandidateSets:
    """Of one application. `note` takes sentences for people."""

    def __init__(
        self, original: Original, queries: Queries, texts: SourceRows, note: Callable[[str], None]
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
        taken: frozenset[Row] = frozenset()
        if has_taken:
            row_set, taken = self._with_taken(starts, row_set)
        return self._of_sources(row_set["sources"], "the rows that it was made of", taken=taken)

    def _with_taken(
        self, starts: Sequence[StartQuery], row_set: dict[str, Any]
    ) -> tuple[dict[str, Any], frozenset[Row]]:
        is_failure = any(start.failure is not None for start in starts)
        before = None if is_failure else min((record["node"] for record in row_set["asked"]), default=None)
        extended, note = with_taken_rows(self._queries, self._application_id, row_set, before)
        if not note:
            return row_set, frozenset()
        self._note(note)
        return extended, rows_of(extended["sources"]) - rows_of(row_set["sources"])

    def _whole(self, candidates: Candidates) -> Candidates:
        """All rows of the same sources. Raises ReplayError where they are too many."""
        sources = [source if source["whole"] else self._all_of(source) for source in candidates.sources]
        return self._of_sources(
            sources, "the rows of the lineage alone do not fail, and all rows of the inputs", is_whole=True
        )

    def _of_sources(
        self, sources: Sequence[Source], what: str, *, is_whole: bool = False, taken: Collection[Row] = ()
    ) -> Candidates:
        total = sum(map(count_rows, sources))
        if total > _MOST_ROWS:
            raise ReplayError(
                f"{what} are {total:,}, too many to be left out one by one: name another output row as START"
            )
        placed = with_places(self._application_id, sources, self._texts)
        shown = {} if is_whole else self._shown(placed)
        return Candidates(placed, is_whole=is_whole, shown=shown, taken=taken)

    def _shown(self, sources: Sequence[Source]) -> dict[Row, str]:
        """The texts of rows of scans; none if they are many."""
        scans = [source for source in sources if not source["whole"] and "blocks" in source]
        if sum(map(count_rows, scans)) > _MOST_SHOWN:
            return {}
        return {
            (source["node"], split["split"], position): row.text
            for source in scans
            for split in source.get("splits", ())
            for position, row in self._texts.rows(
                self._application_id, source["node"], split["split"], list(rows_in(split["positions"]))
            ).items()
            if row.text is not None
        }

    def _all_of(self, source: Source) -> Source:
        node = source["node"]
        splits = sorted(self._original.sources[node].partitions)
        counts = [(split, self._original.records(node, split)) for split in splits]
        return {
            **without_places(source),
            "files": [],
            "splits": [{"split": split, "positions": [[0, count]]} for split, count in counts if count],
        }
