"""Many small queries in one application: each is written, and traced by itself, row by row, both ways.

A case is a query and its oracle: the rows that come out with the input rows that each comes from, by plain
Python over the data. Rows are compared too, with the oracle's and with those of a run without lineage.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyarrow import orc
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from lineage_service.lineage import Graph, Node, Trace
from lineage_service.queries import RecordQuery
from spark_agent.contract.dataset_names import is_of_files
from tests.support.spark.application import Application, Row, run_application
from tests.support.spark.relational import Data, Sources
from tests.support.spark.shop import Shop, make_shop

Place = tuple[str, int]
"""(path of an output file below its folder, row number)."""


@dataclass(frozen=True)
class Tables:
    """What a query begins with. Each table is a view too."""

    spark: SparkSession
    shop: Shop

    def __getattr__(self, name: str) -> DataFrame:
        return self.spark.read.parquet(self.shop.path(name))


def parquet(frame: DataFrame, path: str) -> None:
    frame.write.parquet(path)


@dataclass(frozen=True)
class Case:
    query: Callable[[Tables], DataFrame]
    oracle: Callable[[Shop], Data]
    #: Which rows come out is Spark's choice: this many (-1: any number) of the oracle's, which all differ.
    chosen: int | None = None
    #: The most that a trace that is not exact may give, where the oracle's sources are the least.
    bound: Callable[[Shop], Data] | None = None
    #: What the traces say of themselves; None: either.
    exact: bool | None = True
    #: An operator that is not covered, as the graph names it: only the rows and the graph are looked at.
    uncovered: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)
    write: Callable[[DataFrame, str], None] = parquet
    #: Where the rows are, below the folder of all outputs; empty: where `write` was told to put them.
    place: str = ""
    #: The first line of each file is none of the rows.
    header: bool = False


def sql(text: str, oracle: Callable[[Shop], Data], **more: Any) -> Case:
    return Case(lambda t: t.spark.sql(text), oracle, **more)


def expect_uncovered(case: Case, operator: str) -> Case:
    """The job is untouched, and the graph says that it is not exact because of the operator."""
    return replace(case, uncovered=operator)


def without_lineage(cases: Mapping[str, Case]) -> Mapping[str, Case]:
    """The cases that run without lineage too: those whose rows are Spark's choice, or the first.

    All other rows are compared with the oracle's. LINEAGE_TEST_PLAIN=all compares all of them with Spark's,
    which checks the oracles.
    """
    if os.environ.get("LINEAGE_TEST_PLAIN") == "all":
        return cases
    first = next(iter(cases))
    chosen = {name: case for name, case in cases.items() if case.chosen is not None}
    return chosen or {first: cases[first]}


def written(folder: Path, *, header: bool = False) -> list[tuple[Place, tuple[Any, ...]]]:
    """Every row of the part files of an output, in order; of a text format, every line."""
    return [
        ((str(part.relative_to(folder)), at), row)
        for part in sorted(folder.rglob("part-*"))
        for at, row in enumerate(rows_in(part))
        if at or not header
    ]


def rows_in(part: Path) -> list[tuple[Any, ...]]:
    if part.suffix == ".parquet":
        return [tuple(row.values()) for row in pq.ParquetFile(part).read().to_pylist()]
    if part.suffix == ".orc":
        return [tuple(row.values()) for row in orc.ORCFile(part).read().to_pylist()]
    return [(line,) for line in part.read_text(encoding="utf-8").split("\n")[:-1]]


@dataclass(frozen=True)
class Ran:
    """What became of the cases, whose outputs are folders of their names' numbers."""

    cases: Mapping[str, Case]
    shop: Shop
    folder: Path
    failures: Mapping[str, Exception]
    application: Application | None

    def output(self, name: str) -> Path:
        if name in self.failures:
            raise self.failures[name]
        return self.folder / (self.cases[name].place or f"out-{list(self.cases).index(name)}")

    def written(self, name: str) -> list[tuple[Place, tuple[Any, ...]]]:
        return written(self.output(name), header=self.cases[name].header)

    def rows(self, name: str) -> Counter[str]:
        """The rows as text, in which NaN equals itself and -0.0 does not equal 0.0."""
        return Counter(repr(row) for _, row in self.written(name))

    def expected(self, name: str) -> Data:
        """What the oracle says. Of the rows that are Spark's choice, those that were chosen."""
        case, data = self.cases[name], self.cases[name].oracle(self.shop)
        if case.chosen is None:
            return data
        rows = self.rows(name)
        assert case.chosen in (-1, rows.total())
        return [(row, sources) for row, sources in data if repr(row) in rows]

    def check_rows(self, name: str, plain: Ran | None = None) -> None:
        """The rows are the oracle's, and those of a run without lineage."""
        rows = self.rows(name)
        expected = Counter(repr(row) for row, _ in self.expected(name))
        assert rows == expected, f"only written: {rows - expected}; only expected: {expected - rows}"
        if plain is not None and name in plain.cases:
            assert rows == plain.rows(name)

    def check(self, name: str, plain: Ran) -> None:
        """All of it: rows, backward of each output row, forward of each input row."""
        self.check_rows(name, plain)
        assert self.application is not None
        case, output = self.cases[name], self.output(name)
        if case.uncovered:
            check_coarse(self.application, output, case.uncovered)
            return
        traced = {
            (part, at): (row, self.backward(output / part, at)) for (part, at), row in self.written(name)
        }
        if case.exact is not None:
            says = {trace.exact for _, trace in traced.values()}
            assert says <= {case.exact}, f"traces say exact: {says}"
        sinks = {trace.start_node for _, trace in traced.values()}
        sources_of = {place: (repr(row), rows_of_sources(trace)) for place, (row, trace) in traced.items()}
        least = self.expected(name)
        if case.bound is None:
            check_sources(sources_of.values(), least)
        else:
            exact = [sources_of[place] for place, (_, trace) in traced.items() if trace.exact]
            check_bounds(exact, least, least)
            check_bounds(sources_of.values(), least, case.bound(self.shop))
        check_forward(
            self.application, sinks, output, {place: rows for place, (_, rows) in sources_of.items()}
        )

    def backward(self, path: Path, row: int) -> Trace:
        assert self.application is not None
        trace = self.application.trace(direction="backward", path=str(path), row=row)
        assert trace.complete is not bool(self.application.gaps)
        assert not trace.truncated
        return trace


