from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, ok: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=240
    )
    assert not ok or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_the_statements_the_page_the_locks_and_the_hook(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "lineage_master.pth",
        "lineage_cypher/flow/upsert.cypher",
        "lineage_page/__init__.py",
        "lineage_api/examples.json",
        "lineage_service/stack/kafka.lock",
        "lineage_service/stack/neo4j.lock",
        "spark_agent/hook.py",
    } <= names
    assert not [name for name in names if name.startswith(("tests/", "perf/", "examples/"))]
    # The page as it is built, and nothing of what it is built from.
    built = {name for name in names if name.startswith("lineage_page/") and not name.endswith(".py")}
    page = ROOT / "ui" / "lineage_page" / "dist"
    assert built == {
        f"lineage_page/dist/{path.relative_to(page)}" for path in page.rglob("*") if path.is_file()
    }
    if os.environ.get("LINEAGE_TEST_NODE") == "required":  # what .ci/run says
        assert "lineage_page/dist/index.html" in built
    # The agent's jar, where it is built, and nothing of what it is built from.
    java = {name for name in names if name.startswith("spark_agent/jvm/")}
    assert java == {"spark_agent/jvm/lineage.jar"} & {
        f"spark_agent/jvm/{path.name}" for path in (ROOT / "spark_agent" / "jvm").iterdir()
    }


def test_an_environment_without_the_service_has_the_agent_and_says_what_is_missing(
    wheel: Path, tmp_path: Path
) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel)
    started = run(
        python, "-c", "import sys; print('spark_agent.hook' in sys.modules, 'pyspark' in sys.modules)"
    )
    assert started.stdout.split() == ["True", "False"]
    lineage = tmp_path / "env" / "bin" / "lineage"
    assert "consume" in run(lineage, "--help").stdout
    refused = run(lineage, "status", ok=False)
    assert refused.returncode == 1
    assert "pip install 'lineage-master[service]'" in refused.stderr
    assert "Traceback" not in refused.stderr
