"""Runs Apache Spark's own tests on the installed PySpark, without and with lineage, and compares.

    python -m scripts.spark_suite SPARK_SRC [--suite sql] [--only MODULE ...] [--resume] [--report]

SPARK_SRC is a checkout of Spark: PySpark's wheel has no tests, and none is kept here. A test that ends in
another way with lineage than without is a defect of the agent. Exit code 0: none does, and lineage was on.
There are three suites (`spark_suite_modules`): the tests of RDDs, those of DataFrames and SQL, and, of a
checkout of Delta Lake, those of its tables.

All of it happens in one folder, .cache/spark-suite/SUITE:
 1. `home` is a SPARK_HOME of links: the installed PySpark with `tests`, `testing` and `test_support` of the
    checkout. Drivers and executors import from there.
 2. Each module runs in a process of its own, first `off` and then `on`; a spark-defaults.conf says which.
 3. Spark's event logs say how many applications there were, the lineage-node topic how many had lineage.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import pyspark
from confluent_kafka import Consumer, TopicPartition

from lineage_service.cli.stack import down, up
from lineage_service.devstack.errors import StackError
from lineage_service.kafka.topics import create_topics
from lineage_service.settings import Settings
from scripts import brief_jvm
from scripts.spark_suite_modules import SUITES, THEIRS, Suite, modules_in
from scripts.spark_suite_report import WAYS, Compared, Run, checkout_version, in_short, page
from scripts.table_jars import NoTableJarsError, delta_conf
from spark_agent import contract

ROOT = Path(__file__).resolve().parents[1]
#: Folders of `pyspark` that are made of links, so that there is room for folders of the checkout.
_OF_LINKS = (".", "core", "sql")
WHOLE_MODULE = "(the whole module)"
#: A module that differs is run again this often: a test may go one way or the other by itself.
REPEATS = 2


class SuiteFailed(Exception):
    """The suite cannot run; the message says what to do."""


# -- the SPARK_HOME of the run --------------------------------------------------------------------------


def find_modules(source: Path, suite: Suite) -> list[str]:
    """Dotted names of what there is to run; raises SuiteFailed for what is no checkout of Spark."""
    if not source.is_dir():
        raise SuiteFailed(f"{source} is no folder; SPARK_SRC must name a checkout of {suite.project}")
    for needed in suite.needed:
        if not (source / needed).is_dir():
            raise SuiteFailed(f"{source} is no checkout of {suite.project}: it has no {needed}")
    modules = modules_in(source, suite)
    if not modules:
        raise SuiteFailed(
            f"{source} has none of the tests of {suite.of} that are looked for in "
            f"{' and '.join(f'python/{suite.package}/{folder}' for folder in suite.packages)}"
        )
    return [*modules, *suite.examples]


def make_home(home: Path, source: Path, suite: Suite) -> None:
    """Links to the installed PySpark, with the tests of `source` in it, or its package beside it."""
    shutil.rmtree(home, ignore_errors=True)
    installed = Path(pyspark.__file__).resolve().parent
    package = home / "python" / "pyspark"
    for folder in _OF_LINKS:
        (package / folder).mkdir(parents=True, exist_ok=True)
    (home / "python" / "lib").mkdir()
    for name in ("bin", "data", "jars", "sbin"):
        (home / name).symlink_to(installed / name)
    # Not pyspark.zip, which executors would read first: it has no tests.
    for archive in (installed / "python" / "lib").glob("py4j-*.zip"):
        (home / "python" / "lib" / archive.name).symlink_to(archive)
    theirs = source.resolve() / "python"
    if suite.package != package.name:
        (home / "python" / suite.package).symlink_to(theirs / suite.package)
    else:
        (home / "python" / "test_support").symlink_to(theirs / "test_support")
        for name in THEIRS:
            if (theirs / "pyspark" / name).is_dir():
                (package / name).symlink_to(theirs / "pyspark" / name)
    for folder in _OF_LINKS:
        for entry in (installed / folder).iterdir():
            link = package / folder / entry.name
            if not link.exists() and entry.name != "__pycache__":
                link.symlink_to(entry)


def write_conf(folder: Path, conf: Mapping[str, str]) -> None:
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    conf = {
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.sql.warehouse.dir": (folder / "tmp" / "warehouse").as_uri(),
        **conf,
    }
    lines = "".join(f"{key} {value}\n" for key, value in conf.items())
    (folder / "conf" / "spark-defaults.conf").write_text(lines)


# -- Kafka ----------------------------------------------------------------------------------------------


@contextmanager
def kafka(home: Path) -> Iterator[str]:
    """LINEAGE_TEST_KAFKA, or a Kafka in `home`, on free ports, that ends with the suite."""
    named = os.environ.get("LINEAGE_TEST_KAFKA")
    if named:
        yield named
        return
    try:
        state = up.start(Settings(home=home), only="kafka", jars=ROOT / ".cache" / "lineage" / "jars")
        yield state.servers["kafka"].addresses["bootstrap_servers"]
    finally:
        if home.exists():
            down.stop(home)
            shutil.rmtree(home, ignore_errors=True)


class NodeTopic:
    """What came on the topic since the last question."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap_servers, "group.id": topic, "enable.auto.commit": False}
        )
        self._read = [TopicPartition(topic, number, 0) for number in range(contract.NODE_PARTITIONS)]
        self._consumer.assign(self._read)

    def news(self) -> list[dict[str, Any]]:
        ends = [self._consumer.get_watermark_offsets(partition, timeout=30)[1] for partition in self._read]
        missing = sum(ends) - sum(partition.offset for partition in self._read)
        for partition, end in zip(self._read, ends, strict=True):
            partition.offset = end
        events: list[dict[str, Any]] = []
        deadline = time.monotonic() + 60
        while len(events) < missing:
            message = self._consumer.poll(1)
            if message is not None and message.error() is None:
                events.append(json.loads(message.value()))
            elif time.monotonic() > deadline:
                raise SuiteFailed(f"Kafka gave {len(events)} of {missing} events within a minute")
        return events

    def close(self) -> None:
        self._consumer.close()


