"""The rows of an output that the operations of the session give of other input rows.

Promises that the input rows were just those, or says why they were not; and that the accumulators of the
program are as before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import Any

from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows
from spark_agent.client.pins import Pins
from spark_agent.client.replays import OF_TEXT, Chosen
from spark_agent.contract.row_sets import count_rows
from spark_agent.driver.error_descriptions import of_text
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.functions_then import FunctionsThen
from spark_agent.driver.replay.own_functions import accumulators_of, unchanged
from spark_agent.driver.replay.rebuilt_rdds import SourceRead, rebuilt
from spark_agent.driver.replay.task_programs import NotInOneTaskError, TaskPrograms
from spark_agent.worker.record_choices import OutputTexts
from spark_agent.worker.record_lists import TaskRun

__all__ = ["FailedRunError", "OutputsAgain", "asked_texts", "in_a_line", "why_not_chosen"]

#: Rows of an output that are looked at, by task.
_MOST_TEXTS = 1_000_000
#: Input rows that one task is given.
_MOST_IN_ONE_TASK = 20_000


class FailedRunError(Exception):
    """The operations raised. The text is one line."""


class OutputsAgain:
    """Of the output that some chosen rows are in."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen
        self._whole: dict[str, None] = {}
        #: The functions of the program as executors got them, where that is asked for.
        self.functions: FunctionsThen | None = None
        #: What operations by places decided in the job, where some rows run with that.
        self.pins: Pins | None = None

    @property
    def whole(self) -> tuple[str, ...]:
        """Which sources are read whole though their rows should be chosen, and why: a sentence for each."""
        read = {step.number for step in self._chosen.recipe.lineage() if step.source is not None}
        rows_of = [of.source for number, of in self._chosen.rows.of_source.items() if number in read]
        meant = (_in_words(of["name"], of.get("why")) for of in rows_of if of["whole"])
        return tuple(dict.fromkeys((*self._whole, *meant)))

    def of(self, rows: InputRows) -> list[str]:
        """Of these rows alone. Raises FailedRunError, TraceError."""
        return self._outputs(rows, is_without=False)

    def without(self, rows: InputRows) -> list[str]:
        """Of all rows but these. Raises FailedRunError, TraceError."""
        return self._outputs(rows, is_without=True)

    @cached_property
    def _accumulators(self) -> list[Any]:
        steps = self._chosen.recipe.lineage()
        values = [value for step in steps for value in step.used()]
        if self.functions is not None:
            values += (value for step in steps for value in self.functions.of(step).values())
        return accumulators_of(value for value in values if callable(value))

    def looked_at(
        self,
        rows: InputRows | None,
        look: Callable[[Iterable[Any]], Iterable[Any]],
        at: Recipe | None = None,
    ) -> list[Any]:
        """What `look` gives of the partitions that are made of these rows alone; None: of all rows.

        Executors get it. `at`: of the RDD of an operation on the way. Raises FailedRunError, TraceError.
        """
        return self._seen(rows, look, is_without=rows is None, at=at)

    def in_one_task(
        self,
        rows: InputRows,
        look: Callable[[Iterable[Any]], Iterable[Any]],
        keyed: frozenset[int] = frozenset(),
    ) -> TaskRun | None:
        """What `look` gives of the records that these rows alone give in one task, and keys of `keyed`.

        Takes milliseconds where Spark's own tasks take a second. None where that is not possible. Raises
        FailedRunError.
        """
        programs = self._programs
        lines = None if programs is None else _lines(rows, programs.sources)
        if programs is None or lines is None:
            return None
        try:
            with unchanged(self._accumulators):
                return programs.run(lines, look, keyed)
        except Exception as error:  # noqa: BLE001 - a function of the user's, or Spark for it
            raise FailedRunError(in_a_line(error)) from None

    @cached_property
    def _programs(self) -> TaskPrograms | None:
        try:
            return TaskPrograms(self._chosen.session, self._chosen.recipe, self.functions)
        except NotInOneTaskError:
            return None

    def _outputs(self, rows: InputRows, *, is_without: bool) -> list[str]:
        seen = self._seen(rows, OutputTexts((), _MOST_TEXTS), is_without=is_without)
        if any(part.rows > len(part.others) for part in seen):
            raise TraceError("the output has too many rows to be compared with")
        return [text for part in seen for text in part.others]

    def _seen(
        self, rows: InputRows | None, look: Any, *, is_without: bool, at: Recipe | None = None
    ) -> list[Any]:
        of_source = {} if rows is None else rows.of_source
        sources = {number: of for number, of in of_source.items() if not is_without or of.source["splits"]}
        try:
            with unchanged(self._accumulators):
                recipe = at or self._chosen.recipe
                pins = None if self.pins is None or rows is None else self.pins.of(rows, recipe)
                again = rebuilt(
                    self._chosen.session,
                    recipe,
                    sources,
                    is_without=is_without,
                    keeps_places=bool(pins),
                    functions=self.functions,
                    pins=pins,
                )
                if rows is not None and at is None:
                    self._check(again.sources)
                seen: list[Any] = again.rdd.mapPartitions(look).collect()
        except TraceError:
            raise
        except Exception as error:  # noqa: BLE001 - a function of the user's, or Spark for it
            raise FailedRunError(in_a_line(error)) from None
        return seen

    def _check(self, read: Sequence[SourceRead]) -> None:
        why = why_not_chosen(self._chosen.rows, read)
        if why:
            raise TraceError(
                f"{why}, so none of its rows can be left out here: `lineage influence` and `lineage sift` "
                "run the script again"
            )
        self._whole.update(
            (_in_words(source.name, source.why), None)
            for source in read
            if source.way == "whole" and source.why
        )


