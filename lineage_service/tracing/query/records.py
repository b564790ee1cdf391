"""The records of one node, page by page, and the search among them by text, key and position.

A search goes through partitions and offsets in order and ends with its page, so that the first page of a huge
file is there soon. What it has not seen it does not count. When most of its time is spent it gives what it
found, and a cursor from where to go on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from heapq import merge
from time import monotonic
from typing import Protocol

import duckdb

from lineage_service.errors import InvalidQueryError, TimeBudgetError
from lineage_service.lineage import Record, RecordPage
from lineage_service.queries import RecordQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.elements import TaskRun, TopologyNode
from lineage_service.tracing.walk.result import Position
from lineage_service.tracing.walk.starts import has_records, node_named
from spark_agent import contract

__all__ = ["RecordPages", "Show"]

#: The part of its time that a search in files may take; the rest is for showing what it found.
_SEARCH_SHARE = 0.7
#: Positions with a key that are looked at together for a text.
_KEYED = 1_000
_MOST_WARNINGS = 10
_RECORDS_PASS = (
    "rows pass this operation on their way from a source to an output; it has no records of its own"
)

Place = tuple[int, int]
"""(split, offset)."""


class Show(Protocol):
    """Makes what people see of records."""

    def __call__(
        self,
        opened: OpenedApplication[Snapshot],
        cursor: duckdb.DuckDBPyConnection,
        node: TopologyNode,
        positions: Sequence[Position],
        *,
        values: bool,
        check: Check,
    ) -> tuple[Record, ...]: ...


class _SearchEnded(Exception):
    """The part of the time that a search may take is spent: what it found is given."""


@dataclass(frozen=True, slots=True)
class _Matches:
    """The first places that match, one more than are shown if there are so many."""

    places: Sequence[Place]
    total: int | None
    searched_to: Place | None = None  # where it ended before its end
    warnings: tuple[str, ...] = ()


class _Question:
    """One question about the records of one node."""

    def __init__(
        self,
        opened: OpenedApplication[Snapshot],
        cursor: duckdb.DuckDBPyConnection,
        query: RecordQuery,
        check: Check,
        search_until: float,
    ) -> None:
        """Raises NotFoundError, InvalidQueryError."""
        self.opened, self.cursor, self.query, self.check = opened, cursor, query, check
        self.search_until = search_until
        self.node = node_named(opened.graph, query.node)
        self.runs: dict[int, TaskRun] = {
            run.partition: run
            for run in opened.graph.holders(self.node.number)
            if query.partition is None or run.partition == query.partition
        }
        if query.offset is not None and query.partition is None:
            raise InvalidQueryError("offset needs partition: offsets count from 0 in each")
        self.least = (query.partition or 0, query.offset or 0)
        after = _read_cursor(query.cursor)
        self.first = self.least if after is None else max(self.least, (after[0], after[1] + 1))

    def count(self, partition: int) -> int:
        return self.opened.graph.count(self.node.number, self.runs[partition].number)

    def positions(self, places: Iterable[Place]) -> list[Position]:
        return [
            Position(self.node.number, partition, offset, self.runs[partition].number)
            for partition, offset in places
        ]

    def stored(self, condition: str, text: str, limit: int) -> list[Place]:
        """The first places, in order, of which the store has a text that fulfils a condition."""
        rows = self.cursor.execute(
            "SELECT DISTINCT holders.split, records.pos FROM records JOIN "
            "(SELECT unnest($runs) AS run, unnest($splits) AS split) AS holders ON records.run = holders.run "
            f"WHERE records.node = $node AND {condition} "
            "AND (holders.split > $split OR (holders.split = $split AND records.pos >= $offset)) "
            "ORDER BY holders.split, records.pos LIMIT $limit",
            {
                **self._asked(text),
                "splits": list(self.runs),
                "split": self.first[0],
                "offset": self.first[1],
                "limit": limit,
            },
        ).fetchall()
        return [(partition, pos) for partition, pos in rows]

    def count_of_key(self, key: str) -> int:
        """How many records have it, on all pages."""
        row = self.cursor.execute(
            "SELECT count(*) FROM (SELECT DISTINCT run, pos FROM records "
            f"WHERE node = $node AND {_HAS_KEY} AND run IN (SELECT unnest($runs)) AND pos >= $offset)",
            {**self._asked(key), "offset": self.least[1]},
        ).fetchone()
        return int(row[0]) if row is not None else 0

    def _asked(self, text: str) -> dict[str, object]:
        runs = [run.number for run in self.runs.values()]
        return {"runs": runs, "node": self.node.number, "text": text}


_HAS_KEY = "records.kind = 'key' AND records.text = $text"
_HOLDS_TEXT = "contains(lower(records.text), lower($text))"


class RecordPages:
    """Answers about the records of a node."""

    def __init__(self, places: RecordLocations, show: Show, *, time_budget_s: float) -> None:
        self._locations, self._show, self._time_budget_s = places, show, time_budget_s

    def page(self, opened: OpenedApplication[Snapshot], query: RecordQuery) -> RecordPage:
        """Raises NotFoundError, InvalidQueryError, TimeBudgetError."""
        cursor = opened.snapshot.database.cursor()
        search_until = monotonic() + _SEARCH_SHARE * self._time_budget_s
        with time_budget(cursor, self._time_budget_s) as check:
            question = _Question(opened, cursor, query, check, search_until)
            matches = self._found(question)
            listed = matches.places[: query.limit]
            last = listed[-1] if len(matches.places) > query.limit else matches.searched_to
            return RecordPage(
                node_id=contract.node_id(opened.application.application_id, question.node.number),
                total=matches.total,
                records=self._show(
                    opened, cursor, question.node, question.positions(listed), values=True, check=check
                ),
                next=f"{last[0]}:{last[1]}" if last is not None else None,
                warnings=matches.warnings,
            )

    def _found(self, question: _Question) -> _Matches:
        query = question.query
        if not has_records(question.node):
            return _Matches((), None, warnings=(_RECORDS_PASS,))
        if query.key is None and query.text is None:
            return _all(question)
        if query.key is None:
            return self._with_text(question, query.text or "")
        if query.text is None:
            total = question.count_of_key(query.key)
            return _Matches(question.stored(_HAS_KEY, query.key, query.limit + 1), total)
        return self._with_key_and_text(question, query.key, query.text)

    def _with_key_and_text(self, question: _Question, key: str, text: str) -> _Matches:
        limit, is_first_page = question.query.limit, question.query.cursor is None
        places: list[Place] = []
        warnings = tuple(self._unsearched(question))
        while len(places) <= limit:
            keyed = question.stored(_HAS_KEY, key, _KEYED)
            if not keyed:
                return _Matches(
                    places, len(places) if is_first_page and not warnings else None, warnings=warnings
                )
            holding = self._holding(question, keyed, text)
            places += [place for place in keyed if place in holding]
            question.first = (keyed[-1][0], keyed[-1][1] + 1)
        return _Matches(places[: limit + 1], None, warnings=warnings)

    def _holding(self, question: _Question, places: Sequence[Place], text: str) -> set[Place]:
        """Which of some places hold the text, in the store or in a file."""
        runs = {question.runs[partition].number: partition for partition, _ in places}
        rows = question.cursor.execute(
            "SELECT DISTINCT records.run, records.pos FROM records SEMI JOIN "
            "(SELECT unnest($runs) AS run, unnest($offsets) AS pos) AS asked "
            "ON records.run = asked.run AND records.pos = asked.pos "
            f"WHERE records.node = $node AND {_HOLDS_TEXT}",
            {
                "runs": [question.runs[partition].number for partition, _ in places],
                "offsets": [offset for _, offset in places],
                "node": question.node.number,
                "text": text,
            },
        ).fetchall()
        return self._in_rows(question, places, text) | {(runs[run], pos) for run, pos in rows}

    def _in_rows(self, question: _Question, places: Sequence[Place], text: str) -> set[Place]:
        rows = self._locations.rows_of(question.node, places, question.check)
        folded = text.casefold()
        return {place for place, row in rows.items() if folded in (row.text or "").casefold()}

    def _with_text(self, question: _Question, text: str) -> _Matches:
        limit = question.query.limit
        warnings = dict.fromkeys(self._unsearched(question))
        in_store = question.stored(_HOLDS_TEXT, text, limit + 1)
        marked = ((partition, offset, True) for partition, offset in in_store)
        places: list[Place] = []
        done: Place | None = None
        with closing(self._in_files(question, text, warnings)) as in_files:
            try:
                for partition, offset, is_match in merge(marked, in_files):
                    if is_match and places[-1:] != [(partition, offset)]:
                        places.append((partition, offset))
                        if len(places) > limit:
                            return _Matches(places, None, warnings=_some(warnings))
                    if is_match or offset:
                        done = (partition, offset if is_match else offset - 1)
            except _SearchEnded:
                if done is None:
                    raise TimeBudgetError(
                        f"the search took longer than its time of {self._time_budget_s:g} s; ask again, "
                        "and it goes on where it ended, or ask for one partition"
                    ) from None
                said = "the search ended with its time, before it saw all records: next goes on from there"
                return _Matches(places, None, done, (said, *_some(warnings)))
        is_all = question.query.cursor is None and not warnings
        return _Matches(places, len(places) if is_all else None, warnings=_some(warnings))

    def _unsearched(self, question: _Question) -> Iterable[str]:
        """What holds texts that a search does not read: it must not deny what it never saw."""
        node, partitions = (
            question.node,
            [partition for partition in question.runs if question.count(partition)],
        )
        of_files = self._locations.unsearched(node, partitions)
        if of_files is not None:
            yield of_files
        elif (
            partitions and not self._locations.has_files(node, partitions) and not self._has_values(question)
        ):
            yield (
                "no values of this operation were captured, so only keys were searched: search a source or "
                "an output, or run the job again with spark.lineage.detailed=true"
            )

    @staticmethod
    def _has_values(question: _Question) -> bool:
        return question.node.number in question.opened.graph.blocks.valued

    def _in_files(
        self, question: _Question, text: str, warnings: dict[str, None]
    ) -> Generator[tuple[int, int, bool], None, None]:
        """(split, offset, True) of each match; between them (split, offset, False), all before it seen."""

        def check() -> None:
            if monotonic() >= question.search_until:
                raise _SearchEnded

        first_partition, first_offset = question.first
        for partition in sorted(question.runs):
            if partition < first_partition:
                continue
            check()
            first = first_offset if partition == first_partition else 0
            count = question.count(partition)
            try:
                for offset, is_match in self._locations.matching(
                    question.node, partition, text, first, count, check
                ):
                    yield partition, offset, is_match
            except UnreadableError as error:
                warnings[f"partition {partition} was not searched to its end: {error}"] = None
            yield partition, count, False


def _all(question: _Question) -> _Matches:
    """Without a search: counted, not looked for."""
    limit, total = question.query.limit, 0
    places: list[Place] = []
    for partition in sorted(question.runs):
        count = question.count(partition)
        least = question.least[1] if partition == question.least[0] else 0
        total += max(count - least, 0)
        if partition >= question.first[0]:
            first = question.first[1] if partition == question.first[0] else 0
            places += [
                (partition, offset) for offset in range(first, min(count, first + limit + 1 - len(places)))
            ]
    return _Matches(places, total)


def _some(warnings: Iterable[str]) -> tuple[str, ...]:
    every = tuple(warnings)
    if len(every) <= _MOST_WARNINGS:
        return every
    return (*every[:_MOST_WARNINGS], f"and {len(every) - _MOST_WARNINGS:,} more partitions")


def _read_cursor(text: str | None) -> Place | None:
    if text is None:
        return None
    partition, _, offset = text.partition(":")
    if not all(number.isascii() and number.isdigit() and len(number) < 19 for number in (partition, offset)):
        raise InvalidQueryError(f"cursor {text!r} was not given by this endpoint")
    return int(partition), int(offset)
