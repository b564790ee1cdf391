from __future__ import annotations

from dataclasses import replace

import pytest

from lineage_service.replays.failure_check import checked_failure, is_same_crash
from tests.support.failure import FAILURE, PRINTED


def test_the_same_error_from_the_same_line_is_reproduced() -> None:
    output = checked_failure(FAILURE, 1, PRINTED)
    assert (output.verdict, output.was, output.is_) == (
        "reproduced",
        "ZeroDivisionError: division by zero",
        "ZeroDivisionError: division by zero",
    )


def test_a_replay_that_ends_well_did_not_fail() -> None:
    assert checked_failure(FAILURE, 0, PRINTED).verdict == "no"


def test_another_text_or_another_line_is_changed() -> None:
    assert checked_failure(FAILURE, 1, PRINTED.replace("division", "modulo")).verdict == "changed"
    assert checked_failure(FAILURE, 1, PRINTED.replace("line 41", "line 411")).verdict == "changed"
    assert checked_failure(replace(FAILURE, message=""), 1, PRINTED).verdict == "changed"


def test_another_error_is_changed_and_shown() -> None:
    output = checked_failure(FAILURE, 1, "ModuleNotFoundError: No module named 'x'\n")
    assert (output.verdict, output.is_) == ("changed", "ModuleNotFoundError: No module named 'x'")
    assert output.why == "the replay failed in another way (exit code 1)"


def test_an_error_that_is_only_mentioned_is_not_raised() -> None:
    assert (
        checked_failure(FAILURE, 1, "it may say ZeroDivisionError: division by zero here\n").verdict
        == "changed"
    )


@pytest.mark.parametrize(
    ("error", "message", "last"),
    [
        ("BadRow", "no shop", "kit.BadRow: no shop"),
        ("BadRow", "no shop", "__main__.main.<locals>.BadRow: no shop"),
        ("AssertionError", "", "AssertionError"),
        ("StopNow", "", "kit.StopNow"),
        ("KeyError", "'x'", "KeyError: 'x'"),
        ("ValueError", "it is " + "9" * 20 + "…", "ValueError: it is " + "9" * 40),
        ("ValueError", "\n  two\n  lines", "ValueError: \n  two\n  lines"),
    ],
)
def test_an_error_is_known_by_its_name_whatever_that_is(error: str, message: str, last: str) -> None:
    failure = replace(FAILURE, error=error, message=message)
    printed = PRINTED.replace("ZeroDivisionError: division by zero", last)
    assert checked_failure(failure, 1, printed).verdict == "reproduced"
    assert is_same_crash(failure, 1, printed)


@pytest.mark.parametrize("last", ["AssertionError: 3 is odd", "kit.MyAssertionError", "NotAssertionError"])
def test_an_error_without_a_text_is_no_other_one(last: str) -> None:
    failure = replace(FAILURE, error="AssertionError", message="")
    printed = PRINTED.replace("ZeroDivisionError: division by zero", last)
    assert checked_failure(failure, 1, printed).verdict == "changed"


def test_an_error_of_a_query_is_the_same_whatever_pyspark_calls_it() -> None:
    failure = replace(FAILURE, error="SparkNumberFormatException", frame="/home/ann/job.py:7")
    printed = 'captured.NumberFormatException: [CAST] x\n"sum" was called from\n/j/job.py:7\n'
    assert is_same_crash(failure, 1, printed)
    assert not is_same_crash(failure, 1, printed.replace(":7", ":71"))
    failure = replace(failure, frame=None)
    assert is_same_crash(failure, 1, "Caused by: org.apache.spark.SparkNumberFormatException: [CAST] x\n")
    assert not is_same_crash(failure, 1, "ArithmeticException: x\n")
    assert not is_same_crash(failure, 0, "NumberFormatException: x\n")


@pytest.mark.parametrize(
    ("message", "last"),
    [
        ("bad value 1", "ValueError: bad value 12"),
        ("bad value 1", "ValueError: a bad value 1"),
        ("bad value 1", "ValueError"),
        ("head\nrow 5", "ValueError: head\nrow 6"),
        ("head\nrow 5", "ValueError: head\nrow 55"),
        ("head\nrow 5", "ValueError: head"),
        ("head\nrow 5", "ValueError: other\nhead\nrow 5"),
        ("head\nrow 5…", "ValueError: head\nrow 6"),
        ("bad value 1…", "ValueError: bad value"),
    ],
)
def test_an_error_of_another_text_is_not_reproduced(message: str, last: str) -> None:
    failure = replace(FAILURE, error="ValueError", message=message)
    printed = PRINTED.replace("ZeroDivisionError: division by zero", last)
    assert checked_failure(failure, 1, printed).verdict == "changed"
    assert is_same_crash(failure, 1, printed)


@pytest.mark.parametrize(
    ("message", "last"),
    [
        ("head\nrow 5", "ValueError: head\nrow 5\n\n\tat org.apache.spark"),
        ("head \n\nrow 5\n", "ValueError: head \n\nrow 5\n"),
        ("head\nrow 5…", "ValueError: head\nrow 51"),
    ],
)
def test_an_error_of_several_lines_is_reproduced_if_all_are_the_same(message: str, last: str) -> None:
    failure = replace(FAILURE, error="ValueError", message=message)
    printed = PRINTED.replace("ZeroDivisionError: division by zero", last)
    assert checked_failure(failure, 1, printed).verdict == "reproduced"


@pytest.mark.parametrize("file", ["myjob.py", "my-job.py", "my.job.py"])
def test_a_line_of_another_file_whose_name_ends_alike_is_another_line(file: str) -> None:
    assert checked_failure(FAILURE, 1, PRINTED.replace("job.py", file)).verdict == "changed"
    assert not is_same_crash(FAILURE, 1, PRINTED.replace("/jobs/job.py", file))
