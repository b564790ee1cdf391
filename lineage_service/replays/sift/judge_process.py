"""The process in which a user's test is asked about rows, within the guard of the sandbox."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from lineage_service.errors import InvalidQueryError
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.sandbox import Sandbox

__all__ = ["JudgeProcess"]

_MODULE = "lineage_service.replays.sift.judge"
_STDERR = "judge.stderr"
_PATIENCE_S = 5.0


class JudgeProcess:
    """Asks one test, `kind` and `text` of `judge`. Raises InvalidQueryError where there is no such test."""

    def __init__(self, kind: str, text: str, environment: Mapping[str, str], sandbox: Sandbox) -> None:
        self._name = f"--{'fails' if kind == 'rows' else 'test'} {text[:200]}"
        self._log = sandbox.folder / _STDERR
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    _MODULE,
                    kind,
                    text,
                ],  # a trial has shown that the guard begins with it
                env={**environment, "PYTHONIOENCODING": "utf-8:backslashreplace"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._is_ready = False

    def __enter__(self) -> JudgeProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, and what it has started."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE_S if kind is None else 0)
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def ask(self, texts: Sequence[str]) -> dict[str, Any]:
        """The judgement of some rows. Raises ReplayError where the test has ended the process."""
        if not self._is_ready:
            self._read()
            self._is_ready = True
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(list(texts)).encode() + b"\n")
            self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            raise ReplayError(f"{self._name} ended its process: {said[-1][:500]}")
        judgement: dict[str, Any] = json.loads(line)
        if "error" in judgement:
            raise InvalidQueryError(f"{self._name}: {judgement['error'][:500]}")
        return judgement
