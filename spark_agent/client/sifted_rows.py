"""Sifts in the session that ran a job: the fewest input rows on which its operations still give a wrong row.

The functions are those of the session, with the values that the program has taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import NamedRow
from spark_agent.client.outputs_again import FailedRunError, OutputsAgain, asked_texts
from spark_agent.client.replays import Chosen, check_files
from spark_agent.contract.odd_rows import odd_first
from spark_agent.contract.smallest_rows import OutOfTimeError, SmallestRows, Subset

__all__ = ["Sift", "sift_of", "sifted"]

_OUT_OF_TIME = "the time was over: this is the best so far"
_OF_NOTHING = "of no rows at all an output row is wrong: it is not these inputs that are wrong"

Test = Callable[[str], Any]
Run = Callable[[Sequence[NamedRow]], Sequence[str]]
"""The output rows of some input rows alone. May raise FailedRunError."""


@dataclass(frozen=True)
class Sift:
    """The fewest input rows on which an output row is still wrong.

    `minimal`: none of them can be left out. `necessary`: without them no output row is wrong; None if that is
    not known.
    """

    rows: tuple[NamedRow, ...]
    of: int
    tests: int
    minimal: bool
    necessary: bool | None
    exact: bool
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = [f"{_place(row)}{row.text or ''}" for row in self.rows]
        return "\n".join((f"{len(rows):,} of {self.of:,} rows are enough", *rows, *self.notes))


def _place(row: NamedRow) -> str:
    return "" if row.path is None or row.row is None else f"{row.path}:{row.row + 1}  "


def sift_of(chosen: Chosen, test: Test, seconds: float | None = None) -> Sift:
    """Of output rows for which `test` holds. Raises TraceError."""
    if not any(_holds(test, asked_texts(chosen))):
        raise TraceError("the test holds for none of these output rows: there is nothing to sift")
    check_files(chosen.rows, chosen.rows.of_source)
    outputs = OutputsAgain(chosen)
    until = float("inf") if seconds is None else time.monotonic() + seconds
    sift = sifted(chosen.rows.named, lambda rows: outputs.of(chosen.rows.only(rows)), test, until)
    return replace(sift, exact=not outputs.whole, notes=(*sift.notes, *outputs.whole))


def sifted(named: Sequence[NamedRow], run: Run, test: Test, until: float = float("inf")) -> Sift:
    """Of these rows, as if no others were read. `until`: on the monotonic clock. Raises TraceError."""
    failed: dict[Subset, str] = {}

    def fails(numbers: Subset) -> bool:
        if time.monotonic() > until:
            raise OutOfTimeError
        try:
            return any(_holds(test, run([named[number] for number in numbers])))
        except FailedRunError as error:
            failed[numbers] = str(error)
            return False

    search = SmallestRows(len(named), fails, odd_first([row.text or "" for row in named]))
    search.search()
    if not search.tests:
        raise TraceError("the time was over before the first test: give more seconds")
    if search.best is None:
        raise TraceError(_why_none(tuple(range(len(named))), failed))
    is_necessary = search.is_necessary()
    if search.rest in failed:
        is_necessary = None
    notes = [] if search.is_minimal else [_OUT_OF_TIME]
    if not search.best:
        notes.append(_OF_NOTHING)
    if failed:
        tests = "1 test" if len(failed) == 1 else f"{len(failed):,} tests"
        notes.append(f"{tests} counted as passed, as the operations failed: {next(iter(failed.values()))}")
    return Sift(
        rows=tuple(named[number] for number in search.best),
        of=len(named),
        tests=search.tests,
        minimal=search.is_minimal,
        necessary=is_necessary,
        exact=True,
        notes=tuple(notes),
    )


def _why_none(everything: Subset, failed: dict[Subset, str]) -> str:
    if everything in failed:
        return (
            f"on the rows of the lineage alone the operations fail ({failed[everything]}): `lineage sift` "
            "looks at all rows of the inputs"
        )
    return "no output row of the lineage alone is wrong: `lineage sift` looks at all rows of the inputs"


def _holds(test: Test, texts: Iterable[str]) -> Iterable[bool]:
    """A test that raises on a row does not hold."""
    for text in texts:
        try:
            yield bool(test(text))
        except Exception:  # noqa: BLE001 - the user's function: such a row is right
            yield False
