"""Influences in the session that ran a job: how far an output row moves without each of its input rows.

The functions are those of the session, with the values that the program has taken. So a row that is left out
changes what the operations give, and not what the program knows. A row of a file that several sources read
is left out of each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows, NamedRow, input_rows
from spark_agent.client.outputs_again import FailedRunError, OutputsAgain, asked_texts, in_a_line
from spark_agent.client.replays import Chosen, check_files
from spark_agent.client.trace_starts import start_of
from spark_agent.contract.row_alignment import are_close, difference
from spark_agent.contract.row_counterparts import counterpart
from spark_agent.contract.whole_groups import why_others_count
from spark_agent.driver.replay.local_evaluation import (
    LargeGroupError,
    NotLocalError,
    StatefulFunctionError,
    estimated_influence,
    influence,
)
from spark_agent.driver.replay.recipe_steps import steps_of

__all__ = ["Influence", "InfluentialRow", "LeftOut", "influence_of", "input_rows_of", "without_each"]

#: Runs without one row.
_MOST_RUNS = 200
_WAIT_S = 10.0
_ESTIMATED = "a function takes a large group at once: of rows without `without`, the change is an estimate"
_GUESSED = "several output rows changed without one of the rows: which one stands in its place is a guess"
_INCOMPLETE = "the lineage is not complete, so there may be other input rows"

InputRow = tuple[NamedRow, ...]
"""A row of a file, or another record of a source: several records where several sources read the row."""
Run = Callable[[Collection[NamedRow]], Sequence[str]]
"""The output rows without some input rows. May raise FailedRunError."""


@dataclass(frozen=True)
class InfluentialRow:
    """An input row, and the output row without it: None where it is gone, or only the change is estimated.

    `failed`: the operations raised without the row, so nothing is known.
    """

    path: str | None
    row: int | None
    text: str | None
    change: float | None
    without: str | None
    estimated: bool = False
    failed: bool = False

    def __str__(self) -> str:
        change = "failed" if self.failed else "gone" if self.without is None else "other"
        if self.change is not None:
            change = f"{'about ' if self.estimated else ''}{self.change:.6g}"
        becomes = "" if self.without is None else f"  -> {self.without}"
        place = "" if self.path is None or self.row is None else f"{self.path}:{self.row + 1}  "
        return f"{change:>12}  {place}{self.text or ''}{becomes}"


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


class LeftOut(NamedTuple):
    """What an output row is without an input row, None where it is gone; or why that is not known.

    `estimated` is how far it is thought to move where it was not computed.
    """

    text: str | None
    is_sure: bool = True
    failed: str = ""
    estimated: float | None = None


def influence_of(chosen: Chosen) -> Influence:
    """Raises TraceError."""
    texts = asked_texts(chosen)
    if len(texts) != 1:
        raise TraceError("an influence is that of one output row: choose one with row()")
    inputs = input_rows_of(chosen.rows.named)
    if not inputs:
        raise TraceError("none of its inputs is known by its rows, so none can be left out")
    outputs = OutputsAgain(chosen)
    notes = [] if _is_complete(chosen) else [_INCOMPLETE]
    why = ""
    try:
        results, is_estimated = _computed(chosen, inputs, texts[0])
        way = "halves" if is_estimated else "folds"
        notes += [_ESTIMATED] if is_estimated else []
    except NotLocalError as reason:
        way, why = "runs", str(reason)
        check_files(chosen.rows, chosen.rows.of_source)
        others_count = why_others_count(chosen.application.operations_to(chosen.node_id))
        is_of_all = isinstance(reason, StatefulFunctionError) or bool(others_count)
        results = _by_runs(_Runs(chosen, outputs, is_of_all=is_of_all), inputs, texts[0], why)
    notes += [*_notes_of(results), *outputs.whole]
    rows = [_influential(row[0], texts[0], result) for row, result in zip(inputs, results, strict=True)]
    rows.sort(key=lambda row: float("-inf") if row.change is None else -row.change)
    return Influence(texts[0], tuple(rows), way, why, not notes, tuple(notes))


def input_rows_of(named: Sequence[NamedRow]) -> list[InputRow]:
    """Records of sources, those together that are the same row of a file."""
    rows: dict[object, list[NamedRow]] = {}
    for record in named:
        is_row = record.path is not None and record.row is not None
        rows.setdefault((record.path, record.row) if is_row else record, []).append(record)
    return list(map(tuple, rows.values()))


def _is_complete(chosen: Chosen) -> bool:
    """Is all lineage stored that there is so far? An application that runs is not complete yet."""
    client, application = chosen.application.client, chosen.application.id
    events = chosen.session.events
    if client.wait_for(application, events.committed_runs, events.emitted_events, _WAIT_S):
        return False
    stored = client.get("applications", application)
    is_whole = stored["missing_blocks"] == 0 and not stored["counters"].get("dropped")
    return bool(stored["complete"] or (stored["state"] == "running" and is_whole))


def _influential(row: NamedRow, was: str, result: LeftOut) -> InfluentialRow:
    change = result.estimated if result.text is None else difference(was, result.text)
    is_estimated = result.estimated is not None
    return InfluentialRow(
        row.path, row.row, row.text, change, result.text, is_estimated, failed=bool(result.failed)
    )


def _notes_of(results: Sequence[LeftOut]) -> list[str]:
    failed = [result.failed for result in results if result.failed]
    notes = [] if all(result.is_sure for result in results) else [_GUESSED]
    if failed:
        notes.append(f"without {len(failed):,} of the rows the operations failed: {failed[0]}")
    return notes


# -- computed in the driver ----------------------------------------------------------------------------------


def _computed(chosen: Chosen, inputs: Sequence[InputRow], text: str) -> tuple[list[LeftOut], bool]:
    """The row without each, and whether some are estimated. Raises NotLocalError."""
    try:
        source, steps = steps_of(chosen.recipe)
        lines = chosen.rows.of_source.get(source.number)
        numbers = {record.source for row in inputs for record in row}
        if lines is None or lines.texts is None or numbers != {source.number}:
            raise NotLocalError(f"the lines of {source.name} are not known")
        if any(len(row) > 1 for row in inputs):
            raise NotLocalError(f"{source.name} reads a file several times")
        texts = [row[0].text or "" for row in inputs]
        try:
            return [LeftOut(without) for without in influence(steps, texts, text)], False
        except LargeGroupError:
            estimate = estimated_influence(steps, texts, text)
    except NotLocalError:
        raise
    except Exception as error:  # noqa: BLE001 - a function of the user's, which may need a worker
        raise NotLocalError(f"a function of the job raised {in_a_line(error)}") from None
    return [
        LeftOut(without, estimated=change)
        for without, change in zip(estimate.without, estimate.changes, strict=True)
    ], True


# -- by runs -------------------------------------------------------------------------------------------------


class _Runs:
    """The operations on the rows of the lineage but some, or on all rows of the inputs but these."""

    def __init__(self, chosen: Chosen, outputs: OutputsAgain, *, is_of_all: bool) -> None:
        self._chosen, self._outputs, self._is_of_all = chosen, outputs, is_of_all
        self._named = chosen.rows.named

    def __call__(self, left_out: Collection[NamedRow]) -> list[str]:
        rows = self._chosen.rows
        if self._is_of_all:
            return self._outputs.without(self._everywhere(left_out) if left_out else rows.only(()))
        return self._outputs.of(rows.only(row for row in self._named if row not in left_out))

    def _everywhere(self, left_out: Collection[NamedRow]) -> InputRows:
        """The row of a file that these are, as a record of each source that reads it."""
        path, row = next((record.path, record.row) for record in left_out)
        if path is None or row is None:
            return self._chosen.rows.only(left_out)
        application = self._chosen.application
        rows = input_rows(application.client, application.id, [start_of(path=path, row=row)])
        if not {record[:3] for record in left_out} <= {record[:3] for record in rows.named}:
            raise TraceError(f"which sources read {path} is not known: the application also writes it")
        return rows


def _by_runs(run: Run, inputs: Sequence[InputRow], text: str, why: str) -> list[LeftOut]:
    """Raises TraceError."""
    if len(inputs) > _MOST_RUNS:
        raise TraceError(
            f"{why}, so the operations have to run without each of {len(inputs):,} rows; at most "
            f"{_MOST_RUNS:,} are tried"
        )
    return without_each(run, inputs, text)


def without_each(run: Run, inputs: Sequence[InputRow], text: str) -> list[LeftOut]:
    """The output row `text` without each of the input rows, by a run for each. Raises TraceError."""
    try:
        before = run(())
    except FailedRunError as error:
        raise TraceError(f"the operations fail when they run again, with no row left out: {error}") from None
    was = next((other for other in before if are_close(text, other)), None)
    if was is None:
        raise TraceError("the row does not come out again, so nothing can be said of one of its input rows")
    results = []
    for row in inputs:
        try:
            now = counterpart(was, before, run(row))
        except FailedRunError as error:
            results.append(LeftOut(None, failed=str(error)))
            continue
        results.append(LeftOut(text if now.text == was else now.text, now.is_sure))
    return results
