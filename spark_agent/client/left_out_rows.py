"""Influences and sifts in the session that ran a job: its operations again, on fewer and fewer input rows.

The functions are those of the session, with the values that the program has taken. So a row that is left out
changes what the operations give, and not what the program knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows, NamedRow
from spark_agent.client.replays import OF_TEXT, Chosen, check_files
from spark_agent.contract.odd_rows import odd_first
from spark_agent.contract.record_groups import GROUPING, NARROW
from spark_agent.contract.row_alignment import are_close, difference
from spark_agent.contract.row_counterparts import counterpart
from spark_agent.contract.smallest_rows import OutOfTimeError, SmallestRows
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.local_evaluation import (
    LargeGroupError,
    NotLocalError,
    StatefulFunctionError,
    estimated_influence,
    influence,
)
from spark_agent.driver.replay.rebuilt_rdds import rebuilt
from spark_agent.driver.replay.recipe_steps import steps_of
from spark_agent.worker.record_choices import OutputTexts

__all__ = ["Influence", "InfluentialRow", "Sift", "influence_of", "sift_of"]

#: Runs without one row; rows of an output that are looked at, by task.
_MOST_RUNS, _MOST_TEXTS = 200, 1_000_000
_WAIT_S = 10.0
_ESTIMATED = "a function takes a large group at once: of rows without `without`, the change is an estimate"
_GUESSED = "several output rows changed without one of the rows: which one stands in its place is a guess"

Test = Callable[[str], Any]


@dataclass(frozen=True)
class InfluentialRow:
    """An input row, and the output row without it: None where it is gone, or only the change is estimated."""

    path: str | None
    row: int | None
    text: str | None
    change: float | None
    without: str | None
    estimated: bool = False

    def __str__(self) -> str:
        change = "gone" if self.without is None else "other"
        if self.change is not None:
            change = f"{'about ' if self.estimated else ''}{self.change:.6g}"
        becomes = "" if self.without is None else f"  -> {self.without}"
        return f"{change:>12}  {_place(self.path, self.row)}{self.text or ''}{becomes}"


@dataclass(frozen=True)
class Influence:
    """How far an output row moves without each of its input rows, the largest change first.

    `way`: `folds` of its operations, random `halves` of a large group, or `runs` for the reason `why`.
    """

    output: str
    inputs: tuple[InfluentialRow, ...]
    way: str
    why: str
    exact: bool
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((self.output, *map(str, self.inputs), *self.notes))


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
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        rows = [f"{_place(row.path, row.row)}{row.text or ''}" for row in self.rows]
        return "\n".join((f"{len(rows):,} of {self.of:,} rows are enough", *rows, *self.notes))


def _place(path: str | None, row: int | None) -> str:
    return "" if path is None or row is None else f"{path}:{row + 1}  "


# -- influences ----------------------------------------------------------------------------------------------


def influence_of(chosen: Chosen) -> Influence:
    """Raises TraceError."""
    texts = _asked(chosen)
    if len(texts) != 1:
        raise TraceError("an influence is that of one output row: choose one with row()")
    rows = chosen.rows
    named = rows.named
    if not named:
        raise TraceError("none of its inputs is known by its rows, so none can be left out")
    is_known = _is_complete(chosen) and not any(of.source["whole"] for of in _read(chosen, rows))
    try:
        without, changes = _computed(chosen, named, texts[0])
        way, why, is_sure = ("folds", "", True) if changes is None else ("halves", "", False)
    except NotLocalError as reason:
        is_of_all = isinstance(reason, StatefulFunctionError) or _may_look_at_others(chosen.recipe)
        without, is_sure = _by_runs(chosen, named, texts[0], str(reason), is_of_all=is_of_all)
        changes, way, why = None, "runs", str(reason)
    inputs = [
        _influential(row, texts[0], text, None if changes is None else changes[number])
        for number, (row, text) in enumerate(zip(named, without, strict=True))
    ]
    inputs.sort(key=lambda row: float("-inf") if row.change is None else -row.change)
    notes = (_ESTIMATED,) if way == "halves" else () if is_sure else (_GUESSED,)
    return Influence(texts[0], tuple(inputs), way, why, is_sure and is_known, notes)


def _is_complete(chosen: Chosen) -> bool:
    """Is all lineage stored that there is so far? An application that runs is not complete yet."""
    client, application = chosen.application.client, chosen.application.id
    events = chosen.session.events
    if client.wait_for(application, events.committed_runs, events.emitted_events, _WAIT_S):
        return False
    stored = client.get("applications", application)
    is_whole = stored["missing_blocks"] == 0 and not stored["counters"].get("dropped")
    return bool(stored["complete"] or (stored["state"] == "running" and is_whole))


def _influential(row: NamedRow, was: str, text: str | None, estimated: float | None) -> InfluentialRow:
    change = estimated if text is None else difference(was, text)
    return InfluentialRow(row.path, row.row, row.text, change, text, estimated is not None)


def _asked(chosen: Chosen) -> list[str]:
    """The texts of output rows. Raises TraceError."""
    if chosen.name != OF_TEXT:
        raise TraceError(f"only rows of {OF_TEXT} can be compared: trace a file of it, and choose with row()")
    texts = [record["text"] for record in chosen.rows.asked]
    if None in texts:
        raise TraceError("not all of these output rows can be read, so nothing can be compared")
    return texts


def _read(chosen: Chosen, rows: InputRows) -> list[Any]:
    """The sources that the operations read, of those that rows are known of."""
    read = {step.number for step in chosen.recipe.lineage() if step.source is not None}
    return [of for number, of in rows.of_source.items() if number in read]


def _computed(
    chosen: Chosen, named: Sequence[NamedRow], text: str
) -> tuple[list[str | None], list[float | None] | None]:
    """The row without each, and where it is estimated how far it moves. Raises NotLocalError."""
    source, steps = steps_of(chosen.recipe)
    lines = chosen.rows.of_source.get(source.number)
    if lines is None or lines.texts is None or {row.source for row in named} != {source.number}:
        raise NotLocalError(f"the lines of {source.name} are not known")
    texts = [row.text or "" for row in named]
    try:
        return influence(steps, texts, text), None
    except LargeGroupError:
        estimate = estimated_influence(steps, texts, text)
        return estimate.without, estimate.changes
    except NotLocalError:
        raise
    except Exception as error:  # noqa: BLE001 - a function of the user's, which may need a worker
        raise NotLocalError(f"a function of the job raised {type(error).__name__}: {error}") from None


def _by_runs(
    chosen: Chosen, named: Sequence[NamedRow], text: str, why: str, *, is_of_all: bool
) -> tuple[list[str | None], bool]:
    """The row without each, and whether none of this is a guess. Raises TraceError."""
    if len(named) > _MOST_RUNS:
        raise TraceError(
            f"{why}, so the operations have to run without each of {len(named):,} rows; at most "
            f"{_MOST_RUNS:,} are tried"
        )
    check_files(chosen.rows, chosen.rows.of_source)
    before = _outputs(chosen, chosen.rows.only(()) if is_of_all else chosen.rows, is_without=is_of_all)
    was = next((other for other in before if are_close(text, other)), None)
    if was is None:
        raise TraceError("the row does not come out again, so nothing can be said of one of its input rows")
    results = []
    for row in named:
        rows = [row] if is_of_all else [other for other in named if other != row]
        now = _outputs(chosen, chosen.rows.only(rows), is_without=is_of_all)
        results.append(counterpart(was, before, now))
    return [result.text for result in results], all(result.is_sure for result in results)


def _outputs(chosen: Chosen, rows: InputRows, *, is_without: bool) -> list[str]:
    """The output rows of these input rows, or of all but these."""
    sources = {number: of for number, of in rows.of_source.items() if not is_without or of.source["splits"]}
    again = rebuilt(chosen.session, chosen.recipe, sources, is_without=is_without)
    seen = again.rdd.mapPartitions(OutputTexts((), _MOST_TEXTS)).collect()
    if any(part.rows > len(part.others) for part in seen):
        raise TraceError("the output has too many rows to be compared with")
    return [text for part in seen for text in part.others]


def _may_look_at_others(recipe: Recipe) -> bool:
    """May rows that are not in the lineage matter without one that is? See `whole_groups` of the service."""
    groupings: dict[int, int] = {}
    for step in recipe.lineage():
        before = max((groupings[id(parent)] for parent in step.parents), default=0)
        groupings[id(step)] = before + (step.name in GROUPING)
        is_known = step.source is not None or step.name in NARROW or step.name in GROUPING
        if not is_known or groupings[id(step)] > 1:
            return True
    return False


# -- sifts ---------------------------------------------------------------------------------------------------


def sift_of(chosen: Chosen, test: Test, seconds: float | None = None) -> Sift:
    """Of output rows for which `test` holds. Raises TraceError."""
    if not any(_holds(test, _asked(chosen))):
        raise TraceError("the test holds for none of these output rows: there is nothing to sift")
    named = chosen.rows.named
    check_files(chosen.rows, chosen.rows.of_source)
    until = float("inf") if seconds is None else time.monotonic() + seconds

    def fails(numbers: Sequence[int]) -> bool:
        if time.monotonic() > until:
            raise OutOfTimeError
        rows = chosen.rows.only(named[number] for number in numbers)
        return any(_holds(test, _outputs(chosen, rows, is_without=False)))

    search = SmallestRows(len(named), fails, odd_first([row.text or "" for row in named]))
    search.search()
    if search.best is None:
        raise TraceError(
            "no output row of the lineage alone is wrong: `lineage sift` looks at all rows of the inputs"
        )
    is_necessary = search.is_necessary()
    notes = () if search.is_minimal else ("the time was over: this is the best so far",)
    whole = [of.source["name"] for of in _read(chosen, chosen.rows) if of.source["whole"]]
    return Sift(
        rows=tuple(named[number] for number in search.best),
        of=len(named),
        tests=search.tests,
        minimal=search.is_minimal,
        necessary=is_necessary,
        exact=not whole,
        notes=(*notes, *(f"{name} is read whole" for name in whole)),
    )


def _holds(test: Test, texts: Iterable[str]) -> Iterable[bool]:
    """A test that raises on a row does not hold."""
    for text in texts:
        try:
            yield bool(test(text))
        except Exception:  # noqa: BLE001 - the user's function: such a row is right
            yield False
