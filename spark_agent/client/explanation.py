"""`explain`: the few input rows that decided what records are, asked for in the running session.

Asks the HTTP API of the service, and runs nothing. For its users: docs/explanations.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_agent.client import frames
from spark_agent.client.http import PAGE, TraceError
from spark_agent.client.lineage_records import LineageRecords
from spark_agent.client.trace import trace
from spark_agent.client.trace_starts import query_of_all

__all__ = ["Explanation", "InputRow", "Rule", "Turn", "TurnRecord", "explain"]


def explain(
    of: Any, *, application: str | None = None, api: str | None = None, wait_s: float = 30.0
) -> Explanation:
    """What decided records of an RDD, a folder or a file: as for `trace`, or what `trace` has given.

    `print(explain(labels).key("9913"))` shows it. Raises TraceError.
    """
    if isinstance(of, LineageRecords):
        return Explanation(of)
    return Explanation(trace(of, application=application, api=api, wait_s=wait_s))


@dataclass(frozen=True)
class InputRow:
    """A record of a source. Rows count from 0. `path` and `row` are None if it is no row of a file."""

    record: str  # NODE_ID#RECORD_ID
    path: str | None
    row: int | None
    text: str | None
    warning: str | None

    def __str__(self) -> str:
        place = self.record if self.path is None or self.row is None else f"{self.path}:{self.row + 1}"
        return place if self.text is None else f"{place}  {self.text}"


@dataclass(frozen=True)
class TurnRecord:
    """A record that a turn gave, and the last turn up to which it stayed as it was."""

    record_id: str
    key: str | None
    value: str | None
    until: int

    def __str__(self) -> str:
        texts = [text for text in (self.key, self.value) if text is not None]
        return " ".join(texts) or self.record_id


@dataclass(frozen=True)
class Turn:
    """What one turn of a loop gave on the way, at one operation. Turn 0 is what the loop began with."""

    loop: str
    turn: int
    name: str
    records: tuple[TurnRecord, ...]
    sources: tuple[InputRow, ...]  # that came in with this turn

    def __str__(self) -> str:
        unchanged = [
            str(record) + (f" (unchanged to turn {record.until})" if record.until > self.turn else "")
            for record in self.records
        ]
        rows = "".join(f"\n    {row}" for row in self.sources)
        return f"turn {self.turn} of {self.loop}, {self.name}: {', '.join(unchanged)}{rows}"


@dataclass(frozen=True)
class Rule:
    """Of so many inputs at an operation, so many count: `winner` or `unchanged`, as docs/explanations.md."""

    name: str
    call_site: str
    rule: str
    kept: int
    of: int

    def __str__(self) -> str:
        place = f" at {self.call_site}" if self.call_site else ""
        return f"{self.name}{place}: {self.kept:,} of {self.of:,} inputs count ({self.rule})"


@dataclass(frozen=True)
class Explanation:
    """Records, and what decided them. Immutable; the service is asked once, when something is needed."""

    records: LineageRecords
    _answers: list[dict[str, Any]] = field(default_factory=list, compare=False, repr=False)

    # -- choosing ------------------------------------------------------------------------------------

    def row(self, row: int) -> Explanation:
        """Of row `row` of the file, counted from 0, header lines too."""
        return Explanation(self.records.row(row))

    def at(self, partition: int, offset: int) -> Explanation:
        """Of the record at a place of the RDD's partitions."""
        return Explanation(self.records.at(partition, offset))

    def key(self, key: str) -> Explanation:
        """Of the records with this key."""
        return Explanation(self.records.key(key))

    def filter(self, predicate: Callable[[str], Any]) -> Explanation:
        """Of the records whose text `predicate` takes."""
        return Explanation(self.records.filter(predicate))

    # -- what decided them ---------------------------------------------------------------------------

    def collect(self) -> list[InputRow]:
        """The input rows, by source and place."""
        return [row for answer in self._all() for row in map(_row, answer["rows"])]

    def rows(self) -> Any:
        """A DataFrame (path, row, line, text) of the input rows.

        Raises TraceError for records that are no rows of files.
        """
        rows = self.collect()
        for warning in sorted({row.warning for row in rows if row.warning}):
            warnings.warn(f"of rows of this explanation: {warning}", stacklevel=2)
        named = [
            (row.path, row.row, row.row + 1, row.text)
            for row in rows
            if row.path is not None and row.row is not None
        ]
        if len(named) < len(rows):
            raise TraceError("some of these records are no rows of files: collect() has them")
        return frames.rows_of_files(named)

    def turns(self) -> list[Turn]:
        """What the turns of loops gave on the way, loop by loop."""
        return [_turn(turn) for turn in self._first()["turns"]]

    def rules(self) -> list[Rule]:
        """What left rows out, by operation."""
        names = ("name", "call_site", "rule", "kept", "of")
        return [Rule(**{name: rule[name] for name in names}) for rule in self._first()["rules"]]

    @property
    def kind(self) -> str:
        """`concise`, or `bound`: more rows may be among these than decided."""
        return str(self._first()["kind"])

    @property
    def exact(self) -> bool:
        """False: rows may be among these that took no part."""
        return bool(self._first()["exact"])

    @property
    def complete(self) -> bool:
        """False: rows may be missing."""
        return bool(self._first()["complete"])

    @property
    def reasons(self) -> list[str]:
        """What is not known, and why it is not smaller."""
        return list(self._first()["reasons"])

    @property
    def plain_total(self) -> int | None:
        """How many rows a plain trace has; None if these were not counted in time."""
        total: int | None = self._first()["plain_total"]
        return total

    @property
    def given_values(self) -> list[str]:
        """What the program had of Spark before, and may have used: `collect at kmeans.py:73`, say."""
        return [_given_values(values) for values in self._first()["given"]]

    def count(self) -> int:
        """How many input rows there are."""
        return int(self._first()["total"])

    def __str__(self) -> str:
        answer = self._first()
        of = "" if answer["of"] is None else f" of {answer['of']:,}"
        plain = "" if self.plain_total is None else f" (a plain trace: {self.plain_total:,})"
        size = f"{answer['total']:,}{of} input rows{plain}, {answer['kind']}"
        shown = answer["rows"][:_MOST_SHOWN]
        more = answer["total"] - len(shown)
        lines = [size, *(f"given: {values}" for values in self.given_values)]
        lines += [*(f"  {_row(row)}" for row in shown), *([f"  and {more:,} more"] if more else [])]
        lines += [f"  {turn}" for turn in self.turns()]
        return "\n".join([*lines, *answer["reasons"]])

    def _first(self) -> dict[str, Any]:
        """The answer with its first rows."""
        if not self._answers:
            self._answers.append(self._ask(None))
        return self._answers[0]

    def _all(self) -> list[dict[str, Any]]:
        self._first()
        while (cursor := self._answers[-1]["next"]) is not None:
            self._answers.append(self._ask(cursor))
        return self._answers

    def _ask(self, cursor: str | None) -> dict[str, Any]:
        application = self.records.application
        starts = self.records.chosen_starts("the records to explain")
        query = query_of_all(starts)
        if query is None:
            raise TraceError(f"{len(starts):,} records are too many for one query: choose fewer")
        return application.client.get(
            "applications",
            application.id,
            "explanation",
            **query,
            limit=PAGE,
            cursor=cursor,
            plain="false" if cursor else None,
        )


#: Rows that `print` shows.
_MOST_SHOWN = 20


def _row(answer: Mapping[str, Any]) -> InputRow:
    return InputRow(
        record=f"{answer['node_id']}#{answer['record_id']}",
        path=answer["path"],
        row=answer["row"],
        text=answer["text"],
        warning=answer["warning"],
    )


def _given_values(answer: Mapping[str, Any]) -> str:
    results = answer.get("results")
    count = "" if results is None else "1 result of " if results == 1 else f"{results:,} results of "
    path = "" if answer["path"] is None else f" of {answer['path']}"
    return f"{count}{answer['name']} at {answer['call_site'].rpartition('/')[2]}{path}"


def _turn(answer: Mapping[str, Any]) -> Turn:
    return Turn(
        loop=answer["loop"],
        turn=answer["turn"],
        name=answer["name"],
        records=tuple(
            TurnRecord(record["record_id"], record.get("key"), record.get("value"), until)
            for record, until in zip(answer["records"], answer["until"], strict=True)
        ),
        sources=tuple(map(_row, answer["rows"])),
    )
