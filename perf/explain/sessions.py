"""Sessions that stay: a workload runs in this process with lineage, as a user has it in a notebook.

The job is its file as it is. Only the context that it asks for is the one of the session, which goes on when
the job is done.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from perf.capture.broker import Broker
from perf.capture.drivers import ROOT
from perf.explain.cases import Workload
from perf.ingest.members import Service
from perf.ingest.topics import Topics


@contextmanager
def session(workload: Workload, source: Path, run: Path, *, memory: str, jars: Path) -> Iterator[Path]:
    """The output of the job, while its session runs in this process. `run`: a new folder for all of it."""
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    broker = Broker(run / "stack", jars)
    try:
        topics = Topics(broker.bootstrap_servers, "session")
        topics.create()
        service = Service(topics, run / "service")
        consumer, api = service.consume(0), service.serve()
        try:
            context = _context(topics, api.url, memory)
            try:
                _run(workload, context, source, run / "output")
                yield run / "output"
            finally:
                context.stop()
        finally:
            api.process.stop()
            consumer.stop()
    finally:
        broker.stop()
        shutil.rmtree(run, ignore_errors=True)


def _run(workload: Workload, context: Any, source: Path, output: Path) -> None:
    job: Any = importlib.import_module(f"perf.workloads.{workload.job.stem}")
    own = job.SparkContext
    job.SparkContext = lambda **_: nullcontext(context)
    try:
        job.main(*workload.arguments(source, output))
    finally:
        job.SparkContext = own


def _context(topics: Topics, api: str, memory: str) -> Any:
    from pyspark import SparkConf, SparkContext

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(ROOT)  # workers import the job, too
    conf = {
        "spark.master": "local[2]",
        "spark.app.name": "explanations",
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": topics.bootstrap_servers,
        "spark.lineage.topic.node": topics.node,
        "spark.lineage.topic.flow": topics.flow,
        "spark.lineage.delivery.timeout": "60",
        "spark.lineage.api": api,
    }
    context = SparkContext(conf=SparkConf().setAll(list(conf.items())))
    context.setLogLevel("ERROR")
    return context
