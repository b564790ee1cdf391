"""What a process writes into its spool, and what it says when it cannot."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from spark_agent.contract import spool_files
from spark_agent.contract.spool_files import SpooledMessage
from spark_agent.delivery import spool as spool_module
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.spool import Spool


def spool_in(folder: Path, **settings: object) -> Spool:
    options = {"bootstrap_servers": "broker:9092", "spool_dir": str(folder), **settings}
    return Spool(AgentSettings(**options), "")  # type: ignore[arg-type]


def message(number: int, size: int = 10) -> SpooledMessage:
    return SpooledMessage("topic", number, b"key", bytes(size))


def read(folder: Path) -> list[SpooledMessage]:
    """All messages of all files that can be claimed."""
    messages = []
    for path in spool_files.waiting_files(str(folder)):
        claimed = spool_files.claim(path)
        assert claimed is not None, path
        with claimed:
            assert claimed.head is not None
            assert claimed.head.servers == "broker:9092"
            messages += claimed.messages()
    return messages


def test_what_was_written_can_be_sent_once_the_file_is_closed(tmp_path: Path) -> None:
    spool = spool_in(tmp_path / "spool")
    assert spool.write([message(1), message(2)]) == ""
    assert spool.write([message(3)]) == ""
    (path,) = spool.waiting()
    assert spool_files.claim(path) is None  # by the process that writes it
    spool.close()
    assert read(tmp_path / "spool") == [message(1), message(2), message(3)]


def test_a_file_is_left_to_others_when_it_is_large_or_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = spool_in(tmp_path)
    monkeypatch.setattr(spool_module, "FILE_BYTES", 100)
    for number in range(3):
        assert spool.write([message(number, 90)]) == ""
    assert len(spool.waiting()) == 3
    monkeypatch.setattr(spool_module, "FILE_BYTES", 1_000)
    monkeypatch.setattr(spool_module, "FILE_S", 0.0)
    time.sleep(0.001)
    assert spool.write([message(3)]) == ""
    assert len(spool.waiting()) == 4
    spool.close()
    assert read(tmp_path) == [message(0, 90), message(1, 90), message(2, 90), message(3)]


def test_a_full_spool_refuses_and_keeps_what_it_has(tmp_path: Path) -> None:
    spool = spool_in(tmp_path, spool_max_bytes=500)
    assert spool.write([message(1, 200)]) == ""
    assert spool.problem() == ""
    refusal = spool.write([message(2, 400)])
    assert "is full" in refusal
    assert "spark.lineage.spool.maxBytes" in refusal
    # Files of another host in a shared folder are not counted.
    (tmp_path / spool_files.new_name("other")).write_bytes(bytes(10_000))
    assert spool.write([message(3, 100)]) == ""
    spool.close()
    next(tmp_path.glob("other*")).unlink()
    assert read(tmp_path) == [message(1, 200), message(3, 100)]


def test_without_room_there_is_no_spool(tmp_path: Path) -> None:
    assert "maxBytes=0" in spool_in(tmp_path, spool_max_bytes=0).write([message(1)])
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_somebody_removed_is_begun_again(tmp_path: Path) -> None:
    spool = spool_in(tmp_path, spool_fsync=True)
    assert spool.write([message(1)]) == ""
    Path(spool.waiting()[0]).unlink()
    assert spool.write([message(2)]) == ""
    spool.close()
    assert read(tmp_path) == [message(2)]


def test_a_new_file_is_seen_once_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, seen = spool_files.lock, []

    def lock_while_others_look(file: IO[bytes]) -> bool | None:
        seen.append(spool_files.waiting_files(str(tmp_path)))
        return lock(file)

    monkeypatch.setattr(spool_files, "lock", lock_while_others_look)
    spool = spool_in(tmp_path)
    assert spool.write([message(1)]) == ""
    spool.close()
    assert seen == [[]]
    assert read(tmp_path) == [message(1)]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    spool = spool_in(tmp_path / "file" / "spool")
    assert "cannot be made" in spool.write([message(1)])
    assert "cannot be made" in spool.problem()


WRITER = """
import resource, signal, sys
from spark_agent.contract.spool_files import SpooledMessage
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.spool import Spool
spool = Spool(AgentSettings(bootstrap_servers="broker:9092", spool_dir=sys.argv[1]), "")
message = SpooledMessage("topic", 1, b"key", bytes(1_000))
"""


def test_a_disk_that_is_full_is_said_and_costs_no_message_that_was_written(tmp_path: Path) -> None:
    limit = (
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))\n"
        "problems = [spool.write([message]) for _ in range(8)]\nprint(problems)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", WRITER + limit, str(tmp_path)], capture_output=True, text=True, check=True
    )
    problems = eval(done.stdout)
    written = problems.count("")
    assert 4 <= written < 8
    assert all("cannot be written" in problem for problem in problems if problem)
    assert len(read(tmp_path)) == written


def test_what_write_returned_from_survives_a_kill(tmp_path: Path) -> None:
    endless = (
        "number = 0\nwhile True:\n    assert spool.write([message]) == ''\n    number += 1\n"
        "    print(number, flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", WRITER + endless, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 200:
                process.send_signal(signal.SIGKILL)
                break
    assert len(read(tmp_path)) >= 200
