"""`spark_agent.trace` in a running session, with a real consumer and a real API beside it."""

from __future__ import annotations

import json
import operator
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spark_agent import TraceError, agent, explain, trace
from spark_agent.client import frames, lineage_records
from spark_agent.driver.event_publisher import EventPublisher
from tests.support.spark.application import part_rows
from tests.support.spark.pipelines import write
from tests.support.spark.sessions import Servers, rows_of_files, session

#: Until what a failed task has sent is stored.
_DEADLINE_S = 60.0

pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).parents[3]
ORDERS = [
    "shop,state,amount",
    "North,paid,10",
    "South,paid,7",
    "North,open,90",
    "North,paid,5",
    "East,paid,3",
]
#: A chain from 1 to 4, and edges that lead to greater labels only.
EDGES = ["1,2", "7,2", "2,3", "8,3", "3,4", "9,4", "5,6", "4,10"]
TURNS = 5


@dataclass(frozen=True)
class Ran:
    """A job that has acted, in a session that goes on."""

    folder: Path
    paid: Any
    sums: Any
    labels: Any


@pytest.fixture(scope="module")
def ran(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("orders")
    orders = write(folder / "orders.csv", ORDERS)
    conf = {"spark.sql.shuffle.partitions": "2", "spark.lineage.pace": "true"}
    with session({**servers.conf, **conf}) as context:
        lines = context.textFile(str(orders), 2).filter(lambda line: not line.startswith("shop,"))
        paid = lines.map(lambda line: line.split(",")).filter(lambda order: order[1] == "paid")
        sums = paid.map(lambda order: (order[0], int(order[2]))).reduceByKey(operator.add, 2)
        sums.map(as_line).saveAsTextFile(str(folder / "sums"))
        labels = labels_of(context.textFile(str(write(folder / "edges.csv", EDGES)), 2), TURNS)
        labels.collect()
        yield Ran(folder, paid, sums, labels)


def labels_of(lines: Any, turns: int) -> Any:
    """The smallest number that each node of a graph reaches, by label propagation."""
    edges = lines.map(lambda line: tuple(map(int, line.split(","))))
    labels = edges.flatMap(lambda edge: [(node, node) for node in edge]).reduceByKey(min, 2)
    both = edges.flatMap(lambda edge: [edge, edge[::-1]])
    for _ in range(turns):
        labels = both.join(labels, 2).values().union(labels).reduceByKey(min, 2)
    return labels


NORTH = {("orders.csv", 1, 2, "North,paid,10"), ("orders.csv", 4, 5, "North,paid,5")}


def test_an_rdd_goes_back_to_the_rows_it_was_made_of(ran: Ran) -> None:
    before = agent.active().session.events.committed_runs  # type: ignore[union-attr]
    rows = trace(ran.sums).key("North").go_back_all().rows()
    assert rows.columns == ["path", "row", "line", "text"]
    assert rows_of_files(rows) == NORTH
    assert rows_of_files(trace(ran.sums).backward(key="North")) == NORTH
    assert agent.active().session.events.committed_runs == before  # type: ignore[union-attr] # asking is no part of the job


def test_the_edges_that_decided_a_label_are_named_and_the_turns_that_brought_them(ran: Ran) -> None:
    explained = explain(ran.labels).key("4")
    assert {(row.row, row.text) for row in explained.collect()} == {(0, "1,2"), (2, "2,3"), (4, "3,4")}
    assert {text for *_, text in rows_of_files(explained.rows())} == {"1,2", "2,3", "3,4"}
    assert (explained.kind, explained.exact) == ("concise", True)
    assert explained.plain_total == trace(ran.labels).key("4").go_back_all().count() > explained.count()
    [last] = [turn for turn in explained.turns() if turn.turn == 3]
    assert [row.text for row in last.sources] == ["3,4"]
    assert [record.until for record in last.records] == [TURNS]
    assert "winner" in {rule.rule for rule in explained.rules()}
    sums = explain(trace(ran.sums)).key("North")
    assert (sums.kind, sums.count(), sums.turns()) == ("concise", len(NORTH), [])
    assert str(sums).startswith("2 of 6 input rows (a plain trace: 2), concise")


def test_an_output_folder_is_chosen_from_by_its_rows(ran: Ran) -> None:
    lineage = trace(ran.folder / "sums")
    assert lineage.count() == 3
    assert rows_of_files(lineage.backward(lambda text: text.startswith("North"))) == NORTH
    assert lineage.filter(lambda text: "nobody" in text).go_back_all().count() == 0


def test_rows_of_files_go_both_ways(ran: Ran) -> None:
    part, row, _ = next(
        part_row for part_row in part_rows(ran.folder / "sums") if part_row[2].startswith("North")
    )
    assert rows_of_files(trace(str(part)).backward(row=row)) == NORTH
    orders = trace((ran.folder / "orders.csv").as_uri())
    assert orders.count() == len(ORDERS)
    assert rows_of_files(orders.forward(row=1)) == {(part.name, row, row + 1, "North,15")}
    assert rows_of_files(orders.forward(row=3)) == set()
    siblings = orders.row(1).go_next_all().go_back_all()
    assert rows_of_files(siblings.rows()) == NORTH


def test_records_of_several_choices_are_traced_together(ran: Ran) -> None:
    orders = trace(ran.folder / "orders.csv")
    both = trace.many([orders.row(1), orders.row(2)])  # type: ignore[attr-defined] # functions take attributes
    assert {text for *_, text in rows_of_files(both.go_next_all().rows())} == {"North,15", "South,7"}
    back = trace.many([trace(ran.sums).key("North"), trace(ran.paid).at(0, 0)])  # type: ignore[attr-defined]
    assert back.go_back_all().count() == len(NORTH)
    every = trace(ran.sums).go_back_all()  # of three records, in one query
    assert {text for *_, text in rows_of_files(every.rows())} == {ORDERS[row] for row in (1, 2, 4, 5)}


@pytest.mark.thorough
def test_a_row_that_is_missing_is_asked_for_at_the_level_eager(ran: Ran, jar: Path) -> None:
    from pyspark.sql import SparkSession

    orders = (
        SparkSession.builder.getOrCreate().read.option("header", True).csv(str(ran.folder / "orders.csv"))
    )
    cheap = orders.where("state = 'paid'").where("amount < 6")
    assert cheap.count() == 2
    file = trace(ran.folder / "orders.csv")
    before = agent.active().session.events.committed_runs  # type: ignore[union-attr]
    ended = [one.ended for row in (1, 3, 4) for one in file.missing(row=row)]
    assert [end and end.why for end in ended] == ["not cast(amount as bigint) < 6", "not state = paid", None]
    assert agent.active().session.events.committed_runs == before  # type: ignore[union-attr]
    with pytest.raises(TraceError, match="lineage missing"):
        trace(ran.folder / "sums").missing(row=0)


def test_a_record_that_made_a_task_fail_is_named_in_the_session(ran: Ran) -> None:
    with pytest.raises(Exception, match="no amount"):
        ran.paid.map(fails).count()
    failure = stored_failure()
    assert (failure.error, failure.message, failure.name, failure.exact) == (
        "ValueError",
        "no amount",
        "map",
        True,
    )
    assert [(row.row, row.text) for row in failure.sources] == [(4, "North,paid,5")]
    assert "orders.csv:5  North,paid,5" in str(failure)


def stored_failure() -> Any:
    """The only one, once the flows of its task are stored: it is not exact before."""
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        (failure,) = trace.failures()  # type: ignore[attr-defined] # functions take attributes
        if failure.exact or time.monotonic() > deadline:
            return failure
        time.sleep(0.2)


def fails(order: list[str]) -> list[str]:
    if order[2] == "5":
        raise ValueError("no amount")
    return order


def as_line(total: tuple[str, int]) -> str:
    if total[0] == "East":
        time.sleep(0.4)
    return f"{total[0]},{total[1]}"


def test_the_record_that_took_long_is_named_in_the_session(ran: Ran) -> None:
    slow = trace.slow()  # type: ignore[attr-defined] # functions take attributes
    rows = {tuple(row.text for row in record.sources) for record in slow if record.name == "map"}
    assert ("East,paid,3",) in rows


def test_it_goes_step_by_step(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    north = trace(ran.sums).key("North")
    steps = [north.go_back(steps).count() for steps in range(6)]
    assert steps == [1, 2, 2, 2, 2, 2]
    assert north.go_back().go_next().collect()[0][1]["key"] == "North"
    north.go_back(9).show(1)
    assert capsys.readouterr().out == f"{ran.folder}/orders.csv:2  North,paid,10\n... 1 more\n"
    assert [record for _, record in north.positions().collect()] == [north.collect()[0][1]["record_id"]]


def test_many_rows_are_read_by_spark_where_they_stand(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "ROWS_FROM_DRIVER", 0)
    rows = trace(ran.sums).key("North").go_back_all().rows()
    assert rows_of_files(rows) == NORTH
    folder = ran.folder / "long [1]"
    folder.mkdir()
    long = write(folder / "a b.txt", [f"{i} {'x' * 50}" for i in range(2_000)])
    spark = frames._session()
    spark.conf.set("spark.sql.files.maxPartitionBytes", "9000")
    numbered = frames.rows_of_file(spark, str(long)).collect()
    assert sorted(tuple(row) for row in numbered) == [(i, f"{i} {'x' * 50}") for i in range(2_000)]


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda ran: trace(ran.paid.map(len)), "no action has used this RDD"),
        (lambda ran: trace(17), "neither a path nor an RDD"),
        (lambda ran: trace("/no/such/file"), "no source or sink"),
        (lambda ran: trace(ran.paid).filter(len), "spark.lineage.detailed=true"),
        (lambda ran: trace(ran.sums).rows(), "no rows of files"),
        (lambda ran: trace(ran.sums).row(0), "trace the file"),
        (lambda ran: trace(ran.sums).backward(partition=0), "say row="),
        (lambda ran: trace(ran.sums).key("nobody").go_back().count(), "no record with the key"),
        (lambda ran: trace(ran.sums, api="http://127.0.0.1:9"), "start `lineage serve`"),
        (lambda ran: trace(ran.sums, api="nowhere"), "no address"),
    ],
)
def test_what_cannot_be_answered_says_why(ran: Ran, ask: Any, text: str) -> None:
    with pytest.raises(TraceError, match=text):
        ask(ran)


