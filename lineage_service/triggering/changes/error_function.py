"""An error that a user's function gives: `MODULE:FUNCTION` or `FILE.py:FUNCTION`.

It is called with two tables of Arrow, the old output and the new one. Row by row they are of one key, each
key once; where a key is on one side only, the row of the other side is null. So one function does what
three do in Esteves, Galhardas, Veiga (INESC-ID TR 9/2016, section 4): per element, over all, and at the end.

The function runs in a process of its own: it can neither end the one that asks, nor change anything there,
nor take longer than it may. It runs with the same rights, though.
"""

from __future__ import annotations

import io
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from lineage_service.errors import InvalidQueryError, LineageError
from lineage_service.triggering.changes import error_process
from lineage_service.triggering.changes.changed_elements import Elements, Numbers, aligned
from lineage_service.triggering.changes.error_process import LENGTHS

__all__ = ["ErrorFunction", "ErrorFunctionError", "check_function"]

_LINE = 1 << 16


class ErrorFunctionError(LineageError):
    """It gave no error: why."""


def check_function(text: str, seconds: float) -> None:
    """Raises InvalidQueryError if there is no such function. Of one that is not imported in time nothing is
    known yet.
    """
    try:
        with ErrorFunction(text, seconds):
            pass
    except _LateError:
        return
    except ErrorFunctionError as error:
        raise InvalidQueryError(str(error)) from None


class _LateError(ErrorFunctionError):
    """Time is up."""


class ErrorFunction:
    """A process with the function in it. All that it does takes so many seconds at most."""

    def __init__(self, text: str, seconds: float) -> None:
        """Raises ErrorFunctionError."""
        self._text, self._seconds = text, seconds
        self._left, self._until = seconds, 0.0
        module, _, function = text.rpartition(":")
        try:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(error_process.__file__))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
            request = {"module": module, "function": function, "seconds": seconds, "path": ["", *sys.path]}
        except OSError as error:
            raise ErrorFunctionError(f"--error {text}: no process can be started: {error}") from None
        try:
            self._ask(json.dumps(request).encode() + b"\n")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ErrorFunction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """With whatever it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def error(self, stale: Elements, correct: Elements, columns: Sequence[str]) -> float:
        """Of an output whose elements have these columns. Raises ErrorFunctionError."""
        _, old, new, was, remains = aligned(stale, correct)
        tables = [_stream(old, was, columns), _stream(new, remains, columns)]
        return self._ask(LENGTHS.pack(*map(len, tables)) + b"".join(tables))

    def _ask(self, question: bytes) -> float:
        began = time.monotonic()
        self._until = began + self._left
        try:
            self._write(memoryview(question))
            answer: dict[str, Any] = json.loads(self._line())
        except (OSError, ValueError):
            code = self._process.wait()
            raise ErrorFunctionError(f"--error {self._text}: its process has ended with {code}") from None
        self._left -= time.monotonic() - began
        if "error" in answer:
            raise ErrorFunctionError(f"--error {self._text}: {answer['error']}")
        return float(answer["value"])

    def _write(self, content: memoryview) -> None:
        assert self._process.stdin is not None
        descriptor = self._process.stdin.fileno()
        os.set_blocking(descriptor, False)
        while content:
            self._wait_for([], [descriptor])
            content = content[os.write(descriptor, content) :]

    def _line(self) -> bytes:
        """Raises ValueError at the end of the pipe."""
        assert self._process.stdout is not None
        descriptor, line = self._process.stdout.fileno(), b""
        while not line.endswith(b"\n"):
            self._wait_for([descriptor], [])
            piece = os.read(descriptor, _LINE)
            if not piece:
                raise ValueError("the pipe has ended")
            line += piece
        return line

    def _wait_for(self, readable: list[int], writable: list[int]) -> None:
        left = max(self._until - time.monotonic(), 0)
        if not any(select.select(readable, writable, [], left)):
            raise _LateError(f"--error {self._text}: it takes longer than {self._seconds:g} s")


def _stream(numbers: Numbers, is_there: np.ndarray[Any, Any], columns: Sequence[str]) -> bytes:
    arrays = [pa.array(numbers[:, at], pa.float64(), mask=~is_there) for at in range(len(columns))]
    table = pa.table(dict(zip(columns, arrays, strict=True)))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
