"""A query as Spark plans it: which call asked for it, what of its plan it is, and where its rows go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spark_agent.driver.sites import Site
from spark_agent.sql.files.outputs import Output
from spark_agent.sql.schemas import Schema
from spark_agent.sql.table_formats.table_work import TableWork
from spark_agent.sql.tables import Endpoint
from spark_agent.sql.types import Plan

#: Methods of Spark SQL that plan a query for themselves or for people to read.
_NOT_CAPTURED = ("DataFrameReader.", "Dataset.explain", "ExplainCommand.")
#: Those that read the rows of a plan as an RDD: what is persisted, and what Python goes on with.
_READING_AS_RDD = ("Dataset.checkpoint", "Dataset.localCheckpoint", "Dataset.javaToPython")
#: That which fills a cache with them, in the tasks of whatever reads them first.
_LOCAL_CHECKPOINT = "Dataset.localCheckpoint"


@dataclass(frozen=True, slots=True)
class PlanningCall:
    """The call of Spark SQL, `Class.method`, that a plan is made for."""

    method: str
    is_cache: bool  # Spark caches the rows
    thread: int | None  # of the JVM, where it works for a thread of Python
    taker: int | None = None  # the call of a library of the JVM that plans it, by its number
    work: TableWork | None = None  # what a library of tables does that has the plan made

    @classmethod
    def parse(cls, entry: str) -> PlanningCall:
        """`entry` is what `Jvm.strategy` says."""
        entry, _, work = entry.partition("|")
        entry, _, taker = entry.partition("#")
        call, _, thread = entry.partition("@")
        cached, _, method = call.rpartition(":")
        is_number = taker.isascii() and taker.isdigit()
        return cls(
            method,
            bool(cached),
            int(thread) if thread else None,
            int(taker) if is_number else None,
            TableWork.parse(work) if work else None,
        )

    @property
    def spark_name(self) -> str:
        """The method alone."""
        return self.method.partition(".")[2] or "query"

    @property
    def is_captured(self) -> bool:
        is_of_rows = self.work is None or self.work.is_of_rows
        return is_of_rows and not self.method.startswith(_NOT_CAPTURED)

    @property
    def is_materializing(self) -> bool:
        """Does a library of tables keep the rows for later steps of a statement?"""
        return self.work is not None and self.work.is_materializing

    @property
    def is_read_as_rdd(self) -> bool:
        return self.is_materializing or (not self.is_cache and self.method.startswith(_READING_AS_RDD))

    @property
    def is_of_rdd(self) -> bool:
        """Is it `DataFrame.rdd`?"""
        return self.is_read_as_rdd and self.method.endswith("javaToPython")

    @property
    def is_persisted(self) -> bool:
        """Do the tasks that compute its rows persist them?"""
        return self.is_cache or self.method.startswith(_LOCAL_CHECKPOINT)

    @property
    def is_kept(self) -> bool:
        """Are the rows kept for later queries: cached or checkpointed?"""
        return self.is_cache or (self.is_read_as_rdd and not self.is_of_rdd)

    @property
    def gives_no_result(self) -> bool:
        """Do its rows stay in Spark, for later queries or for an RDD?"""
        return self.is_cache or self.is_read_as_rdd


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """`query` is the plan without the command around it; `into_command` puts another one in its place."""

    plan: Plan
    query: Plan
    into_command: Callable[[Plan], Plan] | None
    call: PlanningCall
    action: str  # as PySpark calls it
    part_name: str  # of the node of its output, where it is a part of what a call of a library reads
    call_site: str
    output: Output | None  # the files that it writes
    endpoint: Endpoint | None  # where its rows go otherwise
    deletion: Output | None = None  # the rows that its statement deletes, if it may delete some
    database: Any = None  # the options of Spark's for the table of a database that it is written into
    changes: Output | None = None  # the rows of a change data feed, if it writes some
    is_given: bool = False  # a library of the JVM takes its rows
    schema: Schema | None = None  # of the rows that it gives
    site: Site | None = None  # where rows that stay in Spark were asked for

    @property
    def name(self) -> str:
        """Of the node of its output."""
        return self.action if self.taker is None else self.part_name

    @property
    def transaction(self) -> str | None:
        """The open transaction of a table that it is part of, by its id."""
        work = self.call.work
        return None if work is None or work.transaction is None else work.transaction.id

    @property
    def is_action(self) -> bool:
        """Does the user's program get its rows, or their number?"""
        return self.into_command is None and not self.call.gives_no_result

    @property
    def taker(self) -> int | None:
        """The call of a library of the JVM that takes its rows, by its number (see `fits`)."""
        is_taken = self.output is None and self.endpoint is None and not self.call.gives_no_result
        return self.call.taker if is_taken else None

    @property
    def is_persisted(self) -> bool:
        """May its rows be persisted by who computes them? A library does so as it likes."""
        return self.call.is_persisted or self.is_given or self.taker is not None

    def node_fields(self) -> dict[str, Any]:
        """Of the node of its output."""
        is_operator = self.call.gives_no_result or self.taker is not None
        fields: dict[str, Any] = {"kind": "operator"} if is_operator else {}
        if self.site is not None:
            fields["site"] = self.site
        if self.output is not None:
            described = self.output.label or self.output.path
            fields.update(description=described, dataset=self.output.dataset)
            if self.output.reason:
                fields["reason"] = self.output.reason
        elif self.endpoint is not None:
            fields.update(description=self.endpoint.description, dataset=self.endpoint.dataset)
        if "kind" not in fields:  # else the rows stay in Spark
            fields["schema"] = self.schema if self.output is None else self.output.schema
        return fields
