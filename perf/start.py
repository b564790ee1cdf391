"""What the start-up hook costs a Python that has nothing to do with Spark: `python -c pass`, many times.

Makes empty environments that differ in nothing but the hook and the package that it imports, and starts each
by turns, so that what slows the machine down stands on all sides. Writes `perf/results/start-DATE.json` and
`.md`. Does not measure PySpark: with it an import of seconds would hide a tenth of a millisecond.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

from perf.capture.__main__ import about_machine
from perf.capture.drivers import ROOT
from perf.tables import publish, table

WITHOUT, WITH = "without the hook", "with the hook"
WARM_UPS = 20


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.start", description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="starts of each environment (500)")
    parser.add_argument("--against", default="", help="a commit whose hook is measured beside today's")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results")
    parser.add_argument("--note", default="")
    options = parser.parse_args(argv)
    figures = about_machine("perf.start", options.note)
    del figures["Java"]
    figures |= {"Python": platform.python_version(), "starts of each": options.runs}
    with tempfile.TemporaryDirectory() as folder:
        pythons = environments(Path(folder), options.against)
        for python in pythons.values():
            for _ in range(WARM_UPS):
                start(python)
        figures["milliseconds"] = measured(pythons, options.runs)
    publish(options.out, "start", figures, page(figures))
    return 0


def environments(folder: Path, against: str) -> dict[str, Path]:
    """Their Pythons, by what each is."""
    sources: dict[str, Path | None] = {WITHOUT: None, WITH: ROOT / "spark_agent"}
    if against:
        archive = subprocess.run(
            ["git", "archive", against, "spark_agent"], cwd=ROOT, capture_output=True, check=True
        ).stdout
        then = folder / "then"
        then.mkdir()
        subprocess.run(["tar", "-x", "-C", str(then)], input=archive, check=True)
        sources[f"with the hook of {against}"] = then / "spark_agent"
    pythons: dict[str, Path] = {}
    for number, (name, source) in enumerate(sources.items()):
        home = folder / str(number)
        venv.create(home, symlinks=True)
        (packages,) = home.glob("lib/python*/site-packages")
        if source is not None:  # as the wheel puts them there
            shutil.copytree(source, packages / "spark_agent", ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(source / "lineage_master.pth", packages)
        pythons[name] = home / "bin" / "python"
        loaded = subprocess.run(
            [pythons[name], "-c", "import sys; print('spark_agent.hook' in sys.modules)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        if loaded != str(source is not None):
            sys.exit(f"perf.start: {name}, but the hook was loaded: {loaded}")
    return pythons


def start(python: Path) -> tuple[float, float]:
    """(milliseconds of CPU, of time) of one Python that does nothing."""
    begin = time.perf_counter()
    process = os.posix_spawn(python, [str(python), "-c", "pass"], {"PATH": os.environ.get("PATH", "")})
    _, status, used = os.wait4(process, 0)
    wall_s = time.perf_counter() - begin
    if status:
        sys.exit(f"perf.start: {python} ended with status {status}")
    return 1000 * (used.ru_utime + used.ru_stime), 1000 * wall_s


def measured(pythons: dict[str, Path], runs: int) -> dict[str, Any]:
    starts: dict[str, list[tuple[float, float]]] = {name: [] for name in pythons}
    order, chance = list(pythons), random.Random(1)
    for _ in range(runs):
        chance.shuffle(order)
        for name in order:
            starts[name].append(start(pythons[name]))
    return {
        name: {"cpu": [cpu for cpu, _ in of], "wall": [wall for _, wall in of]} for name, of in starts.items()
    }


def page(figures: dict[str, Any]) -> str:
    milliseconds = figures["milliseconds"]
    rows = []
    for name, of in milliseconds.items():
        cells = [name]
        for kind in ("cpu", "wall"):
            low, middle, high = statistics.quantiles(of[kind], n=4)
            extra = middle - statistics.median(milliseconds[WITHOUT][kind])
            cells += [f"{middle:.2f} ({low:.2f}-{high:.2f})", f"{extra:+.2f}"]
        rows.append(cells)
    lines = [f"- {name}: {value}" for name, value in figures.items() if name != "milliseconds"]
    return "\n".join(
        [
            "# What the start-up hook costs an idle Python",
            "",
            "`python -c pass` in environments that differ in nothing else, by turns, made by "
            "`python -m perf.start`. Milliseconds: median and quartiles, and how far the median is from that "
            "without the hook.",
            "",
            table(["environment", "CPU, ms", "more", "time, ms", "more"], rows),
            "",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
