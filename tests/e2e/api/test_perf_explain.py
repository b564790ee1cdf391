"""perf.explain as a try: real Spark, Kafka, consumer and service, and PySpark on the explained rows alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perf.explain.__main__ import main

pytestmark = pytest.mark.thorough


def test_a_try_measures_and_tests_every_explanation(tmp_path: Path, jar_folder: Path) -> None:
    workloads = ("components", "customers", "matching", "unique-counts")
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
    for name in ("components", "customers", "matching"):
        assert measured[name]["proof"]["verified"] == 20
    assert measured["unique-counts"]["proof"]["verified"] < 20
    [added] = measured["unique-counts"]["sufficient"]
    assert added["is_verified"]
    assert 0 < added["added"] < added["rows"] <= 0.01 * measured["unique-counts"]["of"]
    for name in ("matching", "unique-counts"):
        enough = measured[name]["enough"]
        assert (enough["proof"]["tested"], enough["proof"]["verified"]) == (20, 20), enough["why_not"]
        assert len(enough["rows"]) == len(enough["seconds"]) == 20
        assert len(enough["checked_s"]) == 2
        assert max(enough["runs"]) <= 10
    assert measured["components"]["enough"] is None
    assert min(measured["unique-counts"]["enough"]["added"]) > 0
    matching = measured["matching"]["enough"]
    assert min(matching["demanded"]) >= 1
    assert all(
        rows >= demanded for rows, demanded in zip(matching["rows"], matching["demanded"], strict=True)
    )
    (page,) = (tmp_path / "out").glob("explain-*.md")
    assert "20 of 20, **met**: all" in page.read_text()
