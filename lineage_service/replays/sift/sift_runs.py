"""One sift from its request to its result, in a sandbox of its own."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace

from lineage_service.lineage import Sift
from lineage_service.queries import Queries
from lineage_service.replays.sandbox import SIFT_FILE, Sandbox
from lineage_service.replays.sift.checks import Check, CrashCheck, FunctionCheck, RowCheck
from lineage_service.replays.sift.guarded_runs import GuardedRuns, JobOptions
from lineage_service.replays.sift.job_runs import JobRuns
from lineage_service.replays.sift.judge import ALL, ROWS
from lineage_service.replays.sift.judge_process import JudgeProcess
from lineage_service.replays.sift.sift_search import SiftRequest, SiftSearch, SourceRows
from lineage_service.result_json import json_bytes

__all__ = ["sifted"]


def sifted(
    guarded: GuardedRuns, queries: Queries, texts: SourceRows, request: SiftRequest, options: JobOptions
) -> Sift:
    """Raises LineageError, RunsInterruptedError."""
    began = time.monotonic()
    with guarded.begun(options) as (sandbox, runs), ExitStack() as block:
        check = _check(request, runs, sandbox, block)
        search = SiftSearch(guarded.original, queries, texts, runs, request, check, options.template)
        sift = search.sift(sandbox)
    sift = replace(sift, seconds=round(time.monotonic() - began, 3))
    sandbox.write_text(SIFT_FILE, json_bytes(sift, indent=2))
    return sift


def _check(request: SiftRequest, runs: JobRuns, sandbox: Sandbox, block: ExitStack) -> Check | None:
    """None of one that is made of a wrong row."""
    if request.failure is not None:
        return CrashCheck(request.failure)
    if request.kind not in ("fails", "test"):
        return None
    kind, make = (ROWS, RowCheck) if request.kind == "fails" else (ALL, FunctionCheck)
    judge = block.enter_context(JudgeProcess(kind, request.text, runs.environment, sandbox))
    return make(judge, request.text)
