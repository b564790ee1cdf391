from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from scripts import jvm


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources to build, and no JDK."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "A.java").write_text("class A {}")
    monkeypatch.setattr(jvm, "FOLDER", tmp_path)
    monkeypatch.setattr(jvm, "JAR", tmp_path / "lineage.jar")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("LINEAGE_TEST_JVM", raising=False)
    return tmp_path


def made_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lets the build do all but compile; what it is asked to compile is added here."""
    compiled: list[str] = []

    def compile_(_javac: Path, _client: Path, classes: Path, *, strict: bool) -> None:
        compiled.append("strictly" if strict else "so")
        for name in ("lineagemaster/A", "lineagemaster/delivery/kafka/B", "org/slf4j/C"):
            (classes / name).parent.mkdir(parents=True, exist_ok=True)
            (classes / f"{name}.class").write_bytes(name.encode())

    empty = folder / "client.jar"
    empty.write_bytes(b"PK\5\6" + bytes(18))  # a zip without entries
    monkeypatch.setattr(jvm, "_javac", lambda: Path("javac"))
    monkeypatch.setattr(jvm, "_kafka_client", lambda: empty)
    monkeypatch.setattr(jvm, "_compile", compile_)
    return compiled


def test_it_is_built_once_and_again_when_a_source_has_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = made_of(folder, monkeypatch)
    assert jvm.main(["build"]) == jvm.main(["build"]) == 0
    assert compiled == ["so"]
    first = jvm.JAR.read_bytes()
    (folder / "src" / "A.java").write_text("class A { }")
    assert jvm.main(["build"]) == 0
    assert compiled == ["so", "so"]
    (folder / "src" / "A.java").write_text("class A {}")
    assert jvm.main(["build"]) == 0
    assert jvm.JAR.read_bytes() == first
    assert b"kafka-client/org/slf4j/C.class" in first
    with zipfile.ZipFile(jvm.JAR) as jar:
        assert jar.read("META-INF/NOTICE") == (jvm.ROOT / "NOTICE").read_bytes()
        assert jar.read("META-INF/LICENSE") == (jvm.ROOT / "LICENSE").read_bytes()


def test_without_a_jdk_it_says_so_in_one_line_and_is_done(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert jvm.main(["build"]) == jvm.main(["check"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0] == (
        "jar: there is no javac on the PATH: install a JDK, 17 or later; "
        "DataFrames and SQL have no record lineage"
    )
    monkeypatch.setenv("JAVA_HOME", str(folder))
    monkeypatch.setenv("LINEAGE_TEST_JVM", "required")
    assert jvm.main(["build"]) == 1
    assert f"there is no javac in JAVA_HOME={folder}" in capsys.readouterr().err


def test_a_jdk_that_is_too_old_for_sparks_classes_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    javac = folder / "bin" / "javac"
    javac.parent.mkdir()
    javac.write_text("#!/bin/sh\necho javac 11.0.27\n")
    javac.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))
    assert jvm.main(["build"]) == 0
    said = capsys.readouterr().err
    assert said.startswith(f"jar: {javac} is javac 11.0.27: install a JDK, 17 or later;")
    assert said.count("\n") == 1


def test_a_wrong_command_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert jvm.main(["make"]) == 2
    assert "build|check" in capsys.readouterr().err