def check_sources(traced: Iterable[tuple[str, Sources]], expected: Data) -> None:
    have, want = Counter(traced), Counter((repr(row), sources) for row, sources in expected)
    assert have == want, f"only traced: {show(have - want)}\nonly expected: {show(want - have)}"


def check_bounds(traced: Iterable[tuple[str, Sources]], least: Data, most: Data) -> None:
    """What is not exact holds all that it must, and nothing from elsewhere. All rows are different."""
    low, high = ({repr(row): sources for row, sources in data} for data in (least, most))
    for row, sources in traced:
        assert low[row] <= sources <= high[row], f"{row}: {low[row]} <= {sources} <= {high[row]}"


def show(rows: Counter[Any]) -> str:
    """A few, in an order in which the two sides can be compared."""
    return "".join(f"\n  {count} of {row} from {sorted(s)}" for (row, s), count in sorted(rows.items())[:4])


def rows_of_sources(trace: Trace) -> Sources:
    """Records that are no rows of files, such as those of VALUES, are left out."""
    return frozenset(
        (Path(record.source.path).name, record.source.row)
        for node in trace.nodes
        if node.kind == "source"
        for record in node.records
        if record.source is not None
    )


def graph_of(application: Application) -> Graph:
    return application.questions.graph(application.application_id)


