"""Kafka, Avro and XML: each output row is traced to the record of the topic, or the row of the file.

Their connectors are packages of Spark's own. There are none for the newest PySpark, so the job runs in an
environment of PySpark 4.1, which is made in .cache the first time.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from lineage_service.cli import main
from lineage_service.cli.stores import open_queries
from lineage_service.devstack.download import fetch
from lineage_service.devstack.jars import parse_lock
from lineage_service.devstack.progress import Quiet
from lineage_service.queries import Queries, TraceQuery
from lineage_service.settings import Settings
from scripts.environment import ROOT
from scripts.pyspark_versions import environment

# It waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]

SUPPORT = ROOT / "tests" / "support" / "tables"
LOCK = SUPPORT / "sources-4.1.lock"
ROWS = 90


@dataclass
class Job:
    """What the job left, and what is stored of it."""

    folder: Path
    topic: str
    servers: str
    application_id: str
    queries: Queries

    def out(self, name: str) -> list[tuple[str, int, list[str]]]:
        """(file, row, columns) of the rows of an output."""
        return [
            (str(path), row, line.split(","))
            for path in sorted((self.folder / name).glob("part-*.csv"))
            for row, line in enumerate(path.read_text().splitlines())
        ]

    def behind(self, path: str, row: int) -> dict[str, set[int]]:
        """The rows of sources that an output row is traced to, by their files, or partitions of topics."""
        query = TraceQuery(direction="backward", path=path, row=row, limit=1000)
        trace = self.queries.trace(self.application_id, query)
        assert trace.complete
        assert trace.exact
        rows_of: dict[str, set[int]] = {}
        for node in trace.nodes:
            for record in node.records if node.kind == "source" else ():
                assert record.source is not None
                rows_of.setdefault(record.source.path, set()).add(record.source.row)
        return rows_of


def jars() -> str:
    listed = parse_lock(LOCK.read_text(), LOCK.name)
    folder = ROOT / ".cache" / "lineage" / "jars"
    fetch(list(listed), folder, Settings().maven_repository, Quiet())
    return ",".join(str(folder / jar.file_name) for jar in listed)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, kafka: Any, jar: Path) -> Any:
    folder, prefix = tmp_path_factory.mktemp("sources"), uuid.uuid4().hex[:10]
    names = {"LINEAGE_NODE_TOPIC": f"{prefix}-node", "LINEAGE_FLOW_TOPIC": f"{prefix}-flow"}
    for name in names.values():
        kafka.create_topic(name)
    topic = f"{prefix}-orders"
    servers = kafka.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(60)
    (folder / "in.csv").write_text("".join(f"{number},name {number}\n" for number in range(ROWS)))
    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.files.maxPartitionBytes": "600",
        "spark.sql.files.openCostInBytes": "1",
        "spark.hadoop.avro.mapred.sync.interval": "100",
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": servers,
        "spark.lineage.topic.node": names["LINEAGE_NODE_TOPIC"],
        "spark.lineage.topic.flow": names["LINEAGE_FLOW_TOPIC"],
        "spark.lineage.delivery.timeout": "60",
    }
    python = environment("4.1.4")
    flags = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    submit = [python.parent / "spark-submit", "--master", "local[2]", "--jars", jars(), *flags]
    others = ("SPARK_", "PYSPARK_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    done = subprocess.run(
        [str(word) for word in (*submit, SUPPORT / "other_sources.py", folder, servers, topic)],
        env=clean | {"PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lineage: complete for " in done.stderr, done.stderr
    [started] = [line for line in done.stderr.splitlines() if line.startswith("lineage: on for ")]
    with pytest.MonkeyPatch.context() as patch:
        settings = {
            "LINEAGE_HOME": str(folder / "home"),
            "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": servers,
            **names,
            "LINEAGE_DEAD_LETTER_TOPIC": f"{prefix}-dead",
            "LINEAGE_CONSUMER_GROUP": prefix,
            "LINEAGE_METRICS": "false",
        }
        for name, value in settings.items():
            patch.setenv(name, value)
        application_id = started.split()[3]
        assert main.main(["consume", "--until-complete", application_id]) == 0
        yield Job(folder, topic, servers, application_id, open_queries(Settings()))


@pytest.mark.parametrize("name", ["of_topic", "of_split_topic", "of_some"])
def test_an_output_row_is_traced_to_the_offset_of_the_record_in_its_topic(job: Job, name: str) -> None:
    outputs = job.out(name)
    assert len(outputs) == ROWS // 3 or name == "of_some"
    for path, row, (_, partition, offset) in outputs[::4]:
        assert job.behind(path, row) == {f"kafka://{job.servers}/{job.topic}/{partition}": {int(offset)}}


def test_a_group_is_traced_to_all_records_of_its_partition(job: Job) -> None:
    first = {"0": 5, "1": 7, "2": 9}
    outputs = job.out("last")
    assert {columns[0] for _, _, columns in outputs} == set(first)
    for path, row, (partition, last, count) in outputs:
        offsets = set(range(first[partition], int(last) + 1))
        assert len(offsets) == int(count)
        assert job.behind(path, row) == {f"kafka://{job.servers}/{job.topic}/{partition}": offsets}


def test_a_record_of_a_topic_is_traced_forward(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    path, row, (_, partition, offset) = job.out("of_topic")[5]
    place = f"kafka://{job.servers}/{job.topic}/{partition}"
    query = TraceQuery(direction="forward", path=place, row=int(offset), limit=1000)
    trace = job.queries.trace(job.application_id, query)
    reached = {
        (record.source.path, record.source.row)
        for node in trace.nodes
        for record in node.records
        if node.kind == "sink" and record.source is not None
    }
    assert (path, row) in reached
    assert main.main(["trace", job.application_id, "forward", f"{place}:{offset}"]) == 0
    assert f"{place}:{offset}" in capsys.readouterr().out.replace("\n", "")


def test_the_topic_is_a_sink_and_a_source_by_its_name(job: Job) -> None:
    nodes = [node for node in job.queries.graph(job.application_id).nodes if node.dataset]
    named = {
        node.kind
        for node in nodes
        if node.dataset is not None
        and (node.dataset.namespace, node.dataset.name) == (f"kafka://{job.servers}", job.topic)
    }
    assert named == {"source", "sink"}


@pytest.mark.parametrize("name", ["avro", "xml"])
def test_a_row_of_a_file_is_known_by_its_number_in_every_split(job: Job, name: str) -> None:
    [file] = (job.folder / name).glob("part-*")
    outputs = job.out(f"of_{name}")
    assert len(outputs) == ROWS // 3
    splits = {path for path, _, _ in outputs}
    assert len(splits) > 1 or name == "xml"
    for path, row, (number, _) in outputs:
        assert job.behind(path, row) == {
            str(file): {int(number)},
            str(job.folder / "in.csv"): {int(number)},
        }


def test_the_text_of_a_row_of_avro_is_shown(job: Job) -> None:
    path, row, (number, name) = job.out("of_avro")[-1]
    trace = job.queries.trace(
        job.application_id, TraceQuery(direction="backward", path=path, row=row, limit=1000)
    )
    [source] = [
        record.source
        for node in trace.nodes
        for record in node.records
        if node.kind == "source" and record.source is not None and record.source.path.endswith(".avro")
    ]
    assert source.warning is None
    assert source.text == f'{{"id": {number}, "name": "{name}"}}'
