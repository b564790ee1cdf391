from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import pyspark_versions
from scripts.pyspark_versions import CORE, VERSIONS, Outcome, main, outcome, table

ROOT = Path(__file__).parents[3]
REPORT = '<testsuites><testsuite tests="9" failures="1" errors="1" skipped="2" /></testsuites>'
GOOD = Outcome(version="4.3.0", passed=9, failed=0, skipped=1, seconds=200.4)
BAD = Outcome(version="3.5.9", passed=8, failed=1, skipped=1, seconds=90)


def test_errors_count_as_failed_and_what_is_left_has_passed(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    found = outcome("4.0.5", tmp_path / "report.xml", 12)
    assert (found.passed, found.failed, found.skipped, found.is_good) == (5, 2, 2, False)


def test_a_run_without_a_report_or_without_a_test_is_not_good(tmp_path: Path) -> None:
    assert not outcome("4.0.5", tmp_path / "report.xml", 12).is_good
    (tmp_path / "report.xml").write_text('<testsuites><testsuite tests="0" /></testsuites>')
    assert not outcome("4.0.5", tmp_path / "report.xml", 12).is_good


def test_the_table_has_a_row_for_each_version_and_names_problems_below() -> None:
    lost = Outcome(version="9.9.9", passed=0, failed=0, skipped=0, seconds=0, problem="no such version")
    assert table([GOOD, lost]).splitlines()[2:] == [
        "| 4.3.0 | 9 | 0 | 1 | 200 |",
        "| 9.9.9 | 0 | 0 | 0 | 0 |",
        "PySpark 9.9.9: no such version",
    ]


@pytest.mark.parametrize(("versions", "code"), [(["4.3.0"], 0), (["3.5.9", "4.3.0"], 1)])
def test_one_failing_version_is_a_failure_and_the_others_run_all_the_same(
    versions: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = {"3.5.9": BAD, "4.3.0": GOOD}
    monkeypatch.setattr(pyspark_versions, "run_tests", lambda version, tests: outcomes[version])
    assert main(versions) == code
    assert "| 4.3.0 | 9 | 0 | 1 | 200 |" in capsys.readouterr().out


def test_the_newest_version_is_the_one_that_is_pinned_and_the_pages_name_all() -> None:
    pinned = re.findall(r'"pyspark\[connect\]==([\d.]+);', (ROOT / "pyproject.toml").read_text())
    assert pinned[0] == VERSIONS[-1]
    assert set(pinned) <= set(VERSIONS)
    for page in ("README.md", "docs/versions.md"):
        text = (ROOT / page).read_text()
        assert [version for version in VERSIONS if version not in text] == []


def test_what_the_core_names_is_there() -> None:
    assert [path for path in CORE if not (ROOT / path).exists()] == []
