"""What it means that a run fails: a row of its outputs is wrong, or it crashes as the original did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lineage_service.lineage import Failure
from lineage_service.replays.failure_check import is_same_crash
from lineage_service.replays.sift.job_runs import JobRun, last_line
from lineage_service.replays.sift.judge_process import JudgeProcess
from lineage_service.replays.sift.ready_test import ReadyTest

__all__ = ["Check", "CrashCheck", "FunctionCheck", "ReadyCheck", "RowCheck"]


class Check(Protocol):
    """Judges rows of the original, and runs. A run that ended in another way passes, and is unresolved."""

    description: str
    #: Is an output judged as a whole, and not row by row?
    is_of_all: bool
    #: How many runs, or rows, could not be judged; and of the first why.
    unresolved: int
    why: str

    def failing(self, texts: Sequence[str]) -> list[int]:
        """Which rows of an output of the original are wrong, by their numbers."""

    def fails(self, run: JobRun) -> bool:
        """Of a run on some rows."""


class _OutputCheck:
    """Of what a run has written."""

    is_of_all = False

    def __init__(self, description: str) -> None:
        self.description, self.unresolved, self.why = description, 0, ""

    def fails(self, run: JobRun) -> bool:
        if run.exit_code:
            last = last_line(run.printed)[:300]
            self._note(1, f"the command ended with exit code {run.exit_code}: {last}")
            return False
        return any(map(self._fails, run.rows.values()))

    def _fails(self, texts: Sequence[str]) -> bool:
        raise NotImplementedError

    def _note(self, count: int, why: str) -> None:
        self.unresolved += count
        self.why = self.why or why


class RowCheck(_OutputCheck):
    """Fails where one row does, by an expression or function of the user's."""

    def __init__(self, judge: JudgeProcess, text: str) -> None:
        super().__init__(f"a row for which {text} holds")
        self._judge = judge

    def failing(self, texts: Sequence[str]) -> list[int]:
        judgement = self._judge.ask(texts)
        if judgement["errors"]:
            self._note(judgement["errors"], f"--fails raised {judgement['first']}")
        return list(judgement["failing"])

    def _fails(self, texts: Sequence[str]) -> bool:
        return bool(texts) and bool(self.failing(texts))


class FunctionCheck(_OutputCheck):
    """Fails where a function of the user's says so of all rows of an output."""

    is_of_all = True

    def __init__(self, judge: JudgeProcess, text: str) -> None:
        super().__init__(f"an output for which {text} holds")
        self._judge = judge

    def failing(self, texts: Sequence[str]) -> list[int]:
        """All, if they fail together."""
        return list(range(len(texts))) if self._fails(texts) else []

    def _fails(self, texts: Sequence[str]) -> bool:
        judgement = self._judge.ask(texts)
        if judgement["errors"]:
            self._note(1, f"--test raised {judgement['first']}")
        return bool(judgement["fails"])


class ReadyCheck(_OutputCheck):
    """Fails where a row is wrong as the one that was named."""

    def __init__(self, test: ReadyTest) -> None:
        super().__init__(f"a row of which {test.description}")
        self._test = test

    def failing(self, texts: Sequence[str]) -> list[int]:
        return [number for number, text in enumerate(texts) if self._test.fails(text)]

    def _fails(self, texts: Sequence[str]) -> bool:
        return any(map(self._test.fails, texts))


class CrashCheck:
    """Fails where a run ends with the same type of error, from the same line of the program."""

    is_of_all = False

    def __init__(self, failure: Failure) -> None:
        self._failure = failure
        self.description, self.unresolved, self.why = (
            f"{failure.error} at {failure.frame or 'any line'}",
            0,
            "",
        )

    def failing(self, texts: Sequence[str]) -> list[int]:
        """A crash is no row."""
        return []

    def fails(self, run: JobRun) -> bool:
        if is_same_crash(self._failure, run.exit_code, run.printed):
            return True
        if run.exit_code:
            last = last_line(run.printed)[:300]
            self.unresolved += 1
            self.why = self.why or f"the command failed in another way: {last}"
        return False
