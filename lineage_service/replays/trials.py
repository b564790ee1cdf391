"""Tries each Python that a command will start: within the replay's guard it has to refuse a file.

All are tried at once, in a folder of the sandbox of their own. So other processes of the sandbox may begin
meanwhile, as long as none of them runs code of the user's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from lineage_service.replays.errors import CommandError
from lineage_service.replays.launcher import Interpreter
from lineage_service.replays.sandbox import SPEC_FILE, Sandbox
from spark_agent.contract.replay_spec import SPEC_VARIABLE

__all__ = ["Trials", "check_guarded"]

_FOLDER = "trial"
_MOST_S = 60.0
#: Exit code of a trial that could write.
_UNGUARDED = 86
#: Ends with 0 only if the replay's guard, and no file system, refuses the file.
_PROGRAM = """
import os, sys
try:
    os.close(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
except PermissionError as error:
    sys.exit(0 if any(kind.__name__ == "ReplayRefused" for kind in type(error).__mro__) else 87)
os.unlink(sys.argv[1])
sys.exit(86)
"""


class Trials:
    """Of some interpreters, from the beginning of the block on. The sandbox has its spec."""

    def __init__(
        self, interpreters: Sequence[Interpreter], environment: Mapping[str, str], sandbox: Sandbox
    ) -> None:
        self._interpreters = tuple(dict.fromkeys(interpreters))
        self._own = Sandbox(sandbox.folder / _FOLDER)
        self._spec = {**sandbox.read(SPEC_FILE), "sandbox": str(self._own.folder)}
        self._environment = {**environment, SPEC_VARIABLE: str(self._own.spec)}
        self._beside = sandbox.folder.parent / f"trial-{sandbox.id}-{os.getpid()}"
        self._running: list[tuple[Interpreter, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Trials:
        """Raises CommandError, SandboxError."""
        self._own.folder.mkdir(0o700, exist_ok=True)
        try:
            self._own.write(SPEC_FILE, self._spec)
            for number, interpreter in enumerate(self._interpreters):
                self._running.append((interpreter, self._started(interpreter, number)))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def check(self) -> None:
        """Raises CommandError where one does not refuse, which says what to do."""
        until = time.monotonic() + _MOST_S
        for interpreter, process in self._running:
            try:
                _, said = process.communicate(timeout=max(until - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired as error:
                raise CommandError(f"{interpreter.path} cannot be started: {error}") from None
            if process.returncode:
                raise CommandError(_why(interpreter, process.returncode, said))

    def _started(self, interpreter: Interpreter, number: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [interpreter.path, *interpreter.options, "-c", _PROGRAM, f"{self._beside}-{number}"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise CommandError(f"{interpreter.path} cannot be started: {error}") from None

    def _end(self) -> None:
        for number, (_, process) in enumerate(self._running):
            with suppress(OSError):
                process.kill()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
            self._beside.with_name(f"{self._beside.name}-{number}").unlink(missing_ok=True)
        self._running = []
        shutil.rmtree(self._own.folder, ignore_errors=True)


def check_guarded(
    interpreters: Sequence[Interpreter], environment: Mapping[str, str], sandbox: Sandbox
) -> None:
    """Each refuses to write beside the sandbox. Raises CommandError, SandboxError."""
    with Trials(interpreters, environment, sandbox) as trials:
        trials.check()


def _why(interpreter: Interpreter, code: int, stderr: bytes) -> str:
    options = " ".join(interpreter.options)
    if code == _UNGUARDED:
        return (
            f"{interpreter.path} {options}".rstrip()
            + " does not load the lineage agent, so nothing would guard "
            "your files: install lineage-master into its environment, and leave out -S"
        )
    said = stderr.decode(errors="replace").strip().splitlines() or ["no reason was given"]
    return f"{interpreter.path} cannot run a replay: {said[-1]}"
