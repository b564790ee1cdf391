"""From the first command of a fresh clone to a traced row: docs/tutorial.md, timed block by block.

Follows the page in a clone of the last commit, in a home of its own, up to the first `lineage trace` that
answers. The first round fills the caches of pip, npm and of the servers' jars, and is not counted: what is
left out is the download, and nothing else. Writes `perf/results/first-row-DATE.json` and `.md`. Does not
measure a reader.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from perf.capture.__main__ import about_machine
from perf.capture.drivers import ROOT
from perf.tables import publish, table

TUTORIAL = ROOT / "docs" / "tutorial.md"
CACHES = ROOT / ".cache" / "first-row"
#: A `lineage trace` is asked again for so long: lineage arrives a little later than the job ends.
DEADLINE_S = 300.0
END = "-- this block has ended --"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.first_row", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="counted rounds, behind one that is not (2)")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results")
    parser.add_argument("--note", default="")
    options = parser.parse_args(argv)
    figures = about_machine("perf.first_row", options.note)
    rounds = [one_round() for _ in range(1 + options.rounds)][1:]
    figures |= {"Python": sys.version.split()[0], "rounds": options.rounds, "seconds": rounds}
    publish(options.out, "first-row", figures, page(figures))
    return 0


def blocks() -> list[str]:
    """The commands of the page, block by block, up to the first trace."""
    commands: list[str] = re.findall(r"^```sh\n(.*?)^```$", TUTORIAL.read_text("utf-8"), re.M | re.S)
    [last, *_] = [number for number, text in enumerate(commands) if "lineage trace" in text]
    return commands[: last + 1]


def title(block: str) -> str:
    """What stands for a block in the table: the command of it that a reader waits for."""
    lines = [line for line in block.splitlines() if not line.startswith(("mkdir", "cd ", "cat > ", ". "))]
    names = ("spark-submit", "lineage trace", "lineage up", "make wheel")
    commands = [name for line in lines for name in names if line.startswith(name)]
    return " and ".join(f"`{name}`" for name in commands) or "the job's files"


def one_round() -> dict[str, float]:
    """Seconds of each block, by its title."""
    for name in ("pip", "npm", "jars"):
        (CACHES / name).mkdir(parents=True, exist_ok=True)
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="first-row-") as base:
        clone, home = Path(base, "clone"), Path(base, "home")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        data = home / ".local" / "share" / "lineage-master"
        data.mkdir(parents=True)
        (data / "jars").symlink_to(CACHES / "jars")
        shell = Shell(clone, home)
        try:
            for block in blocks():
                begin = time.monotonic()
                while not shell.run(block):
                    if "lineage trace" not in block or time.monotonic() > begin + DEADLINE_S:
                        sys.exit(f"perf.first_row: this failed:\n{block}\n{shell.errors.read_text()[-3000:]}")
                    time.sleep(0.2)
                seconds[title(block)] = time.monotonic() - begin
        finally:
            shell.run("lineage down; kill $(jobs -p); wait")
            shell.end()
    return seconds


class Shell:
    """One bash of somebody who has just cloned the repository, with the caches of earlier rounds."""

    def __init__(self, clone: Path, home: Path) -> None:
        self.errors = home / "errors.log"
        own = str(Path(sys.executable).parent)
        path = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part != own]
        base = Path(sys.base_prefix, "bin")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(
                ("LINEAGE_", "SPARK_", "PYSPARK_", "PYTHON", "VIRTUAL_ENV", "MAKE", "XDG_")
            )
        }
        self._process = subprocess.Popen(
            [shutil.which("bash") or "/bin/bash"],
            cwd=clone,
            env={
                **kept,
                "HOME": str(home),
                "PATH": os.pathsep.join([str(base), *path]),
                "PIP_CACHE_DIR": str(CACHES / "pip"),
                "npm_config_cache": str(CACHES / "npm"),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, commands: str) -> bool:
        """Did the last command of a block end with 0?"""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{{ {commands.rstrip()}\n}} 2>> {self.errors}\necho; echo {END!r} $?\n")
        stdin.flush()
        for line in stdout:
            if line.startswith(END):
                return line.split()[-1] == "0"
        return False

    def end(self) -> None:
        self._process.communicate()


def page(figures: dict[str, object]) -> str:
    rounds = figures["seconds"]
    assert isinstance(rounds, list)
    rows = [
        [
            name,
            *(f"{seconds[name]:.1f}" for seconds in rounds),
            f"{statistics.median(s[name] for s in rounds):.1f}",
        ]
        for name in rounds[0]
    ]
    totals = [sum(seconds.values()) for seconds in rounds]
    rows.append(["together", *(f"{total:.1f}" for total in totals), f"{statistics.median(totals):.1f}"])
    head = ["block", *(f"round {number + 1}, s" for number in range(len(rounds))), "median, s"]
    return "\n".join(
        [
            "# From the first command of a fresh clone to a traced row",
            "",
            "The blocks of docs/tutorial.md in a clone and a home of their own: `python -m perf.first_row`.",
            "Seconds, without the downloads: an earlier round, which is not counted, has filled the caches",
            "of pip, npm and of the servers' jars.",
            "",
            table(head, rows),
            "",
            *(f"- {name}: {value}" for name, value in figures.items() if name != "seconds"),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
