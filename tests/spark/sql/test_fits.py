"""What a library of the JVM reads: each fit of Spark ML is one record, made of all rows that its jobs read.

Which rows these are is computed over the lines of the inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.lineage import Node, Trace
from lineage_service.queries import RecordQuery, TraceQuery
from lineage_service.tracing.spark.api import SparkTracing, local_session
from tests.support.spark.application import Application, Row, rows_at, run_application

# The first test of the module runs the job of all of them.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(1800),
    # Spark ML leaves its threads to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ROWS = [(n, (n * 7) % 13, (n * 5) % 11, n % 2, f"s{n % 3}") for n in range(60)]
SHOPS = [(f"s{n}", n) for n in range(2)]
SCHEMA = "id int, x int, y int, label int, shop string"


def is_used(row: tuple[int, int, int, int, str]) -> bool:
    return row[1] > 3


def write_inputs(folder: Path) -> None:
    for name, rows in (("in.csv", ROWS), ("shops.csv", SHOPS)):
        (folder / name).write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


def rows_of(file: str, numbers: Iterable[int]) -> set[Row]:
    return {(file, number) for number in numbers}


USED = rows_of("in.csv", (n for n, row in enumerate(ROWS) if is_used(row)))
ALL = rows_of("in.csv", range(len(ROWS)))
SHOPPED = rows_of("in.csv", (n for n, row in enumerate(ROWS) if is_used(row) and row[4] in dict(SHOPS)))

#: Estimator (the description of its fit), in the order of the fits -> the rows that it was made of.
TRUTH: list[tuple[str, set[Row]]] = [
    ("LinearRegression", USED),
    ("KMeans", USED),
    ("LogisticRegression", SHOPPED | rows_of("shops.csv", range(len(SHOPS)))),
    ("Pipeline", USED),
    ("RandomForestClassifier", USED),
    ("CrossValidator", ALL),
    ("LinearRegression", USED),  # of two maps of parameters
    ("LinearRegression", USED),
    ("ALS", ALL),
    ("StandardScaler", USED),  # of a cached DataFrame
]


def fits(spark: SparkSession, folder: Path) -> list[str]:
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import LogisticRegression, RandomForestClassifier
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.evaluation import RegressionEvaluator
    from pyspark.ml.feature import StandardScaler, StringIndexer, VectorAssembler
    from pyspark.ml.recommendation import ALS
    from pyspark.ml.regression import LinearRegression
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    rows = spark.read.schema(SCHEMA).csv(f"{folder}/in.csv").repartition(3, "id")
    assembler = VectorAssembler(inputCols=["x", "y"], outputCol="features")
    every = assembler.transform(rows)
    used = every.where("x > 3")
    shops = spark.read.schema("shop string, rank int").csv(f"{folder}/shops.csv")
    line = LinearRegression(maxIter=5)
    text = [str(line.fit(used).coefficients)]
    text.append(str(KMeans(k=2, seed=1, maxIter=5, maxBlockSizeInMB=0.1).fit(used).clusterCenters()))
    text.append(str(LogisticRegression(maxIter=5).fit(used.join(shops, "shop")).coefficients))
    stages = [
        StringIndexer(inputCol="shop", outputCol="shop_number"),
        VectorAssembler(inputCols=["x", "y", "shop_number"], outputCol="more"),
        LinearRegression(featuresCol="more", maxIter=5),
    ]
    text.append(str(Pipeline(stages=stages).fit(rows.where("x > 3")).stages[-1].coefficients))
    text.append(str(RandomForestClassifier(numTrees=3, seed=1, maxDepth=2).fit(used).featureImportances))
    grid = ParamGridBuilder().addGrid(line.regParam, [0.0, 0.1]).build()
    evaluator = RegressionEvaluator(metricName="rmse")
    crossed = CrossValidator(
        estimator=line, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, seed=1, parallelism=2
    )
    text.append(str(crossed.fit(every).bestModel.coefficients))
    text += [str(model.coefficients) for model in line.fit(used, grid)]
    ratings = rows.selectExpr("id % 10 as user", "x as item", "y as rating")
    text.append(str(ALS(rank=2, maxIter=2, seed=1).fit(ratings).rank))
    kept = used.cache()
    kept.count()
    text.append(str(StandardScaler(inputCol="features", outputCol="scaled").fit(kept).mean))
    return text


def failing(spark: SparkSession, folder: Path) -> None:
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.regression import DecisionTreeRegressor

    rows = spark.read.schema(SCHEMA).csv(f"{folder}/in.csv")
    bad = rows.selectExpr("x", "assert_true(id < 50) is null as fine", "cast(label as double) as label")
    frame = VectorAssembler(inputCols=["x", "fine"], outputCol="features").transform(bad)
    with pytest.raises(Exception, match=r"."):
        DecisionTreeRegressor().fit(frame)


def by_hand(spark: SparkSession, folder: Path) -> tuple[float, int]:
    """Estimators in Python: one that takes rows of a DataFrame, one that takes an RDD's."""
    from pyspark.ml.base import Estimator

    class Taking(Estimator):  # type: ignore[type-arg]
        def _fit(self, dataset: Any) -> Any:
            return sum(row["x"] for row in dataset.collect())

    class Mapping(Estimator):  # type: ignore[type-arg]
        def _fit(self, dataset: Any) -> Any:
            return dataset.rdd.map(lambda row: row["x"]).sum()

    rows = spark.read.schema(SCHEMA).csv(f"{folder}/in.csv").where("x > 3")
    return Taking().fit(rows), Mapping().fit(rows)


