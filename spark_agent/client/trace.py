"""`trace`: the lineage of an RDD or a file, asked for in the running session and given as rows for Spark.

After the LineageRDD of Titian (Interlandi et al., VLDB 2015, section 3): a set of records that goes back and
forth along the operations of the job, and shows itself as rows of the files that the records stand in. Asks
the HTTP API of the service; nothing of it runs on executors. For its users: docs/tracing-in-spark.md.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any
from urllib.parse import unquote

from spark_agent import agent
from spark_agent.agent import Agent
from spark_agent.client.http import ApiClient, TraceError, default_address
from spark_agent.sql.files.numbered_rows import numbered
from spark_agent.sql.rerun.rerun import NOT_CAPTURED, CannotRunAgainError

__all__ = ["LineageRecords", "TraceError", "trace"]

#: Records are traced one by one: more than so many are a mistake.
MOST_STARTS = 1_000
#: So many rows travel through the driver; Spark itself reads more, from their files.
ROWS_FROM_DRIVER = 10_000
_QUESTIONS_AT_ONCE = 4
_ROW = "path string, row long, line long, text string"

Start = tuple[tuple[str, Any], ...]
"""Where a trace begins, in the API's parameters."""


def trace(
    of: Any, *, application: str | None = None, api: str | None = None, wait_s: float = 30.0
) -> LineageRecords:
    """The records of an RDD of this session, of an output folder, or of an input or output file.

    An action must have used it. `application` is an earlier application's id, for a folder or file; `api`
    another address than that of spark.lineage.api. Waits at most `wait_s` until what the application has
    done so far can be asked for, and warns when it is not. Raises TraceError.
    """
    active = agent.active()
    if application is None:
        if active is None:
            raise TraceError(
                "lineage is off in this session: start it with spark.lineage.enabled=true, or name the "
                "application of an earlier one"
            )
        application = active.session.application_id
    named = api or (active.session.api if active is not None else "")
    client = ApiClient(named or default_address(os.environ))
    running = active if active is not None and application == active.session.application_id else None
    job = _job(client, application, running, wait_s)
    if isinstance(of, (str, os.PathLike)):
        path = os.fspath(of)
        again = None if running is None else _runs_again(running, _normal(path))
        if running is None or again is None:
            return job.at_path(path)
        rerun = partial(_found_again, client, running, again, wait_s)
        return LineageRecords(job, frozenset(), within=_normal(path), _again=rerun)
    number = getattr(getattr(of, "_lineage_node", None), "number", None)
    if number is None:
        raise TraceError(f"{of!r} is neither a path nor an RDD that was made while lineage was on")
    node_id = f"{application}#{number}"
    if node_id not in job.nodes:
        raise TraceError("no action has used this RDD yet (or it is a part of an operation): act on it first")
    return LineageRecords(job, frozenset({node_id}))


def _job(client: ApiClient, application: str, running: Agent | None, wait_s: float) -> _Job:
    """What is stored of an application, after a wait for what a running one has done so far."""
    if running is not None:
        running.spark_sessions.settle()
        missing = client.wait_for(
            application, running.session.events.committed_runs, running.session.events.emitted_events, wait_s
        )
        if missing:
            warnings.warn(f"the lineage of {application} is not complete: {missing}", stacklevel=3)
    graph = client.get("applications", application, "graph")
    return _Job(client, application, {node["node_id"]: node for node in graph["nodes"]}, graph["edges"])


def _runs_again(running: Agent, path: str) -> Callable[[int], tuple[int, str]] | None:
    """For an output of a query whose records were not captured: what runs it again for a row."""
    return partial(running.spark_sessions.run_again, path) if running.spark_sessions.wrote(path) else None


def _found_again(
    client: ApiClient,
    running: Agent,
    again: Callable[[int], tuple[int, str]],
    wait_s: float,
    row: int,
) -> LineageRecords:
    """The records of a row, by running its query again. Raises TraceError."""
    try:
        node, bound = again(row)
    except CannotRunAgainError as error:
        raise TraceError(str(error)) from None
    if bound:
        warnings.warn(f"this lineage is a bound: {bound}", stacklevel=4)
    job = _job(client, running.session.application_id, running, wait_s)
    return LineageRecords(job, frozenset({f"{running.session.application_id}#{node}"}))