def upstream(graph: Graph, node_id: str) -> list[Node]:
    """A node and all that it has records from."""
    before = defaultdict(set)
    for edge in graph.edges:
        before[edge.target].add(edge.source)
    seen, left = {node_id}, [node_id]
    while left:
        new = before[left.pop()] - seen
        seen |= new
        left += new
    return [node for node in graph.nodes if node.node_id in seen]


def check_coarse(application: Application, output: Path, operator: str) -> None:
    """The graph knows the output of a query that is not followed, that it is not exact, and why."""
    graph = graph_of(application)
    sinks = [node for node in graph.nodes if node.kind == "sink" and node.description == str(output)]
    assert sinks, f"no sink {output}"
    for sink in sinks:
        reasons = [f"{node.name}: {node.reason}" for node in upstream(graph, sink.node_id) if not node.exact]
        assert any(operator in reason for reason in reasons), reasons


def records_of(application: Application, node_id: str) -> Iterator[Any]:
    cursor = None
    while True:
        page = application.questions.records(
            application.application_id, RecordQuery(node=node_id, limit=1000, cursor=cursor)
        )
        yield from page.records
        cursor = page.next
        if cursor is None:
            return


def check_forward(
    application: Application, sinks: Iterable[str], output: Path, backward: Mapping[Place, frozenset[Row]]
) -> None:
    """Forward is the inverse of backward, for every record of every source of the sinks of an output."""
    graph = graph_of(application)
    reached: dict[Row, set[Place]] = defaultdict(set)
    for sink in sinks:
        for source in upstream(graph, sink):
            if source.kind != "source" or source.dataset is None or not is_of_files(source.dataset.format):
                continue
            for record in records_of(application, source.node_id):
                assert record.source is not None, f"{source.name} {record.record_id} has no row"
                trace = application.trace(
                    direction="forward",
                    node=source.node_id,
                    partition=record.partition,
                    offset=record.offset,
                    to=sink,
                )
                assert not trace.truncated
                row = Path(record.source.path).name, record.source.row
                reached[row] |= places_in(trace, sink, output)
    expected: dict[Row, set[Place]] = defaultdict(set)
    for place, rows in backward.items():
        for row in rows:
            expected[row].add(place)
    for row in {*reached, *expected}:
        assert reached[row] == expected[row], f"forward of {row}"


def places_in(trace: Trace, sink: str, output: Path) -> set[Place]:
    """Those of an earlier output whose files are gone are none."""
    return {
        (str(Path(record.source.path).relative_to(output)), record.source.row)
        for node in trace.nodes
        if node.node_id == sink
        for record in node.records
        if record.source is not None and Path(record.source.path).exists()
    }


@contextmanager
def conf_of(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in conf:
            spark.conf.unset(name)


def run_cases(
    bootstrap_servers: str,
    folder: Path,
    cases: Mapping[str, Case],
    *,
    lineage: bool,
    after: Callable[[str, Path], None] = lambda name, output: None,
    **conf: str,
) -> Ran:
    """All cases in one application, one after the other. `after` is called with the output of each."""
    shop = make_shop(folder / "shop")
    failures: dict[str, Exception] = {}

    def job(context: SparkContext) -> None:
        context.setCheckpointDir(str(folder / "checkpoints"))
        spark = SparkSession.builder.getOrCreate()
        tables = Tables(spark, shop)
        for name in ("orders", "customers", "labels", "baskets", "by_tag"):
            getattr(tables, name).createOrReplaceTempView(name)
        for at, (name, case) in enumerate(cases.items()):
            try:
                with conf_of(spark, case.conf):
                    case.write(case.query(tables), str(folder / f"out-{at}"))
                after(name, folder / (case.place or f"out-{at}"))
            except Exception as error:  # noqa: BLE001 - the test of this case raises it
                failures[name] = error

    _, application = run_application(
        bootstrap_servers,
        folder / "store",
        job,
        lineage=lineage,
        **{
            "spark_sql_shuffle_partitions": "3",
            "spark_sql_warehouse_dir": str(folder / "warehouse"),
            **conf,
        },
    )
    return Ran(cases, shop, folder, failures, application)
