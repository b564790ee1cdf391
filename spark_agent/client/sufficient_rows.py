"""Input rows on which the operations of the session give records again: those that decided, and what lacks.

1. The operations run on the rows that decided, with those that must be among them: in one task, which takes
   milliseconds, where that is possible (`task_programs`), by Spark else.
2. Where the records do not come out, groups that pass a filter now, and did not in the job, get a row of
   theirs: the fewest rows that serve all such groups (`row_cover`). If there are none, groups that other rows
   decided in the job get these (`decided_groups`).
3. Where that gives no rows, all rows that took part are tried, then all rows of the inputs.
4. Spark runs the operations on the rows. Where that does not give the records, or a task failed, or no rows
   were enough in one task, Spark makes all runs.
Where the program has changed what a function used, the function runs with what executors got then. Promises
that nothing is called verified that Spark did not give, or where that is not known.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark_agent.client.asked_records import AskedRecords
from spark_agent.client.decided_groups import DecidedGroups
from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows, NamedRow, input_rows
from spark_agent.client.outputs_again import FailedRunError, OutputsAgain
from spark_agent.client.passing_groups import PassingGroups
from spark_agent.client.pins import Pins
from spark_agent.client.replays import Chosen, check_files
from spark_agent.client.trace_starts import start_of
from spark_agent.contract.row_cover import Group, covering
from spark_agent.contract.smallest_rows import OutOfTimeError, SmallestRows, Subset

__all__ = ["GivenValue", "Proved", "SufficientRows"]

_ONLY_WITH_PINS = (
    "the operations give it again on these rows with pins, which are decisions of the original run by the "
    "places of records. That files of these rows alone give it was not shown"
)
#: Rows that are named one by one, and rows whose ways are followed at once.
_MOST_NAMED, _MOST_FOLLOWED = 100_000, 300

Keys = Mapping[int, Sequence[str]]
"""By operation."""


class GivenValue(NamedTuple):
    """What a function of an operation used when the job ran. The program has changed it since."""

    name: str
    operation: str
    call_site: str


@dataclass(frozen=True)
class Proved:
    """The rows. `why_not`: why they are not enough, empty where they are.

    `values`: with these as they were when the job ran. `pins`: the rows are enough only with these decisions
    of the original run, which is why they are not verified. `is_of_task`: that they are enough was seen in
    one task, and Spark has not given the records of them.
    """

    rows: InputRows
    runs: int
    added: int
    is_minimal: bool
    why_not: str
    notes: tuple[str, ...] = ()
    values: tuple[GivenValue, ...] = ()
    pins: tuple[str, ...] = ()
    is_of_task: bool = False


class SufficientRows:
    """Of some records. `concise` are the rows that decided, `needed` those of them that must stay.

    `by_spark`: Spark must give the records at last.
    """

    def __init__(
        self,
        chosen: Chosen,
        asked: AskedRecords,
        concise: InputRows,
        needed: Sequence[NamedRow],
        outputs: OutputsAgain,
        *,
        most_runs: int,
        seconds: float,
        by_spark: bool = True,
    ) -> None:
        self._chosen, self._asked, self._concise = chosen, asked, concise
        self._needed = {_place(row) for row in needed}
        self._most_runs, self._until = most_runs, time.monotonic() + seconds
        self._outputs = outputs
        self._groups, self._decided = PassingGroups(chosen, outputs), DecidedGroups(chosen)
        self._pins = Pins(chosen)
        #: Are runs made in one task where that is possible, without pins? The last one of them is Spark's.
        self._is_quick, self._needs_spark = most_runs > 1 and not self._pins, by_spark
        self._runs, self._failed = 0, ""
        #: Rows of which Spark gave the records.
        self._given_by_spark: set[frozenset[tuple[int, int, int]]] = set()
        self._notes: list[str] = []
        self._values: list[GivenValue] = []

    def proved(self, *, is_minimal: bool) -> Proved:
        """Raises TraceError."""
        why_not = self._why_not()
        if why_not:
            return Proved(self._concise, 0, 0, False, why_not)
        check_files(self._concise, self._concise.of_source)
        self._outputs.pins = self._pins if self._pins else None
        try:
            rows, minimal = self._searched(is_minimal=is_minimal)
        except OutOfTimeError:
            failed = f": {self._failed}" if self._failed else ""
            return Proved(self._concise, self._runs, 0, False, f"not within {self._runs:,} runs{failed}")
        except TraceError as error:
            return Proved(self._concise, self._runs, 0, False, str(error))
        if isinstance(rows, str):
            return Proved(self._concise, self._runs, 0, False, rows)
        if self._outputs.whole:
            return Proved(self._concise, self._runs, 0, False, "; ".join(self._outputs.whole))
        why_not, pins = "", self._pins.texts
        if pins:
            plain = self._without_pins(rows, is_minimal=is_minimal)
            if plain is None:
                why_not = _ONLY_WITH_PINS
            else:
                (rows, minimal), pins = plain, ()
        added = len({*map(_place, rows.named)} - {*map(_place, self._concise.named)})
        is_of_task = not pins and _places(rows) not in self._given_by_spark
        notes, values = tuple(self._notes), tuple(self._values)
        return Proved(rows, self._runs, added, minimal, why_not, notes, values, pins, is_of_task)

    def _without_pins(self, rows: InputRows, *, is_minimal: bool) -> tuple[InputRows, bool] | None:
        """(rows, can none be left out?) that are enough without pins, too; None where that is not shown.

        Numbers of `zipWithIndex` follow from the order of rows. Samples depend on partitions, which files of
        fewer rows have others of.
        """
        self._outputs.pins = None
        self._given_by_spark.clear()
        try:
            if not self._pins.are_numbers_in_order or not self._come_out(rows):
                return None
            return self._smaller(rows) if is_minimal else (rows, False)
        except OutOfTimeError:
            return None

    def _why_not(self) -> str:
        """Why running the operations again would show nothing; empty where it would."""
        if self._pins.why_not:
            return f"{self._pins.why_not}: so no part of the rows can be shown to be enough"
        functions = self._outputs.functions = self._chosen.functions
        for step, name, is_known in functions.changed():
            site = self._chosen.call_site(step.number)
            if not is_known:
                operation = f"{step.name} at {site}" if site else step.name
                return (
                    f"{operation} uses {name}, which is not known to be what it was when the job ran: "
                    "`lineage explain --sufficient` runs the script again"
                )
            self._values.append(GivenValue(name, step.name, site))
        return ""

    def _searched(self, *, is_minimal: bool) -> tuple[InputRows | str, bool]:
        """Rows that are enough, or why none were found; and whether none of them can be left out.

        Raises OutOfTimeError, TraceError.
        """
        while True:
            rows = self._sufficient()
            if isinstance(rows, str):
                return rows, False
            minimal = False
            if is_minimal or rows.count > 2 * max(self._concise.count, 8):
                rows, minimal = self._smaller(rows)
            is_enough = _places(rows) in self._given_by_spark or not self._needs_spark
            if is_enough or self._come_out_of_spark(rows):
                return rows, minimal
            self._is_quick = False

    # -- enough rows -----------------------------------------------------------------------------------

    def _sufficient(self) -> InputRows | str:
        """Rows that are enough, or why none were found. Raises OutOfTimeError, TraceError."""
        rows = self._concise
        times: Counter[tuple[int, str]] = Counter()
        followed: set[tuple[int, int, int]] = set()
        while True:
            keys = self._run(rows)
            if keys is None:
                return rows
            more = self._with_groups(rows, keys, times) or self._with_decided(rows, followed)
            if more is None:
                break
            rows = more
        bound = rows.joined(self._chosen.rows)
        if bound.count > rows.count and self._come_out(bound):
            return bound
        if self._is_quick:  # what one task does not give, Spark may
            self._is_quick = False
            return self._sufficient()
        if self._come_out_of_spark(None):
            return "all rows of the inputs give it again, and no smaller part was found that does"
        failed = f" (the operations failed: {self._failed})" if self._failed else ""
        return f"not deterministic: not even all rows of the inputs give it again{failed}"

    def _with_groups(self, rows: InputRows, keys: Keys, times: Counter[tuple[int, str]]) -> InputRows | None:
        """With rows of groups that pass a filter and should not; None where no such group is known.

        First of those that the rows are in which decided, then of those of all rows.
        """
        of_first = self._cover(rows, self._concise.named, keys, times)
        return of_first or self._cover(rows, rows.named, keys, times)

    def _cover(
        self,
        rows: InputRows,
        members: Sequence[NamedRow],
        keys: Keys,
        times: Counter[tuple[int, str]],
    ) -> InputRows | None:
        present = {_place(row) for row in rows.named}
        lacking: list[Group] = []
        for group in self._groups.of(rows, members[:_MOST_FOLLOWED], keys or None):
            name = group.node, group.record
            parts = [frozenset((place,)) for row in group.rows if (place := _place(row)) not in present]
            if parts:
                lacking.append(Group(parts, 1 << times[name]))
            times[name] += 1
        chosen = covering(lacking)
        if not chosen:
            return None
        application = self._chosen.application
        starts = [
            start_of(node=f"{application.id}#{node}", partition=split, offset=position)
            for node, split, position in sorted(chosen)
        ]
        return rows.joined(input_rows(application.client, application.id, starts))

    def _with_decided(self, rows: InputRows, followed: set[tuple[int, int, int]]) -> InputRows | None:
        """With rows that decided groups of these. Those that are `followed` have had theirs."""
        new = [row for row in rows.named if _place(row) not in followed]
        followed.update(map(_place, new))
        more = self._decided.of(new[:_MOST_FOLLOWED], rows)
        return None if more is None else rows.joined(more)

    # -- runs ------------------------------------------------------------------------------------------

    def _run(self, rows: InputRows) -> Keys | None:
        """None if the rows give the records; else the keys that passed filters, as far as they were seen."""
        if not self._is_quick:
            return None if self._come_out_of_spark(rows) else {}
        self._count_run(self._most_runs - 1)
        try:
            run = self._outputs.in_one_task(rows, self._asked.look, self._groups.keyed)
        except FailedRunError as error:
            self._failed, self._is_quick = str(error), False
            return self._run(rows)
        if run is None:
            self._runs -= 1
            self._is_quick = False
            return self._run(rows)
        return None if self._asked.are_in([run.seen[0]]) else run.keys

    def _come_out(self, rows: InputRows) -> bool:
        return self._run(rows) is None

    def _come_out_of_spark(self, rows: InputRows | None) -> bool:
        self._count_run(self._most_runs)
        try:
            does = self._asked.come_out(self._outputs, rows)
        except FailedRunError as error:
            self._failed = str(error)
            return False
        if does and rows is not None:
            self._given_by_spark.add(_places(rows))
        return does

    def _count_run(self, most: int) -> None:
        if self._runs >= most or time.monotonic() > self._until:
            raise OutOfTimeError
        self._runs += 1

    # -- fewer rows ------------------------------------------------------------------------------------

    def _smaller(self, rows: InputRows) -> tuple[InputRows, bool]:
        """(fewer rows that are enough, can none of them be left out?)."""
        named = rows.named
        if len(named) > _MOST_NAMED:
            return rows, False
        free = [row for row in named if _place(row) not in self._needed]
        fixed = [row for row in named if _place(row) in self._needed]

        def of(numbers: Subset) -> InputRows:
            return rows.only([*fixed, *(free[number] for number in numbers)])

        everything = tuple(range(len(free)))
        search = SmallestRows(
            len(free), lambda numbers: self._come_out(of(numbers)), tested={everything: True}
        )
        search.search()
        return of(search.best if search.best is not None else everything), search.is_minimal


def _places(rows: InputRows) -> frozenset[tuple[int, int, int]]:
    return frozenset(map(_place, rows.named))


def _place(row: NamedRow) -> tuple[int, int, int]:
    return row.source, row.split, row.position
