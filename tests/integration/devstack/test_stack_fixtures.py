from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
ASKS_FOR_KAFKA = """
def test_asks(kafka):
    pass

def test_asks_too(kafka, pytestconfig, request):
    pass

def test_asks_for_nothing(request):
    assert [mark.name for mark in request.node.iter_markers()] == ["unit"]
"""


def run(folder: Path, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # A folder that looks like ours: the same conftest.py above a tier of tests.
    (folder / "tests" / "unit").mkdir(parents=True)
    (folder / "tests" / "conftest.py").symlink_to(TESTS / "conftest.py")
    (folder / "tests" / "support").symlink_to(TESTS / "support")
    (folder / "tests" / "unit" / "test_probe.py").write_text(ASKS_FOR_KAFKA)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -ra\nmarkers = unit: a tier\n")
    outside = {
        name: value for name, value in os.environ.items() if not name.startswith(("LINEAGE_", "DOCKER_"))
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *argv],
        cwd=folder,
        # Neither Java nor a container engine, which would give the servers, too.
        env={
            **outside,
            "JAVA_HOME": "/nowhere",
            "DOCKER_HOST": "unix:///nowhere/docker.sock",
            **environment,
        },
        capture_output=True,
        text=True,
    )


@pytest.mark.thorough
def test_where_no_kafka_can_be_had_the_tests_are_skipped_with_the_reason(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.returncode == 0, result.stdout
    assert "1 passed, 2 skipped" in result.stdout
    assert "no kafka: JAVA_HOME is /nowhere" in result.stdout


@pytest.mark.thorough
def test_where_services_are_required_the_tests_fail_with_the_reason(tmp_path: Path) -> None:
    result = run(tmp_path, "--require-services")
    assert result.returncode == 1
    assert "1 passed, 2 errors" in result.stdout
    assert "no kafka: JAVA_HOME is /nowhere" in result.stdout


@pytest.mark.thorough
def test_a_kafka_that_is_named_is_taken(tmp_path: Path) -> None:
    result = run(tmp_path, "--require-services", LINEAGE_TEST_KAFKA="127.0.0.1:9")
    assert "3 passed" in result.stdout, result.stdout
