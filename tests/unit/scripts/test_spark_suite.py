from __future__ import annotations

from pathlib import Path

import pytest

from scripts.spark_suite import SuiteFailed, find_modules, keep, kept, main, named
from scripts.spark_suite_modules import SUITES
from scripts.spark_suite_report import Compared, Run, page

RDDS = SUITES["rdd"]


def ended(**outcomes: str) -> Run:
    return Run(outcomes=outcomes, seconds=1, applications=1, with_lineage=1, captured=1, lost=0)


def compared(off: list[Run], on: list[Run]) -> Compared:
    return Compared("pyspark.tests.test_rdd", {"off": off, "on": on})


def test_another_outcome_with_lineage_is_a_difference() -> None:
    one = compared(
        [ended(same="passed", other="passed", skipped="skipped: no numpy", gone="passed")],
        [ended(same="passed", other="failed (KeyError)", skipped="skipped: no pandas")],
    )
    assert one.differences() == ["gone", "other", "skipped"]


def test_a_failure_both_ways_is_none() -> None:
    one = compared([ended(test="error (ImportError)")], [ended(test="error (ImportError)")])
    assert one.differences() == []
    assert "| `test` | error (ImportError) |" in page([one], RDDS, 31, "4.0.0", [])


def test_a_test_that_goes_both_ways_by_itself_is_unsteady() -> None:
    one = compared(
        [ended(test="passed"), ended(test="failed (A|B)")], [ended(test="failed (A|B)"), ended(test="passed")]
    )
    assert one.differences() == []
    assert one.unsteady() == ["test"]
    assert r"| `test` | failed (A\|B); passed | failed (A\|B); passed |" in page([one], RDDS, 31, "4.0.0", [])


def test_a_folder_that_is_no_checkout_of_spark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteFailed, match="is no folder"):
        find_modules(tmp_path / "missing", RDDS)
    with pytest.raises(SuiteFailed, match="no checkout of Apache Spark: it has no python/pyspark/testing"):
        find_modules(tmp_path, RDDS)
    for name in ("pyspark/testing", "test_support"):
        (tmp_path / "python" / name).mkdir(parents=True)
    with pytest.raises(SuiteFailed, match="none of the tests of RDDs"):
        find_modules(tmp_path, RDDS)


def test_modules_are_found_in_old_and_new_places(tmp_path: Path) -> None:
    for name in ("pyspark/testing", "test_support", "pyspark/tests", "pyspark/core/tests"):
        (tmp_path / "python" / name).mkdir(parents=True)
    (tmp_path / "python/pyspark/tests/test_join.py").touch()
    (tmp_path / "python/pyspark/core/tests/test_rdd.py").touch()
    assert find_modules(tmp_path, RDDS)[:2] == ["pyspark.tests.test_join", "pyspark.core.tests.test_rdd"]


def test_a_missing_checkout_is_said_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([""]) == 2
    assert capfd.readouterr().err == (
        "spark_suite: SPARK_SRC is not given; it must name a checkout of Apache Spark\n"
    )


def test_results_are_taken_up_by_a_call_with_the_same_versions_only(tmp_path: Path) -> None:
    one = compared([ended(test="passed")], [ended(test="passed")])
    keep(tmp_path / "results.json", ["4.3.0", "4.0.0"], [one])
    assert kept(tmp_path / "results.json", ["4.3.0", "4.0.0"]) == [one]
    assert kept(tmp_path / "results.json", ["4.3.1", "4.0.0"]) == []
    assert kept(tmp_path / "missing.json", []) == []


def test_a_module_is_named_by_the_whole_or_the_last_part_of_its_name() -> None:
    assert named("pyspark.tests.test_rdd", ["test_rdd"])
    assert named("pyspark.tests.test_rdd", ["pyspark.tests.test_rdd"])
    assert not named("pyspark.tests.test_rdd", ["rdd", "test_rddbarrier"])


def test_tests_of_sql_are_found_beside_their_examples(tmp_path: Path) -> None:
    for name in ("pyspark/testing", "test_support", "pyspark/sql/tests/pandas"):
        (tmp_path / "python" / name).mkdir(parents=True)
    (tmp_path / "python/pyspark/sql/tests/pandas/test_pandas_map.py").touch()
    (tmp_path / "python/pyspark/sql/tests/test_dataframe.py").touch()
    found = find_modules(tmp_path, SUITES["sql"])
    assert found[:3] == [
        "pyspark.sql.tests.test_dataframe",
        "pyspark.sql.tests.pandas.test_pandas_map",
        "pyspark.sql.dataframe",
    ]
