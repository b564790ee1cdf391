from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from lineage_service.devstack import process

MARK = "-Dmark=of-this-test"
IDLE = "import time; print('started', flush=True); time.sleep(60)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {IDLE}"

Spawn = Callable[[str], psutil.Process]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    started: list[psutil.Process] = []

    def spawn(program: str) -> psutil.Process:
        log = tmp_path / "logs" / "server.log"
        started.append(process.spawn([sys.executable, "-I", "-S", "-c", program, MARK], log))
        deadline = time.monotonic() + 10
        while "started" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return started[-1]

    yield spawn
    for child in started:
        if process.is_running(child):
            child.kill()
            child.wait()


def test_a_process_is_known_by_pid_start_and_mark(spawn: Spawn) -> None:
    child = spawn(IDLE)
    created = child.create_time()
    assert process.find(child.pid, created, MARK) == child
    assert process.find(child.pid, created, "-Dmark=other") is None
    assert process.find(child.pid, created - 60, MARK) is None


def test_a_process_has_a_session_of_its_own(spawn: Spawn) -> None:
    child = spawn(
        "import os, time; print('started', os.getsid(0) == os.getpid(), flush=True); time.sleep(60)"
    )
    assert process.is_running(child)


def test_a_stopped_process_is_found_no_more(spawn: Spawn) -> None:
    child = spawn(IDLE)
    created = child.create_time()
    assert process.stop(child)
    assert process.find(child.pid, created, MARK) is None


def test_a_process_that_ignores_the_request_is_killed(spawn: Spawn) -> None:
    child = spawn(DEAF)
    ticks: list[None] = []
    assert not process.stop(child, deadline_s=0.3, tick=lambda: ticks.append(None))
    assert ticks
    assert not process.is_running(child)


def test_a_process_that_ended_unnoticed_is_not_running(spawn: Spawn) -> None:
    child = spawn("print('started', flush=True)")
    deadline = time.monotonic() + 10
    while process.is_running(child):  # it stays a zombie: nobody has waited for it
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert process.find(child.pid, child.create_time(), MARK) is None
    assert process.stop(child)


def test_a_process_whose_parent_does_not_collect_it_has_stopped(spawn: Spawn, tmp_path: Path) -> None:
    spawn(
        "import subprocess, sys, time; child = subprocess.Popen(['/bin/sleep', '60']); "
        "print('started', child.pid, flush=True); time.sleep(60)"
    )
    _, pid = (tmp_path / "logs" / "server.log").read_text().split()
    assert process.stop(psutil.Process(int(pid)))


def test_the_log_of_the_run_before_is_kept(spawn: Spawn, tmp_path: Path) -> None:
    spawn("print('started, the first')")
    spawn("print('started, the second')")
    assert (tmp_path / "logs" / "server.log").read_text() == "started, the second\n"
    assert (tmp_path / "logs" / "server.log.1").read_text() == "started, the first\n"


def test_the_tail_leaves_out_stack_frames_and_logs_of_before(tmp_path: Path) -> None:
    new, missing = tmp_path / "new.log", tmp_path / "missing.log"
    new.write_text("1\n2\n3\n4\nException: why\n\tat a.B(C.java:1)\n\t... 5 more\n")
    text = process.tail([new, missing], since=time.time(), lines=2)
    assert text == f"last lines of {new}:\n    4\n    Exception: why"
    assert process.tail([new], since=time.time() + 60) == f"it wrote nothing to {new}"
