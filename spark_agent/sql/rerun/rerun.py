"""Queries whose records were not captured, and how one runs again for a row that it wrote (the level lazy).

At capture only the plan is remembered, and which files it reads; both are references. For a row, in order:

1. the query that wrote its file is looked up; files that it read and that are not the same now are an error;
2. the row is read, and becomes a condition on the columns of the query (`row_query`, `row_conditions`);
3. the query runs with that condition and with all records captured; Spark's optimiser pushes the condition to
   where rows are read, through groups by their keys and through joins;
4. if one row meets it, its records are those of the row asked for; if several do, they cannot be told apart,
   and the result is an upper bound; if none does, the result is an error.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spark_agent.contract.dataset_names import one_path
from spark_agent.delivery.settings import LAZY
from spark_agent.driver import partitions
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.files.input_state import Inputs, Listing, Scan, UncheckedInputError, listing
from spark_agent.sql.rerun.rerunnable_plan import NotRepeatableError
from spark_agent.sql.rerun.row_conditions import RowError, WrittenColumn, WrittenFile
from spark_agent.sql.rerun.row_query import RowQueries
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.types import Plan

#: How the reason of a node begins whose records were not captured, since the level is not `eager`.
NOT_CAPTURED = "spark.lineage.dataframes.level="
LAZY_REASON = (
    f"{NOT_CAPTURED}{LAZY}: the records of this query were not captured. In the session that ran it, "
    "spark_agent.trace(FILE).row(ROW) runs it again for a row; for traces after its end, run it with the "
    "level eager"
)
#: A plan is a few hundred objects, and holds the lists of files that its scans read.
MOST_QUERIES = 64
#: Rows with the same values that one result is made of.
MOST_ROWS = 1_000


class CannotRerunError(Exception):
    """A row cannot be traced by running its query again; the text says why and what to do."""


@dataclass(frozen=True)
class WritingQuery:
    """A query that wrote files below `root`, those that were there `before` aside."""

    number: int  # of its output's node
    query: Plan | None
    root: str
    format: str
    options: dict[str, str]
    columns: tuple[WrittenColumn, ...]
    folders: tuple[str, ...]
    before: Listing
    scans: tuple[Scan, ...]
    problem: str  # why it cannot be run again, if that is known from the beginning

    def file(self, path: str) -> WrittenFile:
        return WrittenFile(path, self.root, self.format, self.options, self.columns, self.folders)


@dataclass(eq=False)
class Rerun:
    """One query that runs again. `node` is that of its output, `problem` why it was not captured."""

    description: str
    node: PlanNode | None = None
    problem: str = ""

    def begin(self, node: PlanNode) -> None:
        """Its output is published before its records are, and as exact once their number is known."""
        node.exact, node.reason = False, "the query runs again, or it failed"
        self.node = node

    def end(self, rows: int) -> None:
        assert self.node is not None
        self.node.exact, self.node.reason = rows == 1, ""
        if rows != 1:
            self.node.reason = (
                f"{rows} rows of the query have the values of {self.description} and cannot be told apart: "
                "the sources of all of them are given"
            )


class LazyQueries:
    """The queries of one application that wrote files, the latest `MOST_QUERIES` of them."""

    def __init__(self, catalyst: Catalyst, jvm: Any) -> None:
        self._catalyst = catalyst
        self._inputs = Inputs(catalyst, jvm)
        self._rows = RowQueries(catalyst, jvm)
        self._lock = threading.Lock()
        self._queries: OrderedDict[int, WritingQuery] = OrderedDict()

    # -- at capture ----------------------------------------------------------------------------------

    def remember(self, number: int, command: Plan, query: Plan) -> None:
        """Remember what a rerun of a command's query will need. `number` is its output's node."""
        if self._catalyst.kind(command) != "InsertIntoHadoopFsRelationCommand":
            return
        items = self._catalyst.items
        columns = [
            WrittenColumn(str(name), attribute.dataType())
            for name, attribute in zip(items(command.outputColumnNames()), items(query.output()), strict=True)
        ]
        problem, scans = "", []
        try:
            scans = self._inputs.of(query)
        except UncheckedInputError as error:
            problem = str(error)
        writing = WritingQuery(
            number=number,
            query=None if problem else query,  # a plan that is of no use holds an RDD for nothing
            root=one_path(partitions.local_path(str(command.outputPath().toString()))).rstrip("/"),
            format=str(command.fileFormat().toString()).lower(),
            options=dict(_pairs(command.options())),
            columns=tuple(columns),
            folders=tuple(str(column.name()) for column in items(command.partitionColumns())),
            before=self._before(command),
            scans=tuple(scans),
            problem=problem,
        )
        with self._lock:
            self._queries[number] = writing
            while len(self._queries) > MOST_QUERIES:
                self._queries.popitem(last=False)

    def _before(self, command: Plan) -> Listing:
        path, spark = command.outputPath(), _spark()
        if not path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).exists(path):
            return {}  # and Spark would log that it is not there
        everywhere = self._catalyst.no_options.updated("recursiveFileLookup", "true")
        index = self._inputs.index(spark._jsparkSession, self._catalyst.seq([path]), everywhere)
        return listing(index.allFiles())

    # -- at a trace ----------------------------------------------------------------------------------

    def writer_of(self, path: str) -> WritingQuery | None:
        """The query that wrote a file, or the latest one that wrote below a folder."""
        with self._lock:
            for writing in reversed(self._queries.values()):
                is_below = path == writing.root or path.startswith(f"{writing.root}/")
                if is_below and path not in writing.before:
                    return writing
        return None

    def rerun(
        self, path: str, row: int, run: Callable[[Any, Rerun], int], leave_out: Callable[[Any], None]
    ) -> Rerun:
        """Run the query that wrote a file for one row of it. Raises CannotRerunError.

        `run(frame, rerun)` runs a DataFrame with all its records captured, into `rerun`, and gives the number
        of its rows; queries of a frame that is given to `leave_out` are no part of the job.
        """
        writing = self.writer_of(path)
        if writing is None:
            raise CannotRerunError(f"{path} was written by none of the last {MOST_QUERIES} queries")
        if path == writing.root:
            raise CannotRerunError(f"rows are counted in a file: trace a file below {path}")
        rerun = Rerun(f"row {row} of {path}")
        try:
            frame = self._rows.frame(self._query(writing, path), writing.file(path), row, leave_out)
            rows = run(frame, rerun)
        except (NotRepeatableError, UncheckedInputError) as error:
            raise CannotRerunError(
                f"the query that wrote {path} cannot be run again for one row: {error}. Run it with "
                "spark.lineage.dataframes.level=eager"
            ) from None
        except RowError as error:
            raise CannotRerunError(str(error)) from None
        _check(rerun, rows, path, row)
        return rerun

    def _query(self, writing: WritingQuery, path: str) -> Plan:
        """Raises CannotRerunError, NotRepeatableError, UncheckedInputError."""
        if writing.query is None:
            raise NotRepeatableError(writing.problem)
        changed = self._inputs.change(list(writing.scans), _spark()._jsparkSession)
        if changed:
            raise CannotRerunError(
                f"the query that wrote {path} would not give the same rows again: {changed}. Put back "
                "what it read, or run it with spark.lineage.dataframes.level=eager"
            )
        return writing.query


def _check(rerun: Rerun, rows: int, path: str, row: int) -> None:
    """Raises CannotRerunError where the rows of a rerun are no result."""
    if rerun.node is None:
        raise CannotRerunError(
            f"the query that wrote {path} cannot be followed: {rerun.problem or 'its plan is empty'}"
        )
    if not rows:
        raise CannotRerunError(
            f"the query that wrote {path} gives no row like its row {row} when it runs again: the file "
            "is not as it was written, or the query depends on more than its inputs"
        )
    if rows > MOST_ROWS:
        raise CannotRerunError(
            f"{rows} rows of the query that wrote {path} have the values of its row {row}, and cannot "
            f"be told apart: a result is made of {MOST_ROWS} at most. Run it with "
            "spark.lineage.dataframes.level=eager"
        )


def _pairs(options: Any) -> list[tuple[str, str]]:
    pairs, iterator = [], options.iterator()
    while iterator.hasNext():
        pair = iterator.next()
        pairs.append((str(pair._1()), str(pair._2())))
    return pairs


def _spark() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()
