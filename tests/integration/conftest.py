"""What several integration tests need beside Kafka and Neo4j: an S3."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator

import pytest

from lineage_service.devstack.ports import HOST, choose_port, is_free
from tests.support.graphs import GraphUnderTest, MemoryUnderTest, opened

READY_DEADLINE_S = 240.0


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The S3 that LINEAGE_TEST_S3 names (http://host:port), else moto's.

    In a process of its own: a call of delta-rs keeps the other threads of this one waiting.
    """
    if named := os.environ.get("LINEAGE_TEST_S3"):
        yield named
        return
    port = choose_port("S3", [])
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + READY_DEADLINE_S
        while is_free(port):
            assert server.poll() is None, "moto's server has ended"
            assert time.monotonic() < deadline, "moto's server did not start"
            time.sleep(0.1)
        yield f"http://{HOST}:{port}"
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a new bucket, and in the environment how to come to it."""
    for name, value in {
        "AWS_ENDPOINT_URL": s3,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    name = f"lineage-{uuid.uuid4().hex[:12]}"
    urllib.request.urlopen(urllib.request.Request(f"{s3}/{name}", method="PUT")).close()
    return f"s3://{name}"


@pytest.fixture(params=["memory", "neo4j"])
def graph(request: pytest.FixtureRequest) -> Iterator[GraphUnderTest]:
    if request.param == "memory":
        yield MemoryUnderTest()
        return
    yield from opened(request.getfixturevalue("neo4j"))


@pytest.fixture
def app(graph: GraphUnderTest) -> Iterator[str]:
    application_id = f"app-{uuid.uuid4().hex}"
    yield application_id
    graph.store.delete_application(application_id)