@dataclass(frozen=True)
class _Job:
    """An application as its graph tells it."""

    client: ApiClient
    application: str
    nodes: Mapping[str, Mapping[str, Any]]
    edges: list[Mapping[str, Any]]

    def at_path(self, path: str) -> LineageRecords:
        path = _normal(path)
        holders = [node for node in self.nodes.values() if path in _places(node)]
        is_written = any(node["kind"] == "sink" and not _is_uncaptured(node) for node in holders)
        for node in () if is_written else filter(_is_uncaptured, self.nodes.values()):
            if any(f"{path}/".startswith(f"{folder}/") for folder in _places(node)):
                raise TraceError(f"{path}: {node['reason']}")
        sinks = frozenset(node["node_id"] for node in holders if node["kind"] == "sink")
        node_ids = sinks or frozenset(node["node_id"] for node in holders)
        if node_ids and not os.path.isfile(path):
            return LineageRecords(self, node_ids)
        pages = self.client.trace(self.application, direction="backward", path=path, row=0, depth=1, limit=1)
        return LineageRecords(self, frozenset({next(pages)["start_node"]}), within=path)

    def beside(self, at: frozenset[str], is_backward: bool) -> frozenset[str]:
        """The operations before or after; those that have none stay."""
        near, far = ("target", "source") if is_backward else ("source", "target")
        beside: set[str] = set()
        for node in at:
            beside |= {edge[far] for edge in self.edges if edge[near] == node} or {node}
        return frozenset(beside)


