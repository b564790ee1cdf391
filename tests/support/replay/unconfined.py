"""Runs a script as a replay on a kernel without a fence: `python unconfined.py SCRIPT ARGUMENT...`.

The hook is not asked, since the variable comes later than Python's start.
"""

from __future__ import annotations

import os
import runpy
import sys

from spark_agent.worker.guard import begin, kernel


def main() -> None:
    os.environ["LINEAGE_REPLAY"] = os.environ.pop("UNCONFINED_REPLAY")
    kernel.confine = lambda folders, files: False
    begin.begin()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
