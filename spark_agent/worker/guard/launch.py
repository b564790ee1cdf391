"""Starts the command of a replay within the fences: `python -m spark_agent.worker.guard.launch COMMAND...`.

The guard has begun when this runs, and the kernel's fence with it, which the command inherits, be it a shell.
Where the kernel has none, only Python and Spark are started, which begin with the guard themselves. Whether
they do is not looked at here: `lineage replay` has tried it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from spark_agent.worker.guard import begin

__all__ = ["main"]

_GUARDED = ("python", "pypy", "spark-submit", "pyspark")


def main(command: Sequence[str]) -> None:
    """Replaces this process by the command, or ends it with one sentence and exit code 3."""
    guard = begin.begin()
    executable = shutil.which(command[0]) if command else None
    if executable is None:
        begin.exit_unguarded(f"there is no command {command[0]!r}" if command else "there is no command")
    name = os.path.basename(command[0])
    if not guard.is_confined and not name.startswith(_GUARDED):
        begin.exit_unguarded(
            f"{name} is no Python, and this kernel cannot confine it: name python or spark-submit"
        )
    try:
        os.execv(executable, list(command))
    except OSError as error:
        begin.exit_unguarded(f"{executable} does not start: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
