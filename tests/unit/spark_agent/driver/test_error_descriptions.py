from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent import contract
from spark_agent.driver import error_descriptions

OF_WORKER = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 \
failed 1 times, most recent failure: Lost task 1.0 in stage 0.0 (TID 1) (host executor driver): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/venv/lib/pyspark/python/lib/pyspark.zip/pyspark/worker.py", line 3306, in main
    process()
  File "/jobs/etl.py", line 41, in parse
    return float(text)
           ^^^^^^^^^^^
ValueError: could not convert string to float: 'x'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
"""
OF_JVM = """An error occurred while calling o53.csv.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/out.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailed(QueryExecutionErrors.scala:774)
"""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("ValueError: bad\nand more", ("ValueError", "bad", None)),
        ("KeyError: ", ("KeyError", "", None)),
        (
            f"Py4JJavaError: {OF_WORKER}",
            ("ValueError", "could not convert string to float: 'x'", "/jobs/etl.py:41"),
        ),
        (
            f"Py4JJavaError: {OF_JVM}",
            ("SparkException", "[TASK_WRITE_FAILED] Task failed while writing rows to file:/out.", None),
        ),
        ("Odd: Traceback (most recent call last):", ("Odd", "Traceback (most recent call last):", None)),
    ],
)
def test_the_error_that_matters_is_found_in_what_spark_says(text: str, error: tuple[Any, ...]) -> None:
    error_fields = error_descriptions.of_text(text)
    assert (error_fields["type"], error_fields["message"], error_fields["frame"]) == error


#: A line of the user's program. This file is none: it stands in a folder `spark_agent`.
RAISE = compile("raise error", "/jobs/etl.py", "exec")


def described(error: BaseException, redact: str = "") -> dict[str, Any]:
    try:
        exec(RAISE, {"error": error})
    except BaseException as raised:  # noqa: BLE001 - with a traceback
        return error_descriptions.of_exception(raised, SimpleNamespace(redact=redact), "map")  # type: ignore[arg-type]


def test_an_error_says_its_type_one_line_and_where_it_was_raised() -> None:
    error_fields = described(ValueError("one\ntwo"))
    assert (error_fields["type"], error_fields["message"]) == ("ValueError", "one")
    assert error_fields["frame"] == "/jobs/etl.py:1"


def test_what_is_long_is_cut() -> None:
    error_fields = described(type("E" * 999, (Exception,), {})("x" * 9_999))
    assert len(error_fields["type"]) == error_descriptions.MAX_TYPE_CHARACTERS
    assert len(error_fields["message"]) == error_descriptions.MAX_MESSAGE_CHARACTERS
    assert error_fields["message"].endswith("x…")


def masked(name: str, kind: str, value: str) -> str:
    if "secret" in value:
        raise ValueError(value)
    return f"{name} {kind} {len(value)}"


def test_a_message_is_redacted_as_values_are() -> None:
    function = f"{__name__}:masked"
    sys.modules.setdefault(__name__, sys.modules[masked.__module__])
    assert described(ValueError("12345"), function)["message"] == "map error 5"
    assert described(ValueError("secret"), function)["message"] == contract.WITHHELD[1]
    assert described(ValueError("12345"), "no_such_module:f")["message"] == contract.WITHHELD[1]


def test_an_error_that_cannot_say_what_it_is_has_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert described(Mute()) | {"frame": None} == {"type": "Mute", "message": "", "frame": None}
