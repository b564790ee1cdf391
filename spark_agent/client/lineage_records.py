"""A set of records that goes back and forth along the operations of a job, and shows itself as rows of files.

After the LineageRDD of Titian (Interlandi et al., VLDB 2015, section 3). Asks the HTTP API when its records
are needed; nothing of it runs on executors.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from spark_agent.client import frames
from spark_agent.client.application import Application, normal_path
from spark_agent.client.chosen_records import ChosenRecords
from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import InputRows, input_rows
from spark_agent.client.left_out_rows import Influence, influence_of
from spark_agent.client.missing_rows import MissingRow
from spark_agent.client.replay_report import Step
from spark_agent.client.replays import Chosen
from spark_agent.client.sides import side_before
from spark_agent.client.sifted_rows import Sift, sift_of
from spark_agent.client.trace_starts import Start, queries_of, start_of

#: The API traces so many at once, and more are a mistake.
MOST_STARTS = 10_000
_QUERIES_AT_ONCE = 4

NodeRecord = tuple[str, dict[str, Any]]
"""(node id, record as in docs/api.md)"""


@dataclass(frozen=True)
class LineageRecords:
    """Records of one or more operations of a job. Immutable: every method gives another set."""

    _application: Application
    _node_ids: frozenset[str]
    _starts: tuple[Start, ...] | None = None  # None: all records of the operations
    _direction: str = ""  # `backward` or `forward`: what the starts reach in that direction
    within: str | None = None  # only records of this file
    #: Of an output whose records were not captured: gives those of a row, by running its query again.
    _rerun: Callable[[int], LineageRecords] | None = field(default=None, compare=False, repr=False)
    #: Of a file that queries of this session read: where a row ended in each of them.
    _missing: Callable[[int], list[MissingRow]] | None = field(default=None, compare=False, repr=False)
    _problem: str = ""  # why its records cannot be had
    _collected: list[NodeRecord] = field(default_factory=list, compare=False, repr=False)

    # -- choosing ------------------------------------------------------------------------------------

    def row(self, row: int) -> LineageRecords:
        """Row `row` of the file, counted from 0, header lines too."""
        if self.within is None:
            raise TraceError("rows are counted in a file: trace the file, not its folder or an RDD")
        self._check()
        if self._rerun is not None:
            return self._rerun(row)
        return replace(self, _starts=(start_of(path=self.within, row=row),), _direction="", _collected=[])

    def missing(self, row: int) -> list[MissingRow]:
        """Where row `row` of an input file (from 0) ended in each query of this session that read the file.

        The queries are asked again for that row. The latest comes first.
        """
        if self._missing is None:
            raise TraceError(
                "none of the latest queries of this session read it as a file of a DataFrame: for RDDs, "
                "and after the session, run `lineage missing`"
            )
        return self._missing(row)

    def _check(self) -> None:
        if self._problem:
            raise TraceError(self._problem)

    def at(self, partition: int, offset: int) -> LineageRecords:
        """The record at a place of the RDD's partitions."""
        return self._chosen(
            start_of(node=node, partition=partition, offset=offset) for node in self._node_ids
        )

    def key(self, key: str) -> LineageRecords:
        """The records with this key, as the captured text says it."""
        return self._chosen(start_of(node=node, key=key) for node in self._node_ids)

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
        if self._rerun is not None:
            raise TraceError(
                "the records of this output were not captured: choose with row(), in a file of it"
            )
        if self._direction:
            raise TraceError("choose before going back or on; afterwards only filter() chooses")
        return replace(self, _starts=tuple(starts), _collected=[])

    def _of(self, records: list[NodeRecord]) -> LineageRecords:
        """Exactly these records."""
        starts = tuple(
            start_of(node=node, partition=record["partition"], offset=record["offset"])
            for node, record in records
        )
        at = frozenset(node for node, _ in records) or self._node_ids
        return LineageRecords(self._application, at, starts, within=self.within, _collected=list(records))

    # -- moving --------------------------------------------------------------------------------------

    def go_back(self, steps: int = 1, path: int | None = None) -> LineageRecords:
        """What these records were made of, so many operations earlier. Records of inputs stay.

        Where an operation has several inputs, `path` chooses one, in the order of the call: of
        `left.join(right)`, left is 0.
        """
        return self._moved("backward", steps) if path is None else self._on_side(path, steps)

    def go_next(self, steps: int = 1) -> LineageRecords:
        """What became of these records, so many operations later. Records of outputs stay."""
        return self._moved("forward", steps)

    def go_back_all(self) -> LineageRecords:
        """The input records that these were made of."""
        return self._moved("backward", len(self._application.nodes))

    def go_next_all(self) -> LineageRecords:
        """The output records that these went into, of every action."""
        return self._moved("forward", len(self._application.nodes))

    def _moved(self, direction: str, steps: int) -> LineageRecords:
        begin = self if self._direction in ("", direction) else self._of(self.collect())
        node_ids = self._application.neighbours(begin._node_ids, direction, steps)
        starts = begin._starts
        if starts is None:
            starts = begin._of(begin.collect(MOST_STARTS))._starts
        return LineageRecords(self._application, node_ids, starts, direction)

    def _on_side(self, path: int, steps: int) -> LineageRecords:
        """Step by step: what lies behind one side is reached from its records alone, not over the other."""
        at, has_sides = self._of(self.collect(MOST_STARTS)), False
        for _ in range(steps):
            sides: set[str] = set()
            records: dict[tuple[str, str], dict[str, Any]] = {}
            for node_id in sorted(at._node_ids):
                side, is_one_of_several = side_before(self._application, node_id, path)
                sides.add(side)
                has_sides |= is_one_of_several
                for node, record in at._reached(node_id, side):
                    records[node, record["record_id"]] = record
            before = [(node, record) for (node, _), record in records.items()]
            at = LineageRecords(self._application, frozenset(sides))._of(before)
        if not has_sides:
            raise TraceError("no operation on the way has several inputs: leave path= out")
        return at

    def _reached(self, node_id: str, before: str) -> list[NodeRecord]:
        """What those of these records that `node_id` gave were made of, at the operation before it."""
        records = [(node, record) for node, record in self.collect() if node == node_id]
        if before == node_id or not records:
            return records
        starts = self._of(records)._starts
        return LineageRecords(self._application, frozenset({before}), starts, "backward").collect(MOST_STARTS)

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

    # -- running again --------------------------------------------------------------------------------

    def replay(self, without: Callable[[str], Any] | LineageRecords | None = None) -> Any:
        """The output that these records are in, made again of only the input rows that they were made of.

        An RDD with a `report`; Spark runs it when it is used. With `without`, it is made of all input rows
        but some: those of these records whose text the predicate takes, or those that another trace came to.
        Raises TraceError.
        """
        chosen = self.of_one_operation()
        if without is None:
            return chosen.replay()
        if isinstance(without, LineageRecords):
            if without._application.id != self._application.id:
                raise TraceError("the rows that are to be left out are of another application")
            return chosen.replay_without(without._input_rows())
        return chosen.replay_without(chosen.rows_with(without))

    def influence(self) -> Influence:
        """How far this output row, of a text file, moves without each of its input rows.

        Its operations are folded where they are associative, and else run again without each row. What the
        program has taken from Spark stays as it is. `print` shows it. Raises TraceError.
        """
        return influence_of(self.of_one_operation())

    def sift(self, test: Callable[[str], Any], seconds: float | None = None) -> Sift:
        """The fewest input rows of these output rows on which `test` still holds for an output row.

        After so many `seconds` the best answer so far is given. `print` shows it. Raises TraceError.
        """
        chosen = self
        if self._starts is None and not self._direction:
            chosen = self.filter(test)
        return sift_of(chosen.of_one_operation(), test, seconds)

    def rdd(self) -> Any:
        """These records as an RDD of what the operation gave: objects of Python, for any operation of RDDs.

        They are made again of the input rows that they were made of. Of an action, they are the records that
        it took. `report.exact` says whether others may be among them. Raises TraceError.
        """
        at = self.go_back() if self._is_of_sink() else self
        records = at.collect(MOST_STARTS)
        chosen = at._of(records).of_one_operation()

        def traced(direction: str, node_id: str, starts: Sequence[Start]) -> list[dict[str, Any]]:
            reached = LineageRecords(self._application, frozenset({node_id}), tuple(starts), direction)
            return [record for _, record in reached.collect()]

        texts = [] if at is self else [_text(record) for _, record in self.collect(MOST_STARTS)]
        return ChosenRecords(chosen, [record for _, record in records], texts, traced).rdd()

    def steps(self, most: int = 20) -> list[Step]:
        """What the operations on the way to these records gave, the inputs first, as objects of Python.

        At most `most` records of each, which are made again as by `rdd()`. `print` shows a step. Raises
        TraceError.
        """
        chosen = self.of_one_operation()
        starts = tuple(chosen.starts or self._of(self.collect(MOST_STARTS))._starts or ())
        steps = []
        for node_id in self._application.way_to(chosen.node_id):
            is_end = node_id == chosen.node_id
            at = LineageRecords(self._application, frozenset({node_id}), starts, "" if is_end else "backward")
            if at.collect():
                node = self._application.nodes[node_id]
                again = at.rdd()
                steps.append(Step(node_id, node["name"], node["call_site"], again.take(most), again.report))
        return steps

    def _input_rows(self) -> InputRows:
        starts = self.chosen_starts("the rows that are to be left out")
        return input_rows(self._application.client, self._application.id, starts)

    @property
    def application(self) -> Application:
        """Whose records they are."""
        return self._application

    def chosen_starts(self, which: str) -> tuple[Start, ...]:
        """Where a query about these records begins. Raises TraceError, with `which`, if none are chosen."""
        self._check()
        chosen = self if not self._direction else self._of(self.collect(MOST_STARTS))
        if chosen._starts is None:
            raise TraceError(f"choose {which}: with row(), key(), at() or filter()")
        return chosen._starts

    def node_of_keys(self) -> str:
        """The id of the one operation whose records these are. Raises TraceError."""
        self._check()
        if len(self._node_ids) != 1:
            raise TraceError(f"these are records of {len(self._node_ids):,} operations: name one RDD")
        [node_id] = self._node_ids
        return node_id

    def _is_of_sink(self) -> bool:
        nodes = self._application.nodes
        return all(nodes[node_id]["kind"] == "sink" for node_id in self._node_ids)

    def of_one_operation(self) -> Chosen:
        """The records as ones that can be made again. Raises TraceError."""
        self._check()
        chosen = self if not self._direction else self._of(self.collect(MOST_STARTS))
        if self._rerun is not None or len(chosen._node_ids) != 1:
            names = sorted(str(self._application.nodes[node_id]["name"]) for node_id in chosen._node_ids)
            raise TraceError(
                "a replay in a session is of records of one operation of RDDs: these are of "
                + (", ".join(names) or "a query of DataFrames")
            )
        (node_id,) = chosen._node_ids
        return Chosen(self._application, node_id, chosen._starts)

    # -- what is there -------------------------------------------------------------------------------

    def collect(self, most: int | None = None) -> list[NodeRecord]:
        """(node id, record as in docs/api.md) of every record. More than `most` raise TraceError."""
        if not self._collected:
            records: dict[tuple[str, str], dict[str, Any]] = {}
            for node, record in self._records():
                records[node, record["record_id"]] = record
                if most is not None and len(records) > most:
                    raise TraceError(
                        f"more than {most} records cannot be traced at once: choose with filter(), key(), "
                        "at() or row() first"
                    )
            self._collected.extend((node, record) for (node, _), record in records.items())
        return list(self._collected)

    def _records(self) -> Iterable[NodeRecord]:
        self._check()
        if self._rerun is not None:
            raise TraceError(
                f"the records of {self.within} were not captured (spark.lineage.dataframes.level): trace a "
                "file of it and say row(), which runs its query again for that row"
            )
        if self._starts is None:
            for node in sorted(self._node_ids):
                for record in self._application.client.records(self._application.id, node):
                    source = record.get("source")
                    if self.within is None or (source and normal_path(source["path"]) == self.within):
                        yield node, record
            return
        if self._direction and len(self._starts) > MOST_STARTS:
            raise TraceError(
                f"{len(self._starts)} records cannot be traced at once, {MOST_STARTS} can: choose first"
            )
        is_exact = True
        with ThreadPoolExecutor(_QUERIES_AT_ONCE, "lineage-trace") as pool:
            for result in pool.map(self._query, queries_of(self._starts)):
                is_exact &= result.is_exact
                yield from result.records
        if not is_exact:
            warnings.warn(
                "this lineage is an upper bound: it has all records that it should, and may have others",
                stacklevel=4,
            )

    def _query(self, query: dict[str, Any]) -> _QueryResult:
        client, application = self._application.client, self._application.id
        if not self._direction and "key" not in query:
            page = next(client.trace(application, direction="backward", depth=1, **query))
            starts = page["starts"] if "starts" in query else ()
            several = [(start["node_id"], record) for start in starts for record in start["records"]]
            one = [(page["start_node"], record) for record in page["start"]]
            return _QueryResult(several or one, is_exact=True)
        if self._direction:
            to = next(iter(self._node_ids)) if len(self._node_ids) == 1 else None
            pages = client.trace(application, direction=self._direction, to=to, **query)
        else:  # the records of a key themselves: they may be many
            pages = client.trace(application, direction="backward", depth=1, only=query["node"], **query)
        at = self._node_ids if self._direction else {query["node"]}
        records, is_exact = list[NodeRecord](), True
        for page in pages:
            is_exact &= page["exact"]
            for node in page["nodes"]:
                if node["node_id"] in at:
                    records += ((node["node_id"], record) for record in node["records"])
        return _QueryResult(records, is_exact or not self._direction)

    def count(self) -> int:
        return len(self.collect())

    def show(self, n: int = 20) -> None:
        """Print the first `n` records: where each stands, and what is known of it."""
        records = self.collect()
        lines = []
        for node, record in records[:n]:
            source, text = record.get("source"), _text(record)
            name = f"{source['path']}:{source['line']}" if source else f"{node}#{record['record_id']}"
            lines.append(name if text is None else f"{name}  {text}")
        if len(records) > n:
            lines.append(f"... {len(records) - n} more")
        sys.stdout.write("".join(f"{line}\n" for line in lines))

    def positions(self) -> Any:
        """An RDD of the records' ids: (node id, record id)."""
        return frames.record_ids([(node, record["record_id"]) for node, record in self.collect()])

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
        return frames.rows_of_files(
            [(source["path"], source["row"], source["line"], source["text"]) for source in sources]
        )


@dataclass(frozen=True)
class _QueryResult:
    """The records that one query of the API gives."""

    records: list[NodeRecord]
    is_exact: bool


def records_of_all(chosen: Sequence[LineageRecords]) -> LineageRecords:
    """What any of these are, as one set. They are of one application. Raises TraceError."""
    if not chosen:
        raise TraceError("name at least one set of records: trace.many([trace(RDD).at(0, 3), ...])")
    if len({records._application.id for records in chosen}) > 1:
        raise TraceError("these records are of several applications: trace those of each alone")
    starts: dict[Start, None] = {}
    for records in chosen:
        is_chosen = records._starts is not None and not records._direction
        begin = records if is_chosen else records._of(records.collect(MOST_STARTS))
        starts |= dict.fromkeys(begin._starts or ())
    node_ids = frozenset(node for records in chosen for node in records._node_ids)
    return LineageRecords(chosen[-1]._application, node_ids, tuple(starts))


def _text(record: Mapping[str, Any]) -> str | None:
    source = record.get("source") or {}
    for text in (record.get("value"), source.get("text"), record.get("key")):
        if text is not None:
            return str(text)
    return None
