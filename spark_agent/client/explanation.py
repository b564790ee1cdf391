"""`explain`: the few input rows that decided what records are, asked for in the running session.

Asks the HTTP API of the service. Only `sufficient` and `minimal` run anything: operations of the session, and
no action of the program. For its users: docs/explanations.md.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spark_agent.client import frames, saved_rows
from spark_agent.client.absence import Absence, absence_of
from spark_agent.client.application import normal_path
from spark_agent.client.compared_explanation import ComparedExplanation, compared_of
from spark_agent.client.demanded_row import DemandedRow, demanded_row_of
from spark_agent.client.explained_pair import Meeting, meeting_of, query_of_pair
from spark_agent.client.http import PAGE, TraceError
from spark_agent.client.lineage_records import LineageRecords
from spark_agent.client.proved_answers import proved
from spark_agent.client.trace import trace
from spark_agent.client.trace_starts import query_of_all

__all__ = ["Explanation", "InputRow", "Rule", "Turn", "TurnRecord", "Verified", "explain"]


def explain(
    of: Any, *, application: str | None = None, api: str | None = None, wait_s: float = 30.0
) -> Explanation:
    """What decided records of an RDD, a folder or a file: as for `trace`, or what `trace` has given.

    `print(explain(labels).key("9913"))` shows it. Raises TraceError.
    """
    if isinstance(of, LineageRecords):
        return Explanation(of)
    dataset = of if hasattr(of, "_lineage_node") else None
    records = trace(of, application=application, api=api, wait_s=wait_s)
    return Explanation(records, _dataset=dataset)


@dataclass(frozen=True)
class InputRow:
    """A record of a source. Rows count from 0. `path` and `row` are None if it is no row of a file."""

    record: str  # NODE_ID#RECORD_ID
    path: str | None
    row: int | None
    text: str | None
    warning: str | None
    #: With `same`: which of the two records it counts for, `A`, `B` or both.
    of: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = self.record if self.path is None or self.row is None else f"{self.path}:{self.row + 1}"
        place = f"{' '.join(self.of)}  {place}" if self.of else place
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
class Verified:
    """The operations ran so often, and gave the records again. `added`: rows that did not decide them.

    `minimal`: they also ran without each of the rows, and did not give the records.
    """

    runs: int
    added: int
    minimal: bool


@dataclass(frozen=True)
class Explanation:
    """Records, and what decided them. Immutable; the service is asked once, when something is needed."""

    records: LineageRecords
    #: Explained together with these, by `same`.
    _others: LineageRecords | None = None
    #: (path, row) of rows that it must have, by `demand`.
    _demanded: tuple[tuple[str, int], ...] = ()
    #: The RDD that they are of, if it was given.
    _dataset: Any = field(default=None, compare=False, repr=False)
    _answers: list[dict[str, Any]] = field(default_factory=list, compare=False, repr=False)

    # -- choosing ------------------------------------------------------------------------------------

    def row(self, row: int) -> Explanation:
        """Of row `row` of the file, counted from 0, header lines too."""
        return self._of(self.records.row(row))

    def at(self, partition: int, offset: int) -> Explanation:
        """Of the record at a place of the RDD's partitions."""
        return self._of(self.records.at(partition, offset))

    def key(self, key: str) -> Explanation:
        """Of the records with this key."""
        return self._of(self.records.key(key))

    def filter(self, predicate: Callable[[str], Any]) -> Explanation:
        """Of the records whose text `predicate` takes."""
        return self._of(self.records.filter(predicate))

    def same(self, other: Explanation) -> Explanation:
        """Why this record, A, and another one, B, have the same key or value.

        `explain(labels).key("9913").same(explain(labels).key("17")).meeting` says where they meet. Raises
        TraceError for records of two applications.
        """
        if other.records.application.id != self.records.application.id:
            raise TraceError("both records must be of one application")
        return replace(self, _others=other.records, _answers=[])

    def absent(self, key: str) -> Absence:
        """Why these records have none with this key. Raises TraceError, also if one has it."""
        application = self.records.application
        return absence_of(
            application.client.get(
                "applications", application.id, "absence", node=self.records.node_of_keys(), key=key
            )
        )

    def demand(self, path: str, row: int) -> Explanation:
        """The same with row `row` of an input file, counted from 0, and with what was joined with it.

        `demanded` says whether and how the row leads to these records.
        """
        demanded = (*self._demanded, (normal_path(path), row))
        return replace(self, _demanded=demanded, _answers=[])

    def _of(self, records: LineageRecords) -> Explanation:
        return replace(self, records=records, _answers=[])

    # -- proved by running ---------------------------------------------------------------------------

    def sufficient(
        self,
        *,
        including: Sequence[tuple[str, int]] = (),
        runs: int = 50,
        seconds: float = 600.0,
        by_spark: bool = True,
    ) -> Explanation:
        """The same with rows that are enough: the operations of this session give the records again of them.

        `including` are rows (path, row from 0) that must be among them. `verified` says how often they ran;
        where it is None, the rows are those of before, and `reasons` say why. `by_spark=False`, for many
        records one after the other: rows that are enough in one task, without Spark's own run on them. That
        verifies nothing; `in_one_task` says what it has shown. Raises TraceError.
        """
        return self._proved(including, runs, seconds, is_minimal=False, by_spark=by_spark)

    def minimal(
        self, *, including: Sequence[tuple[str, int]] = (), runs: int = 200, seconds: float = 600.0
    ) -> Explanation:
        """As `sufficient`, without each row that can be left out. Raises TraceError."""
        return self._proved(including, runs, seconds, is_minimal=True, by_spark=True)

    def _proved(
        self,
        including: Sequence[tuple[str, int]],
        runs: int,
        seconds: float,
        *,
        is_minimal: bool,
        by_spark: bool,
    ) -> Explanation:
        if self._others is not None:
            raise TraceError("what is sufficient is asked of one of the two records: leave out same()")
        answer = proved(
            self.records,
            self._dataset,
            self._first(),
            [*self._demanded, *including],
            runs=runs,
            seconds=seconds,
            is_minimal=is_minimal,
            by_spark=by_spark,
        )
        return replace(self, _answers=[answer])

    @property
    def verified(self) -> Verified | None:
        """What running has shown; None: that the records come out of these rows was not shown."""
        verified = self._first()["verified"]
        return None if verified is None else Verified(**verified)

    @property
    def checks(self) -> list[dict[str, Any]]:
        """What anybody has recorded of these records, the newest first, in the shape of docs/api.md."""
        return list(self._first().get("checks") or ())

    @property
    def in_one_task(self) -> Verified | None:
        """As `verified`, where all runs may have been in one task; None: they did not show it, either."""
        shown = self._first().get("in_one_task")
        return None if shown is None else Verified(**shown)

    @property
    def pins(self) -> list[str]:
        """What was kept as it was in the original run: `zipWithIndex at job.py:12: the numbers`, say.

        The records come out of these rows with that, and not of files of the rows alone.
        """
        return list(self._first().get("pins", ()))

    @property
    def pinned(self) -> Verified | None:
        """What running with `pins` has shown; None: nothing was run with pins, or nothing came out."""
        pinned = self._first().get("pinned")
        return None if pinned is None else Verified(**pinned)

    def save(self, folder: str | os.PathLike[str]) -> list[str]:
        """Write the rows into files of the same names, below a new folder; the paths of these.

        Lines of text only. Raises TraceError.
        """
        return saved_rows.save(self.collect(), os.fspath(folder))

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

    def compared(self, application: str) -> ComparedExplanation:
        """With the same records of another run: which rows explain them in one of the two alone.

        They are found by their keys or texts. Raises TraceError, also where there are none.
        """
        return compared_of(self._ask(None, compare=application)["compared"])

    def how(self) -> str:
        """The rows as an expression: `·` for rows that are needed together, `+` for alternatives.

        A line for each record that is explained. Rows beyond 200 are an ellipsis.
        """
        return str(self._ask(None, how="true")["how"])

    def turns(self) -> list[Turn]:
        """What the turns of loops gave on the way, loop by loop."""
        return [_turn(turn) for turn in self._first()["turns"]]

    def rules(self) -> list[Rule]:
        """What left rows out, by operation."""
        names = ("name", "call_site", "rule", "kept", "of")
        return [Rule(**{name: rule[name] for name in names}) for rule in self._first()["rules"]]

    @property
    def meeting(self) -> Meeting | None:
        """With `same`: what the two records share. Else None."""
        same = self._first().get("same")
        return None if same is None else meeting_of(same)

    @property
    def demanded(self) -> list[DemandedRow]:
        """The rows of `demand`."""
        return [demanded_row_of(row) for row in self._first().get("demanded", ())]

    @property
    def kind(self) -> str:
        """`concise`; `bound`: more rows may be among these than decided; or `verified`."""
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
        met = [] if self.meeting is None else [str(self.meeting)]
        lines = [*met, size, *(f"given: {values}" for values in self.given_values)]
        lines += [f"pinned: {pin}" for pin in self.pins]
        lines += [*(f"  {_row(row)}" for row in shown), *([f"  and {more:,} more"] if more else [])]
        lines += map(str, self.demanded)
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

    def _ask(self, cursor: str | None, **more: str) -> dict[str, Any]:
        application = self.records.application
        starts = self.records.chosen_starts("the records to explain")
        demanded = [{"path": path, "row": row} for path, row in self._demanded]
        demands = {"with": json.dumps(demanded)} if demanded else {}
        if self._others is None:
            query = query_of_all(starts)
        else:
            query = query_of_pair(starts, self._others.chosen_starts("the second record"))
        if query is None:
            raise TraceError(f"{len(starts):,} records are too many for one query: choose fewer")
        return application.client.get(
            "applications",
            application.id,
            "explanation",
            **query,
            **demands,
            **more,
            limit=PAGE,
            cursor=cursor,
            plain="false" if cursor or more else None,
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
        of=tuple(answer.get("of", ())),
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
