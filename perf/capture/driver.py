"""The user's side of the benchmark: a warm driver that runs unmodified jobs in one mode, one by one.

    spark-submit perf/capture/driver.py MODE ADDRESS

Started with spark-submit and waits at ADDRESS for jobs. Each is run as its user runs it: the file as
`__main__`, with a SparkContext of its own that the job makes and stops. So a run has the whole of an
application in it, Python workers included; only the JVM and its compiled code stay.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
import traceback
from multiprocessing.connection import Client
from typing import Any

#: Where the benchmark puts the key of its address.
KEY = "LINEAGE_PERF_KEY"


def run(job: str, arguments: list[str]) -> dict[str, Any]:
    """Runs one job; what became of it."""
    sys.argv = [job, *arguments]
    began = time.perf_counter()
    try:
        runpy.run_path(job, run_name="__main__")
    except BaseException as error:  # noqa: BLE001 - a job that calls sys.exit must not end the driver
        return {"error": traceback.format_exc(), "unmirrored": getattr(error, "unmirrored", None)}
    return {"wall_s": time.perf_counter() - began}


def main(mode: str, address: str) -> None:
    """Serves jobs until the other side hangs up."""
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