def others(spark: SparkSession, folder: Path) -> list[Any]:
    rows = spark.read.schema(SCHEMA).csv(f"{folder}/in.csv").where("x > 3")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what toJSON gives will change
        texts = rows.select("id").toJSON()
        texts.map(lambda text: text.replace("id", "number")).saveAsTextFile(f"{folder}/texts")
        counted = texts.count()
    if spark.version >= "4.1":  # what toJSON will give
        spark.conf.set("spark.sql.pyspark.toJSON.returnDataFrame", "true")
        rows.select("id").toJSON().write.text(f"{folder}/frame")
    return [counted, rows._jdf.toJavaRDD().count(), rows.where("x > 3")._jdf.rdd().count()]


def job(folder: Path, context: SparkContext) -> list[Any]:
    spark = SparkSession(context)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    given = [fits(spark, folder), by_hand(spark, folder), others(spark, folder)]
    failing(spark, folder)
    return given


@pytest.fixture(scope="module")
def fitted(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Application, list[Any]]:
    folder = tmp_path_factory.mktemp("fits")
    write_inputs(folder)
    given, application = run_application(
        kafka.bootstrap_servers, folder / "store", lambda context: job(folder, context)
    )
    assert application is not None
    return folder, application, given


def fits_of(application: Application) -> list[Node]:
    return [sink for sink in application.sinks() if sink.name == "fit"]


def backward(application: Application, sink: Node) -> Trace:
    return application.trace(direction="backward", node=sink.node_id, partition=0, offset=0)


def test_a_fit_is_one_record_made_of_all_rows_that_its_jobs_read(
    fitted: tuple[Path, Application, list[Any]],
) -> None:
    _, application, _ = fitted
    sinks = fits_of(application)[: len(TRUTH)]
    assert [sink.description for sink in sinks] == [estimator for estimator, _ in TRUTH]
    for sink, (estimator, truth) in zip(sinks, TRUTH, strict=True):
        assert (sink.exact, sink.records, sink.state) == (True, 1, "complete"), (estimator, sink.reason)
        assert sink.call_site.startswith(__file__)
        trace = backward(application, sink)
        assert rows_at(trace, "source") == truth, estimator
        assert (trace.exact, trace.complete) == (True, True), estimator


def test_forward_a_row_goes_into_each_model_that_was_made_of_it(
    fitted: tuple[Path, Application, list[Any]],
) -> None:
    folder, application, _ = fitted
    sinks = fits_of(application)[: len(TRUTH)]
    for row in range(0, len(ROWS), 7):
        trace = application.trace(direction="forward", path=str(folder / "in.csv"), row=row)
        reached = {node.node_id for node in trace.nodes if node.kind == "sink" and node.total}
        for sink, (estimator, truth) in zip(sinks, TRUTH, strict=True):
            assert (sink.node_id in reached) == (("in.csv", row) in truth), (estimator, row)


def test_nothing_of_a_fit_is_a_gap(fitted: tuple[Path, Application, list[Any]]) -> None:
    _, application, _ = fitted
    assert application.gaps == ()
    assert application.questions.application(application.application_id).complete


