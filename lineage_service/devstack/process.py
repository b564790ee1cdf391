"""Starts, recognises and stops server processes that outlive the command which started them.

A process is known by its pid, its start time and a mark on its command line; nothing else is ever signalled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

#: The kernel's clock ticks and a corrected system clock move a start time a little; a reused pid moves it a
#: lot.
_SAME_START_S = 2.0
_SPAWN_DEADLINE_S = 5.0
#: Neo4j writes a checkpoint, Kafka its indexes: well under a second when idle, seconds on a busy machine.
STOP_DEADLINE_S = 20.0


def spawn(command: list[str], log: Path) -> psutil.Process:
    """Starts `command` in a session of its own, so that neither Ctrl-C nor the terminal's end reaches it.

    Both its outputs go to `log`; what was there before stays beside it as `<log>.1`. Raises OSError.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_name(log.name + ".1"))
    pid = os.posix_spawn(
        command[0],
        command,
        os.environ,
        setsid=True,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    process = psutil.Process(pid)
    # The kernel lets the parent go on a moment before the child's command line can be read; `find` needs it.
    deadline = time.monotonic() + _SPAWN_DEADLINE_S
    while is_running(process) and not _command_line(process) and time.monotonic() < deadline:
        time.sleep(0.01)
    return process


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def find(pid: int, created: float, mark: str) -> psutil.Process | None:
    """The running process that began as `pid` at `created` with `mark` in its command line, else None."""
    try:
        process = psutil.Process(pid)
        is_ours = abs(process.create_time() - created) < _SAME_START_S and mark in process.cmdline()
        return process if is_ours and is_running(process) else None
    except psutil.Error:
        return None


def is_running(process: psutil.Process) -> bool:
    """False once it has ended, also when its parent has not noticed yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def listens(process: psutil.Process, port: int) -> bool:
    """Whether this very process listens on the port, and not another that was faster.

    Where the system does not say: whether it runs at all.
    """
    try:
        return any(
            connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            for connection in process.net_connections("tcp")
        )
    except psutil.AccessDenied:
        return is_running(process)
    except psutil.Error:
        return False


def stop(
    process: psutil.Process, deadline_s: float = STOP_DEADLINE_S, tick: Callable[[], None] | None = None
) -> bool:
    """SIGTERM, then SIGKILL for what still runs after `deadline_s` seconds. True if it went by itself.

    `tick` is called several times a second while waiting.
    """
    try:
        process.terminate()
        if _has_ended(process, deadline_s, tick):
            return True
        process.kill()
        _has_ended(process, STOP_DEADLINE_S, tick)
    except psutil.NoSuchProcess:
        return True
    return False


def _has_ended(process: psutil.Process, deadline_s: float, tick: Callable[[], None] | None) -> bool:
    step_s = 0.1
    for _ in range(max(1, round(deadline_s / step_s))):
        try:
            # Also collects the process when it is a child of this one.
            process.wait(timeout=step_s)
        except psutil.TimeoutExpired:
            if not is_running(process):  # its parent has not collected it
                return True
            if tick:
                tick()
        else:
            return True
    return False


def tail(logs: Sequence[Path], since: float, lines: int = 6) -> str:
    """The last lines of each of `logs` that was written after `since` (Unix time, s); no stack frames."""
    parts = []
    for log in logs:
        try:
            if log.stat().st_mtime < since - _SAME_START_S:
                continue
            with log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - 8_192))
                text = file.read().decode(errors="replace")
        except OSError:
            continue
        last = [line for line in text.splitlines() if not line.startswith(("\tat ", "\t... "))][-lines:]
        if last:
            parts.append("\n".join([f"last lines of {log}:", *(f"    {line[:200]}" for line in last)]))
    return "\n".join(parts) or f"it wrote nothing to {' or '.join(map(str, logs))}"
