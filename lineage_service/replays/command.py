"""Runs the user's command in a session of its own, and passes on what it prints.

Promises that no process of the session outlives `run`: not after its end, and not after Ctrl-C or a request
to end. What it prints goes into files of the sandbox, and to the terminal if that is asked for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, BinaryIO, NoReturn

from lineage_service.replays.errors import CommandError, SandboxError
from lineage_service.replays.sandbox import Sandbox
from spark_agent.contract.replay_spec import SPEC_VARIABLE

__all__ = ["PATIENCE_S", "Ended", "environment_of", "run", "started"]

_PIECE = 1 << 16
#: How long processes have after each request to end; those of a command that has ended by itself, too.
PATIENCE_S = 5.0
_PAUSE_S = 0.05
_REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Ended:
    """How the command ended. A signal is 128 and its number, as a shell says it."""

    exit_code: int
    seconds: float


def environment_of(sandbox: Sandbox, home: Path) -> dict[str, str]:
    """The user's own, with the replay's spec, and the home whose broker its lineage is sent to."""
    return {**os.environ, SPEC_VARIABLE: str(sandbox.spec), "LINEAGE_HOME": str(home)}


def run(
    words: Sequence[str], environment: Mapping[str, str], sandbox: Sandbox, *, is_shown: bool = False
) -> Ended:
    """To its end. Raises CommandError, SandboxError; KeyboardInterrupt once all processes have ended."""
    began = time.monotonic()
    with started(words, environment, sandbox, is_shown=is_shown) as process:
        code = process.wait()
    return Ended(code if code >= 0 else 128 - code, time.monotonic() - began)


@contextmanager
def started(
    words: Sequence[str], environment: Mapping[str, str], sandbox: Sandbox, *, is_shown: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """The command, while the block runs. Raises as `run` does.

    Behind the block a command that has not ended by itself is ended, and so is what it has left behind.
    """
    with _ending_by_signals():
        try:
            process = subprocess.Popen(
                list(words),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise CommandError(
                f"the command {words[0]} cannot be started ({error.strerror or error})"
            ) from None
        session = process.pid
        try:
            passing = _Passing(process, sandbox, is_shown=is_shown)
            yield process
        except BaseException:
            _end(process, session)
            raise
        if process.poll() is None:
            _end(process, session)
        _end_left(session)
        passing.join()


class _Passing:
    """Copies what a process prints, in two threads."""

    def __init__(self, process: subprocess.Popen[bytes], sandbox: Sandbox, *, is_shown: bool) -> None:
        self._failed: OSError | None = None
        self._sandbox = sandbox
        shown: tuple[BinaryIO | None, BinaryIO | None] = (None, None)
        if is_shown:
            shown = sys.stderr.buffer, sys.stderr.buffer  # the result alone goes to standard output
        streams = ((process.stdout, sandbox.stdout, shown[0]), (process.stderr, sandbox.stderr, shown[1]))
        self._threads = [threading.Thread(target=self._copy, args=stream, daemon=True) for stream in streams]
        for thread in self._threads:
            thread.start()

    def _copy(self, source: IO[bytes], path: Path, terminal: BinaryIO | None) -> None:
        """All that comes is read, also when it cannot be written any more: the command must not wait."""
        with source:
            try:
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            except OSError as error:
                self._failed = error
                file = -1
            while data := os.read(source.fileno(), _PIECE):
                if file >= 0 and self._failed is None:
                    try:
                        os.write(file, data)
                    except OSError as error:
                        self._failed = error
                if terminal is not None:
                    with suppress(OSError, ValueError):
                        terminal.write(data)
                        terminal.flush()
            if file >= 0:
                os.close(file)

    def join(self) -> None:
        """Raises SandboxError where not all could be written."""
        for thread in self._threads:
            thread.join(PATIENCE_S)
        if self._failed is not None:
            raise SandboxError(
                f"what the command printed cannot be written into {self._sandbox.folder} "
                f"({self._failed.strerror}): make room, or remove the sandbox with "
                f"`lineage replay --clean {self._sandbox.id}`"
            )


def _end(process: subprocess.Popen[bytes], session: int) -> None:
    """Ask all processes to end, more and more firmly."""
    for request in _REQUESTS:
        for pid in _members(session):
            with suppress(OSError):
                os.kill(pid, request)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if process.poll() is not None and not _members(session):
                time.sleep(_PAUSE_S)  # one that began meanwhile is seen the second time
                if not _members(session):
                    return
            time.sleep(_PAUSE_S)


def _end_left(session: int) -> None:
    """A command that has ended may have left processes behind: they get some time first."""
    until = time.monotonic() + PATIENCE_S
    while _members(session) and time.monotonic() < until:
        time.sleep(_PAUSE_S)
    for request in _REQUESTS[1:]:
        left = _members(session)
        for pid in left:
            with suppress(OSError):
                os.kill(pid, request)
        if left:
            time.sleep(1.0)


def _members(session: int) -> list[int]:
    """The processes of a session; its group where the system does not list processes."""
    pids = [int(name) for name in _names("/proc") if name.isdigit()]
    if not pids:
        try:
            os.killpg(session, 0)
        except OSError:
            return []
        return [-session]
    members = []
    for pid in pids:
        with suppress(OSError):
            if os.getsid(pid) == session and not _is_zombie(pid):
                members.append(pid)
    return members


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names of processes, not paths
    except OSError:
        return []


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return True


@contextmanager
def _ending_by_signals() -> Iterator[None]:
    """Requests to end this process are as Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
