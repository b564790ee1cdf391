"""Explanations of loops over DataFrames as people write them, by stock Spark on the rows that explain."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lineage_service.lineage import Explanation
from lineage_service.queries import ExplanationQuery, StartQuery
from tests.support.spark.application import Application, part_rows, rows_at, run_application
from tests.support.spark.frame_loops import JOBS, PLAIN, Graph, write, write_rows

pytestmark = [pytest.mark.timeout(2700), pytest.mark.thorough]

CONF = {"spark_sql_shuffle_partitions": "2", "spark_default_parallelism": "2"}


@dataclass(frozen=True)
class Written:
    folder: Path
    application: Application

    def rows(self, name: str) -> list[tuple[Path, int, str]]:
        return part_rows(self.folder / name)

    def explanation(self, path: Path, row: int) -> Explanation:
        query = ExplanationQuery(starts=(StartQuery(path=str(path), row=row),), limit=1000)
        return self.application.questions.explanation(self.application.application_id, query)


def run(servers: str, folder: Path, names: Any, *, lineage: bool = True) -> Application | None:
    """Each job on the tables in its folder of `folder`; writes `folder`/out."""

    def job(context: Any) -> None:
        context.setCheckpointDir(str(folder / "checkpoints"))
        spark = SparkSession.builder.getOrCreate()
        for name, (read, output) in names.items():
            write_rows(Graph(spark, read), name.partition(" ")[0], output)

    _, application = run_application(servers, folder / "store", job, lineage=lineage, **CONF)
    return application


@pytest.fixture(scope="module")
def ran(kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("loops")
    write(folder / "graph")
    names = {name: (folder / "graph", folder / name) for name in JOBS}
    application = run(kafka.bootstrap_servers, folder, names)
    assert application is not None
    return Written(folder, application)


Tables = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]
"""Edges and nodes."""


def tables_of(explanation: Explanation) -> Tables:
    """In the order of their rows, each once."""
    rows: dict[str, dict[int, str]] = defaultdict(dict)
    for row in explanation.rows:
        rows[Path(row.path or "").name][row.row or 0] = row.text or ""
    edges = tuple(eval(text) for _, text in sorted(rows["edges.csv"].items()))
    return edges, tuple(int(text) for _, text in sorted(rows["nodes.csv"].items()))


@pytest.mark.parametrize("name", JOBS)
def test_what_explains_a_row_is_part_of_its_trace(name: str, ran: Written) -> None:
    rows = ran.rows(name)
    assert rows
    for path, row, text in rows:
        explanation = ran.explanation(path, row)
        trace = ran.application.trace(direction="backward", path=str(path), row=row)
        assert (explanation.kind, explanation.exact) == ("concise", True), (text, explanation.reasons)
        explained = {(Path(one.path or "").name, one.row) for one in explanation.rows}
        assert explained <= rows_at(trace, "source")


@pytest.mark.parametrize("name", PLAIN)
def test_a_row_is_there_again_on_the_rows_that_explain_it(name: str, ran: Written) -> None:
    for path, row, text in ran.rows(name):
        edges, nodes = tables_of(ran.explanation(path, row))
        assert tuple(map(int, text.split(","))) in PLAIN[name](edges, nodes), (text, edges, nodes)


def test_stock_spark_gives_a_row_again_on_the_rows_that_explain_it(
    ran: Written, kafka: Any, tmp_path: Path
) -> None:
    """Three rows of each job."""
    asked = []
    for name in PLAIN:
        rows = ran.rows(name)
        for path, row, text in rows[:: len(rows) // 3 + 1]:
            asked.append((name, text, tables_of(ran.explanation(path, row))))
    jobs = {}
    for at, (name, _, tables) in enumerate(asked):
        write(tmp_path / f"graph {at}", *tables)
        jobs[f"{name} {at}"] = (tmp_path / f"graph {at}", tmp_path / f"out {at}")
    run(kafka.bootstrap_servers, tmp_path, jobs, lineage=False)
    for at, (name, text, tables) in enumerate(asked):
        assert text in [line for _, _, line in part_rows(tmp_path / f"out {at}")], (name, text, tables)
