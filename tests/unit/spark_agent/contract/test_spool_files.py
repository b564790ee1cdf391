"""Who may send a file of a spool: one process at a time, and none while its writer lives."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_agent.contract import spool_files
from spark_agent.contract.spool_files import SpooledMessage, SpoolHead

MESSAGE = SpooledMessage("topic", 3, b"key", b"value")


def new_file(folder: Path, data: bytes | None = None) -> str:
    path = folder / spool_files.new_name("host")
    whole = spool_files.encode_head(SpoolHead("broker:9092", "host", 1, 2)) + spool_files.encode_message(
        MESSAGE
    )
    path.write_bytes(whole if data is None else data)
    return str(path)


@contextmanager
def locked_elsewhere(path: str) -> Iterator[subprocess.Popen[str]]:
    """Another process has the file open and locked, until the block ends."""
    code = (
        "import sys\nfrom spark_agent.contract import spool_files\nfile = open(sys.argv[1], 'r+b')\n"
        "assert spool_files.lock(file)\nprint('locked', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_file_of_a_living_process_is_left_to_it_and_one_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = new_file(tmp_path)
    with locked_elsewhere(path) as process:
        assert spool_files.claim(path) is None
        process.kill()
        process.wait()
        claimed = spool_files.claim(path)
        assert claimed is not None
        with claimed:
            assert list(claimed.messages()) == [MESSAGE]
            claimed.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_process_claims_a_file_once(tmp_path: Path) -> None:
    path = new_file(tmp_path)
    claimed = spool_files.claim(path)
    assert claimed is not None
    with claimed:
        assert spool_files.claim(path) is None
    with spool_files.claim(path) or claimed as again:
        assert again is not claimed


def test_a_file_that_was_sent_meanwhile_is_not_claimed(tmp_path: Path) -> None:
    path = new_file(tmp_path)
    Path(path).unlink()
    assert spool_files.claim(path) is None


def test_a_damaged_file_is_kept_under_another_name(tmp_path: Path) -> None:
    good = spool_files.encode_head(SpoolHead("broker:9092", "host", 1, 2))
    records = bytearray(spool_files.encode_message(MESSAGE) * 3)
    records[len(records) // 2] ^= 1
    path = new_file(tmp_path, good + records)
    claimed = spool_files.claim(path)
    assert claimed is not None
    with claimed:
        assert list(claimed.messages()) == [MESSAGE] * 2
        claimed.remove()
    (kept,) = spool_files.waiting_files(str(tmp_path), spool_files.DAMAGED)
    assert Path(kept).read_bytes() == good + records
    assert spool_files.waiting_files(str(tmp_path)) == []


def test_what_is_no_file_of_a_spool_is_kept_and_an_empty_file_goes(tmp_path: Path) -> None:
    for data in (b"something else", b""):
        claimed = spool_files.claim(new_file(tmp_path, data))
        assert claimed is not None
        with claimed:
            assert claimed.head is None
            claimed.remove()
    (kept,) = tmp_path.iterdir()
    assert kept.name.endswith(spool_files.DAMAGED)


def test_files_wait_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    paths = []
    for host in ("zebra", "ant", "mole_rat/x"):
        paths.append(str(tmp_path / spool_files.new_name(host)))
        Path(paths[-1]).touch()
        time.sleep(0.005)
    assert spool_files.waiting_files(str(tmp_path)) == paths
    assert spool_files.waiting_files(str(tmp_path / "nothing")) == []
