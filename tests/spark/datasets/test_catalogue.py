"""Jobs in a chain, and one that fails, as the catalogue has them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession, functions

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.lineage import DatasetSummary
from lineage_service.queries import DatasetQuery, DatasetsQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from tests.support.lineage_messages import messages
from tests.support.spark.application import messages_of, run_application

ORDERS = {"mon.csv": "country,amount\nAT,10\nDE,7\n", "tue.csv": "country,amount\nAT,5\nCH,1\nDE,2\n"}


def nightly(folder: Path, context: SparkContext) -> None:
    spark = SparkSession(context)
    orders = spark.read.csv(f"{folder}/in/*.csv", header=True, inferSchema=True)
    sums = orders.groupBy("country").agg(functions.sum("amount").alias("amount"))
    sums.write.partitionBy("country").parquet(f"{folder}/sums", mode="overwrite")


def report(folder: Path, context: SparkContext) -> None:
    spark = SparkSession(context)
    sums = spark.read.parquet(f"{folder}/sums")
    names = spark.read.csv(f"{folder}/names.csv", header=True)
    sums.join(names, "country").write.saveAsTable("report", format="json")
    sums.filter("amount > 5").collect()


def broken(folder: Path, context: SparkContext) -> None:
    lines = context.textFile(f"{folder}/warehouse/report")
    with contextlib.suppress(Exception):  # else the application could not say that it ended
        lines.map(lambda line: 1 // 0).saveAsTextFile(f"{folder}/broken")


@dataclass
class Ran:
    folder: Path
    queries: LineageQueries
    applications: dict[str, str]  # name -> id, of the latest

    def of(self, path: str) -> DatasetSummary:
        return self.queries.dataset(DatasetQuery(name=f"{self.folder}/{path}")).dataset


@pytest.fixture(scope="module")
def ran(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "in").mkdir()
    for name, text in ORDERS.items():
        (folder / "in" / name).write_text(text)
    (folder / "names.csv").write_text("country,name\nAT,Austria\nDE,Germany\n")
    store = DeltaFlowStore(folder / "store")
    ids: dict[str, str] = {}
    jobs: list[tuple[str, Callable[[Path, SparkContext], None]]] = [
        *(("Nightly", nightly), ("Nightly", nightly), ("Report", report), ("Broken", broken))
    ]
    for number, (name, job) in enumerate(jobs):
        conf = {"spark_app_name": name, "spark.sql.warehouse.dir": f"{folder}/warehouse"}
        _, application = run_application(
            kafka.bootstrap_servers, folder / f"files-{number}", partial(job, folder), **conf
        )
        assert application is not None
        ids[name] = application.application_id
        node, flow = (
            messages_of(kafka.bootstrap_servers, application.topics[kind]) for kind in ("node", "flow")
        )
        store.write_events(event_batch(f"node/{number}", messages(*node)))
        if flow:
            store.write_flows(flow_batch(f"flow/{number}", messages(*flow)))
    return Ran(folder, LineageQueries(store, time_budget_s=60), ids)


def test_the_data_sets_are_those_that_people_know(ran: Ran) -> None:
    names = {one.name for one in ran.queries.datasets(DatasetsQuery()).datasets}
    assert names == {
        f"{ran.folder}/{name}" for name in ("in", "names.csv", "sums", "warehouse/report", "broken")
    }


def test_a_data_set_has_its_last_writer_and_the_number_of_its_users(ran: Ran) -> None:
    sums = ran.of("sums")
    assert sums.written is not None
    assert (sums.written.application_id, sums.written.name) == (ran.applications["Nightly"], "Nightly")
    assert (sums.written.rows, sums.written.state, sums.written.complete) == (3, "complete", True)
    assert (sums.format, sums.writers, sums.readers, sums.runs, sums.failed_runs) == ("parquet", 1, 1, 2, 0)
    assert ran.of("in").written is None
    assert ran.of("in").readers == 1


def test_a_failed_write_is_a_failed_run(ran: Ran) -> None:
    result = ran.of("broken")
    assert result.written is not None
    assert (result.written.state, result.runs, result.failed_runs) == ("failed", 1, 1)
    (use,) = ran.queries.dataset(DatasetQuery(name=result.name)).history
    assert use.error is not None
    assert "ZeroDivisionError" in use.error.type + use.error.message


def test_a_part_file_and_a_folder_of_a_partition_lead_to_their_table(ran: Ran) -> None:
    part = next((ran.folder / "sums").glob("country=AT/*.parquet"))
    for name in (str(part), str(part.parent), "sums"):
        assert ran.queries.dataset(DatasetQuery(name=name)).dataset.name == f"{ran.folder}/sums"


def test_the_history_says_what_each_run_wrote_and_read(ran: Ran) -> None:
    page = ran.queries.dataset(DatasetQuery(name=f"{ran.folder}/sums"))
    assert [(use.kind, use.name, use.state, use.complete, use.exact) for use in page.history] == [
        ("read", "Report", "complete", True, True),
        ("write", "Nightly", "complete", True, True),
        ("write", "Nightly", "complete", True, True),
    ]
    assert [use.rows for use in page.history[1:]] == [3, 3]


def test_the_graph_leads_from_the_first_input_to_the_failed_output(ran: Ran) -> None:
    graph = ran.queries.dataset(DatasetQuery(name=f"{ran.folder}/warehouse/report")).graph
    layers = [(node.layer, node.name.removeprefix(f"{ran.folder}/")) for node in graph.nodes]
    assert layers == [
        (-4, "in"),
        (-3, "Nightly"),
        (-2, "names.csv"),
        (-2, "sums"),
        (-1, "Report"),
        (0, "warehouse/report"),
        (1, "Broken"),
        (2, "broken"),
    ]
    assert all(edge.exact for edge in graph.edges)


def test_rows_are_those_of_the_graph_of_the_application(ran: Ran) -> None:
    for application in ran.queries.applications():
        counts = {
            node.node_id: node.records
            for node in ran.queries.graph(application.application_id).nodes
            if node.dataset is not None
        }
        counted = {
            use.node_ids[0]: use.rows
            for one in ran.queries.datasets(DatasetsQuery()).datasets
            for use in ran.queries.dataset(DatasetQuery(name=one.name)).history
            if use.application_id == application.application_id and len(use.node_ids) == 1
        }
        assert counted
        assert {node: counts[node] for node in counted} == counted
