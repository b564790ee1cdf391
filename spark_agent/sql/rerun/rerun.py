"""Queries whose records were not captured, and how a row of what they wrote is found by running them again.

At capture only the plan is kept, and which files it reads; both are references. For a row, in order:

1. the query that wrote its file is looked up; files that it read and that are not the same now are an error;
2. the row is read, and becomes a condition on the columns of the query (`row_conditions`);
3. the query runs with that condition and with all records captured; Spark's optimiser pushes the condition to
   where rows are read, through groups by their keys and through joins;
4. if one row meets it, its records are those of the row asked for; if several do, they cannot be told apart,
   and the answer is a bound; if none does, the answer is an error.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spark_agent.delivery.settings import LAZY
from spark_agent.driver import partitions
from spark_agent.sql.catalyst import Catalyst, singleton
from spark_agent.sql.files.input_state import Inputs, Listing, Scan, UncheckedInputError, listing
from spark_agent.sql.files.numbered_rows import literally, numbered
from spark_agent.sql.rerun.rerunnable_plan import NotRepeatableError, candidates_of
from spark_agent.sql.rerun.row_conditions import (
    LINES,
    TYPED,
    RowError,
    WrittenColumn,
    WrittenFile,
    folder_conditions,
    line_condition,
)
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.types import Expression, Plan

#: How the reason of a node begins whose records were not captured, since the level is not `eager`.
NOT_CAPTURED = "spark.lineage.dataframes.level="
REASON = (
    f"{NOT_CAPTURED}{LAZY}: the records of this query were not captured. In the session that ran it, "
    "spark_agent.trace(FILE).row(ROW) runs it again for a row; for answers after its end, run it with the "
    "level eager"
)
#: A plan is a few hundred objects, and holds the lists of files that its scans read.
MOST_QUERIES = 64
#: Rows with the same values that one answer is made of.
MOST_ROWS = 1_000


class CannotRunAgainError(Exception):
    """A row cannot be traced by running its query again; the text says why and what to do."""


@dataclass(frozen=True)
class Written:
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
class Again:
    """One query that runs again. `node` is that of its output, `problem` why it was not captured."""

    description: str
    node: PlanNode | None = None
    problem: str = ""

    def begin(self, node: PlanNode) -> None:
        """Its output is told before its records are, and as exact once it is known how many there are."""
        node.exact, node.reason = False, "the query runs again, or it failed"
        self.node = node

    def end(self, found: int) -> None:
        assert self.node is not None
        self.node.exact, self.node.reason = found == 1, ""
        if found != 1:
            self.node.reason = (
                f"{found} rows of the query have the values of {self.description} and cannot be told apart: "
                "the sources of all of them are given"
            )


class LazyQueries:
    """The queries of one application that wrote files, the latest `MOST_QUERIES` of them."""

    def __init__(self, catalyst: Catalyst, jvm: Any) -> None:
        self._catalyst, self._jvm = catalyst, jvm
        self._inputs = Inputs(catalyst, jvm)
        self._lock = threading.Lock()
        self._written: OrderedDict[int, Written] = OrderedDict()

    # -- at capture ----------------------------------------------------------------------------------

    def remember(self, number: int, command: Plan, query: Plan) -> None:
        """Keep what running the query of a command again will need. `number` is its output's node."""
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
        written = Written(
            number=number,
            query=None if problem else query,  # a plan that is of no use keeps an RDD for nothing
            root=partitions.local_path(str(command.outputPath().toString())).rstrip("/"),
            format=str(command.fileFormat().toString()).lower(),
            options=dict(_pairs(command.options())),
            columns=tuple(columns),
            folders=tuple(str(each.name()) for each in items(command.partitionColumns())),
            before=self._before(command),
            scans=tuple(scans),
            problem=problem,
        )
        with self._lock:
            self._written[number] = written
            while len(self._written) > MOST_QUERIES:
                self._written.popitem(last=False)

    def _before(self, command: Plan) -> Listing:
        path, spark = command.outputPath(), _spark()
        if not path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).exists(path):
            return {}  # and Spark would log that it is not there
        everywhere = self._catalyst.no_options.updated("recursiveFileLookup", "true")
        index = self._inputs.index(spark._jsparkSession, self._catalyst.seq([path]), everywhere)
        return listing(index.allFiles())

    # -- at a trace ----------------------------------------------------------------------------------

    def writer_of(self, path: str) -> Written | None:
        """The query that wrote a file, or the latest one that wrote below a folder."""
        with self._lock:
            for written in reversed(self._written.values()):
                is_below = path == written.root or path.startswith(f"{written.root}/")
                if is_below and path not in written.before:
                    return written
        return None

    def run_again(
        self, path: str, row: int, run: Callable[[Any, Again], int], leave_out: Callable[[Any], None]
    ) -> Again:
        """Run the query that wrote a file for one row of it. Raises CannotRunAgainError.

        `run(frame, again)` runs a DataFrame with all its records captured, into `again`, and gives the number
        of its rows; queries of a frame that is given to `leave_out` are no part of the job.
        """
        written = self.writer_of(path)
        if written is None:
            raise CannotRunAgainError(f"{path} was written by none of the last {MOST_QUERIES} queries")
        if path == written.root:
            raise CannotRunAgainError(f"rows are counted in a file: trace a file below {path}")
        try:
            if written.query is None:
                raise NotRepeatableError(written.problem)
            changed = self._inputs.change(list(written.scans), _spark()._jsparkSession)
            if changed:
                raise CannotRunAgainError(
                    f"the query that wrote {path} would not give the same rows again: {changed}. Put back "
                    "what it read, or run it with spark.lineage.dataframes.level=eager"
                )
            again = Again(f"row {row} of {path}")
            found = run(self._frame(written.query, written.file(path), row, leave_out), again)
        except (NotRepeatableError, UncheckedInputError) as error:
            raise CannotRunAgainError(
                f"the query that wrote {path} cannot be run again for one row: {error}. Run it with "
                "spark.lineage.dataframes.level=eager"
            ) from None
        except RowError as error:
            raise CannotRunAgainError(str(error)) from None
        if again.node is None:
            raise CannotRunAgainError(
                f"the query that wrote {path} cannot be followed: {again.problem or 'its plan is empty'}"
            )
        if not found:
            raise CannotRunAgainError(
                f"the query that wrote {path} gives no row like its row {row} when it runs again: the file "
                "is not as it was written, or the query depends on more than its inputs"
            )
        if found > MOST_ROWS:
            raise CannotRunAgainError(
                f"{found} rows of the query that wrote {path} have the values of its row {row}, and cannot "
                f"be told apart: an answer is made of {MOST_ROWS} at most. Run it with "
                "spark.lineage.dataframes.level=eager"
            )
        return again

    def _frame(self, query: Plan, file: WrittenFile, row: int, leave_out: Callable[[Any], None]) -> Any:
        """The rows of the query that may have become row `row` of a file."""
        if file.format not in (*TYPED, *LINES):
            raise RowError(f"{file.path}: rows of the format {file.format} cannot be looked for")
        if file.has_header and row == 0:
            raise RowError(f"{file.path}: row 0 is the header")
        found = candidates_of(self._catalyst, query)
        items, catalyst = self._catalyst.items, self._catalyst
        output = items(query.output())
        renamed = [catalyst.alias(each, f"lineage_{at}") for at, each in enumerate(output)]
        plan = catalyst.project([*renamed, catalyst.alias(catalyst.long(1), "lineage_again")], found.plan)
        stable = [at for at in range(len(output)) if at not in found.unstable]
        if file.format in LINES:
            line = self._line(file, row, leave_out)
            frame = self._as_frame(plan)
            of_names = {file.columns[at].name: frame[f"lineage_{at}"] for at in stable}
            conditions = line_condition(file, line)(of_names)
            if not conditions:
                raise NotRepeatableError("none of its columns is the same each time")
            for each in conditions:
                frame = frame.where(each)
            return frame
        in_file = [at for at in stable if file.columns[at].name not in file.folders]
        literal = self._typed(file, row, [file.columns[at] for at in in_file], leave_out) if in_file else None
        for position, at in enumerate(in_file):
            ours, theirs = renamed[at].toAttribute(), catalyst.field(literal, position)
            if _is_unordered(file.columns[at].type_name):
                ours, theirs = catalyst.text(ours), catalyst.text(theirs)
            plan = catalyst.filter(catalyst.same(ours, theirs), plan)
        frame = self._as_frame(plan)
        of_names = {file.columns[at].name: frame[f"lineage_{at}"] for at in stable}
        conditions = folder_conditions(file, of_names)
        if not in_file and not conditions:
            raise NotRepeatableError("none of its columns is the same each time")
        for each in conditions:
            frame = frame.where(each)
        return frame

    def _as_frame(self, plan: Plan) -> Any:
        from pyspark.sql import DataFrame

        spark = _spark()
        plan.setAnalyzed()
        java_session = spark._jsparkSession
        package = self._jvm.org.apache.spark.sql
        if str(java_session.getClass().getName()).endswith(".classic.SparkSession"):
            package = package.classic  # since Spark 4.0
        return DataFrame(singleton(package, "Dataset").ofRows(java_session, plan), spark)

    def _line(self, file: WrittenFile, row: int, leave_out: Callable[[Any], None]) -> str:
        from pyspark.sql import functions as F

        spark = _spark()
        ends = {name: value for name, value in file.options.items() if name == "lineSep"}
        rows = numbered(spark, file.path, "text", options=ends, leave_out=leave_out)
        rows = rows.where(F.col("row") == row).select("value")
        leave_out(rows)
        found = rows.collect()
        if not found:
            raise RowError(f"{file.path} has no row {row} (rows count from 0)")
        return str(found[0].value)

    def _typed(
        self, file: WrittenFile, row: int, columns: list[WrittenColumn], leave_out: Callable[[Any], None]
    ) -> Expression:
        """A literal: a struct of the row's values."""
        from pyspark.sql import functions as F

        spark = _spark()
        schema = self._jvm.org.apache.spark.sql.types.StructType()
        for each in columns:
            schema = schema.add(each.name, each.type)
        names = [F.col(f"`{each.name.replace('`', '``')}`") for each in columns]
        if file.format == "parquet":
            reader = spark.read.schema(_schema(schema))
            rows = reader.parquet(literally(file.path)).where(F.col("_metadata.row_index") == row)
        else:
            rows = numbered(spark, file.path, file.format, schema=_schema(schema), leave_out=leave_out)
            rows = rows.where(F.col("row") == row)
        rows = rows.select(F.struct(*names))
        leave_out(rows)
        found = rows._jdf.queryExecution().executedPlan().executeCollect()
        if not len(found):
            raise RowError(f"{file.path} has no row {row} (rows count from 0)")
        return self._catalyst.literal(found[0].getStruct(0, len(names)), schema)


def _schema(java_schema: Any) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(java_schema.json()))


def _is_unordered(type_name: str) -> bool:
    """Values of such types have no equality in Spark."""
    return any(each in type_name for each in ("map<", "variant", "geometry", "geography"))


def _pairs(options: Any) -> list[tuple[str, str]]:
    found, iterator = [], options.iterator()
    while iterator.hasNext():
        pair = iterator.next()
        found.append((str(pair._1()), str(pair._2())))
    return found


def _spark() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()
