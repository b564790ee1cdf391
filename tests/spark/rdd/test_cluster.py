"""Executors that die, tasks that fail or run twice, cached blocks that are lost: traces do not show it."""

from __future__ import annotations

import operator
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark import TaskContext, cloudpickle

from lineage_service.devstack.ports import choose_port
from spark_agent import contract
from spark_agent.worker import process_state
from tests.support.spark import clusters
from tests.support.spark import naive_interpreter as naive
from tests.support.spark.application import Application, part_rows
from tests.support.spark.clusters import WAIT_BUDGET_S, kill_executor, once
from tests.support.spark.naive_interpreter import Data

Run = Callable[..., tuple[Any, Application]]

# A cluster is up to five JVMs beside the driver's, and a dead executor is waited for.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(2700)]

# The executors of a cluster cannot import the tests.
for module in (sys.modules[__name__], clusters):
    cloudpickle.register_pickle_by_value(module)

LINES = [f"{'abcd'[i * i % 7 % 4]} {i}" for i in range(40)]


def pair(line: str) -> tuple[str, int]:
    key, value = line.split()
    return key, int(value)


def is_kept(kv: tuple[str, int]) -> bool:
    return kv[1] % 5 != 2


#: A record in the middle of a split, so that its attempt has captured something before it.
IN_THE_MIDDLE = pair(LINES[18])


def send_blocks() -> None:
    """What this attempt has captured so far leaves, as that of a longer task would have."""
    if process_state.worker_process.run is not None:
        process_state.worker_process.run.close()


def kept_naively(source: Path) -> Data:
    return naive.filter_(naive.map_(naive.text_file(source), pair), is_kept)


def sums_naively(source: Path) -> Data:
    return naive.reduce_by_key(kept_naively(source), operator.add)


def check(application: Application, output: Path, source: Path, expected: Data) -> None:
    """Backward of each output row is as expected; forward of every third input row is its inverse."""
    found = {
        (part.name, row): (text, application.sources_of(part, row)) for part, row, text in part_rows(output)
    }
    assert Counter(found.values()) == Counter((repr(value), sources) for value, sources in expected)
    for row in range(0, len(LINES), 3):
        trace = application.trace(direction="forward", path=str(source), row=row)
        assert trace.exact
        went = {
            (Path(record.source.path).name, record.source.row)
            for node in trace.nodes
            for record in node.records
            if record.source is not None and Path(record.source.path).parent == output
        }
        assert went == {place for place, (_, sources) in found.items() if (source.name, row) in sources}


def committed(application: Application) -> list[dict[str, Any]]:
    return [event for event in application.events if event["type"] == contract.RUN_COMMITTED]


def lost_runs(application: Application) -> set[int]:
    """Runs that sent blocks and were never accepted."""
    return {block.run for block in application.blocks} - {run["run"] for run in committed(application)}


def computed(application: Application, description: str) -> dict[int, int]:
    """How many accepted runs read each split of a file."""
    (node,) = {
        event["node"]
        for event in application.events
        if event["type"] == contract.NODE_REGISTERED and event["description"].endswith(description)
    }
    return dict(Counter(run["split"] for run in committed(application) if run["input"] == node))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


@pytest.mark.parametrize("stage", ["map", "reduce"])
def test_an_executor_that_is_killed_leaves_no_trace(
    stage: str, run: Run, tmp_path: Path, source: Path
) -> None:
    def dies(where: str, at: Callable[[Any], bool]) -> Callable[[Any], Any]:
        def maybe(kv: Any) -> Any:
            if stage == where and at(kv) and once(tmp_path, "killed"):
                send_blocks()
                kill_executor()
            return kv

        return maybe

    def job(context: Any) -> None:
        kept = context.textFile(str(source), 4).map(pair).filter(is_kept).cache()
        kept.map(repr).saveAsTextFile(str(tmp_path / "kept"))
        # The death takes cached blocks with it, in the reduce stage shuffled ones too.
        sums = kept.map(dies("map", IN_THE_MIDDLE.__eq__)).reduceByKey(operator.add, 3)
        sums.map(dies("reduce", lambda kv: kv[0] == "c")).map(repr).saveAsTextFile(str(tmp_path / "sums"))

    _, application = run(
        job,
        master="local-cluster[2,1,1024]",
        # Both executors hold something, and tasks run where their cached block is.
        spark_lineage_delivery_timeout=WAIT_BUDGET_S,
        spark_cores_max="2",
        spark_scheduler_minRegisteredResourcesRatio="1",
        spark_locality_wait="10s",
    )
    assert (tmp_path / "killed").exists()
    assert lost_runs(application), "no block of a lost attempt has left"
    assert max(computed(application, "in.txt").values()) > 1, "no cached block was computed again"
    check(application, tmp_path / "kept", source, kept_naively(source))
    check(application, tmp_path / "sums", source, sums_naively(source))


