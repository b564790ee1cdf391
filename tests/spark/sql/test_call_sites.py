"""Where operators stand in the user's program: the line of their DataFrame, or of the action."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lineage_service.lineage import Node
from tests.support.spark.application import Application

Run = Callable[..., tuple[Any, Application]]


def line(mark: str) -> str:
    """The place of the line of this file that ends with a comment of that text."""
    lines = Path(__file__).read_text().splitlines()
    [number] = [number for number, text in enumerate(lines, 1) if text.endswith(f"  # {mark}")]
    return f"{__file__}:{number}"


def nodes_of(application: Application) -> list[Node]:
    return list(application.questions.graph(application.application_id).nodes)


def places(application: Application, name: str) -> list[str]:
    return [node.call_site for node in nodes_of(application) if node.name == name]


def test_each_operator_has_the_line_that_made_its_dataframe(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("".join(f"{at % 5},{at}\n" for at in range(40)))
    (tmp_path / "names.csv").write_text("".join(f"{at},name {at}\n" for at in range(5)))

    def job(context: Any) -> int:
        spark = SparkSession(context)
        rows = spark.read.csv(f"{tmp_path}/in.csv", schema="k int, v int")  # read rows
        late = rows.where("v > 3")  # filter
        sums = late.groupBy("k").agg(F.sum("v").alias("sum"))  # aggregate
        names = spark.read.csv(f"{tmp_path}/names.csv", schema="k int, name string")  # read names
        joined = sums.join(names, "k")  # join
        doubled = joined.withColumn("twice", F.col("sum") * 2)  # project
        ordered = doubled.orderBy("sum")  # sort
        return len(ordered.collect())  # collect

    result, application = run(job)
    assert result == 5
    assert sorted(places(application, "Scan csv")) == sorted((line("read rows"), line("read names")))
    for name in ("filter", "aggregate", "join", "sort", "collect"):
        shown = name if name == "collect" else name.title()
        assert line(name) in places(application, shown), name
    assert line("project") in places(application, "Project")
    assert {node.call_site for node in nodes_of(application) if node.name == "Filter"} <= {
        line("filter"),
        line("collect"),  # of Spark's own: that no key of the join is null
    }


def test_what_the_optimiser_merges_or_exchanges_has_the_lines_of_its_expressions(run: Run) -> None:
    def job(context: Any) -> int:
        rows = SparkSession(context).range(100).select((F.col("id") % 7).alias("k"), "id")  # first select
        some = rows.select("k", (F.col("id") + 1).alias("next"))  # second select
        once = some.where("k > 1")  # first where
        twice = once.where("next < 50")  # second where
        return len(twice.collect())

    _, application = run(job)
    first, second = (line(f"{name} where").rpartition(":")[2] for name in ("first", "second"))
    merged = f"{__file__}:{first}, {second}"
    filters = places(application, "Filter")
    assert merged in filters or {line("first where"), line("second where")} <= set(filters)
    selects = {line("first select"), line("second select")}
    lines = ", ".join(sorted(place.rpartition(":")[2] for place in selects))
    assert set(places(application, "Project")) <= {*selects, f"{__file__}:{lines}"}


def test_both_sides_of_a_self_join_keep_their_lines(run: Run) -> None:
    def job(context: Any) -> int:
        rows = SparkSession(context).range(20)
        odd = rows.where("id % 2 = 1")  # odd
        third = odd.withColumn("third", F.col("id") % 3)  # third
        return len(odd.join(third, "id").collect())

    result, application = run(job)
    assert result == 10
    assert line("odd") in places(application, "Filter")
    assert set(places(application, "Project")) >= {line("third")}


def test_one_column_in_two_dataframes_gives_neither_a_wrong_line(run: Run) -> None:
    def job(context: Any) -> int:
        rows = SparkSession(context).range(20)
        is_large = rows["id"] + 1 > 10
        one = rows.where(is_large)  # one
        another = rows.where(is_large)  # another
        return len(one.collect()) + len(another.collect())  # both

    result, application = run(job)
    assert result == 20
    filters = places(application, "Filter")
    assert filters in ([line("one"), line("another")], [line("both"), line("both")])


def test_queries_of_several_threads_have_the_lines_of_their_own(run: Run) -> None:
    def job(context: Any) -> None:
        spark = SparkSession(context)
        together = threading.Barrier(4)

        def first() -> None:
            for _ in range(5):
                together.wait()
                spark.range(10).count()  # first thread

        def second() -> None:
            for _ in range(5):
                together.wait()
                spark.range(20).collect()  # second thread

        def third() -> None:
            for _ in range(5):
                together.wait()
                spark.range(30).toPandas()  # third thread

        threads = [threading.Thread(target=target) for target in (first, second, third)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            together.wait()
            spark.range(40).tail(1)  # main thread
        for thread in threads:
            thread.join()

    _, application = run(job)
    for name, place in (("count", "first"), ("collect", "second"), ("toPandas", "third"), ("tail", "main")):
        assert places(application, name) == [line(f"{place} thread")] * 5


def test_a_thread_that_runs_nothing_of_the_users_has_no_line(run: Run) -> None:
    def job(context: Any) -> None:
        frame = SparkSession(context).range(10)
        thread = threading.Thread(target=frame.count)
        thread.start()
        thread.join()

    _, application = run(job)
    assert places(application, "count") == [""]


def test_rdds_have_their_lines(run: Run) -> None:
    def job(context: Any) -> int:
        words = context.parallelize(["a b", "c"])  # parallelize
        return int(words.flatMap(str.split).count())  # flatMap and count

    _, application = run(job)
    assert places(application, "parallelize") == [line("parallelize")]
    assert places(application, "flatMap") == places(application, "count") == [line("flatMap and count")]
