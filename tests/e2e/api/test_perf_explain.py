"""perf.explain as a try: real Spark, Kafka, consumer and service, and PySpark on the explained rows alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perf.explain.__main__ import main

pytestmark = pytest.mark.thorough


def test_a_try_measures_and_tests_every_explanation(tmp_path: Path, jar_folder: Path) -> None:
    workloads = ("components", "customers", "unique-counts")
    folders = ["--out", str(tmp_path / "out"), "--folder", str(tmp_path / "perf"), "--jars", str(jar_folder)]
    assert main(["--quick", "--edges", "400", "--workloads", *workloads, *folders]) == 0
    (figures,) = (tmp_path / "out").glob("explain-*.json")
    measured = {result["workload"]: result for result in json.loads(figures.read_text())["workloads"]}
    assert list(measured) == list(workloads)
    for name, result in measured.items():
        assert len(result["sizes"]) == len(result["warm_ms"]) == result["proof"]["tested"] == 20
        assert set(result["kinds"]) == {"concise"}, name
        assert len(result["cold_ms"]) == len(result["new_ms"]) == 2
        assert result["plain"]
        assert max(result["plain"]) <= result["of"]
    for name in ("components", "customers"):
        assert measured[name]["proof"]["verified"] == 20
    assert measured["unique-counts"]["proof"]["verified"] < 20
    [added] = measured["unique-counts"]["sufficient"]
    assert added["is_verified"]
    assert 0 < added["added"] < added["rows"] <= 0.01 * measured["unique-counts"]["of"]
    (page,) = (tmp_path / "out").glob("explain-*.md")
    assert "20 of 20, **met**: all" in page.read_text()