# -- runs -----------------------------------------------------------------------------------------------


def run_module(module: str, home: Path, folder: Path, topic: NodeTopic, timeout_s: float) -> Run:
    """Runs one module one way; its log and its outcomes stay in `folder`, that of the way."""
    outcomes, events, scratch = folder / f"{module}.jsonl", folder / "events", folder / "tmp"
    outcomes.unlink(missing_ok=True)
    for path in (events, scratch):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    ours = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    began = time.monotonic()
    with (folder / f"{module}.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "scripts.unittest_outcomes", module, str(outcomes)],
            cwd=home / "python",
            env=ours
            | {
                "SPARK_HOME": str(home),
                "SPARK_CONF_DIR": str(folder / "conf"),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_SUBMIT_OPTS": f"{brief_jvm.OPTIONS} -Dderby.system.home={scratch}",
                "PYSPARK_PYTHON": sys.executable,
                "PYSPARK_DRIVER_PYTHON": sys.executable,
                "PYTHONHASHSEED": "0",  # as spark-submit sets it
                "PYARROW_IGNORE_TIMEZONE": "1",  # as Spark's own run-tests sets it
                "PYTHONPATH": os.pathsep.join([str(home / "python"), str(ROOT)]),
                "TMPDIR": str(scratch),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout_s)
            trouble = "" if code in (0, 1) else f"exit code {code}"
        except subprocess.TimeoutExpired:
            trouble = f"no end within {timeout_s:.0f} s"
        finally:
            with suppress(ProcessLookupError):  # its JVMs, if it left any, are in its process group
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    # Where it ran is nobody's business on the page.
    ended = {test: said.replace(str(home), "SPARK_HOME") for test, said in read_outcomes(outcomes).items()}
    if trouble or not ended:
        ended[WHOLE_MODULE] = trouble or "has no tests, or could not be loaded"
    news = topic.news()
    ends = [event["counters"] for event in news if event["type"] == contract.APPLICATION_ENDED]
    return Run(
        outcomes=ended,
        seconds=time.monotonic() - began,
        applications=len([path for path in events.iterdir() if not path.name.startswith(".")]),
        with_lineage=sum(event["type"] == contract.APPLICATION_STARTED for event in news),
        captured=sum(event["type"] == contract.RUN_COMMITTED for event in news),
        lost=sum(counters["dropped"] + counters["events_lost"] for counters in ends),
        failed=sum(counters["queries_failed"] for counters in ends),
    )


def read_outcomes(file: Path) -> dict[str, str]:
    """test -> outcome; where a test said several things (two subtests), all of them."""
    outcomes: dict[str, str] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        said = json.loads(line)
        before = outcomes.get(said["test"])
        outcomes[said["test"]] = f"{before}, {said['outcome']}" if before else said["outcome"]
    return outcomes


def compare(module: str, folder: Path, topic: NodeTopic, timeout_s: float) -> Compared:
    """Runs the module without and with lineage, and again where they differ."""
    compared = Compared(module)
    for attempt in range(1 + REPEATS):
        for way in WAYS:
            compared.runs[way].append(run_module(module, folder / "home", folder / way, topic, timeout_s))
        differing = compared.differences()
        if not differing:
            break
        say(f"  {module} differs in {', '.join(differing)}{'; again' if attempt < REPEATS else ''}")
    if compared.off.with_lineage:
        raise SuiteFailed(f"{module} had lineage while it was off")
    return compared


def say(text: str, stream: IO[str] = sys.stdout) -> None:
    stream.write(f"{text}\n")
    stream.flush()


# -- what was found before ------------------------------------------------------------------------------


def kept(file: Path, of: Sequence[str]) -> list[Compared]:
    """Results of an earlier call with the same versions and settings, `of`."""
    if not file.exists():
        return []
    stored = json.loads(file.read_text())
    if stored["of"] != list(of):
        return []
    return [
        Compared(module, {way: [Run(**run) for run in runs[way]] for way in WAYS})
        for module, runs in stored["modules"].items()
    ]


def keep(file: Path, of: Sequence[str], results: Sequence[Compared]) -> None:
    modules = {
        result.module: {way: [asdict(run) for run in result.runs[way]] for way in WAYS} for result in results
    }
    file.write_text(json.dumps({"of": list(of), "modules": modules}))


# -- the command ----------------------------------------------------------------------------------------


def run_modules(modules: Sequence[str], folder: Path, options: argparse.Namespace) -> Iterator[Compared]:
    """Runs one module after the other, with a Kafka that ends with them."""
    name = f"spark-suite-{uuid.uuid4().hex[:8]}"
    with kafka(folder / "stack") as bootstrap_servers:
        topics = {f"{name}-node": contract.NODE_PARTITIONS, f"{name}-flow": contract.FLOW_PARTITIONS}
        create_topics(bootstrap_servers, topics)
        tables = delta_conf() if SUITES[options.suite].needs_delta else {}
        write_conf(folder / "off", tables)
        lineage = {
            **tables,
            "spark.lineage.enabled": "true",
            "spark.lineage.kafka.bootstrap.servers": bootstrap_servers,
            "spark.lineage.topic.node": f"{name}-node",
            "spark.lineage.topic.flow": f"{name}-flow",
        }
        write_conf(folder / "on", lineage | dict(option.split("=", 1) for option in options.conf))
        with closing(NodeTopic(bootstrap_servers, f"{name}-node")) as topic:
            for module in modules:
                yield compare(module, folder, topic, options.timeout)


def named(module: str, names: Sequence[str]) -> bool:
    """By its dotted name or by the last part of it."""
    return module in names or module.rpartition(".")[2] in names


def run(options: argparse.Namespace) -> bool:
    """Runs the modules and writes the report; True if nothing differs. Raises SuiteFailed."""
    if not options.source:
        raise SuiteFailed(
            f"SPARK_SRC is not given; it must name a checkout of {SUITES[options.suite].project}"
        )
    source, suite = Path(options.source), SUITES[options.suite]
    folder = Path(options.folder).absolute() / options.suite
    modules = every = find_modules(source, suite)
    if options.only:
        modules = [module for module in every if named(module, options.only)]
    if bad := [option for option in options.conf if "=" not in option]:
        raise SuiteFailed(f"--conf {bad[0]} is not KEY=VALUE")
    if not modules:
        raise SuiteFailed(f"there is no module {' or '.join(options.only)}")
    make_home(folder / "home", source, suite)
    checkout = checkout_version(source, suite.package)
    of = [pyspark.__version__, checkout, *options.conf]
    results = kept(folder / "results.json", of) if options.resume else []
    results = [result for result in results if not named(result.module, options.again)]
    missing = [module for module in modules if module not in {compared.module for compared in results}]
    if missing:
        for compared in run_modules(missing, folder, options):
            results.append(compared)
            say(in_short(compared))
            keep(folder / "results.json", of, results)
    results.sort(key=lambda compared: every.index(compared.module))
    differences = [(compared, test) for compared in results for test in compared.differences()]
    for compared, test in differences:
        off, on = ("; ".join(sorted(compared.endings(test, way))) for way in WAYS)
        say(f"DIFFERENT {test}\n  without lineage: {off}\n  with lineage:    {on}")
    with_lineage = sum(compared.on.with_lineage for compared in results)
    tests = sum(len(compared.off.outcomes) for compared in results)
    applications = sum(compared.on.applications for compared in results)
    say(
        f"{tests} tests, {len(differences)} differences; {with_lineage} of {applications} applications had "
        f"lineage; logs and outcomes are in {folder}"
    )
    if not with_lineage:
        raise SuiteFailed("lineage was never on, so nothing was compared")
    if options.report is not None:
        Path(options.report or suite.page).write_text(
            page(results, suite, len(every), checkout, options.conf)
        )
    return not differences


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts.spark_suite", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", metavar="SPARK_SRC", help="a checkout of Apache Spark, or Delta Lake")
    parser.add_argument(
        "--suite",
        choices=sorted(SUITES),
        default="rdd",
        help="tests of RDDs, of DataFrames and SQL, or of Delta Lake",
    )
    parser.add_argument("--only", nargs="+", metavar="MODULE", help="run these modules only")
    parser.add_argument(
        "--resume", action="store_true", help="do not run again what an earlier call has the results of"
    )
    parser.add_argument(
        "--again", nargs="+", default=[], metavar="MODULE", help="with --resume: run these again all the same"
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="conf of the runs with lineage"
    )
    parser.add_argument(
        "--report", nargs="?", const="", metavar="FILE", help="write the result there, or into docs/"
    )
    parser.add_argument(
        "--timeout", type=float, default=900, metavar="SECONDS", help="for one run of one module"
    )
    parser.add_argument(
        "--folder", default=ROOT / ".cache" / "spark-suite", help="where logs and outcomes go"
    )
    options = parser.parse_args(arguments)
    try:
        return 0 if run(options) else 1
    except (SuiteFailed, StackError, NoTableJarsError) as error:
        say(f"spark_suite: {error}", sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an error, so that Kafka is stopped
    sys.exit(main(sys.argv[1:]))