def test_the_sinks_of_a_fit_are_the_fit_alone(fitted: tuple[Path, Application, list[Any]]) -> None:
    """No sink beside it for each query that its jobs run."""
    _, application, _ = fitted
    names = [sink.name for sink in application.sinks()]
    assert names.count("fit") == len(TRUTH) + 3
    assert set(names) <= {"fit", "count", "sum", "saveAsTextFile", "text", "toJavaRDD", "rdd"}


def test_an_estimator_in_python_is_made_of_what_its_queries_read(
    fitted: tuple[Path, Application, list[Any]],
) -> None:
    _, application, given = fitted
    total = sum(row[1] for row in ROWS if is_used(row))
    assert given[1] == (total, total)
    taking, mapping = fits_of(application)[len(TRUTH) : len(TRUTH) + 2]
    assert (taking.description, mapping.description) == ("Taking", "Mapping")
    trace = backward(application, taking)
    assert (rows_at(trace, "source"), trace.exact) == (USED, True)
    assert not mapping.exact
    assert "an action on an RDD" in mapping.reason


def test_a_fit_that_fails_says_so(fitted: tuple[Path, Application, list[Any]]) -> None:
    _, application, _ = fitted
    failed = fits_of(application)[-1]
    assert (failed.description, failed.state, failed.exact) == ("DecisionTreeRegressor", "failed", False)


def test_each_text_of_to_json_is_of_its_row(fitted: tuple[Path, Application, list[Any]]) -> None:
    folder, application, given = fitted
    assert given[2][:2] == [len(USED), len(USED)]
    outputs = 0
    for part in sorted((folder / "texts").glob("part-*")):
        for row, text in enumerate(part.read_text().splitlines()):
            number = int(text.partition(":")[2].rstrip("}"))
            assert application.sources_of(part, row) == {("in.csv", number)}
            outputs += 1
    assert outputs == len(USED)


def test_what_a_typed_function_makes_may_be_of_any_row_of_its_partition(
    fitted: tuple[Path, Application, list[Any]],
) -> None:
    folder, application, _ = fitted
    for part in (folder / "frame").glob("part-*"):
        for row, text in enumerate(part.read_text().splitlines()):
            trace = application.trace(direction="backward", path=str(part), row=row)
            number = int(text.partition(":")[2].rstrip("}"))
            assert {("in.csv", number)} <= rows_at(trace, "source") <= USED
            assert not trace.exact


@pytest.mark.parametrize("name", ["toJavaRDD", "rdd"])
def test_rows_that_another_library_takes_are_a_sink_and_exact(
    name: str, fitted: tuple[Path, Application, list[Any]]
) -> None:
    _, application, _ = fitted
    [sink] = [sink for sink in application.sinks() if sink.name == name]
    assert (sink.exact, sink.records) == (True, len(USED))
    found: set[Row] = set()
    query = RecordQuery(node=sink.node_id, limit=1_000)
    for record in application.questions.records(application.application_id, query).records:
        trace = application.trace(
            direction="backward", node=sink.node_id, partition=record.partition, offset=record.offset
        )
        assert trace.exact
        [source] = rows_at(trace, "source")
        found.add(source)
    assert found == USED


def test_spark_answers_the_same(fitted: tuple[Path, Application, list[Any]]) -> None:
    folder, application, _ = fitted
    assert application.store is not None
    sink = fits_of(application)[2]
    with local_session("local[2]", ()) as session:
        tracing = SparkTracing(session, application.store)
        for query in (
            TraceQuery(direction="backward", node=sink.node_id, partition=0, offset=0, limit=1_000),
            TraceQuery(direction="forward", path=str(folder / "in.csv"), row=8, limit=1_000),
        ):
            found = tracing.trace(application.application_id, query)
            local = application.questions.trace(application.application_id, query)
            assert (found.exact, found.starts) == (local.exact, local.starts)
            assert {node.node_id: (node.total, node.records) for node in found.nodes} == {
                node.node_id: (node.total, node.records) for node in local.nodes
            }


def test_what_the_job_gave_is_what_it_gives_without_lineage(
    fitted: tuple[Path, Application, list[Any]], run_plain: Callable[..., Any], tmp_path: Path
) -> None:
    write_inputs(tmp_path)
    assert run_plain(lambda context: job(tmp_path, context)) == fitted[2]
