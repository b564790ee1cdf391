from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineage_service.replays import command
from lineage_service.replays.command import environment_of, run
from lineage_service.replays.errors import CommandError
from lineage_service.replays.sandbox import Sandbox, Sandboxes
from tests.support.processes import still_running

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(child.pid))
"""
WAITS = PARENT + "time.sleep(600)\n"


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandboxes(tmp_path).new() as made:
        yield made


def python(*words: str) -> list[str]:
    return [sys.executable, "-c", *words]


def test_what_it_prints_goes_into_files_of_the_sandbox(sandbox: Sandbox) -> None:
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"
    ended = run(python(script), os.environ, sandbox)
    assert ended.exit_code == 7
    assert (sandbox.stdout.read_text(), sandbox.stderr.read_text()) == ("out\n", "err\n")


def test_it_is_shown_only_where_that_is_asked_for(
    sandbox: Sandbox, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    run(python("print('hello')"), os.environ, sandbox)
    assert capfdbinary.readouterr() == (b"", b"")
    run(python("print('hello')"), os.environ, sandbox, is_shown=True)
    assert capfdbinary.readouterr().err == b"hello\n"


def test_a_signal_that_ended_it_is_told_as_a_shell_does(sandbox: Sandbox) -> None:
    ended = run(python("import os; os.kill(os.getpid(), 9)"), os.environ, sandbox)
    assert ended.exit_code == 128 + signal.SIGKILL


def test_a_command_that_is_not_there_is_one_sentence(sandbox: Sandbox) -> None:
    with pytest.raises(CommandError, match="the command /nowhere/python cannot be started"):
        run(["/nowhere/python"], os.environ, sandbox)


def test_the_environment_is_the_users_with_the_spec_and_the_home(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    environment = environment_of(sandbox, tmp_path)
    assert environment["LINEAGE_REPLAY"] == str(sandbox.spec)
    others = {
        name: value for name, value in environment.items() if name not in ("LINEAGE_REPLAY", "LINEAGE_HOME")
    }
    assert others == {name: value for name, value in os.environ.items() if name != "LINEAGE_HOME"}


def _is_gone(pid: int) -> bool:
    """At once, or as soon as the kernel has taken it away."""
    until = time.monotonic() + 5
    while still_running([pid]):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def test_no_process_that_it_left_behind_stays(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PATIENCE_S", 0.2)
    pid_file = tmp_path / "pid"
    assert run(python(PARENT, str(pid_file)), os.environ, sandbox).exit_code == 0
    assert _is_gone(int(pid_file.read_text()))


def test_an_interrupt_ends_the_command_and_its_children(sandbox: Sandbox, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def interrupt() -> None:
        until = time.monotonic() + 30
        while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(python(WAITS, str(pid_file)), os.environ, sandbox)
    thread.join()
    assert _is_gone(int(pid_file.read_text()))
