"""A clean clone with the product installed out of it, as the tutorial's first block of commands says.

One for all tests of a session, whichever worker runs them: it takes minutes.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
TUTORIAL = ROOT / "docs" / "tutorial.md"
#: (commands, what the page says that the last of them prints, or None)
Step = tuple[str, str | None]
_DEADLINE_S = 1800  # half a minute of work each for wheel and pip, on machines that do much else


def steps(page: Path = TUTORIAL) -> list[Step]:
    """The commands of a page of the documentation, block by block."""
    blocks = re.findall(
        r"^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", page.read_text("utf-8"), re.M | re.S
    )
    return [(commands, printed or None) for commands, printed in blocks]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    folder: Path
    installed_by: str  # the commands that were run in it

    @property
    def bin(self) -> Path:
        return self.folder / "lineage-env" / "bin"

    @property
    def wheel(self) -> Path:
        (wheel,) = (self.folder / "dist").glob("*.whl")
        return wheel


def copy_of_work_tree(folder: Path) -> None:
    """What `git clone` would give if everything were committed that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():  # not one that is deleted and not committed
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def newcomers_environment(folder: Path, *, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Variables of a shell that knows nothing of the environment that runs the tests, but has its Python.

    `without` are commands that are nowhere on the PATH; `folder` is for links to those that are.
    """
    commands = folder / "commands"
    commands.mkdir(parents=True, exist_ok=True)
    python = commands / "python3"
    if not python.is_symlink():
        python.symlink_to(Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}"))
    own = str(Path(sys.executable).parent)
    path = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part != own]
    if without:
        path = [part for part in path if not any(Path(part, name).exists() for name in without)]
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("LINEAGE_", "SPARK_", "PYSPARK_", "PYTHON", "VIRTUAL_ENV"))
    }
    if without:
        kept.pop("JAVA_HOME", None)
    # Compiling what pip installs is half of its work, and of no use to what runs once.
    return {**kept, "PATH": os.pathsep.join([str(commands), *path]), "PIP_NO_COMPILE": "1"}


def installed_clone(base: Path, jars: Path) -> Clone:
    """The one clone below `base`, made by whoever comes first; `jars` are what was downloaded already."""
    folder, done = base / "clone", base / "clone-installed"
    commands, _ = steps()[0]
    with _locked(base / "clone.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            copy_of_work_tree(folder)
            (folder / ".cache" / "lineage").mkdir(parents=True)
            (folder / ".cache" / "lineage" / "jars").symlink_to(jars)
            ended = subprocess.run(
                ["/bin/bash", "-euc", commands],
                cwd=folder,
                env=newcomers_environment(base),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_DEADLINE_S,
            )
            assert ended.returncode == 0, ended.stdout[-4000:]
            done.write_text(commands)
        return Clone(folder=folder, installed_by=done.read_text())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
