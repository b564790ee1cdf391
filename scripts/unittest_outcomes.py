"""Runs the tests of one module and writes one JSON line for each outcome as soon as it is known.

    python -m scripts.unittest_outcomes MODULE FILE

A module of tests is run with unittest; of any other module of PySpark the examples in its docstrings are
the tests. A line is {"test": id, "outcome": "passed" | "failed (AssertionError)" | "skipped: why" | ...,
"text": traceback}; what a process that was killed had to say until then is in the file.
"""

from __future__ import annotations

import doctest
import importlib
import json
import os
import sys
import tempfile
import traceback
import unittest
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

ErrorInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]

#: Modules whose examples make each SparkContext that they need; those of the others find one as `sc`.
WITH_OWN_CONTEXT = ("pyspark.conf", "pyspark.profiler", "pyspark.serializers")
#: Modules whose examples find a SparkSession as `spark`. It makes other errors of Java's, so not for all.
WITH_SESSION = ("pyspark.core.broadcast", "pyspark.taskcontext", "pyspark.sql.")
#: (module, name, module that has it in newer versions of PySpark): what tests of older ones import.
MOVED = (("pyspark.profiler", "has_memory_profiler", "pyspark.memory_profiler_ext"),)


class Outcomes(unittest.TextTestResult):
    """unittest's own result, which also writes the lines."""

    lines: TextIO

    def _say(self, test: Any, outcome: str, text: str = "") -> None:
        self.lines.write(json.dumps({"test": test.id(), "outcome": outcome, "text": text}) + "\n")
        self.lines.flush()

    def _say_error(self, test: Any, how: str, error: ErrorInfo) -> None:
        kind = error[0].__name__ if error[0] is not None else "nothing"
        self._say(test, f"{how} ({kind})", "".join(traceback.format_exception(*error)))

    def addSuccess(self, test: Any) -> None:
        super().addSuccess(test)
        self._say(test, "passed")

    def addError(self, test: Any, err: ErrorInfo) -> None:
        super().addError(test, err)
        self._say_error(test, "error", err)
        if not isinstance(test, unittest.TestCase):  # setUpClass: nothing else would stop its context,
            stop_context()  # and the next class could not make its own

    def addFailure(self, test: Any, err: ErrorInfo) -> None:
        super().addFailure(test, err)
        self._say_error(test, "failed", err)

    def addSubTest(self, test: Any, subtest: Any, err: ErrorInfo | None) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._say_error(subtest, "failed", err)

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        self._say(test, f"skipped: {reason}")

    def addExpectedFailure(self, test: Any, err: ErrorInfo) -> None:
        super().addExpectedFailure(test, err)
        self._say(test, "failed as expected")

    def addUnexpectedSuccess(self, test: Any) -> None:
        super().addUnexpectedSuccess(test)
        self._say(test, "passed unexpectedly")


def stop_context() -> None:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        context.stop()


def give_moved_names() -> None:
    """Where this PySpark has a name in another module, it is in the old one too."""
    for old, name, new in MOVED:
        with suppress(ImportError):  # a version that has it neither here nor there
            if not hasattr(importlib.import_module(old), name):
                setattr(importlib.import_module(old), name, getattr(importlib.import_module(new), name))


def examples(name: str) -> unittest.TestSuite:
    """The examples in the docstrings of a module of PySpark, run as Spark runs them."""

    def give_context(test: doctest.DocTest) -> None:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        context = SparkContext.getOrCreate(SparkConf().setMaster("local[4]").setAppName(name))
        context.setCheckpointDir(tempfile.mkdtemp())
        test.globs["sc"] = context
        if name.startswith(WITH_SESSION):
            test.globs["spark"] = SparkSession.builder.getOrCreate()

    with suppress(ImportError):
        import numpy

        numpy.set_printoptions(legacy="1.25")  # the examples show numbers without their type
    options: dict[str, Any] = {} if name in WITH_OWN_CONTEXT else {"setUp": give_context}
    flags = doctest.ELLIPSIS
    if name.startswith("pyspark.sql."):
        flags |= doctest.NORMALIZE_WHITESPACE
        os.chdir(os.environ["SPARK_HOME"])  # they read files of test_support there
    if name == "pyspark.sql.catalog":
        flags |= doctest.IGNORE_EXCEPTION_DETAIL
    return doctest.DocTestSuite(importlib.import_module(name), optionflags=flags, **options)


def main(arguments: Sequence[str]) -> int:
    module, file = arguments
    is_tests = module.rpartition(".")[2].startswith("test_")
    if is_tests:
        give_moved_names()
    tests = unittest.defaultTestLoader.loadTestsFromName(module) if is_tests else examples(module)
    with Path(file).open("w", encoding="utf-8") as lines:
        Outcomes.lines = lines
        runner = unittest.TextTestRunner(verbosity=2, resultclass=lambda *arguments: Outcomes(*arguments))
        result = runner.run(tests)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
