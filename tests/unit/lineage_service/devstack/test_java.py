from __future__ import annotations

from pathlib import Path

import pytest

from lineage_service.devstack.errors import JavaError
from lineage_service.devstack.java import find_java


def fake_java(folder: Path, says: str, exit_code: int = 0) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {exit_code}\n")
    java.chmod(0o755)
    return java


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    "says", ['openjdk version "17.0.15" 2025-04-15', 'java version "21"', 'openjdk version "25-ea"']
)
def test_java_home_comes_first(says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = fake_java(tmp_path / "home", says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "other", 'version "1.8.0_392"').parent))
    assert find_java() == java


def test_without_java_home_the_path_is_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = fake_java(tmp_path / "a", 'openjdk version "17.0.15"')
    monkeypatch.setenv("PATH", str(java.parent))
    assert find_java() == java


def test_no_java_says_what_to_install() -> None:
    with pytest.raises(JavaError, match=r"no Java on this machine's PATH.*install Java 17 or 21"):
        find_java()


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=f"JAVA_HOME is {tmp_path}"):
        find_java()


@pytest.mark.parametrize(
    ("says", "version"), [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2"', 11)]
)
def test_an_old_java_is_refused_with_its_version(
    says: str, version: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "a", says).parent))
    with pytest.raises(JavaError, match=f"is Java {version}, but Kafka and Neo4j need 17"):
        find_java()


@pytest.mark.parametrize(("says", "exit_code"), [("Unable to locate a Java Runtime.", 1), ("hello", 0)])
def test_a_java_that_is_none_is_refused(
    says: str, exit_code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "a", says, exit_code).parent))
    with pytest.raises(JavaError, match="install Java 17 or 21"):
        find_java()
