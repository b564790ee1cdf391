"""The sandbox of a sift or an influence: made, tried, and compared with what was there before.

Nothing of the original is written. An error before the job runs leaves no sandbox; afterwards it stays, and
what is said names it. However the block ends, files that changed are said, so what it gives may be kept only
behind it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lineage_service.errors import LineageError
from lineage_service.replays.command import environment_of
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.launcher import Interpreter, interpreters_of
from lineage_service.replays.original import Original
from lineage_service.replays.protected_files import Snapshot, changes, snapshot
from lineage_service.replays.sandbox import Sandbox, Sandboxes
from lineage_service.replays.sift.job_runs import JobRuns, for_short_runs
from lineage_service.replays.specification import Plan
from lineage_service.replays.trials import Trials

__all__ = ["PLAIN", "GuardedRuns", "JobOptions", "RunsInterruptedError"]

PLAIN = Plan(mode="only", sources=())


class RunsInterruptedError(KeyboardInterrupt):
    """Ctrl-C, with a sentence that names the sandbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """How the job runs. `words` are the command, `template` has the flags of the runs."""

    words: tuple[str, ...]
    template: Plan = PLAIN
    seconds: float | None = None
    is_kept: bool = False
    is_shown: bool = False


class GuardedRuns:
    """Of one application. `inputs` and `outputs` are the files and folders that it read and wrote."""

    def __init__(self, original: Original, home: Path, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.original, self._home = original, home
        self._outputs = tuple(dict.fromkeys(outputs))
        self._protected = tuple(dict.fromkeys((*inputs, *outputs)))
        self._sandboxes = Sandboxes(home)

    @contextmanager
    def begun(self, options: JobOptions) -> Iterator[tuple[Sandbox, JobRuns]]:
        """A new sandbox, and the runs in it. Raises LineageError, RunsInterruptedError."""
        interpreters = interpreters_of(options.words, os.environ)
        self._sandboxes.expire()
        with self._sandboxes.new() as sandbox:
            if options.is_kept:
                sandbox.keep()
            environment = for_short_runs(environment_of(sandbox, self._home))
            paths = self._protected, self._outputs
            runs = JobRuns(
                self.original, sandbox, environment, options.words, *paths, is_shown=options.is_shown
            )
            changed = ""
            try:
                runs.prepare(replace(options.template, mode="all", sources=()))
                own = Interpreter(sys.executable)  # which asks the user's test
                before = snapshot(self._protected)
                if options.seconds is not None:
                    runs.until = time.monotonic() + options.seconds
                try:
                    with runs, Trials((*interpreters, own), environment, sandbox) as trials:
                        runs.start()  # nothing of the user's runs before the first spec is there
                        trials.check()
                        yield sandbox, runs
                finally:
                    changed = self._changed(before)
                if changed:
                    raise ReplayError(changed)
            except KeyboardInterrupt:
                raise RunsInterruptedError(
                    f"interrupted: no process of the job is left; its sandbox is {sandbox.folder}, and "
                    f"`lineage replay --clean {sandbox.id}` removes it{f'; {changed}' if changed else ''}"
                ) from None
            except LineageError as error:
                if not runs.count:
                    sandbox.discard()
                if changed and str(error) != changed:
                    raise ReplayError(f"{error}; {changed}") from None
                raise

    def _changed(self, before: Snapshot) -> str:
        """What is not as it was: by others, or by what no fence sees. It must be said."""
        changed = changes(before, snapshot(self._protected))
        return f"files of the original changed meanwhile: {'; '.join(changed[:5])}" if changed else ""
