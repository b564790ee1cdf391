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
from spark_agent.agent import Agent
from spark_agent.client.application import Application
from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import MOST_TEXTS, InputRows, input_rows
from spark_agent.client.replay_report import ReplayReport
from spark_agent.client.trace_starts import Start
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.functions_then import FunctionsThen
from spark_agent.driver.replay.rebuilt_rdds import Choice, Rebuilt, SourceRead, operation_by_places, rebuilt
from spark_agent.driver.session import Session
from spark_agent.sql.rerun.rerun import CannotRerunError

__all__ = ["OF_TEXT", "Chosen", "check_files", "running_agent"]

#: The action whose output rows are the texts of its records.
OF_TEXT = "saveAsTextFile"


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

    def call_site(self, number: int) -> str:
        """Of the operation with this node; empty if it is not known."""
        return str(self.application.nodes.get(f"{self.application.id}#{number}", {}).get("call_site") or "")

    @cached_property
    def agent(self) -> Agent:
        """Of this session. Raises TraceError where another one ran the job."""
        running = running_agent(self.application.id)
        if running is None:
            raise TraceError(
                f"{self.application.id} did not run in this session, which so has not its functions: "
                f"`lineage replay {self.application.id} OUTPUT:LINE -- COMMAND` runs its script again"
            )
        return running

    @property
    def session(self) -> Session:
        return self.agent.session

    @cached_property
    def recipe(self) -> Recipe:
        """Of the RDD of the operation, or of the one that the action read. Raises TraceError."""
        recipe = self.session.recipes.of(number_of(self.node_id))
        if recipe is None:
            raise TraceError(
                f"how {self.name} was made is not known: its RDD is gone (keep it in a variable), or it is "
                "an output of a query, which is replayed without other arguments if it is one of the latest. "
                f"`lineage replay {self.application.id} OUTPUT:LINE -- COMMAND` runs the script again"
            )
        return recipe

    @cached_property
    def functions(self) -> FunctionsThen:
        """Those of the program as executors got them, where it has changed what they use."""
        return FunctionsThen(self.recipe)

    @cached_property
    def rows(self) -> InputRows:
        """The rows of the inputs that they were made of. Raises TraceError."""
        if self.starts is None:
            raise TraceError("choose records first: with row(), key(), at() or filter()")
        if not self.starts:
            raise TraceError("none were chosen: there is no record to be made again")
        return input_rows(self.application.client, self.application.id, self.starts)

    # -- replays ---------------------------------------------------------------------------------------

    def replay(self) -> Any:
        """The RDD that these records are of, made of their input rows alone; with a `report`.

        Of an output of a query, a DataFrame of all of its rows.
        """
        frame = self._frame()
        if frame is not None:
            return frame
        by_place = operation_by_places(self.recipe)
        if self.starts is None or by_place is not None:
            again = self.again_of_all()
            notes: tuple[str, ...] = () if by_place is None else (_by_places(by_place),)
            mode, asked = "all", () if self.starts is None else self.rows.asked
            count, of = 0, None
        else:
            again, notes = self.again(), self.rows.how
            mode, asked, count, of = "only", self.rows.asked, self.rows.count, self.rows.of
        dataset = again.rdd if self.name == OF_TEXT else None
        again.rdd.report = ReplayReport(mode, count, of, again.sources, False, notes, asked, dataset)
        return again.rdd

    def _frame(self) -> Any:
        """The query that gave these records again; None if they are of an RDD."""
        if self.agent.session.recipes.of(number_of(self.node_id)) is not None:
            return None
        rows = [] if self.starts is None else self.rows.restricted
        try:
            query = self.agent.spark_sessions.replayed(number_of(self.node_id), rows)
        except CannotRerunError as error:
            raise TraceError(str(error)) from None
        if query is None:
            return None
        reads = tuple(
            SourceRead(number, scan.name, "whole" if scan.why_whole else "filter", scan.why_whole)
            for number, scan in enumerate(query.scans)
        )
        is_chosen = any(read.way == "filter" for read in reads)
        asked = () if self.starts is None else self.rows.asked
        count, of = (self.rows.count, self.rows.of) if is_chosen else (0, None)
        notes = self.rows.how if is_chosen else ()
        query.frame.report = ReplayReport(
            "only" if is_chosen else "all", count, of, reads, False, notes, asked
        )
        return query.frame

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
        check_files(left_out, left_out.of_source)
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

    def again(self, *, keeps_places: bool = False, chosen: Mapping[int, Choice] | None = None) -> Rebuilt:
        """The RDD of only their input rows. `chosen` takes records of operations on the way, by node."""
        again = rebuilt(
            self.session, self.recipe, self.rows.of_source, keeps_places=keeps_places, chosen=chosen or {}
        )
        read = {source.number for source in again.sources if source.way != "literal"}
        check_files(self.rows, read & self.rows.of_source.keys())
        return again

    def again_of_all(self) -> Rebuilt:
        """The RDD of all rows, with records at the places that they had."""
        if self.starts is not None:
            check_files(self.rows, self.rows.of_source)
        return rebuilt(self.session, self.recipe, {}, is_without=True, keeps_places=True)


def running_agent(application_id: str) -> Agent | None:
    """That of an application which runs in this process; None if another one does, or none."""
    active = agent.active()
    return active if active is not None and active.session.application_id == application_id else None


def number_of(node_id: str) -> int:
    return int(node_id.rpartition("#")[2])


def _by_places(operation: str) -> str:
    return (
        f"all rows are read, since what {operation} gives depends on the places of records: so this says "
        "nothing about the rows of the lineage"
    )


def check_files(rows: InputRows, numbers: Iterable[int]) -> None:
    """Raises TraceError where files of these sources are not as the job read them."""
    changed = rows.changed_files(numbers)
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise TraceError(
            f"{changed[0]}{more} changed since the job read it: put the old one back, or run the job again"
        )
