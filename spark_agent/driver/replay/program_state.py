"""What a program may change in its process, as it was before: so that it can run again in the same one.

Stops the SparkContexts and sessions that it has left, forgets the modules of the user's that it imported, and
gives back arguments, paths, environment, folder and streams. Keeps the end of what it printed.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from typing import Any

from spark_agent.worker.guard.places import is_of_user

#: Characters of what a program printed.
MOST_PRINTED = 1 << 20


class ProgramState:
    """As it is when this is made. From then on what is printed is kept."""

    def __init__(self) -> None:
        self._arguments, self._path = list(sys.argv), list(sys.path)
        self._folder, self._environment = os.getcwd(), dict(os.environ)
        self._hook = sys.excepthook
        self._modules = set(sys.modules)
        self._streams = sys.stdout, sys.stderr
        self._printed = _Printed()
        self._copies = tuple(_Copied(stream, self._printed) for stream in self._streams)
        sys.stdout, sys.stderr = self._copies

    def restore(self) -> str:
        """What was printed since, the end of it."""
        _stop_spark()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        sys.stdout, sys.stderr = self._streams
        for copy in self._copies:
            copy.end()
        sys.argv, sys.path[:] = self._arguments, self._path
        sys.excepthook = self._hook
        os.chdir(self._folder)
        self._restore_environment()
        for name in set(sys.modules) - self._modules:
            if _is_of_user(sys.modules[name]):
                del sys.modules[name]
        return self._printed.text()

    def _restore_environment(self) -> None:
        for name in set(os.environ) - set(self._environment):
            del os.environ[name]
        for name, value in self._environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value


def _is_of_user(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and is_of_user(file)


def _stop_spark() -> None:
    """End what the program has left running. What cannot be stopped is left to the next SparkContext."""
    session_class = getattr(sys.modules.get("pyspark.sql.session"), "SparkSession", None)
    session = getattr(session_class, "_instantiatedSession", None)
    if session is not None:
        with contextlib.suppress(Exception):
            session.stop()
    context_class = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    context = getattr(context_class, "_active_spark_context", None)
    if context is not None:
        with contextlib.suppress(Exception):
            context.stop()


class _Printed:
    """The end of a text."""

    def __init__(self) -> None:
        self._pieces: deque[str] = deque()
        self._size = 0

    def add(self, text: str) -> None:
        self._pieces.append(text[-MOST_PRINTED:])
        self._size += len(self._pieces[-1])
        while self._size > MOST_PRINTED and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft())

    def text(self) -> str:
        return "".join(self._pieces)


class _Copied:
    """A stream, whose texts are kept as well. The program may close it: it is over a file of its own."""

    def __init__(self, stream: Any, printed: _Printed) -> None:
        self._original, self._printed = stream, printed
        self._stream = _own(stream)

    def end(self) -> None:
        """Close what is its own. Who still has it, as log handlers do, writes to the original."""
        own, self._stream = self._stream, self._original
        if own is not self._original:
            with contextlib.suppress(OSError, ValueError):
                own.close()

    def write(self, text: str) -> Any:
        self._printed.add(text)
        return self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __iter__(self) -> Any:
        return iter(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _own(stream: Any) -> Any:
    """The same over a copy of its descriptor; the stream where it has none."""
    try:
        stream.flush()
        encoding, errors = stream.encoding, stream.errors
        descriptor = os.dup(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return stream
    return open(descriptor, "w", buffering=1, encoding=encoding, errors=errors)
