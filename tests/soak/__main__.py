"""python -m tests.soak MINUTES: the soak of the tests, for longer. LINEAGE_SOAK_SEED repeats one."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from tests.support.soak.servers import Servers
from tests.support.soak.storm import ROUND_SECONDS, soak

ROOT = Path(__file__).parents[2]


def main(minutes: float) -> int:
    """Rounds with seeds of their own, each compared at its end; 1 if one found a difference."""
    seed = os.environ.get("LINEAGE_SOAK_SEED") or str(SystemRandom().randrange(10**9))
    rounds = max(1, round(minutes * 60 / ROUND_SECONDS))
    for at in range(rounds):
        folder = Path(tempfile.mkdtemp(prefix="lineage-soak-"))
        with Servers(folder / "servers", ROOT / ".cache" / "lineage" / "jars") as servers:
            report = soak(servers, folder, f"{seed}-{at}" if at else seed, minutes * 60 / rounds, print)
        print(f"round {at + 1} of {rounds}: {report}", flush=True)
        if report.differences:
            print("\n".join(report.differences), f"what is stored and said is in {folder}", sep="\n")
            return 1
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
