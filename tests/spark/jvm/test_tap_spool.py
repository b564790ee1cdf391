"""Queries beside a broker that is away: executors keep blocks on the disk, and send them later."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from lineage_service.cli.main import main
from lineage_service.devstack.errors import DownloadError, JavaError
from perf.delivery.brokers import Broker
from spark_agent import contract
from spark_agent.contract import spool_files
from spark_agent.contract.spool_files import SpooledMessage
from spark_agent.contract.spool_folder import spool_folder
from spark_agent.delivery.process_sender import process_spool
from spark_agent.delivery.settings import AgentSettings
from tests.support.spark.application import messages_of
from tests.support.spark.taps import PARTITIONS, TAP, Taps

WAIT_BUDGET_S = 2.0
DEADLINE_S = 240.0
ROWS = 100_000


@pytest.fixture(scope="module")
def one_broker(
    tmp_path_factory: pytest.TempPathFactory, jar_folder: Path, cannot_have: Callable[[str], NoReturn]
) -> Iterator[Broker]:
    try:
        with Broker(tmp_path_factory.mktemp("broker"), jar_folder) as broker:
            yield broker
    except (DownloadError, JavaError) as error:
        cannot_have(f"no kafka: {error}")


@pytest.fixture
def broker(one_broker: Broker) -> Iterator[Broker]:
    one_broker.revive()
    yield one_broker
    one_broker.revive()


@pytest.fixture(scope="module")
def local_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("local")


@pytest.fixture(scope="module")
def spark(jar: Path, local_folder: Path) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").appName("taps").config("spark.ui.enabled", "false")
    session = builder.config("spark.local.dir", str(local_folder)).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def blocks_of_query(taps: Taps) -> tuple[set[tuple[int, int]], int]:
    """((run, seq) of all blocks that a query has made, how many of them were put on the disk)."""
    read = taps.with_ids(taps.spark.range(0, ROWS, 1, 4), 1, "id1").withColumnRenamed("id", "k")
    keyed = read.selectExpr("*", "xxhash64(k) & 9223372036854775807 as key")
    assert taps.tapped(keyed, {"id1": 1}, "key").groupBy().sum("k").collect()[0][0] == ROWS * (ROWS - 1) // 2
    runs = [manifest for manifest in taps.manifests() if manifest["input"] == TAP]
    assert sum(run["inputs"] for run in runs) == ROWS
    assert sum(run["dropped"] for run in runs) == 0
    assert all(run.get("host", "") in ("", os.uname().nodename) for run in runs)
    blocks = {(run["run"], seq) for run in runs for seq in range(run["blocks"])}
    return blocks, sum(run.get("spooled", 0) for run in runs)


def arrived(servers: str, topic: str, blocks: set[tuple[int, int]]) -> None:
    """Wait until all of them have arrived."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        messages = map(contract.decode_block, messages_of(servers, topic))
        if blocks <= {(block.run, block.seq) for block in messages}:
            return
        assert time.monotonic() < deadline


@pytest.mark.parametrize("strike", [Broker.kill, pytest.param(Broker.suspend, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_a_broker_that_comes_back_gets_all_blocks_from_the_executors(
    strike: Callable[[Broker], None], spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    taps = Taps(spark, broker.servers, patience_s=WAIT_BUDGET_S, spool=tmp_path / "spool")
    broker.create_topic(taps.topic, PARTITIONS)
    strike(broker)
    blocks, spooled = blocks_of_query(taps)
    assert spooled == len(blocks) > 0
    broker.revive()
    arrived(broker.servers, taps.topic, blocks)
    deadline = time.monotonic() + DEADLINE_S
    while spool_files.waiting_files(str(tmp_path / "spool")):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.thorough
def test_a_topic_that_nobody_knows_yet_costs_no_block(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    taps = Taps(spark, broker.servers, patience_s=WAIT_BUDGET_S + 1, spool=tmp_path / "spool")
    blocks, spooled = blocks_of_query(taps)
    assert spooled == len(blocks) > 0
    broker.create_topic(taps.topic, PARTITIONS)
    arrived(broker.servers, taps.topic, blocks)


@pytest.mark.thorough
def test_files_of_python_are_sent_by_the_jvm_and_its_own_by_the_command(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    folder = tmp_path / "spool"
    topic = f"{uuid.uuid4().hex[:10]}-flow"
    broker.create_topic(topic, PARTITIONS)
    settings = AgentSettings(bootstrap_servers=broker.servers, spool_dir=str(folder))
    spool = process_spool(settings)
    assert spool is not None
    # The topic has fewer partitions than the writer knew of.
    messages = [SpooledMessage(topic, number, b"key", f"{number} ä".encode()) for number in range(50)]
    assert spool.write(messages) == ""
    spool.close()
    damaged = folder / spool_files.new_name("other")
    damaged.write_bytes(b"no file of a spool")
    elsewhere = AgentSettings(bootstrap_servers="other:9092", spool_dir=str(folder))
    other = process_spool(elsewhere)
    assert other is not None
    assert other.write(messages[:1]) == ""
    other.close()
    taps = Taps(spark, broker.servers, patience_s=WAIT_BUDGET_S + 2, spool=folder)
    broker.create_topic(taps.topic, PARTITIONS)
    blocks, spooled = blocks_of_query(taps)
    assert spooled == 0
    arrived(broker.servers, taps.topic, blocks)
    deadline = time.monotonic() + DEADLINE_S
    while len(spool_files.waiting_files(str(folder))) > 1:  # that of other brokers
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert sorted(messages_of(broker.servers, topic)) == sorted(message.value for message in messages)
    assert len(spool_files.waiting_files(str(folder), spool_files.DAMAGED)) == 1


@pytest.mark.thorough
def test_files_of_the_jvm_are_read_by_the_command(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The JVM that wrote them still holds its last file, so another folder gets a copy."""
    folder = tmp_path / "spool"
    taps = Taps(spark, broker.servers, patience_s=WAIT_BUDGET_S + 3, spool=folder)
    broker.kill()
    blocks, spooled = blocks_of_query(taps)
    assert spooled == len(blocks)
    copies = tmp_path / "copies"
    copies.mkdir()
    for path in map(Path, spool_files.waiting_files(str(folder))):
        (copies / path.name).write_bytes(path.read_bytes())
        path.unlink()
    broker.revive()
    assert main(["spool", "list", str(copies)]) == 0
    assert f"messages of {taps.application_id}; for Kafka at {broker.servers}" in capsys.readouterr().out
    assert main(["spool", "deliver", str(copies)]) == 0
    arrived(broker.servers, taps.topic, blocks)


@pytest.mark.thorough
def test_the_default_folder_is_the_one_of_python(
    spark: SparkSession, broker: Broker, local_folder: Path
) -> None:
    taps = Taps(spark, broker.servers, patience_s=WAIT_BUDGET_S + 4, spool="")
    broker.kill()
    _, spooled = blocks_of_query(taps)
    assert spooled > 0
    folder = spool_folder("", str(local_folder / "blockmgr-00000000-0000-0000-0000-000000000000"))
    assert Path(folder).parent == local_folder
    assert spool_files.waiting_files(folder)
    assert Path(folder).stat().st_mode & 0o777 == 0o700
