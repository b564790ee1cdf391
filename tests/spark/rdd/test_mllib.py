"""Calls of `pyspark.mllib`: each is one record, made of all records of the RDDs that it was given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from lineage_service.lineage import Node
from tests.support.spark.application import Application, Row, rows_at, run_application

# The first test of the module runs the job of all of them.
pytestmark = [pytest.mark.timeout(1800), pytest.mark.thorough]

LINES = [f"{n} {n * 7 % 13} {n * 5 % 11}" for n in range(50)]


def is_used(line: str) -> bool:
    return int(line.split()[1]) > 3


def rows_of(is_chosen: Callable[[str], bool]) -> set[Row]:
    return {("in.txt", row) for row, line in enumerate(LINES) if is_chosen(line)}


USED = rows_of(is_used)


def job(folder: Path, context: SparkContext) -> list[str]:
    from pyspark.mllib.classification import NaiveBayes
    from pyspark.mllib.clustering import KMeans
    from pyspark.mllib.feature import StandardScaler
    from pyspark.mllib.recommendation import ALS
    from pyspark.mllib.regression import LabeledPoint
    from pyspark.mllib.stat import Statistics

    lines = context.textFile(f"{folder}/in.txt", 3)
    points = lines.filter(is_used).map(lambda line: [float(number) for number in line.split()[1:]])
    kept = points.cache()
    text = [str(KMeans.train(points, 2, maxIterations=3, seed=1).k)]
    labelled = points.map(lambda point: LabeledPoint(point[0] % 2, [point[1]]))
    text.append(str(NaiveBayes.train(labelled).labels))
    ratings = lines.map(lambda line: tuple(int(number) % 7 for number in line.split()))
    text.append(str(ALS.train(ratings, 2, iterations=2, seed=1).rank))
    text.append(str(Statistics.colStats(kept).mean()))
    text.append(str(Statistics.corr(points.map(lambda point: point[0]), points.map(lambda point: point[1]))))
    scaled = StandardScaler().fit(points).transform(points)
    scaled.map(str).saveAsTextFile(f"{folder}/scaled")
    with pytest.raises(Exception, match="on purpose"):
        KMeans.train(points.map(fails), 2)
    return text


def fails(point: Any) -> Any:
    if point[0] == 12:
        raise ValueError("on purpose")
    return point


@pytest.fixture(scope="module")
def called(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Application, list[str]]:
    folder = tmp_path_factory.mktemp("mllib")
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    given, application = run_application(
        kafka.bootstrap_servers, folder / "store", lambda context: job(folder, context)
    )
    assert application is not None
    return application, given


def aggregates(application: Application) -> list[Node]:
    return [sink for sink in application.sinks() if sink.name in ("train", "colStats", "corr", "fit")]


def test_a_call_is_one_record_made_of_all_records_of_its_rdds(called: tuple[Application, list[str]]) -> None:
    application, _ = called
    sinks = aggregates(application)
    assert [sink.name for sink in sinks] == ["train", "train", "train", "colStats", "corr", "fit", "train"]
    for sink, truth in zip(sinks, [USED, USED, rows_of(lambda _: True), USED, USED, USED], strict=False):
        trace = application.trace(direction="backward", node=sink.node_id, partition=0, offset=0)
        assert (sink.records, sink.exact, trace.exact, sink.state) == (1, True, True, "complete"), sink.reason
        assert rows_at(trace, "source") == truth


def test_forward_a_row_goes_into_each_of_them(called: tuple[Application, list[str]], tmp_path: Path) -> None:
    application, _ = called
    [source] = [
        node
        for node in application.questions.graph(application.application_id).nodes
        if node.kind == "source" and node.name == "textFile"
    ]
    assert source.dataset is not None
    for row in (0, 1, 5, 31):
        trace = application.trace(direction="forward", path=source.dataset.name, row=row)
        reached = {node.node_id for node in trace.nodes}
        wanted = 6 if ("in.txt", row) in USED else 1
        assert len([sink for sink in aggregates(application)[:6] if sink.node_id in reached]) == wanted


def test_an_rdd_that_the_library_makes_is_a_bound(called: tuple[Application, list[str]]) -> None:
    application, _ = called
    [sink] = [sink for sink in application.sinks() if sink.name == "saveAsTextFile"]
    trace = application.trace(direction="backward", node=sink.node_id, partition=0, offset=0)
    assert (rows_at(trace, "source"), trace.exact) == (USED, False)


def test_one_that_fails_says_so(called: tuple[Application, list[str]]) -> None:
    application, _ = called
    failed = aggregates(application)[-1]
    assert (failed.state, failed.exact) == ("failed", False)


def test_the_job_gives_what_it_gives_without_lineage(
    called: tuple[Application, list[str]], run_plain: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    assert run_plain(lambda context: job(tmp_path, context)) == called[1]