@dataclass(frozen=True)
class LineageRecords:
    """Records of one or more operations of a job. Immutable: every method gives another set."""

    _job: _Job
    _at: frozenset[str]
    _starts: tuple[Start, ...] | None = None  # None: all records of the operations
    _way: str = ""  # `backward` or `forward`: what the starts reach in that direction
    within: str | None = None  # only records of this file
    #: Of an output whose records were not captured: gives those of a row, by running its query again.
    _again: Callable[[int], LineageRecords] | None = field(default=None, compare=False, repr=False)
    _found: list[tuple[str, dict[str, Any]]] = field(default_factory=list, compare=False, repr=False)

    # -- choosing ------------------------------------------------------------------------------------

    def row(self, row: int) -> LineageRecords:
        """Row `row` of the file, counted from 0, header lines too."""
        if self.within is None:
            raise TraceError("rows are counted in a file: trace the file, not its folder or an RDD")
        if self._again is not None:
            return self._again(row)
        return replace(self, _starts=(_start(path=self.within, row=row),), _way="", _found=[])

    def at(self, partition: int, offset: int) -> LineageRecords:
        """The record at a place of the RDD's partitions."""
        return self._chosen(_start(node=node, partition=partition, offset=offset) for node in self._at)

    def key(self, key: str) -> LineageRecords:
        """The records with this key, as the captured text says it."""
        return self._chosen(_start(node=node, key=key) for node in self._at)

    def filter(self, predicate: Callable[[str], Any]) -> LineageRecords:
        """The records whose text `predicate` takes: the captured value, else the row, else the key."""
        texts = [(node, record, _text(record)) for node, record in self.collect()]
        if texts and all(text is None for _, _, text in texts):
            raise TraceError(
                "no values of these records were captured (spark.lineage.detailed=true does): choose with "
                "at(), key() or row(), or filter where records are rows of a file"
            )
        return self._of([(n, r) for n, r, text in texts if text is not None and predicate(text)])

    def _chosen(self, starts: Iterable[Start]) -> LineageRecords:
        if self._again is not None:
            raise TraceError(
                "the records of this output were not captured: choose with row(), in a file of it"
            )
        if self._way:
            raise TraceError("choose before going back or on; of what was found, filter() chooses")
        return replace(self, _starts=tuple(starts), _found=[])

    def _of(self, records: list[tuple[str, dict[str, Any]]]) -> LineageRecords:
        """Exactly these records."""
        starts = tuple(
            _start(node=node, partition=record["partition"], offset=record["offset"])
            for node, record in records
        )
        at = frozenset(node for node, _ in records) or self._at
        return LineageRecords(self._job, at, starts, within=self.within, _found=list(records))

    # -- going ---------------------------------------------------------------------------------------

    def go_back(self, steps: int = 1) -> LineageRecords:
        """What these records were made of, so many operations earlier. Records of inputs stay."""
        return self._gone("backward", steps)

    def go_next(self, steps: int = 1) -> LineageRecords:
        """What became of these records, so many operations later. Records of outputs stay."""
        return self._gone("forward", steps)

    def go_back_all(self) -> LineageRecords:
        """The input records that these were made of."""
        return self._gone("backward", len(self._job.nodes))

    def go_next_all(self) -> LineageRecords:
        """The output records that these went into, of every action."""
        return self._gone("forward", len(self._job.nodes))

    def _gone(self, way: str, steps: int) -> LineageRecords:
        begin = self if self._way in ("", way) else self._of(self.collect())
        at = begin._at
        for _ in range(steps):
            further = self._job.beside(at, way == "backward")
            if further == at:
                break
            at = further
        starts = begin._starts
        if starts is None:
            starts = begin._of(begin.collect(MOST_STARTS))._starts
        return LineageRecords(self._job, at, starts, way)

    def backward(self, predicate: Callable[[str], Any] | None = None, **place: Any) -> Any:
        """The input rows that the chosen records were made of, as a DataFrame.

        `place` is one of row=, key=, or partition= with offset=; with none, `predicate` chooses, or all.
        """
        return self._picked(predicate, place).go_back_all().rows()

    def forward(self, predicate: Callable[[str], Any] | None = None, **place: Any) -> Any:
        """The output rows that the chosen records went into, as a DataFrame."""
        return self._picked(predicate, place).go_next_all().rows()

    def _picked(self, predicate: Callable[[str], Any] | None, place: dict[str, Any]) -> LineageRecords:
        by = {("row",): self.row, ("key",): self.key, ("offset", "partition"): self.at}
        chosen = self
        if place:
            choose: Any = by.get(tuple(sorted(place)))
            if choose is None:
                raise TraceError("say row=, or key=, or partition= and offset=")
            chosen = choose(**place)
        return chosen if predicate is None else chosen.filter(predicate)

    # -- what is there -------------------------------------------------------------------------------

    def collect(self, most: int | None = None) -> list[tuple[str, dict[str, Any]]]:
        """(node id, record as in docs/api.md) of every record. More than `most` raise TraceError."""
        if not self._found:
            records: dict[tuple[str, str], dict[str, Any]] = {}
            for node, record in self._asked():
                records[node, record["record_id"]] = record
                if most is not None and len(records) > most:
                    raise TraceError(
                        f"more than {most} records cannot be traced one by one: choose with filter(), key(), "
                        "at() or row() first"
                    )
            self._found.extend((node, record) for (node, _), record in records.items())
        return list(self._found)

    def _asked(self) -> Iterable[tuple[str, dict[str, Any]]]:
        if self._again is not None:
            raise TraceError(
                f"the records of {self.within} were not captured (spark.lineage.dataframes.level): trace a "
                "file of it and say row(), which runs its query again for that row"
            )
        if self._starts is None:
            for node in sorted(self._at):
                for record in self._job.client.records(self._job.application, node):
                    source = record.get("source")
                    if self.within is None or (source and _normal(source["path"]) == self.within):
                        yield node, record
            return
        if self._way and len(self._starts) > MOST_STARTS:
            raise TraceError(
                f"{len(self._starts)} records cannot be traced one by one, {MOST_STARTS} can: choose first"
            )
        is_exact = True
        with ThreadPoolExecutor(_QUESTIONS_AT_ONCE, "lineage-trace") as pool:
            for answer in pool.map(self._asked_of, self._starts):
                is_exact &= answer.is_exact
                yield from answer.records
        if not is_exact:
            warnings.warn(
                "this lineage is a bound: it has all records that it should, and may have others",
                stacklevel=4,
            )

    def _asked_of(self, start: Start) -> _Found:
        client, application, query = self._job.client, self._job.application, dict(start)
        if not self._way and "key" not in query:
            page = next(client.trace(application, direction="backward", depth=1, **query))
            return _Found([(page["start_node"], record) for record in page["start"]], is_exact=True)
        if self._way:
            to = next(iter(self._at)) if len(self._at) == 1 else None
            pages = client.trace(application, direction=self._way, to=to, **query)
        else:  # the records of a key themselves: they may be many
            pages = client.trace(application, direction="backward", depth=1, only=query["node"], **query)
        at = self._at if self._way else {query["node"]}
        records, is_exact = list[tuple[str, dict[str, Any]]](), True
        for page in pages:
            is_exact &= page["exact"]
            for node in page["nodes"]:
                if node["node_id"] in at:
                    records += ((node["node_id"], record) for record in node["records"])
        return _Found(records, is_exact or not self._way)

    def count(self) -> int:
        return len(self.collect())

    def show(self, n: int = 20) -> None:
        """Print the first `n` records: where each stands, and what is known of it."""
        records = self.collect()
        lines = []
        for node, record in records[:n]:
            source, text = record.get("source"), _text(record)
            place = f"{source['path']}:{source['line']}" if source else f"{node}#{record['record_id']}"
            lines.append(place if text is None else f"{place}  {text}")
        if len(records) > n:
            lines.append(f"... {len(records) - n} more")
        sys.stdout.write("".join(f"{line}\n" for line in lines))

    def positions(self) -> Any:
        """An RDD of the records' ids: (node id, record id)."""
        ids = [(node, record["record_id"]) for node, record in self.collect()]
        spark = _spark()
        with _unseen():
            return spark.createDataFrame(ids, "node_id string, record_id string").rdd.map(tuple)

    def rows(self) -> Any:
        """A DataFrame (path, row, line, text) of the rows of files that the records are.

        Many rows are read by Spark where they stand, so executors must reach the files. Raises TraceError
        for records that are no rows.
        """
        records = [record for _, record in self.collect()]
        sources = [record["source"] for record in records if record.get("source")]
        if len(sources) < len(records):
            raise TraceError("these records are no rows of files: go_back_all() or go_next_all() first")
        messages = {source["warning"] for source in sources if source["warning"]}
        for warning in sorted(messages):
            warnings.warn(f"of rows of this lineage: {warning}", stacklevel=2)
        rows = [(source["path"], source["row"], source["line"], source["text"]) for source in sources]
        spark = _spark()
        with _unseen():
            frame = spark.createDataFrame(rows, _ROW)
            _leave_out(frame)
            return frame if len(rows) <= ROWS_FROM_DRIVER else _read_by_spark(spark, frame)


