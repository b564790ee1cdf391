"""Runs a kept query of the session again, with rows of Parquet scans left out, as a DataFrame of its own.

The query runs, and its command does not: nothing is written. Promises that no query of it is captured, and
that those of the user's own DataFrames are. Only rows of Parquet are chosen; all else is read whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_agent.contract.row_sets import count_rows
from spark_agent.driver import partitions
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.files.input_state import UncheckedInputError, listing
from spark_agent.sql.files.scans import format_of
from spark_agent.sql.rerun.asked_queries import AskedQueries
from spark_agent.sql.rerun.plan_frames import Frames
from spark_agent.sql.rerun.rerun import CannotRerunError
from spark_agent.sql.rerun.rerunnable_plan import NotRepeatableError
from spark_agent.sql.types import Plan

#: A condition of so many ranges of rows takes longer than to read them all.
_MOST_RANGES = 1_000
_PARQUET = "parquet"

Source = Mapping[str, Any]
"""A source in the JSON shape of a row set."""


@dataclass(frozen=True)
class ScanRead:
    """A scan of the query: what it reads, and why all of its rows are read, if so."""

    name: str
    why_whole: str


@dataclass(frozen=True)
class ReplayedQuery:
    """A DataFrame of the query's rows, which Spark runs when it is used."""

    frame: Any
    scans: tuple[ScanRead, ...]


class ReplayedQueries:
    """Those of one application. `leave_out` keeps the queries of a DataFrame out of the job's lineage."""

    def __init__(self, catalyst: Catalyst, jvm: Any, asked: AskedQueries, leave_out: Any) -> None:
        self._catalyst, self._frames = catalyst, Frames(catalyst, jvm)
        self._asked, self._leave_out = asked, leave_out

    def replayed(self, number: int, sources: Sequence[Source]) -> ReplayedQuery | None:
        """The query whose sink has this number; None if it is not kept. Raises CannotRerunError.

        `sources` are those of which only some rows are meant.
        """
        try:
            query = self._asked.query(number)
        except (NotRepeatableError, UncheckedInputError) as error:
            raise CannotRerunError(f"the query cannot run again: {error}") from None
        if query is None:
            return None
        leaves = self._catalyst.items(query.collectLeaves())
        scans = [_Scan(self._catalyst, leaf) for leaf in leaves if self._catalyst.column_ids(leaf)]
        replaced: dict[tuple[int, ...], Plan] = {}
        reads: list[ScanRead] = []
        for scan in scans:
            rows, why = _rows_of(scan, scans, sources)
            replaced[scan.columns] = self._read_again(scan, rows)
            reads.append(ScanRead(scan.name, why))
        frame = self._frames.of(self._with(query, replaced))
        self._leave_out(frame)
        return ReplayedQuery(frame, tuple(reads))

    def _read_again(self, scan: _Scan, rows: Mapping[str, Sequence[Sequence[int]]] | None) -> Plan:
        """The rows of a leaf, with its columns. The leaf has others: the user's own is not left out."""
        catalyst = self._catalyst
        relation = catalyst.unlike_cached(scan.leaf) if scan.files else scan.leaf
        renewed = catalyst.renewed(relation)
        plan = renewed
        if rows is not None:
            chosen = self._frames.of(renewed).where(_condition(rows))
            plan = chosen._jdf.queryExecution().analyzed()
        columns = zip(catalyst.items(renewed.output()), catalyst.items(scan.leaf.output()), strict=True)
        return catalyst.project([catalyst.alias_as(column, before) for column, before in columns], plan)

    def _with(self, plan: Plan, replaced: Mapping[tuple[int, ...], Plan]) -> Plan:
        children = self._catalyst.items(plan.children())
        if not children:
            return replaced.get(self._catalyst.column_ids(plan), plan)
        return self._catalyst.with_children(plan, [self._with(child, replaced) for child in children])


class _Scan:
    """A leaf of a query. `files` is empty where it reads none."""

    def __init__(self, catalyst: Catalyst, leaf: Plan) -> None:
        self.leaf, self.columns = leaf, catalyst.column_ids(leaf)
        self.files: frozenset[str] = frozenset()
        self.name, self.is_parquet = str(leaf.nodeName()), False
        if catalyst.kind(leaf) == "LogicalRelation":
            looked = catalyst.look(leaf).files
            self.files = frozenset(listing(leaf.relation().location().allFiles()))
            self.is_parquet = looked is not None and format_of(looked) == _PARQUET
            self.name = f"scan of {', '.join(sorted(self.files)[:1])}"


def _rows_of(
    scan: _Scan, scans: Sequence[_Scan], sources: Sequence[Source]
) -> tuple[dict[str, Sequence[Sequence[int]]] | None, str]:
    """The rows of a scan by file, None for all; and why they are all."""
    if not scan.files:
        return None, "it reads no files"
    of_it = [
        source
        for source in sources
        if any(partitions.local_path(file["path"]) in scan.files for file in source.get("files", ()))
    ]
    if not scan.is_parquet:
        return None, "only rows of Parquet files are chosen so far"
    if not of_it:
        return None, "the row set does not name it"
    if len(of_it) > 1 or sum(bool(scan.files & other.files) for other in scans) > 1:
        return None, "its files are read several times"
    (source,) = of_it
    rows = {partitions.local_path(file["path"]): file["rows"] for file in source["files"]}
    if sum(count for ranges in rows.values() for _, count in ranges) != count_rows(source):
        return None, "not all of its rows are known by file"
    if sum(map(len, rows.values())) > _MOST_RANGES:
        return None, "its rows are in too many places"
    return rows, ""


def _condition(rows: Mapping[str, Sequence[Sequence[int]]]) -> Any:
    from pyspark.sql import functions as F

    condition = F.lit(False)
    index = F.col("_metadata.row_index")
    for path, ranges in rows.items():
        is_row = F.lit(False)
        for first, count in ranges:
            is_row |= index.between(first, first + count - 1)
        in_file = F.col("_metadata.file_path").isin(path, f"file:{path}", f"file://{path}")
        condition |= in_file & is_row
    return condition
