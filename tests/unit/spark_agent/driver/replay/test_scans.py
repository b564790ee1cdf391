"""Which scans of DataFrames a replay restricts, and why others are read whole; without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_agent.driver.replay.report import Report
from spark_agent.driver.replay.restriction import Restriction

BLOCKS = [{"path": "/in/a.csv", "start": 0, "length": 9, "rows": [[1, 2]]}]
SCAN = {"node": 4, "name": "Scan csv", "call_site": "job.py:7", "whole": False, "blocks": BLOCKS}


class Restricted:
    def __init__(self, folder: Path, mode: str, source: dict[str, Any]) -> None:
        self._report = Report(str(folder))
        self._report.begin("app-2", is_first_named=True)
        self.restriction = Restriction({"mode": mode, "sources": [source]}, self._report)
        self._folder = folder

    def blocks(self, name: str = "Scan csv", site: str = "job.py:7", *, is_copy: bool = False) -> Any:
        blocks = self.restriction.blocks_of(4, name, site, is_copy=is_copy)
        self.restriction.of_frame(4, name, site)
        return blocks

    def source(self) -> dict[str, Any]:
        self._report.write()
        (source,) = json.loads((self._folder / "report.json").read_text())["sources"]
        return dict(source)


@pytest.mark.parametrize("mode", ["only", "without"])
def test_a_scan_with_blocks_is_filtered(mode: str, tmp_path: Path) -> None:
    restricted = Restricted(tmp_path, mode, SCAN)
    assert restricted.blocks() == BLOCKS
    assert restricted.source()["way"] == "filter"


@pytest.mark.parametrize(
    ("mode", "source", "call", "why"),
    [
        ("only", {**SCAN, "whole": True, "why": "no way to it"}, {}, "no way to it"),
        ("only", {**SCAN, "node": 5}, {}, "the row set does not name it"),
        ("only", SCAN, {"name": "Scan json"}, "it was Scan csv at job.py:7 in the original"),
        ("only", SCAN, {"site": "job.py:8"}, "it was Scan csv at job.py:7 in the original"),
        ("only", SCAN, {"is_copy": True}, "this replay wrote it before"),
        ("replace", SCAN, {}, "only lines of textFile can be replaced"),
        ("only", {**SCAN, "blocks": None, "why": "its rows are not known"}, {}, "its rows are not known"),
    ],
)
def test_others_are_read_whole(
    mode: str, source: dict[str, Any], call: dict[str, Any], why: str, tmp_path: Path
) -> None:
    restricted = Restricted(tmp_path, mode, source)
    assert restricted.blocks(**call) is None
    assert restricted.source()["way"] == "whole"
    assert why in restricted.source()["why"]


def test_a_scan_of_a_query_that_is_not_followed_is_read_whole(tmp_path: Path) -> None:
    restricted = Restricted(tmp_path, "only", SCAN)
    restricted.restriction.of_frame(4, "Scan csv", "job.py:7")
    assert "in queries whose records are followed" in restricted.source()["why"]
