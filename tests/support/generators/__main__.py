"""Checks the catalogue in the Python that runs it, and says what came out otherwise.

`PYTHON -m tests.support.generators` needs nothing installed. Nothing must come out otherwise before a version
of Python is added to `VERSIONS` of `spark_agent/worker/reading/instructions.py`.
"""

from __future__ import annotations

import contextlib
import io
import sys

from tests.support.generators.batches import BATCHES
from tests.support.generators.by_row import BY_ROW, KEPT_BOUNDS
from tests.support.generators.capture import captured
from tests.support.generators.hostile import HOSTILE
from tests.support.generators.setup import ROWS


def wrong() -> list[str]:
    names = []
    for name, function in BY_ROW.items():
        of_each = [list(function(iter([row]))) for row in ROWS]
        truth = [[position] for position, of_row in enumerate(of_each) for _ in of_row]
        names += [name] if captured(function, ROWS)[1] != truth else []
    for name, (function, truth_of) in BATCHES.items():
        names += [name] if captured(function, ROWS)[1] != truth_of(ROWS) else []
    for name, function in (HOSTILE | KEPT_BOUNDS).items():
        names += [name] if captured(function, ROWS)[1] is not None else []
    return names


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        names = wrong()
    total = len(BY_ROW) + len(BATCHES) + len(HOSTILE) + len(KEPT_BOUNDS)
    print(f"Python {sys.version.split()[0]}: {total - len(names)} of {total} as they should be")
    print(*names, sep="\n")
    sys.exit(bool(names))
