"""One sift from its request to its result, in a sandbox of its own.

Nothing of the original is written. The job runs in the sandbox of a replay, within its guard. An error before
the job runs leaves no sandbox; afterwards it stays, and what is said names it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from lineage_service.errors import LineageError
from lineage_service.lineage import Sift
from lineage_service.queries import Queries
from lineage_service.replays.command import environment_of
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.launcher import Interpreter, check_guarded, interpreters_of
from lineage_service.replays.original import Original
from lineage_service.replays.protected_files import changes, snapshot
from lineage_service.replays.sandbox import Sandbox, Sandboxes
from lineage_service.replays.sift.checks import Check, CrashCheck, FunctionCheck, RowCheck
from lineage_service.replays.sift.job_runs import JobRuns
from lineage_service.replays.sift.judge import ALL, ROWS
from lineage_service.replays.sift.judge_process import JudgeProcess
from lineage_service.replays.sift.sift_search import SiftRequest, SiftSearch, SourceRows
from lineage_service.result_json import json_bytes

__all__ = ["SIFT_FILE", "SiftInterruptedError", "SiftRuns"]

SIFT_FILE = "sift.json"


class SiftInterruptedError(KeyboardInterrupt):
    """Ctrl-C, with a sentence that names the sandbox."""


class SiftRuns:
    """Sifts of one application. `inputs` and `outputs` are the files and folders that it read and wrote."""

    def __init__(
        self,
        original: Original,
        queries: Queries,
        texts: SourceRows,
        home: Path,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> None:
        self._original, self._queries, self._texts, self._home = original, queries, texts, home
        self._outputs = tuple(dict.fromkeys(outputs))
        self._protected = tuple(dict.fromkeys((*inputs, *outputs)))
        self._sandboxes = Sandboxes(home)

    def sift(self, request: SiftRequest) -> Sift:
        """Raises LineageError, SiftInterruptedError."""
        interpreters = interpreters_of(request.words, os.environ)
        self._sandboxes.expire()
        with self._sandboxes.new() as sandbox:
            if request.is_kept:
                sandbox.keep()
            runs = self._runs(request, sandbox)
            try:
                check_guarded((*interpreters, Interpreter(sys.executable)), runs.environment, sandbox)
                sift = self._sifted(request, sandbox, runs)
                sandbox.write_text(SIFT_FILE, json_bytes(sift, indent=2))
                return sift
            except KeyboardInterrupt:
                raise SiftInterruptedError(
                    f"interrupted: no process of the sift is left; its sandbox is {sandbox.folder}, and "
                    f"`lineage replay --clean {sandbox.id}` removes it"
                ) from None
            except LineageError:
                if not runs.count:
                    sandbox.discard()
                raise

    def _runs(self, request: SiftRequest, sandbox: Sandbox) -> JobRuns:
        environment = environment_of(sandbox, self._home)
        paths = self._protected, self._outputs
        runs = JobRuns(self._original, sandbox, environment, request.words, *paths, is_shown=request.is_shown)
        runs.prepare(replace(request.template, mode="all", sources=()))
        return runs

    def _sifted(self, request: SiftRequest, sandbox: Sandbox, runs: JobRuns) -> Sift:
        began, before = time.monotonic(), snapshot(self._protected)
        if request.seconds is not None:
            runs.until = began + request.seconds
        with ExitStack() as block:
            block.enter_context(runs)
            check = _check(request, runs, sandbox, block)
            search = SiftSearch(self._original, self._queries, self._texts, runs, request, check)
            sift = search.sift(sandbox)
        changed = changes(before, snapshot(self._protected))
        if changed:  # by others, or by what no fence sees: it must be said
            raise ReplayError(f"files of the original changed meanwhile: {'; '.join(changed[:5])}")
        return replace(sift, seconds=round(time.monotonic() - began, 3))


def _check(request: SiftRequest, runs: JobRuns, sandbox: Sandbox, block: ExitStack) -> Check | None:
    """None of one that is made of a wrong row."""
    if request.failure is not None:
        return CrashCheck(request.failure)
    if request.kind not in ("fails", "test"):
        return None
    kind, make = (ROWS, RowCheck) if request.kind == "fails" else (ALL, FunctionCheck)
    judge = block.enter_context(JudgeProcess(kind, request.text, runs.environment, sandbox))
    return make(judge, request.text)
