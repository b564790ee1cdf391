"""Where rows of inputs end that are in no output, against plain Python that knows the reason of each."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import InvalidQueryError, NotFoundError, NothingMatchesError
from lineage_service.lineage import Missing
from lineage_service.queries import MissingQuery
from tests.support.spark import ending_pipelines, ending_queries
from tests.support.spark.application import Application, run_application
from tests.support.spark.ending_queries import CUSTOMERS, ORDERS

LEFT = [(at % 5, at * 7 % 11) for at in range(14)]
RIGHT = [(at % 4 + 2, at) for at in range(6)]
QUICK, ALL = range(1), range(1, 42)


@dataclass
class Ran:
    """An application that ran programs and queries, by seed."""

    folder: Path
    application: Application
    nodes: dict[int, list[int]]
    failures: dict[str, Exception]

    def missing(self, **query: Any) -> Missing:
        return self.application.questions.missing(self.application.application_id, MissingQuery(**query))


def fails(pair: tuple[int, int]) -> tuple[int, int]:
    if pair == LEFT[-1]:
        raise ValueError(pair)
    return pair


def run(kafka: Any, folder: Path, seeds: range) -> Ran:
    for name, pairs in (("left.txt", LEFT), ("right.txt", RIGHT)):
        (folder / name).write_text("".join(f"{key} {value}\n" for key, value in pairs))
    ending_queries.write_tables(folder)
    nodes: dict[int, list[int]] = {}
    failures: dict[str, Exception] = {}

    def job(context: Any) -> None:
        from pyspark.sql import SparkSession

        sides = [
            context.textFile(str(folder / name), parts).map(lambda line: tuple(map(int, line.split())))
            for name, parts in (("left.txt", 3), ("right.txt", 2))
        ]
        for seed in seeds:
            made, nodes[seed] = ending_pipelines.in_spark(ending_pipelines.make(seed), *sides)
            made.map(repr).saveAsTextFile(str(folder / f"rdd-{seed}"))
        sides[0].take(3)
        sides[0].join(sides[1]).map(repr).saveAsTextFile(str(folder / "joined"))
        with contextlib.suppress(Exception):
            sides[0].filter(lambda kv: kv[0] != 1).map(fails).saveAsTextFile(str(folder / "failed"))
        spark = SparkSession(context)
        ending_queries.make_views(spark, folder)
        for seed in seeds:
            spark.sql(ending_queries.make(seed).sql).write.json(str(folder / f"query-{seed}"))
        spark.sql("select * from orders_csv limit 4").write.json(str(folder / "limited"))
        spark.table("orders_csv").coalesce(1).write.partitionBy("tag").parquet(str(folder / "by-tag"))
        by_tag = spark.read.parquet(str(folder / "by-tag"))
        by_tag.where("tag = 'x' and amount > 5").write.json(str(folder / "of-x"))

    _, application = run_application(
        kafka.bootstrap_servers,
        folder / "store",
        job,
        spark_sql_shuffle_partitions="3",
        spark_lineage_detailed="true",
    )
    assert application is not None
    return Ran(folder, application, nodes, failures)


@pytest.fixture(scope="module")
def ran(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(kafka, tmp_path_factory.mktemp("missing"), QUICK)


@pytest.fixture(scope="module")
def ran_all(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(kafka, tmp_path_factory.mktemp("missing"), ALL)


# -- RDDs -------------------------------------------------------------------------------------------


def check_pipeline(ran: Ran, seed: int) -> None:
    """Of every row of both inputs: the operations at which it ended are those of the oracle, all exact."""
    program = ending_pipelines.make(seed)
    left, right, ends_of = ending_pipelines.naively(program, LEFT, RIGHT)
    for name, rows in (("left.txt", left), ("right.txt", right)):
        for at, row in enumerate(rows):
            try:
                missing = ran.missing(
                    path=str(ran.folder / name), row=at, output=str(ran.folder / f"rdd-{seed}")
                )
            except InvalidQueryError:  # no step takes this input
                assert not any((name == "right.txt") in step.inputs for step in program)
                continue
            expected = ends_of(row)
            assert all(entry.exact for entry in missing.rows), missing.rows
            ended = {number_of(entry.ended.node_id) for entry in missing.rows if entry.ended is not None}
            if expected is None:
                assert (bool(missing.reached), ended) == (True, set()), (program, name, at)
            else:
                assert not missing.reached
                assert ended == {ran.nodes[seed][step] for step in expected}, (program, name, at)


def number_of(node_id: str) -> int:
    return int(node_id.rpartition("#")[2])


@pytest.mark.thorough
@pytest.mark.parametrize("seed", QUICK)
def test_rows_of_pipelines_end_where_nothing_came_of_them(ran: Ran, seed: int) -> None:
    check_pipeline(ran, seed)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", ALL)
def test_rows_of_more_pipelines_end_where_nothing_came_of_them(ran_all: Ran, seed: int) -> None:
    check_pipeline(ran_all, seed)


# -- queries ----------------------------------------------------------------------------------------


def endings(ran: Ran, seed: int, name: str, row: int) -> Missing:
    return ran.missing(path=str(ran.folder / name), row=row, output=str(ran.folder / f"query-{seed}"))


def check_query(ran: Ran, seed: int) -> Counter[bool]:
    """Of every order: it is in the output, or it ended for one of its reasons. How many ends are exact."""
    query = ending_queries.make(seed)
    exact: Counter[bool] = Counter()
    for at, reasons in query.reasons().items():
        missing = endings(ran, seed, f"orders.{query.format}", at)
        context = query.sql, ORDERS[at], reasons, missing.rows
        assert bool(missing.reached) is not bool(reasons), context
        assert bool(missing.rows) is bool(reasons), context
        for entry in missing.rows:
            ends = [entry.ended] if entry.ended is not None else entry.candidates
            possible = [ending_queries.reasons_of(end) & reasons for end in ends]
            assert any(possible), context
            assert entry.exact is (entry.ended is not None), context
            exact[entry.exact] += 1
    return exact


def check_customers(ran: Ran, seed: int) -> None:
    """A row of the other side of a join is in the output with the orders that it met."""
    query = ending_queries.make(seed)
    if query.join is None:
        return
    in_output = [at for at, reasons in query.reasons().items() if not reasons]
    met = {customer for at in in_output for customer in query.matches(ORDERS[at])}
    is_pruned = query.join == "left" and query.total is not None  # a sum of orders may do without customers
    for at, customer in enumerate(CUSTOMERS):
        if query.join == "left anti" or is_pruned:
            continue
        missing = endings(ran, seed, "customers.csv", at)
        assert bool(missing.reached) is (at in met), (query.sql, customer, missing)
        exactly = [entry.ended for entry in missing.rows if entry.exact and entry.ended is not None]
        if not query.is_named(customer):
            assert all(ending_queries.reasons_of(end) != {"name"} for end in exactly), (query.sql, customer)


@pytest.mark.parametrize("seed", QUICK)
def test_rows_of_queries_end_for_a_reason_of_theirs(ran: Ran, seed: int) -> None:
    check_query(ran, seed)
    check_customers(ran, seed)


@pytest.mark.thorough
def test_rows_of_more_queries_end_for_a_reason_of_theirs(ran_all: Ran) -> None:
    exact: Counter[bool] = Counter()
    for seed in ALL:
        exact += check_query(ran_all, seed)
        check_customers(ran_all, seed)
    assert exact[True] > 750  # of 909; the others may have ended at several operators


# -- limits, conditions, what cannot be asked --------------------------------------------------------


def test_a_limit_and_a_take_are_named(ran: Ran) -> None:
    (entry,) = ran.missing(
        path=str(ran.folder / "orders.csv"), row=9, output=str(ran.folder / "limited")
    ).rows
    assert (entry.exact, entry.ended and entry.ended.why) == (True, "limit: only 4 rows are taken")
    (take,) = [sink for sink in ran.application.sinks() if sink.name == "take"]
    taken = [
        ran.missing(path=str(ran.folder / "left.txt"), row=row, output=take.node_id) for row in (2, 3, 13)
    ]
    assert [bool(missing.reached) for missing in taken] == [True, False, False]
    assert all(entry.exact for missing in taken for entry in missing.rows)
    assert {entry.ended and entry.ended.name for missing in taken for entry in missing.rows} == {"take"}


def test_a_join_names_the_key_where_values_tell_it(ran: Ran) -> None:
    (entry,) = ran.missing(path=str(ran.folder / "left.txt"), row=0, output=str(ran.folder / "joined")).rows
    assert entry.ended is not None
    assert entry.ended.why == "join: no match on the other side for the key 0"
    assert [record.value for record in entry.last] == ["[0, 0]"]


def test_nothing_is_exact_of_an_action_that_failed(ran: Ran) -> None:
    left, output = str(ran.folder / "left.txt"), str(ran.folder / "failed")
    dropped, lost = (ran.missing(path=left, row=row, output=output) for row in (1, len(LEFT) - 1))
    for missing in (dropped, lost):
        assert not missing.reached
        assert [entry.exact for entry in missing.rows] == [False]
        assert "saveAsTextFile failed" in missing.rows[0].reason


def test_a_condition_on_folders_left_whole_files_out(ran: Ran) -> None:
    (file,) = (ran.folder / "by-tag").glob("tag=y/*.parquet")
    (entry,) = ran.missing(path=str(file), row=0, output=str(ran.folder / "of-x")).rows
    assert (entry.record_id, entry.exact) == (None, True)
    assert entry.ended is not None
    assert entry.ended.name == "Filter"
    assert entry.columns is not None


def rows_of(missing: Missing) -> Iterator[tuple[str, int | None]]:
    yield from sorted({(str(entry.path), entry.row) for entry in (*missing.rows, *missing.reached)})


def test_what_an_output_should_have_is_looked_for_in_its_inputs(ran: Ran) -> None:
    limited = str(ran.folder / "limited")
    missing = ran.missing(path=limited, where="id = 9 and amount is not null or id = 9")
    assert missing.present == ()
    (asked,) = missing.inputs or ()
    assert (asked.lacks, asked.matches) == ((), 1)
    assert list(rows_of(missing)) == [(str(ran.folder / "orders.csv"), 9)]
    present = ran.missing(path=limited, where="id = 2")
    assert [choice.columns and choice.columns["id"] for choice in present.present or ()] == [2]
    assert [len(entry.outputs) for entry in present.reached] == [1]


def test_rows_of_an_input_are_named_by_a_condition(ran: Ran) -> None:
    path = str(ran.folder / "orders.parquet")
    missing = ran.missing(path=path, where="id in (4, 5)")
    assert list(rows_of(missing)) == [(path, 4), (path, 5)]
    with pytest.raises(NothingMatchesError, match="no row of this input fulfils id = 99"):
        ran.missing(path=path, where="id = 99")
    assert ran.missing(path=path, where="id >= 0", limit=3).truncated


def test_what_cannot_be_asked_gets_one_sentence(ran: Ran) -> None:
    orders = str(ran.folder / "orders.csv")
    with pytest.raises(NotFoundError, match=r"not there|no record"):
        ran.missing(path=orders, row=999)
    with pytest.raises(NotFoundError, match="has the file /no/such/file"):
        ran.missing(path="/no/such/file", row=0)
    with pytest.raises(NotFoundError, match=r"no output of application .* is /no/such/output: it has"):
        ran.missing(path=orders, row=0, output="/no/such/output")
    with pytest.raises(InvalidQueryError, match="is not made of rows of this input"):
        ran.missing(path=str(ran.folder / "right.txt"), row=0, output=str(ran.folder / "limited"))
    with pytest.raises(InvalidQueryError, match="no column amunt: did you mean amount"):
        ran.missing(path=str(ran.folder / "limited"), where="amunt = 1")
    with pytest.raises(InvalidQueryError, match="it is a row of an output"):
        ran.missing(record="write#0#0", node=ran.application.sinks()[0].node_id)
