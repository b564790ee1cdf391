from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scripts import page


@pytest.fixture
def ui(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page to build, with commands in the place of Node.js that write down what they were asked."""
    folder = tmp_path / "ui"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.ts").write_text("0")
    (folder / "package-lock.json").write_text("{}")
    monkeypatch.setattr(page, "UI", folder)
    monkeypatch.setattr(page, "DIST", folder / "dist")
    monkeypatch.delenv("LINEAGE_TEST_NODE", raising=False)
    return folder


@pytest.fixture
def asked(ui: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What npm was asked, with a Node.js that is new enough."""
    node(tmp_path, monkeypatch, "v20.19.0")
    found: list[str] = []
    run = subprocess.run

    def recorded(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if not command[0].endswith("npm"):
            return run(command, **options)
        found.append(" ".join(command[1:3]))
        (ui / "node_modules").mkdir(exist_ok=True)
        (ui / "dist").mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", recorded)
    return found


def node(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    commands = folder / "bin"
    commands.mkdir()
    for name in ("node", "npm"):
        (commands / name).write_text(f"#!/bin/sh\necho {version}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")


def test_it_is_built_once_and_again_when_a_source_has_changed(ui: Path, asked: list[str]) -> None:
    assert page.main(["build"]) == 0
    assert asked == ["ci --no-audit", "run build"]
    assert page.main(["build"]) == 0
    assert len(asked) == 2
    (ui / "src" / "main.ts").write_text("1")
    assert page.main(["build"]) == 0
    assert asked[2:] == ["run build"]


def test_packages_are_installed_again_when_the_lock_file_has_changed(ui: Path, asked: list[str]) -> None:
    page.main(["test"])
    (ui / "package-lock.json").write_text('{"changed": true}')
    page.main(["test"])
    assert asked == ["ci --no-audit", "run --silent"] * 2


@pytest.mark.parametrize("version", [None, "v18.20.4"])
def test_without_a_node_that_is_new_enough_it_says_so_in_one_line(
    ui: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    version: str | None,
) -> None:
    if version is None:
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        node(tmp_path, monkeypatch, version)
    assert page.main(["build"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "install" in said.err
    assert "20.19" in said.err
    assert "the API is served without its page" in said.err
    (ui / "dist").mkdir()
    (ui / "dist" / "index.html").write_text("built before")
    assert page.main(["build"]) == 0
    assert "the page stays as it is" in capsys.readouterr().err
    monkeypatch.setenv("LINEAGE_TEST_NODE", "required")
    assert page.main(["build"]) == 1


def test_a_failing_install_is_told_in_one_line(
    ui: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node(tmp_path, monkeypatch, "v22.12.0")
    npm = tmp_path / "bin" / "npm"
    npm.write_text("#!/bin/sh\necho npm error network; echo more; exit 1\n")
    assert page.main(["build"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "page: npm cannot install what builds the page: npm error network; the API is served without its page"
    ]
    assert not (ui / "dist").exists()


def test_what_is_no_command_is_told_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert page.main(["bake"]) == 2
    assert "build|check|test|format" in capsys.readouterr().err