def test_more_records_than_can_be_asked_for_are_refused(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_records, "MOST_STARTS", 2)
    with pytest.raises(TraceError, match="choose with filter"):
        trace(ran.folder / "sums").go_back_all()


def test_what_is_not_stored_in_time_is_said(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EventPublisher, "committed_runs", 1_000_000)
    with pytest.warns(UserWarning, match="of its 1000000 runs are stored"):
        trace(ran.sums, wait_s=0.1)


@pytest.mark.thorough
def test_the_example_and_the_engine_on_spark_answer_at_a_terminal(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path / "orders.csv", ORDERS)
    bin_ = Path(sys.executable).parent

    def run(*command: str) -> str:
        done = subprocess.run(
            command, env=servers.environment, cwd=tmp_path, capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    confs = [part for name, value in servers.conf.items() for part in ("--conf", f"{name}={value}")]
    example = str(ROOT / "examples" / "trace_in_session.py")
    printed = run(str(bin_ / "spark-submit"), *confs, example, "orders.csv", "sums", "North")
    part, row, _ = next(part_row for part_row in part_rows(tmp_path / "sums") if part_row[2] == "North,15")
    assert printed.splitlines() == [
        "North has 2 paid orders; the largest of them:",
        "line 2: North,paid,10",
        "and went into:",
        f"{part}:{row + 1}  North,15",
    ]
    question = ["trace", "last", "backward", f"{part}:{row + 1}", "--json"]
    here = run(sys.executable, "-m", "lineage_service.cli.main", *question)
    on_spark = run(
        sys.executable,
        "-m",
        "lineage_service.cli.main",
        *question,
        "--engine",
        "spark",
        "--master",
        "local[1]",
    )
    assert json.loads(on_spark) == json.loads(here)
