"""What the agent says to people: lines that begin with `lineage: `, on standard error.

Promises that each text is said once per application and process, that nothing raises, and that standard
output is never written to. A line is one write, so lines of several threads do not mix. Nothing is said with
`spark.lineage.quiet=true`. Knows nothing of what it says, and nothing of Kafka.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Any, TextIO

PREFIX = "lineage: "
#: Lines of one application; its last one is said beyond them, too.
MAX_LINES = 20
#: Of a line: a message of an error may be a page.
MAX_CHARACTERS = 2_000


class Notices:
    """The lines of one application. Thread-safe."""

    def __init__(self, context: Any = None, *, is_quiet: bool = False, stream: TextIO | None = None) -> None:
        """`context` is the SparkContext, if there is one; `stream` stands for `sys.stderr`."""
        self.is_quiet = is_quiet
        self._context, self._stream = context, stream
        self._process = os.getpid()
        self._lock = threading.RLock()  # the handler of a signal may come in between
        self._said: set[str] = set()
        self._has_progress_bar = False

    def say(self, text: str, *, is_last: bool = False) -> None:
        """Write one line, unless it was said before. Never raises."""
        with contextlib.suppress(Exception):  # standard error may be closed, full, or anything at all
            if self.is_quiet or os.getpid() != self._process:  # a fork of the driver has nothing to say
                return
            line = PREFIX + _printable(text)
            with self._lock:
                if line in self._said or (len(self._said) >= MAX_LINES and not is_last):
                    return
                self._said.add(line)
                self._write(line)

    def expect_progress_bar(self) -> None:
        """From here on Spark may have left its progress bar on the line where the next notice begins."""
        with contextlib.suppress(Exception):  # the JVM may have gone
            self._has_progress_bar = self._context._jsc.sc().progressBar().isDefined()

    def _write(self, line: str) -> None:
        stream = self._stream or sys.stderr
        if stream is None:
            return
        if not _is_of_process(stream):  # of a notebook, or whatever the program has put there
            stream.write(f"{line}\n")
            stream.flush()
            return
        if self._context is not None and "PYSPARK_GATEWAY_PORT" in os.environ:
            # spark-submit started this Python and sends both of its streams to its own standard output.
            fresh = "\n" if self._has_progress_bar else ""
            self._context._jvm.java.lang.System.err.print(f"{fresh}{line}\n")
            return
        fresh = ""
        if self._has_progress_bar:
            fresh = "\r\x1b[K" if stream.isatty() else "\n"
        stream.flush()
        # Not through the stream: what a broken pipe leaves in its buffer changes the exit code of Python.
        os.write(stream.fileno(), f"{fresh}{line}\n".encode(stream.encoding or "utf-8", "backslashreplace"))


def _is_of_process(stream: TextIO) -> bool:
    """Is it the standard error that the process was started with?"""
    try:
        return stream.fileno() == 2
    except Exception:  # noqa: BLE001 - of a stream that somebody made, any
        return False


def _printable(text: str) -> str:
    """On one line, and without what would move a terminal's cursor."""
    text = " ".join(text.split())[:MAX_CHARACTERS]
    return "".join(character if character.isprintable() else "?" for character in text)