@dataclass(frozen=True)
class _Found:
    """(node id, record) of the records of one question."""

    records: list[tuple[str, dict[str, Any]]]
    is_exact: bool


def _read_by_spark(spark: Any, rows: Any) -> Any:
    """The rows by their numbers, with the text that stands in the files now."""
    paths = [path for (path,) in rows.select("path").distinct().collect()]
    joined = [
        rows.where(rows.path == path).drop("text").join(_numbered(spark, path), "row") for path in paths
    ]
    return reduce(type(rows).union, joined).select("path", "row", "line", "text")


def _numbered(spark: Any, path: str) -> Any:
    """(row, text) of a text file."""
    return numbered(spark, path, "text", leave_out=_leave_out).selectExpr("row", "value as text")


def _leave_out(frame: Any) -> None:
    """Asking is no part of the job: what is made of the answer is not captured."""
    active = agent.active()
    if active is not None:
        active.spark_sessions.leave_out(frame)


def _spark() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def _unseen() -> Any:
    """What is done for an answer is no part of the job's lineage."""
    active = agent.active()
    return nullcontext() if active is None else active.session.scope.inner_job()


def _start(**parameters: Any) -> Start:
    return tuple(sorted(parameters.items()))


def _text(record: Mapping[str, Any]) -> str | None:
    source = record.get("source") or {}
    for text in (record.get("value"), source.get("text"), record.get("key")):
        if text is not None:
            return str(text)
    return None


def _normal(path: str) -> str:
    """A local path, absolute and without `file:`; other URIs as they are."""
    local = re.match("file:(?://[^/]*)?", path)
    if local is not None:  # no name ends at its # or ?
        path = unquote(path[local.end() :])
    elif "://" in path:
        return path.rstrip("/")
    return os.path.abspath(path)


def _is_uncaptured(node: Mapping[str, Any]) -> bool:
    """An input or output of the level lazy. Those that ran again are not all that there were."""
    return str(node["reason"]).startswith(NOT_CAPTURED)


def _places(node: Mapping[str, Any]) -> set[str]:
    """The paths that a source or sink is known by."""
    if node["kind"] == "operator":
        return set()
    dataset = node["dataset"] or {}
    return {_normal(text) for text in (node["description"], dataset.get("name")) if text}
