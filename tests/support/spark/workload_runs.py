"""Runs jobs one after the other in one JVM, each as its user runs it: the file as `__main__`.

    spark-submit tests/support/spark/workload_runs.py JOBS

JOBS is a file of JSON: [[job, argument, ...], ...]. Writes beside it, as `errors.json`, what each has raised:
its text, or null.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path


def error_of(job: str, arguments: list[str]) -> str | None:
    from pyspark import SparkContext

    sys.argv = [job, *arguments]
    try:
        runpy.run_path(job, run_name="__main__")
    except BaseException as error:  # noqa: BLE001 - a job that calls sys.exit must not end the others
        return f"{type(error).__name__}: {error}"
    finally:
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()
    return None


def main(path: Path) -> None:
    errors = [error_of(job, arguments) for job, *arguments in json.loads(path.read_text())]
    path.with_name("errors.json").write_text(json.dumps(errors))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
