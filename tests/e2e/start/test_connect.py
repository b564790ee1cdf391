"""Spark Connect: rows of a session are not followed, and the application says so."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import NotFoundError
from tests.support.spark.application import Application, read_application

#: Two JVMs or more start in each of these.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(2100)]

JOB = """
import os, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.remote(sys.argv[1]).appName("of a client")
for pair in sys.argv[2:]:
    builder = builder.config(*pair.split("=", 1))
spark, out = builder.getOrCreate(), os.environ["JOB_OUTPUT"]
spark.range(20).selectExpr("id", "id % 3 as rest").write.parquet(out + "/p")
print("rows:", spark.read.parquet(out + "/p").where("rest = 1").count())
spark.read.parquet(out + "/p").createTempView("rows_of_p")
print("one:", spark.sql("select 1 as one").collect())
spark.sql("insert overwrite directory '" + out + "/kept' using json select * from rows_of_p")
stream = spark.readStream.schema("id long, rest long").parquet(out + "/p").writeStream.format("json")
stream = stream.queryName("of_a_client").option("checkpointLocation", out + "/c").trigger(availableNow=True)
stream.start(out + "/s").awaitTermination(1200)
spark.stop()
sys.exit(3)
"""
SAID = ["rows: 7", "one: [Row(one=1)]"]


def environment(folder: Path, **more: str) -> dict[str, str]:
    chosen = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    return {**chosen, "JOB_OUTPUT": str(folder / "out"), "SPARK_TESTING": "1", **more}


def run_job(
    remote: str, folder: Path, conf: Mapping[str, str], **more: str
) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    (folder / "job.py").write_text(JOB)
    pairs = [f"{name}={value}" for name, value in conf.items()]
    return subprocess.run(
        [sys.executable, "-W", "ignore", "job.py", remote, *pairs],
        cwd=folder,
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=1500,
    )


@pytest.fixture
def topics() -> dict[str, str]:
    prefix = uuid.uuid4().hex[:10]
    return {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}


@pytest.fixture
def conf(kafka: Any, topics: Mapping[str, str]) -> dict[str, str]:
    return {
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "spark.lineage.delivery.timeout": "20",
        "spark.lineage.topic.node": topics["node"],
        "spark.lineage.topic.flow": topics["flow"],
    }


def check(application: Application, out: Path) -> None:
    described = application.questions.application(application.application_id)
    assert not described.complete
    assert "Spark Connect is not covered" in described.missing
    sinks = {(sink.name, sink.description.removeprefix(f"{out}/")): sink for sink in application.sinks()}
    assert list(sinks) == [
        ("parquet", "p"),
        ("count", ""),
        ("collect", ""),
        ("sql", ""),
        ("stream of_a_client", "s"),
    ]
    assert not any(sink.exact for sink in sinks.values())
    sites = [sink.call_site.rpartition(":")[2] for sink in application.sinks()]
    assert sites == ["8", "9", "11", "12", "15"]
    graph = application.questions.graph(application.application_id)
    sources = {
        edge.target: node.dataset and node.dataset.name
        for edge in graph.edges
        for node in graph.nodes
        if edge.source == node.node_id
    }
    assert sources[sinks["count", ""].node_id] == str(out / "p")
    assert sources[sinks["stream of_a_client", "s"].node_id] == str(out / "p")
    for folder in ("p", "s"):
        with pytest.raises(NotFoundError, match="Spark Connect is not covered"):
            application.trace(direction="backward", path=str(out / folder / "part-00000"), row=0)


def test_a_client_that_starts_its_server_is_one_application_that_says_what_it_did_not_follow(
    conf: Mapping[str, str], topics: Mapping[str, str], kafka: Any, tmp_path: Path
) -> None:
    done = run_job("local[2]", tmp_path / "job", conf)
    assert (done.returncode, done.stdout.splitlines()) == (3, SAID), done.stderr
    application = read_application(kafka.bootstrap_servers, topics, tmp_path / "store")
    assert not application.application_id.startswith("connect-")
    check(application, tmp_path / "job" / "out")


SERVER = """
import sys
from pyspark import SparkConf, SparkContext
conf = SparkConf().setMaster("local[2]").setAppName("server").set("spark.ui.enabled", "false")
conf.set("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
with SparkContext(conf=conf.set("spark.connect.grpc.binding.port", sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.read()
"""


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A Connect server in a process of its own, without lineage; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER, str(port)],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert "ready\n" in iter(process.stdout.readline, "")
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.communicate()


def test_a_client_of_a_server_elsewhere_is_an_application_of_its_own(
    conf: Mapping[str, str], topics: Mapping[str, str], kafka: Any, tmp_path: Path
) -> None:
    with server(tmp_path) as address:
        done = run_job(address, tmp_path / "job", conf)
        assert (done.returncode, done.stdout.splitlines()) == (3, SAID), done.stderr
        notices = [line for line in done.stderr.splitlines() if line.startswith("lineage: ")]
        assert [notice.split()[1] for notice in notices[:1] + notices[-1:]] == ["on", "incomplete"], notices
        application = read_application(kafka.bootstrap_servers, topics, tmp_path / "store")
        assert application.application_id.startswith("connect-")
        check(application, tmp_path / "job" / "out")
        off = run_job(address, tmp_path / "off", {})
        assert (off.returncode, off.stdout.splitlines()) == (3, SAID), off.stderr
        assert "lineage" not in off.stderr
