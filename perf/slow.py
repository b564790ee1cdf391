"""Whether ten records of 50 ms among a million are the first ten that are said to be slow.

    python -m perf.slow [--rows 1000000] [--rounds 20] [--note TEXT]

A job maps the lines of a text file. The function takes 50 ms for ten of them, which a seed chooses: it
sleeps, or it computes, or it is in one call that keeps Python's lock. Writes `perf/results/slow-DATE.json`
and `.md`.
What the looks cost is measured by `python -m perf.capture --modes lineage paced`.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lineage_service.queries import SlowQuery
from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.drivers import ROOT
from perf.tables import publish, table
from tests.support.spark.application import run_application

PLANTED, TAKEN_S = 10, 0.05
MARK = "slow"
PACE: dict[str, Any] = {"spark.lineage.pace": "true"}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.slow", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20, help="of each kind (20)")
    parser.add_argument("--seed", type=int, default=29)
    parser.add_argument("--jars", type=Path, default=ROOT / ".cache" / "lineage" / "jars")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results")
    parser.add_argument("--note", default="")
    options = parser.parse_args(arguments)
    figures = about_machine("perf.slow", options.note)
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="perf-slow-") as name:
        folder = Path(name)
        broker = Broker(folder / "stack", options.jars)
        try:
            runs = [
                round_of(kind, folder / f"{kind}-{number}", options.rows, chance, broker.bootstrap_servers)
                for number in range(options.rounds)
                for kind in KINDS
            ]
        finally:
            broker.stop()
    publish(options.out, "slow", figures | {"rows": options.rows, "runs": runs}, page(options.rows, runs))
    return 0


def round_of(kind: str, folder: Path, rows: int, chance: random.Random, servers: str) -> dict[str, Any]:
    """One job, and how many of its planted records are among the first."""
    folder.mkdir()
    planted = set(chance.sample(range(rows), PLANTED))
    path = folder / "in.txt"
    path.write_text("".join(f"{row},{MARK if row in planted else row % 97}\n" for row in range(rows)))
    function = KINDS[kind]()

    def job(context: Any) -> None:
        context.textFile(str(path), 2).map(function).saveAsTextFile(str(folder / "out"))

    _, application = run_application(servers, folder / "store", job, **PACE)
    assert application is not None
    slow = application.questions.slow(application.application_id, SlowQuery(limit=PLANTED * 4))
    ranks = [
        rank
        for rank, record in enumerate(slow.records, start=1)
        if any(row.row in planted for row in record.sources)
    ]
    ms = [slow.records[rank - 1].ms for rank in ranks]
    return {"kind": kind, "in_the_first": sum(rank <= PLANTED for rank in ranks), "ranks": ranks, "ms": ms}


# -- functions that take long --------------------------------------------------------------------------


def sleeping() -> Callable[[str], str]:
    def function(line: str) -> str:
        if line.endswith(MARK):
            time.sleep(TAKEN_S)
        return line.upper()

    return function


def computing() -> Callable[[str], str]:
    def function(line: str) -> str:
        if line.endswith(MARK):
            until = time.thread_time() + TAKEN_S
            while time.thread_time() < until:
                pass
        return line.upper()

    return function


def keeping_lock() -> Callable[[str], str]:
    numbers = int(1_000_000 * TAKEN_S / min(_seconds_of(1_000_000) for _ in range(9)))

    def function(line: str) -> str:
        if line.endswith(MARK):
            sum(range(numbers))
        return line.upper()

    return function


def _seconds_of(numbers: int) -> float:
    """Of one call. Of several, the least counts: others are longer because something came between."""
    begin = time.thread_time()
    sum(range(numbers))
    return time.thread_time() - begin


KINDS: dict[str, Callable[[], Callable[[str], str]]] = {
    "sleeps": sleeping,
    "computes": computing,
    "keeps the lock": keeping_lock,
}


def page(rows: int, runs: Sequence[dict[str, Any]]) -> str:
    lines = []
    for kind in KINDS:
        of_kind = [run for run in runs if run["kind"] == kind]
        ms = sorted(value for run in of_kind for value in run["ms"])
        lines.append(
            [
                kind,
                " ".join(str(run["in_the_first"]) for run in of_kind),
                f"{ms[0]} to {ms[-1]} ms" if ms else "",
            ]
        )
    return f"""\
Ten records of {1000 * TAKEN_S:.0f} ms among {rows:,}: how many of them are among the first ten, run by run.
The bar is ten.

{table(["the function", "in the first ten", "booked"], lines)}
"""


if __name__ == "__main__":
    raise SystemExit(main())
