"""Replays in the session that ran a job: an RDD is made again of the rows that some records were made of.

Only that session can do it, since it has the functions of the program. What is run here is no part of the
job, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spark_agent import agent
from spark_agent.client.application import Application
from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import MOST_TEXTS, InputRows, input_rows
from spark_agent.client.replay_report import ReplayReport
from spark_agent.client.trace_starts import Start, start_of
from spark_agent.contract.row_sets import ranges_of, rows_in
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.rebuilt_rdds import Rebuilt, operation_by_places, rebuilt
from spark_agent.driver.session import Session
from spark_agent.worker.operators.kept_positions import Keep
from spark_agent.worker.record_choices import OfKeys, OfTexts

__all__ = ["Chosen", "running_session"]

#: Each output of these is made of one record, and keeps its partition and its order.
_RECORD_BY_RECORD = frozenset(
    ("filter", "flatMap", "flatMapValues", "keyBy", "keys", "map", "mapValues", "values")
)
#: These keep partitions and order, too, if all of their input is there.
_IN_ORDER = _RECORD_BY_RECORD | {"sample", "sampleByKey", "randomSplit", "zipWithIndex", "zipWithUniqueId"}
#: Each key is that of one record of their result.
_ONE_OF_A_KEY = frozenset(
    ("aggregateByKey", "cogroup", "combineByKey", "foldByKey", "groupByKey", "groupWith", "reduceByKey")
)
#: The action whose output rows are the texts of its records.
_OF_TEXT = "saveAsTextFile"
#: Rows whose ways are followed one by one.
_MOST_FOLLOWED = 10_000

Record = Mapping[str, Any]
Reached = Callable[[Sequence[Start]], Sequence[Record]]
"""The records of one operation that some records of inputs went into."""


@dataclass(frozen=True)
class Chosen:
    """Records of one operation of the application; `starts` is None for all of them."""

    application: Application
    node_id: str
    starts: Sequence[Start] | None

    # -- what is known of them -------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return str(self.application.nodes[self.node_id]["name"])

    @cached_property
    def session(self) -> Session:
        """Raises TraceError where it is not this one."""
        session = running_session(self.application.id)
        if session is None:
            raise TraceError(
                f"{self.application.id} did not run in this session, which so has not its functions: "
                f"`lineage replay {self.application.id} OUTPUT:LINE -- COMMAND` runs its script again"
            )
        return session

    @cached_property
    def recipe(self) -> Recipe:
        """Of the RDD of the operation, or of the one that the action read. Raises TraceError."""
        recipe = self.session.recipes.of(number_of(self.node_id))
        if recipe is None:
            raise TraceError(
                f"how {self.name} was made is not known any more: its RDD is gone (keep it in a variable), "
                f"or it is one of a DataFrame. `lineage replay {self.application.id} OUTPUT:LINE -- COMMAND` "
                "runs the script again"
            )
        return recipe

    @cached_property
    def rows(self) -> InputRows:
        """The rows of the inputs that they were made of. Raises TraceError."""
        if self.starts is None:
            raise TraceError("choose records first: with row(), key(), at() or filter()")
        return input_rows(self.application.client, self.application.id, self.starts)

    # -- replays ---------------------------------------------------------------------------------------

    def replay(self) -> Any:
        """The RDD that these records are of, made of their input rows alone; with a `report`."""
        by_place = operation_by_places(self.recipe)
        if self.starts is None or by_place is not None:
            again = self._made_of_all()
            notes: tuple[str, ...] = () if by_place is None else (_by_places(by_place),)
            mode, asked = "all", () if self.starts is None else self.rows.asked
            count, of = 0, None
        else:
            again, notes = self._made(), self.rows.how
            mode, asked, count, of = "only", self.rows.asked, self.rows.count, self.rows.of
        dataset = again.rdd if self.name == _OF_TEXT else None
        again.rdd.report = ReplayReport(mode, count, of, again.sources, False, notes, asked, dataset)
        return again.rdd

    def replay_without(self, rows: InputRows) -> Any:
        """The RDD that these records are of, of all its input but these rows; with a `report`."""
        read = {
            step.number for step in self.recipe.lineage() if step.source is not None and not step.why_whole
        }
        left_out = rows.of_sources(read)
        if not left_out.count:
            raise TraceError(
                "none of these rows is an input of this RDD, or the condition takes none: nothing would be "
                "left out"
            )
        _check_files(left_out, left_out.of_source)
        again = rebuilt(self.session, self.recipe, left_out.of_source, is_without=True)
        again.rdd.report = ReplayReport(
            "without", left_out.count, left_out.of, again.sources, False, left_out.how
        )
        return again.rdd

    def rows_with(self, predicate: Callable[[str], Any]) -> InputRows:
        """Those of the input rows whose text `predicate` takes. Raises TraceError where texts lack."""
        rows = self.rows.taken(predicate)
        if rows is None:
            raise TraceError(
                f"not all texts of these rows are known ({MOST_TEXTS:,} of each input at most): choose fewer "
                "records, or name the rows, such as without=trace(FILE).row(ROW)"
            )
        return rows

    def _made(self, *, keeps_places: bool = False) -> Rebuilt:
        again = rebuilt(self.session, self.recipe, self.rows.of_source, keeps_places=keeps_places)
        _check_files(self.rows, [source.number for source in again.sources if source.way == "filter"])
        return again

    def _made_of_all(self) -> Rebuilt:
        return rebuilt(self.session, self.recipe, {}, is_without=True, keeps_places=True)

    # -- the records themselves ------------------------------------------------------------------------

    def rdd(self, records: Sequence[Record], reached: Reached, texts: Sequence[str | None]) -> Any:
        """These records, as the operation gave them; with a `report`, which says whether others are there.

        `texts` are those of the output rows that they became, if it is an output.
        """
        again, choice, note = self._choice(records, reached, texts)
        result = again.rdd if choice is None else choice(again.rdd)
        notes = (*self.rows.how, note) if note else self.rows.how
        mode = "only" if any(source.way != "whole" for source in again.sources) else "all"
        result.report = ReplayReport(mode, self.rows.count, self.rows.of, again.sources, not note, notes)
        return result

    def _choice(
        self, records: Sequence[Record], reached: Reached, texts: Sequence[str | None]
    ) -> tuple[Rebuilt, Callable[[Any], Any] | None, str]:
        """An RDD with these records, what takes them out of it, and why others may be among them."""
        return self._by_place(records, reached) or self._by_text(records, texts)

    def _by_place(
        self, records: Sequence[Record], reached: Reached
    ) -> tuple[Rebuilt, Callable[[Any], Any] | None, str] | None:
        """By their places, where a replay has the same; None if it has not."""
        sources = [step for step in self.recipe.lineage() if step.source is not None]
        operations = {step.name for step in self.recipe.lineage() if step.source is None}
        by_place = operation_by_places(self.recipe)
        if len(sources) == 1 and operations <= _IN_ORDER:
            named = self.rows.of_source.get(sources[0].number)
            is_chosen = named is not None and not named.source["whole"] and not sources[0].why_whole
            if by_place is not None or not is_chosen:
                return self._made_of_all(), _at(_positions(records)), ""
            if not operations:
                return self._made(), None, ""
            if self.rows.count <= _MOST_FOLLOWED:
                ordinals = _ordinals(records, reached(self._row_starts(sources[0])))
                return self._made(keeps_places=True), _at(ordinals), ""
        return None

    def _by_text(
        self, records: Sequence[Record], texts: Sequence[str | None]
    ) -> tuple[Rebuilt, Callable[[Any], Any] | None, str]:
        """By the texts of their keys, or of their output rows; else all records that the rows give."""
        again = self._made() if operation_by_places(self.recipe) is None else self._made_of_all()
        keys = [record["key"] for record in records if record.get("key") is not None]
        if keys and len(keys) == len(records):
            note = (
                "" if self.recipe.name in _ONE_OF_A_KEY else "all records with the same keys are among these"
            )
            return again, lambda rdd: rdd.filter(OfKeys(keys)), note
        rows = [text for text in texts if text is not None]
        if rows and len(rows) == len(texts):
            note = "all records with the same texts are among these"
            return again, lambda rdd: rdd.filter(OfTexts(rows)), note
        return again, None, "all records are among these that the rows give at this operation"

    def _row_starts(self, source: Recipe) -> list[Start]:
        node_id = f"{self.application.id}#{source.number}"
        return [
            start_of(node=node_id, partition=split["split"], offset=position)
            for split in self.rows.of_source[source.number].source.get("splits", ())
            for position in rows_in(split["positions"])
        ]


def running_session(application_id: str) -> Session | None:
    """That of an application which runs in this process; None if another one does, or none."""
    active = agent.active()
    is_running = active is not None and active.session.application_id == application_id
    return active.session if active is not None and is_running else None


def number_of(node_id: str) -> int:
    return int(node_id.rpartition("#")[2])


def _by_places(operation: str) -> str:
    return (
        f"all rows are read, since what {operation} gives depends on the places of records: so this says "
        "nothing about the rows of the lineage"
    )


def _check_files(rows: InputRows, numbers: Iterable[int]) -> None:
    changed = rows.changed_files(numbers)
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise TraceError(
            f"{changed[0]}{more} changed since the job read it: put the old one back, or run the job again"
        )


def _positions(records: Iterable[Record]) -> dict[int, list[int]]:
    positions: dict[int, list[int]] = {}
    for record in records:
        positions.setdefault(record["partition"], []).append(record["offset"])
    return positions


def _ordinals(records: Iterable[Record], reached: Iterable[Record]) -> dict[int, list[int]]:
    """By partition: where the records stand among all that the same rows gave, which keep their order."""
    ordinal_of = {
        (partition, offset): ordinal
        for partition, offsets in _positions(reached).items()
        for ordinal, offset in enumerate(sorted(set(offsets)))
    }
    ordinals: dict[int, list[int]] = {}
    for record in records:
        partition = record["partition"]
        ordinals.setdefault(partition, []).append(ordinal_of[partition, record["offset"]])
    return ordinals


def _at(positions: Mapping[int, Iterable[int]]) -> Callable[[Any], Any]:
    keep = Keep({partition: ranges_of(numbers) for partition, numbers in positions.items()})
    return lambda rdd: rdd.mapPartitionsWithIndex(keep, True)
