"""Runs the command of a job once, in a sandbox, on other files in the place of its inputs: what it wrote.

Nothing is chosen or captured in this run: what comes out is what Spark makes of these files. The fences are
those of every replay: nothing of the original is written, and what changed all the same is an error. Behind
the block no process of the command is left, and no sandbox.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lineage_service.replays.agent_report import read_report
from lineage_service.replays.command import environment_of, started
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.launcher import guarded_words, interpreters_of
from lineage_service.replays.original import Original
from lineage_service.replays.protected_files import changes, snapshot
from lineage_service.replays.sandbox import SPEC_FILE, Sandbox, Sandboxes
from lineage_service.replays.specification import Plan, spec_of
from lineage_service.replays.trials import check_guarded

__all__ = ["StoodInRun", "stood_in_run"]

_FOLDER, _PAUSE_S = "inputs", 0.05
_MOST_SAID = 300


@dataclass(frozen=True, slots=True)
class StoodInRun:
    """`folders`: sink of the original -> where what it wrote is. `unsure`: why the command should not run on
    some rows again; empty where nothing speaks against it.
    """

    folders: Mapping[int, str]
    unsure: str
    seconds: float


@contextmanager
def stood_in_run(
    original: Original,
    home: Path,
    words: Sequence[str],
    write: Callable[[Path], Mapping[str, str]],
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    seconds: float,
) -> Iterator[StoodInRun]:
    """`write` puts files into a folder, and says what of it stands for which path. `inputs` and `outputs` are
    the files and folders that the original read and wrote. After so many seconds the command is ended.

    Raises ReplayError, what `write` raises, and KeyboardInterrupt.
    """
    began = time.monotonic()
    interpreters = interpreters_of(words, os.environ)
    protected = tuple(dict.fromkeys((*inputs, *outputs)))
    sandboxes = Sandboxes(home)
    sandboxes.expire()
    with sandboxes.new() as sandbox:
        try:
            stand_ins = tuple(sorted(write(sandbox.folder / _FOLDER).items()))
            plan = Plan(mode="all", sources=(), stand_ins=stand_ins)
            sandbox.write(SPEC_FILE, spec_of(original, plan, sandbox, 1, protected, outputs, is_silent=True))
            environment = environment_of(sandbox, home)
            check_guarded(interpreters, environment, sandbox)
            before = snapshot(protected)
            code = _exit_code(words, environment, sandbox, seconds)
            changed = changes(before, snapshot(protected))
            if changed:
                raise ReplayError(f"files of the job changed meanwhile: {'; '.join(changed[:3])}")
            yield _result(original, sandbox, code, time.monotonic() - began)
        finally:
            sandbox.discard()


def _exit_code(words: Sequence[str], environment: Mapping[str, str], sandbox: Sandbox, seconds: float) -> int:
    until = time.monotonic() + seconds
    with started(guarded_words(words), environment, sandbox) as process:
        while (code := process.poll()) is None:
            if time.monotonic() > until:
                raise ReplayError(f"the command took longer than {seconds:,.0f} s")
            time.sleep(_PAUSE_S)
    return code


def _result(original: Original, sandbox: Sandbox, code: int, seconds: float) -> StoodInRun:
    report = read_report(sandbox.read(sandbox.report.name), sandbox.notes())
    if report.refused:
        refusal = report.refused[0]
        raise ReplayError(f"refused: {' '.join(filter(None, (refusal.what, refusal.path)))}")
    if code:
        raise ReplayError(f"the command ended with exit code {code}: {_said(sandbox)}")
    if not report.is_there:
        raise ReplayError("the command ended without a Spark application that has the lineage agent")
    if report.differences:
        raise ReplayError(report.differences[0])
    folders = {}
    for number, sink in original.sinks.items():
        reported = original.reported(sink, report.sinks)
        if reported is not None and reported.to is not None:
            folders[number] = reported.to
    unsure = ""
    if report.connections:
        unsure = (
            f"it opens connections to {', '.join(report.connections[:3])}: what it does there is not known"
        )
    elif report.inferred:
        unsure = f"columns are inferred from all rows ({report.inferred[0]}), so of some they may be others"
    return StoodInRun(folders, unsure, seconds)


def _said(sandbox: Sandbox) -> str:
    try:
        lines = sandbox.stderr.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return (lines or ["it printed nothing"])[-1][:_MOST_SAID]