def _lines(rows: InputRows, sources: Collection[int]) -> dict[int, list[str]] | None:
    """The lines of each source, in order; None where not all are known, or they are many."""
    if rows.count > _MOST_IN_ONE_TASK:
        return None
    lines: dict[int, list[str]] = {}
    for number in sources:
        of = rows.of_source.get(number)
        if of is None or of.texts is None or of.source["whole"]:
            return None
        lines[number] = [text for split in sorted(of.texts, key=int) for text in of.texts[split]]
    return lines


def why_not_chosen(rows: InputRows, read: Sequence[SourceRead]) -> str:
    """Why the rows that are named cannot be chosen among those that are read; empty where they can.

    A source is not read again if it is behind a checkpoint, or a query: these are read whole.
    """
    sources = {source.number: source for source in read}
    for number, of in rows.of_source.items():
        if of.source["whole"] or not count_rows(of.source):
            continue
        source = sources.get(number)
        if source is None:
            behind = next((source for source in read if source.way == "whole" and source.why), None)
            reason = "" if behind is None else f": {_in_words(behind.name, behind.why)}"
            return f"{of.source['name']} is not read again{reason}"
        if source.way == "whole" and source.why:
            return _in_words(source.name, source.why)
    return ""


def asked_texts(chosen: Chosen) -> list[str]:
    """The texts of the chosen output rows. Raises TraceError."""
    if chosen.name != OF_TEXT:
        raise TraceError(f"only rows of {OF_TEXT} can be compared: trace a file of it, and choose with row()")
    texts = [record["text"] for record in chosen.rows.asked]
    if None in texts:
        raise TraceError("not all of these output rows can be read, so nothing can be compared")
    return texts


def in_a_line(error: Exception) -> str:
    """What an error says. Where Spark hands on what a worker said, it is that error."""
    try:
        described = of_text(f"{type(error).__name__}: {error}")
    except Exception:  # noqa: BLE001 - an error that cannot say what it is, or a JVM that has gone
        return type(error).__name__
    return f"{described['type']}: {described['message']}" if described["message"] else described["type"]


def _in_words(name: str, why: str | None) -> str:
    return f"{name} is read whole" + (f" ({why})" if why else "")
