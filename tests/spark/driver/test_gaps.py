"""What is not followed is said: the application is not complete, and a node stands for it.

Many situations in few applications.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from lineage_service.errors import InvalidQueryError, NotFoundError
from spark_agent.sql import jvm_gateway
from spark_agent.sql.runtime import spark_sessions, streaming_queries
from spark_agent.sql.runtime.queries import Queries
from tests.support.lanes import sampled
from tests.support.spark.application import Application, messages_of, run_application

SECRETS = ("Hush7-in-the-url", "Hush8-as-an-option")
URL = f"jdbc:derby:memory:gaps;create=true;user=app;password={SECRETS[0]}"
OPTIONS = {"url": URL, "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver", "password": SECRETS[1]}
CATALOG = "spark_sql_catalog_db"
CONF = {
    CATALOG: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    f"{CATALOG}_url": f"jdbc:derby:memory:catalog;create=true;password={SECRETS[0]}",
    f"{CATALOG}_driver": OPTIONS["driver"],
}


def stream(frame: Any, folder: Path, name: str, format: str = "", each: Any = None) -> None:
    writer = frame.writeStream.queryName(name).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / f"checkpoint {name}"))
    writer = writer.foreachBatch(each) if each is not None else writer.format(format)
    query = writer.start(str(folder / name)) if format == "json" else writer.start()
    assert query.awaitTermination(1200)
    assert query.exception() is None


def parts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.startswith("part-") and path.stat().st_size)


def files(spark: SparkSession, folder: Path) -> Any:
    """Rows of files as a stream, behind a batch query that wrote them."""
    spark.range(20).selectExpr("id", "id % 3 as rest").write.parquet(str(folder / "in"))
    return spark.readStream.schema("id long, rest long").parquet(str(folder / "in"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gaps")


@pytest.fixture(scope="module")
def followed(kafka: Any, folder: Path) -> Application:
    """Streams, databases and what else Spark has, with all that the agent needs."""

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        events = files(spark, folder)
        stream(events.where("rest = 1"), folder, "to files", format="json")
        stream(events, folder, "to_memory", format="memory")
        stream(
            events,
            folder,
            "by batches",
            each=lambda batch, number: batch.write.mode("append").json(str(folder / "batches")),
        )
        people = spark.range(30, numPartitions=2).selectExpr("id", "concat('p', id) as name")
        people.write.format("jdbc").options(**OPTIONS, dbtable="people").mode("overwrite").save()
        stored = spark.read.format("jdbc").options(**OPTIONS, dbtable="people").load()
        stored.where("id > 9").write.json(str(folder / "stored"))
        spark.sql("create namespace if not exists db.APP")
        spark.sql("create table db.APP.numbers as select id from range(5)")
        lines = context._jsc.sc().textFile(str(folder / "in"), 2)
        typed = spark._jsparkSession.createDataset(lines, context._jvm.org.apache.spark.sql.Encoders.STRING())
        DataFrame(typed.toDF(), spark).where("length(value) >= 0").write.json(str(folder / "typed"))
        collected = [tuple(row) for row in people.where("id < 3").collect()]
        spark.createDataFrame(collected, "id long, name string").write.json(str(folder / "listed"))
        context.parallelize(range(4), 2).map(lambda number: number + 1)._jrdd.count()  # as MLlib does
        context.parallelize([name for _, name in collected], 1).saveAsTextFile(str(folder / "names"))

    _, application = run_application(kafka.bootstrap_servers, folder / "store", job, **CONF)
    assert application is not None
    return application


def sinks_of(application: Application, description: str) -> list[Any]:
    return [sink for sink in application.sinks() if description in f"{sink.name} {sink.description}"]


def missing_of(application: Application) -> str:
    described = application.questions.application(application.application_id)
    assert described.complete is not bool(described.missing)
    return described.missing


@pytest.mark.thorough
def test_a_stream_is_a_gap_and_a_node_with_its_sources_and_its_sink(
    followed: Application, folder: Path
) -> None:
    assert "the streaming query to files is not followed" in missing_of(followed)
    [sink] = sinks_of(followed, "stream to files")
    assert (sink.exact, sink.dataset.name, sink.dataset.format) == (False, str(folder / "to files"), "json")
    graph = followed.questions.graph(followed.application_id)
    [source] = [
        node
        for node in graph.nodes
        for edge in graph.edges
        if (edge.source, edge.target) == (node.node_id, sink.node_id)
    ]
    assert (source.kind, source.dataset.name) == ("source", str(folder / "in"))
    [memory] = sinks_of(followed, "stream to_memory")
    assert "memory" in memory.description
    assert len(followed.gaps) == len(set(followed.gaps))


def test_a_row_that_a_stream_wrote_is_answered_with_a_sentence(followed: Application, folder: Path) -> None:
    [*written] = parts(folder / "to files")
    assert written
    with pytest.raises(NotFoundError, match="the streaming query to files is not followed"):
        followed.trace(direction="backward", path=str(written[0]), row=0)


def test_what_foreach_batch_writes_ends_at_its_batch(followed: Application, folder: Path) -> None:
    trace = followed.trace(direction="backward", path=str(parts(folder / "batches")[0]), row=0)
    assert not trace.exact
    [source] = [node for node in trace.nodes if node.kind == "source"]
    assert (source.name, source.total) == ("LogicalRDD", 1)
    assert "not followed" in source.reason


def test_a_table_of_a_database_is_a_sink_and_a_source_with_a_name_and_no_secret(
    followed: Application, folder: Path
) -> None:
    [sink] = sinks_of(followed, "jdbc:derby:memory:gaps")
    assert (sink.exact, sink.records) == (True, 30)
    assert (sink.dataset.namespace, sink.dataset.name) == ("jdbc:derby:memory:gaps", "people")
    trace = followed.trace(direction="backward", path=str(parts(folder / "stored")[0]), row=0)
    [source] = [node for node in trace.nodes if node.kind == "source"]
    assert (source.name, source.total, trace.exact) == ("Scan jdbc", 1, True)
    backward = followed.trace(direction="backward", node=sink.node_id, partition=1, offset=0)
    assert [node.total for node in backward.nodes if node.kind == "source"] == [1]


def test_no_byte_of_the_topics_and_no_answer_has_a_password_of_a_database(
    followed: Application, kafka: Any
) -> None:
    messages = [
        message
        for topic in followed.topics.values()
        for message in messages_of(kafka.bootstrap_servers, topic)
    ]
    assert len(messages) > len(followed.events)
    answers = repr(followed.questions.graph(followed.application_id)).encode()
    for secret in SECRETS:
        assert not any(secret.encode() in message for message in (*messages, answers))


def test_a_table_of_a_catalog_whose_source_writes_by_itself_is_followed(followed: Application) -> None:
    [sink] = sinks_of(followed, "APP.numbers")
    assert (sink.exact, sink.records) == (True, 5)


def test_a_dataset_that_a_library_of_the_jvm_makes_of_an_rdd_is_a_gap(followed: Application) -> None:
    [sink] = sinks_of(followed, "typed")
    assert not sink.exact
    assert "a library or a function of the JVM" in sink.reason
    assert any("a library or a function of the JVM" in gap for gap in followed.gaps)


def test_a_job_that_a_library_of_the_jvm_runs_over_an_rdd_is_a_gap(followed: Application) -> None:
    assert any("records went to a job that a library of the JVM ran" in gap for gap in followed.gaps)


def test_a_trace_that_ends_at_a_list_of_the_driver_says_so(followed: Application, folder: Path) -> None:
    for name in ("listed", "names"):
        trace = followed.trace(direction="backward", path=str(parts(folder / name)[0]), row=0)
        [source] = [node for node in trace.nodes if node.kind == "source"]
        assert source.exact
        assert "a list of the driver: where its records came from is not followed" in source.reason


def test_the_records_of_a_stream_cannot_be_asked_for(followed: Application) -> None:
    [sink] = sinks_of(followed, "stream to_memory")
    with pytest.raises(InvalidQueryError, match="the streaming query to_memory is not followed"):
        followed.trace(direction="backward", node=sink.node_id, partition=0, offset=0)


# -- where the agent could not attach ---------------------------------------------------------------


def some_queries(folder: Path) -> Callable[[SparkContext], Any]:
    def job(context: SparkContext) -> Any:
        spark = SparkSession.builder.getOrCreate()
        frame = spark.range(20).selectExpr("id", "id % 3 as rest")
        frame.write.parquet(str(folder / "written"))
        count = spark.read.parquet(str(folder / "written")).where("rest = 1").count()
        frame.createOrReplaceTempView("numbers")
        spark.sql("select 1").collect()
        stream(files(spark, folder), folder, "to nobody", format="json")
        return count, sorted(row[0] for row in frame.rdd.collect()), context.parallelize([1, 2]).sum()

    return job


@pytest.mark.parametrize("fault", sampled(["no jar", "other classes", "no queries", "no listener"], 2))
def test_where_dataframes_could_not_be_attached_to_no_query_is_silent(
    fault: str, kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError("on purpose")

    if fault == "no queries":
        monkeypatch.setattr(Queries, "__init__", raises)
    elif fault == "other classes":  # a jar that this Spark does not load, or that of another version
        monkeypatch.setitem(jvm_gateway._CLASSES, "plan", ("NoSuchClass",))
    else:
        monkeypatch.setattr(jvm_gateway, "JAR", str(tmp_path / "no.jar"))
    if fault == "no listener":
        monkeypatch.setattr(spark_sessions.CoarseQueries, "publish", raises)
        monkeypatch.setattr(streaming_queries, "_endpoints", raises)
    given, application = run_application(kafka.bootstrap_servers, tmp_path / "store", some_queries(tmp_path))
    assert given == (7, list(range(20)), 3)
    assert application is not None
    missing = missing_of(application)
    assert "DataFrames and SQL have no" in missing  # "record lineage", or "lineage in this application"
    assert "streaming query to nobody" in missing
    if fault == "no listener":
        return
    names = [sink.name for sink in application.sinks() if not sink.exact]
    assert names[:3] == ["parquet", "count", "parquet"]  # and no `select 1`, which reads nothing
    assert "stream to nobody" in names
    [part, *_] = parts(tmp_path / "written")
    with pytest.raises(NotFoundError, match="DataFrames and SQL have no"):
        application.trace(direction="backward", path=str(part), row=0)


@pytest.mark.parametrize("is_used", [True, False])
def test_dataframes_that_are_switched_off_are_a_gap_where_they_are_used(
    is_used: bool, kafka: Any, tmp_path: Path
) -> None:
    def job(context: SparkContext) -> int:
        spark = SparkSession.builder.getOrCreate()
        return int(spark.range(7).count() if is_used else context.range(7).count())

    given, application = run_application(
        kafka.bootstrap_servers, tmp_path / "store", job, spark_lineage_dataframes="false"
    )
    assert given == 7
    assert application is not None
    missing = missing_of(application)
    assert ("DataFrames and SQL were switched off" in missing) is is_used
    assert bool(missing) is is_used


def test_an_application_without_dataframes_is_complete_without_a_jar(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvm_gateway, "JAR", str(tmp_path / "no.jar"))

    def job(context: SparkContext) -> int:
        SparkSession.builder.getOrCreate()
        return int(context.range(7).count())

    _, application = run_application(kafka.bootstrap_servers, tmp_path / "store", job)
    assert application is not None
    assert missing_of(application) == ""


@pytest.mark.thorough
def test_records_that_a_query_read_which_was_not_followed_are_not_said_to_have_gone_nowhere(
    run: Callable[..., tuple[Any, Application]], tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("a 1\nb 2\nc 3\n")

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        pairs = context.textFile(str(tmp_path / "in.txt")).map(str.split)
        pairs.saveAsTextFile(str(tmp_path / "pairs"))
        spark.createDataFrame(pairs, "word string, n string").where("n > 1").write.csv(str(tmp_path / "out"))
        spark.read.text(str(tmp_path / "pairs")).write.csv(str(tmp_path / "copy"))

    _, application = run(job, spark_lineage_dataframes_level="lazy")
    assert application.questions.application(application.application_id).complete
    line = {"path": str(tmp_path / "in.txt"), "row": 1}
    forward = application.trace(direction="forward", **line)
    assert not forward.complete
    reasons = {node.name: node.reason for node in forward.nodes if node.reason}
    assert set(reasons) == {"createDataFrame", "saveAsTextFile"}
    for reason in reasons.values():
        assert reason.startswith(
            "a query read these records, and what became of them there is not known: spark"
        )
        assert "dataframes.level=lazy" in reason
    to = next(node.node_id for node in forward.nodes if node.name == "map")
    assert application.trace(direction="forward", to=to, **line).complete
    backward = application.trace(direction="backward", path=str(tmp_path / "pairs" / "part-00000"), row=0)
    assert (backward.complete, backward.exact) == (True, True)
