from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lineage_service.devstack.errors import LockError
from lineage_service.devstack.jars import Jar, parse_lock, read_lock
from lineage_service.devstack.server import Server
from lineage_service.devstack.servers import SERVERS

CONTENT = b"a small jar"
JAR = Jar(
    group="org.example",
    artifact="tool",
    version="1.2",
    classifier="core",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    size=len(CONTENT),
)


def test_a_lock_line_is_a_jar() -> None:
    text = f"# a comment\n\norg.example:tool:1.2:core {JAR.sha256} {JAR.size}\n"
    assert parse_lock(text, "a.lock") == (JAR,)


def test_a_line_without_classifier_has_none() -> None:
    (jar,) = parse_lock(f"org.example:tool_2.13:1.2 {JAR.sha256} 5", "a.lock")
    assert jar.classifier == ""
    assert jar.file_name == "tool_2.13-1.2.jar"


def test_a_jar_knows_its_place_in_a_repository() -> None:
    assert JAR.repository_path == Path("org/example/tool/1.2/tool-1.2-core.jar")


@pytest.mark.parametrize(
    "line",
    [
        "org.example:tool 0 5",
        f"org.example:tool:1.2 {'0' * 63} 5",
        f"org.example:tool:1.2 {'0' * 64}",
        f"org.example:tool:1.2 {'0' * 64} -5",
        f"org.example:../../tool:1.2 {'0' * 64} 5",
    ],
)
def test_a_damaged_lock_names_the_file_and_the_line(line: str) -> None:
    with pytest.raises(LockError, match=r"a\.lock, line 2"):
        parse_lock(f"# a comment\n{line}\n", "a.lock")


def test_a_jar_recognises_its_content(tmp_path: Path) -> None:
    path = tmp_path / JAR.file_name
    assert not JAR.is_content_of(path)
    path.write_bytes(CONTENT[:-1])
    assert not JAR.is_content_of(path)
    path.write_bytes(CONTENT[:-1] + b"!")
    assert not JAR.is_content_of(path)
    path.write_bytes(CONTENT)
    assert JAR.is_content_of(path)


@pytest.mark.parametrize(
    ("server", "artifact"), list(zip(SERVERS, ["kafka_2.13", "neo4j"], strict=True)), ids=["kafka", "neo4j"]
)
def test_a_lock_holds_the_version_that_the_server_says(server: Server, artifact: str) -> None:
    versions = {jar.artifact: jar.version for jar in read_lock(server.name)}
    assert versions[artifact] == server.version


def test_apoc_has_the_version_of_neo4j() -> None:
    jars = {jar.artifact: jar for jar in read_lock("neo4j")}
    assert jars["apoc-core"].version == jars["neo4j"].version
    assert jars["apoc-core"].classifier == "core"
    assert "neo4j-browser" in jars


def test_jars_of_one_file_name_are_the_same_jar() -> None:
    jars = [jar for server in SERVERS for jar in read_lock(server.name)]
    assert len({jar.file_name for jar in jars}) == len(set(jars))
