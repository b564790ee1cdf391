"""`lineage spool` against a real Kafka: from a folder, from an object store, to other brokers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from pyarrow.fs import FileSelector, S3FileSystem

from lineage_service.cli.main import main
from spark_agent import contract
from spark_agent.contract import spool_files
from spark_agent.contract.spool_files import SpooledMessage, SpoolHead
from tests.support.spark.application import messages_of


def file_of(servers: str, messages: Sequence[SpooledMessage]) -> bytes:
    head = spool_files.encode_head(SpoolHead(servers, "host", 1, 1_764_000_000_000))
    return head + b"".join(map(spool_files.encode_message, messages))


def new_file(folder: Path, data: bytes) -> Path:
    path = folder / spool_files.new_name("host")
    path.write_bytes(data)
    return path


def some_messages(topic: str, count: int = 40) -> list[SpooledMessage]:
    return [
        SpooledMessage(topic, number % 3, b"app-1#%d" % number, b"value %d" % number)
        for number in range(count)
    ]


def test_a_topic_that_is_not_there_is_made_with_the_partitions_of_the_contract(
    kafka: Any, topic: str, tmp_path: Path
) -> None:
    events = [SpooledMessage(f"{topic}-node", -1, b"app-1", b"event %d" % number) for number in range(5)]
    new_file(tmp_path, file_of(kafka.bootstrap_servers, [*some_messages(topic), *events]))
    assert main(["spool", "deliver", str(tmp_path)]) == 0
    assert list(tmp_path.iterdir()) == []
    assert sorted(messages_of(kafka.bootstrap_servers, topic)) == sorted(
        m.value for m in some_messages(topic)
    )
    assert messages_of(kafka.bootstrap_servers, f"{topic}-node") == [event.value for event in events]
    topics = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(timeout=60).topics
    assert len(topics[topic].partitions) == contract.FLOW_PARTITIONS
    assert len(topics[f"{topic}-node"].partitions) == contract.NODE_PARTITIONS


def test_files_in_an_object_store_are_sent_and_removed(
    kafka: Any, topic: str, bucket: str, s3: str, capsys: pytest.CaptureFixture[str]
) -> None:
    system = S3FileSystem(
        access_key="key", secret_key="secret", endpoint_override=s3.removeprefix("http://"), scheme="http"
    )
    folder = f"{bucket.removeprefix('s3://')}/spool"
    good = file_of(kafka.bootstrap_servers, some_messages(topic))
    contents = [good, good[:-3], good.replace(b"value 7", b"valve 7")]
    for content in contents:
        with system.open_output_stream(f"{folder}/{spool_files.new_name('host')}") as stream:
            stream.write(content)
    url = f"{bucket.replace('s3:', 's3a:')}/spool"
    assert main(["spool", "list", url]) == 0
    listed = capsys.readouterr().out
    assert f"40 messages of app-1; for Kafka at {kafka.bootstrap_servers}" in listed
    assert "the last record was not written to its end" in listed
    assert "1 records are damaged" in listed
    assert main(["spool", "deliver", url]) == 1  # since something is damaged
    (kept,) = system.get_file_info(FileSelector(folder))
    assert kept.base_name.endswith(spool_files.DAMAGED)
    sent = messages_of(kafka.bootstrap_servers, topic)
    assert len(sent) == 40 + 39 + 39
    assert set(sent) == {message.value for message in some_messages(topic)}
    assert main(["spool", "deliver", url]) == 0


def test_other_brokers_get_what_the_command_says(
    kafka: Any, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = new_file(tmp_path, file_of("127.0.0.1:9", some_messages(topic)))
    reachable = new_file(tmp_path, file_of(kafka.bootstrap_servers, some_messages(topic, 2)))
    assert main(["spool", "deliver", str(tmp_path)]) == 1
    assert "no Kafka broker answers at 127.0.0.1:9" in capsys.readouterr().err
    assert path.exists()
    assert not reachable.exists()
    assert main(["spool", "deliver", str(tmp_path), "--to", kafka.bootstrap_servers]) == 0
    assert not path.exists()
    assert len(messages_of(kafka.bootstrap_servers, topic)) == 42


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["deliver", "FILE"], "is no folder"),
        (["deliver", "s3://no-such-bucket-of-anybody/spool"], "there is no no-such-bucket-of-anybody"),
        (["deliver", "ftp://host/spool"], "ftp"),
        (["send"], "is no action (list, deliver)"),
        (["deliver", "FOLDER", "--to", "::"], "is no host:port of a broker"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    arguments: list[str], reason: str, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    new_file(tmp_path / "folder", file_of("127.0.0.1:9", some_messages("topic")))
    places = {"FILE": str(tmp_path / "file"), "FOLDER": str(tmp_path / "folder")}
    assert main(["spool", *(places.get(argument, argument) for argument in arguments)]) in (1, 2)
    said = capsys.readouterr().err
    assert reason in said
    assert "Traceback" not in said
    assert len(list((tmp_path / "folder").iterdir())) == 1


def test_a_folder_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lineage_service.cli.main", "spool", "deliver"],
        env={**os.environ, "LINEAGE_SPOOL_DIR": str(tmp_path / "nothing")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"0 messages sent from {tmp_path / 'nothing'}\n"), (
        done.stderr
    )
    assert list(tmp_path.iterdir()) == []
