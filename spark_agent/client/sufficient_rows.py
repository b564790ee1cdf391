"""Input rows on which the operations of the session give records again: those that decided, and what lacks.

1. The operations run on the rows that decided, with those that must be among them.
2. Where the records do not come out, groups that pass a filter now, and did not in the job, get a row of
   theirs: the fewest rows that serve all such groups (`row_cover`).
3. Where that gives no rows, all rows that took part are tried, then all rows of the inputs.
Where the program has changed what a function used, the function runs with what executors got then. Promises
that nothing is called verified where that is not known.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark_agent.client.asked_records import AskedRecords
from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows, NamedRow
from spark_agent.client.outputs_again import FailedRunError, OutputsAgain
from spark_agent.client.passing_groups import PassingGroups
from spark_agent.client.replays import Chosen, check_files
from spark_agent.contract.row_cover import Group, covering
from spark_agent.contract.smallest_rows import OutOfTimeError, SmallestRows, Subset
from spark_agent.driver.replay.rebuilt_rdds import operation_by_places

__all__ = ["GivenValue", "Proved", "SufficientRows"]

#: Rows that are named one by one.
_MOST_NAMED = 100_000


class GivenValue(NamedTuple):
    """What a function of an operation used when the job ran. The program has changed it since."""

    name: str
    operation: str
    call_site: str


@dataclass(frozen=True)
class Proved:
    """The rows. `why_not`: why they are not verified, empty where they are.

    `values`: with these as they were when the job ran.
    """

    rows: InputRows
    runs: int
    added: int
    is_minimal: bool
    why_not: str
    notes: tuple[str, ...] = ()
    values: tuple[GivenValue, ...] = ()


class SufficientRows:
    """Of some records. `concise` are the rows that decided, `needed` those of them that must stay."""

    def __init__(
        self,
        chosen: Chosen,
        asked: AskedRecords,
        concise: InputRows,
        needed: Sequence[NamedRow],
        *,
        most_runs: int,
        seconds: float,
    ) -> None:
        self._chosen, self._asked, self._concise = chosen, asked, concise
        self._needed = {_place(row) for row in needed}
        self._most_runs, self._until = most_runs, time.monotonic() + seconds
        self._outputs = OutputsAgain(chosen)
        self._runs, self._failed = 0, ""
        self._notes: list[str] = []
        self._values: list[GivenValue] = []

    def proved(self, *, is_minimal: bool) -> Proved:
        """Raises TraceError."""
        why_not = self._why_not()
        if why_not:
            return Proved(self._concise, 0, 0, False, why_not)
        check_files(self._concise, self._concise.of_source)
        try:
            rows = self._sufficient()
        except OutOfTimeError:
            failed = f": {self._failed}" if self._failed else ""
            return Proved(self._concise, self._runs, 0, False, f"not within {self._runs:,} runs{failed}")
        except TraceError as error:
            return Proved(self._concise, self._runs, 0, False, str(error))
        if isinstance(rows, str):
            return Proved(self._concise, self._runs, 0, False, rows)
        has_grown = rows.count > 2 * max(self._concise.count, 8)
        minimal = False
        if is_minimal or has_grown:
            rows, minimal = self._smaller(rows)
        if self._outputs.whole:
            return Proved(self._concise, self._runs, 0, False, "; ".join(self._outputs.whole))
        added = len({*map(_place, rows.named)} - {*map(_place, self._concise.named)})
        return Proved(rows, self._runs, added, minimal, "", tuple(self._notes), tuple(self._values))

    def _why_not(self) -> str:
        """Why running the operations again would show nothing; empty where it would."""
        by_place = operation_by_places(self._chosen.recipe)
        if by_place is not None:
            return (
                f"what {by_place} gives depends on the places of records, so no part of the rows can be "
                "shown to be enough"
            )
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

    # -- enough rows -----------------------------------------------------------------------------------

    def _sufficient(self) -> InputRows | str:
        """Rows that are enough, or why none were found. Raises OutOfTimeError, TraceError."""
        rows = self._concise
        groups = PassingGroups(self._chosen, self._outputs)
        times: Counter[tuple[int, str]] = Counter()
        while True:
            if self._come_out(rows):
                return rows
            more = self._with_groups(rows, groups, times)
            if more is None:
                break
            rows = more
        bound = rows.joined(self._chosen.rows)
        if bound.count > rows.count and self._come_out(bound):
            return bound
        if self._come_out(None):
            return "all rows of the inputs give it again, and no smaller part was found that does"
        failed = f" (the operations failed: {self._failed})" if self._failed else ""
        return f"not deterministic: not even all rows of the inputs give it again{failed}"

    def _with_groups(
        self, rows: InputRows, groups: PassingGroups, times: Counter[tuple[int, str]]
    ) -> InputRows | None:
        """With rows of groups that pass a filter and should not; None where no such group is known."""
        present = {_place(row) for row in rows.named}
        lacking: list[Group] = []
        new: list[InputRows] = []
        for node, key, of_group in groups.of(rows):
            parts = [frozenset((place,)) for row in of_group.named if (place := _place(row)) not in present]
            if parts:
                lacking.append(Group(parts, 1 << times[node, key]))
                new.append(of_group)
            times[node, key] += 1
        chosen = covering(lacking)
        if not chosen:
            return None
        for of_group in new:
            taken = [row for row in of_group.named if _place(row) in chosen]
            rows = rows.joined(of_group.only(taken))
        return rows

    def _come_out(self, rows: InputRows | None) -> bool:
        if self._runs >= self._most_runs or time.monotonic() > self._until:
            raise OutOfTimeError
        self._runs += 1
        try:
            return self._asked.come_out(self._outputs, rows)
        except FailedRunError as error:
            self._failed = str(error)
            return False

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


def _place(row: NamedRow) -> tuple[int, int, int]:
    return row.source, row.split, row.position
