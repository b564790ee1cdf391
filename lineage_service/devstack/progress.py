"""Says what is going on while it takes: bars on a terminal, plain lines elsewhere, nothing in a program.

Never silent for more than a few seconds. Knows nothing of what it reports on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

#: Call it several times a second, with the number of bytes that came since; 0 says only that time passes.
Tick = Callable[[int], None]
_LINE_EVERY_S = 3.0


class Reporter(Protocol):
    """Where a running command says how it goes."""

    def say(self, text: str) -> None:
        """A result, on standard output."""

    def waiting(self, text: str, total: int | None = None) -> AbstractContextManager[Tick]:
        """While the block runs, `text` is what is waited for; `total` in bytes if it is a download."""


class Quiet:
    """Says nothing."""

    def say(self, text: str) -> None:
        pass

    @contextmanager
    def waiting(self, text: str, total: int | None = None) -> Iterator[Tick]:
        yield lambda _: None


class Bars:
    """A spinner or a bar for what is going on; gone when it is over."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def waiting(self, text: str, total: int | None = None) -> Iterator[Tick]:
        columns = [BarColumn(), DownloadColumn(), TransferSpeedColumn()] if total is not None else []
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            *columns,
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        ) as progress:
            task = progress.add_task(text, total=total)
            yield lambda amount: progress.advance(task, amount)


class Lines:
    """One line at the start of each wait, and one every 3 s until it is over."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def waiting(self, text: str, total: int | None = None) -> Iterator[Tick]:
        start = last = self._clock()
        done = 0
        self.say(f"{text} ...")

        def tick(amount: int) -> None:
            nonlocal last, done
            done += amount
            now = self._clock()
            if now - last >= _LINE_EVERY_S:
                last = now
                part = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB, " if total is not None else ""
                self.say(f"{text}: {part}{now - start:.0f} s")

        yield tick


def console_reporter(console: Console | None = None) -> Reporter:
    """Bars if standard output is a terminal, else lines."""
    console = console or Console()
    return Bars(console) if console.is_terminal else Lines(console)