def test_tasks_that_fail_once_in_each_stage_leave_no_trace(run: Run, tmp_path: Path, source: Path) -> None:
    def fails(at: Callable[[Any], bool]) -> Callable[[Any], Any]:
        def maybe(kv: Any) -> Any:
            if at(kv) and TaskContext.get().attemptNumber() == 0:
                send_blocks()
                raise ValueError(f"the first attempt at {kv}")
            return kv

        return maybe

    def job(context: Any) -> None:
        kept = context.textFile(str(source), 4).map(pair).filter(is_kept)
        sums = kept.map(fails(IN_THE_MIDDLE.__eq__)).reduceByKey(operator.add, 3)
        sums.map(fails(lambda kv: kv[0] == "c")).map(repr).saveAsTextFile(str(tmp_path / "sums"))

    _, application = run(job, master="local[2,4]")
    assert len(lost_runs(application)) == 2, "not both stages have lost an attempt that had sent blocks"
    check(application, tmp_path / "sums", source, sums_naively(source))


def test_cached_blocks_that_are_dropped_are_captured_again(run: Run, tmp_path: Path, source: Path) -> None:
    def job(context: Any) -> None:
        kept = context.textFile(str(source), 4).map(pair).filter(is_kept)
        heavy = kept.map(lambda kv: (kv, "x" * 100_000)).cache()
        heavy.keys().map(repr).saveAsTextFile(str(tmp_path / "first"))
        # Does not fit beside the blocks of `heavy`, the oldest of which have to go.
        context.parallelize(range(3), 3).map(lambda i: chr(65 + i) * 1_000_000).cache().count()
        heavy.keys().map(repr).saveAsTextFile(str(tmp_path / "second"))
        heavy.keys().reduceByKey(operator.add, 3).map(repr).saveAsTextFile(str(tmp_path / "sums"))

    _, application = run(
        job,
        master="local[2,4]",
        spark_rdd_compress="false",
        spark_testing_memory="12000000",  # with the reserve and the fraction of 0.6: 6 MB
        spark_testing_reservedMemory="2000000",
    )
    times = computed(application, "in.txt")
    assert min(times.values()) == 1, "no block was kept"
    assert max(times.values()) > 1, "no block was dropped"
    check(application, tmp_path / "first", source, kept_naively(source))
    check(application, tmp_path / "second", source, kept_naively(source))
    check(application, tmp_path / "sums", source, sums_naively(source))


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def two_hosts(tmp_path: Path) -> Iterator[str]:
    """The master of a cluster with a worker on each of two addresses: a copy of a task needs another host."""
    port = choose_port("Spark master", [])
    master = f"spark://127.0.0.1:{port}"
    home = Path(pyspark.__file__).parent
    log = (tmp_path / "cluster.log").open("w")
    processes: list[subprocess.Popen[Any]] = []

    def start(name: str, *arguments: str) -> None:
        command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments]
        environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
        processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    try:
        start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        deadline = time.monotonic() + 480
        while not listens(port):
            assert time.monotonic() < deadline, (tmp_path / "cluster.log").read_text()
            time.sleep(0.2)
        for host in ("127.0.0.1", "127.0.0.2"):
            folder = ["--work-dir", str(tmp_path / host), "--webui-port", "0"]
            start("worker.Worker", "--host", host, "--cores", "1", "--memory", "1g", *folder, master)
        yield master
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)
        log.close()


def test_the_slower_copy_of_a_task_leaves_no_trace(
    two_hosts: str, run: Run, tmp_path: Path, source: Path
) -> None:
    def hangs(stage: str, at: Callable[[Any], bool]) -> Callable[[Any], Any]:
        def maybe(kv: Any) -> Any:
            if at(kv) and once(tmp_path, f"hung in {stage}"):
                send_blocks()
                signal.pause()  # until Spark kills it, since its copy was faster
            return kv

        return maybe

    def job(context: Any) -> None:
        kept = context.textFile(str(source), 4).map(pair).filter(is_kept)
        sums = kept.map(hangs("map", IN_THE_MIDDLE.__eq__)).reduceByKey(operator.add, 3)
        sums.map(hangs("reduce", lambda kv: kv[0] == "c")).map(repr).saveAsTextFile(str(tmp_path / "sums"))

    _, application = run(
        job,
        master=two_hosts,
        spark_lineage_delivery_timeout=WAIT_BUDGET_S,
        spark_driver_host="127.0.0.1",
        spark_executor_memory="512m",
        spark_speculation="true",
        spark_speculation_quantile="0.3",
    )
    assert {path.name for path in tmp_path.glob("hung*")} == {"hung in map", "hung in reduce"}
    assert len(lost_runs(application)) == 2
    accepted = Counter((run["stage"], run["split"]) for run in committed(application))
    assert set(accepted.values()) == {1}
    check(application, tmp_path / "sums", source, sums_naively(source))
