from __future__ import annotations

import shlex
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.e2e.clone import Clone, copy_of_work_tree, newcomers_environment

ROOT = Path(__file__).parents[3]
PACKAGES = {"spark_agent", "lineage_service", "lineage_api", "lineage_cypher", "lineage_page"}
#: What builds jar and page: nowhere on the PATH of those who do without.
TOOLS = ("javac", "node", "npm")

# The first to need it waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]


def run(
    *command: str | Path, ok: bool = True, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=None if env is None else dict(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert not ok or done.returncode == 0, done.stdout + done.stderr
    return done


def names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def test_an_environment_gets_our_packages_the_hook_the_command_and_nothing_else(clone: Clone) -> None:
    record = run(
        clone.bin / "python",
        "-c",
        "from importlib.metadata import files\nfor file in files('lineage-master'): print(file)",
        cwd=clone.folder.parent,
    ).stdout.split()
    tops = {Path(name).parts[0] for name in record if not name.startswith("..")}
    assert tops == {*PACKAGES, "lineage_master.pth", "lineage_master-0.1.0.dist-info"}
    assert [name for name in record if name.startswith("..")] == ["../../../bin/lineage"]


def test_the_wheel_holds_the_statements_the_page_the_jar_the_locks_and_the_hook(clone: Clone) -> None:
    in_wheel = names(clone.wheel)
    assert {
        "lineage_master.pth",
        "lineage_cypher/flow/upsert.cypher",
        "lineage_page/__init__.py",
        "lineage_page/dist/index.html",
        "lineage_page/dist/static/NOTICE.txt",
        "lineage_api/examples.json",
        "lineage_service/devstack/kafka.lock",
        "lineage_service/devstack/neo4j.lock",
        "spark_agent/hook.py",
        "lineage_master-0.1.0.dist-info/licenses/LICENSE",
        "lineage_master-0.1.0.dist-info/licenses/NOTICE",
        *(f"{package}/py.typed" for package in PACKAGES),
    } <= in_wheel
    # Page and jar as they are built, and nothing of what they are built from.
    built = {name for name in in_wheel if name.startswith("lineage_page/dist/")}
    page = clone.folder / "ui" / "lineage_page" / "dist"
    assert built == {
        f"lineage_page/dist/{path.relative_to(page)}" for path in page.rglob("*") if path.is_file()
    }
    assert {name for name in in_wheel if name.startswith("spark_agent/jvm/")} == {
        "spark_agent/jvm/lineage.jar"
    }


def test_the_command_says_that_the_installation_is_whole(clone: Clone) -> None:
    said = run(clone.bin / "lineage", "--version", cwd=clone.folder.parent).stdout
    assert said.splitlines() == [
        "lineage-master 0.1.0",
        "  agent's jar: yes",
        "  web page: yes",
        "  service: yes",
        "  PySpark: yes",
    ]


def test_an_sdist_brings_jar_and_page_and_needs_no_tools_to_become_the_same_wheel(
    clone: Clone, tmp_path: Path
) -> None:
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path / "built")
    environment = newcomers_environment(tmp_path, without=TOOLS)
    run(*build, "--sdist", clone.folder, env=environment)
    (sdist,) = (tmp_path / "built").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert {"LICENSE", "NOTICE", "SECURITY.md", "hatch_build.py"} <= {path.name for path in source.iterdir()}
    assert not (source / "ui" / "node_modules").exists()
    run(*build, "--wheel", source, env=environment)
    (wheel,) = (tmp_path / "built").glob("*.whl")
    assert names(wheel) == names(clone.wheel)


def test_a_build_without_tools_ends_with_one_line_that_says_what_to_install(tmp_path: Path) -> None:
    source = tmp_path / "clone"
    copy_of_work_tree(source)
    environment = newcomers_environment(tmp_path, without=TOOLS)
    for arguments in (["build", "--no-isolation", "--wheel", source], ["scripts.wheel"]):
        ended = run(sys.executable, "-m", *arguments, ok=False, cwd=source, env=environment)
        assert ended.returncode == 1
        said = ended.stdout + ended.stderr
        (line,) = [line for line in said.splitlines() if "install a JDK, 17 or later" in line]
        assert "install Node.js 20.19 or later" in line
        assert line.endswith("To leave a part out on purpose, set LINEAGE_BUILD_WITHOUT=jar,page")
        assert "Traceback" not in said


def test_what_was_left_out_on_purpose_is_told_by_the_installation(tmp_path: Path) -> None:
    source = tmp_path / "clone"
    copy_of_work_tree(source)
    environment = newcomers_environment(tmp_path, without=TOOLS)
    build = (sys.executable, "-m", "build", "--no-isolation", "--wheel", source)
    refused = run(*build, ok=False, env={**environment, "LINEAGE_BUILD_WITHOUT": "jars"})
    assert "LINEAGE_BUILD_WITHOUT names jars, but what can be left out is jar, page" in refused.stderr, (
        refused.stdout
    )
    run(*build, env={**environment, "LINEAGE_BUILD_WITHOUT": "jar, page"})
    (wheel,) = (source / "dist").glob("*.whl")
    assert not [name for name in names(wheel) if "/dist/" in name or name.endswith(".jar")]
    python = new_environment(tmp_path / "env")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    said = run(python.with_name("lineage"), "--version", cwd=tmp_path).stdout.splitlines()
    assert said[1].startswith(
        "  agent's jar: no, so DataFrames and SQL have no record lineage: install a wheel"
    )
    assert said[2].startswith("  web page: no: install a wheel that `make wheel` made")


def test_an_environment_without_the_service_has_the_agent_and_says_what_is_missing(
    clone: Clone, tmp_path: Path
) -> None:
    python = new_environment(tmp_path / "env")
    run(python, "-m", "pip", "install", "--quiet", clone.wheel)
    started = run(
        python, "-c", "import sys; print('spark_agent.hook' in sys.modules, 'pyspark' in sys.modules)"
    )
    assert started.stdout.split() == ["True", "False"]
    lineage = python.with_name("lineage")
    assert "consume" in run(lineage, "--help").stdout
    refused = run(lineage, "status", ok=False)
    assert refused.returncode == 1
    assert f"pip install {shlex.quote(f'{clone.wheel}[service]')}" in refused.stderr
    assert "Traceback" not in refused.stderr


def new_environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"
