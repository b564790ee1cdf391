"""The user's side of the benchmark: a warm driver that runs unmodified jobs in one mode, one by one.

    spark-submit perf/capture/driver.py MODE ADDRESS

Started with spark-submit and waits at ADDRESS for jobs. Each is run as its user runs it: the file as
`__main__`, with a SparkContext of its own that the job makes and stops. So a run has the whole of an
application in it, Python workers included; only the JVM and its compiled code stay. The CPU seconds of the
workers are read when the context stops, which ends them.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
import traceback
from multiprocessing.connection import Client
from typing import Any

import psutil

from perf.capture import processes

#: Where the benchmark puts the key of its address.
KEY = "LINEAGE_PERF_KEY"


#: CPU seconds of the workers of each context that the job has stopped.
_workers_s: list[float] = []


def watch_workers() -> None:
    """From here on each stop of a SparkContext adds to `_workers_s`. Not undone."""
    from pyspark import SparkContext

    stop = SparkContext.stop
    driver = psutil.Process()
    jvm = driver.parent()  # spark-submit starts the driver from the JVM, which starts the workers too
    assert jvm is not None

    def watched(self: Any) -> None:
        if self._jsc is not None:
            of_driver = set(processes.tree(driver.pid))
            workers = [process for process in jvm.children(recursive=True) if process not in of_driver]
            _workers_s.append(processes.seconds(workers))
        stop(self)

    SparkContext.stop = watched


def run(job: str, arguments: list[str]) -> dict[str, Any]:
    """Runs one job; what became of it."""
    sys.argv = [job, *arguments]
    _workers_s.clear()
    began = time.perf_counter()
    try:
        runpy.run_path(job, run_name="__main__")
    except BaseException as error:  # noqa: BLE001 - a job that calls sys.exit must not end the driver
        return {"error": traceback.format_exc(), "unmirrored": getattr(error, "unmirrored", None)}
    return {"wall_s": time.perf_counter() - began, "workers_s": sum(_workers_s)}


def main(mode: str, address: str) -> None:
    """Serves jobs until the other side hangs up."""
    watch_workers()
    if mode == "nolin":
        from perf.capture import nolin

        nolin.install()
    with Client(address, authkey=os.environ[KEY].encode()) as connection:
        while True:
            try:
                job, arguments = connection.recv()
            except EOFError:
                return
            connection.send(run(job, arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
