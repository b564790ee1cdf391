"""A folder with data, a home and a working folder, in which a hostile script may run; and a digest of it all.

The digest is the oracle of the guard: bytes, names, modes, times of change and inodes of whatever is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_agent.contract.replay_notes import read_notes

ROOT = Path(__file__).parents[3]
#: Runs a script in a replay whose kernel has no fence.
UNCONFINED = Path(__file__).parent / "unconfined.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a script ended, and what was noted."""

    exit_code: int
    output: str
    notes: Mapping[str, Any]
    #: Paths whose digest differs, with what they were and are.
    changed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def refused(self) -> str:
        """All that was refused, as text."""
        return "\n".join(f"{note['what']} {note['path']} {note['where']}" for note in self.notes["refused"])


class Playground:
    """`data` with an input and an old output, `work` with a file of the user's, `home`, and a sandbox."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.work, self.home = folder / "data", folder / "work", folder / "home"
        self.sandbox = folder / "sandbox"
        for made in (self.data / "out", self.data / "empty", self.work / "sub", self.home, self.sandbox):
            made.mkdir(parents=True)
        (self.data / "in.txt").write_text("one\ntwo\nthree\n")
        (self.data / "out" / "part-00000").write_text("old\n")
        (self.data / "out" / "_SUCCESS").write_text("")
        (self.data / "link").symlink_to("in.txt")
        os.link(self.data / "in.txt", self.data / "hard")
        (self.work / "notes.txt").write_text("mine\n")
        (self.home / ".profile").write_text("export A=1\n")

    def spec(self, *, runs: int = 0, **fields: Any) -> Path:
        """Write the spec of a replay of all rows; with `runs` also those of so many in one process."""
        spec: dict[str, Any] = {
            "version": 1,
            "replay": "hostile",
            "of": "local-1",
            "mode": "all",
            "strategy": "rows",
            "round": 0,
            "sandbox": str(self.sandbox),
            "sources": [],
            "protected": [str(self.data / "in.txt"), str(self.data / "out")],
            "outputs": [],
            **fields,
        }
        path = self.sandbox / "spec.json"
        path.write_text(json.dumps(spec))
        for number in range(1, runs + 1):
            folder = self.sandbox / "runs" / str(number)
            (folder / "out").mkdir(parents=True)
            (folder / "spec.json").write_text(json.dumps({**spec, "sandbox": str(folder), "silent": True}))
        if runs:
            (self.sandbox / "runs" / "over").touch()
        return path

    def environment(self, spec: Path, variable: str = "LINEAGE_REPLAY") -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
        return kept | {
            variable: str(spec),
            "HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
        }

    def run(
        self,
        text: str,
        *arguments: str,
        interpreter: Sequence[str] = (sys.executable,),
        is_confined: bool = True,
        timeout: float = 300,
        runs: int = 0,
        **fields: Any,
    ) -> Outcome:
        """Run a script as a replay. Its arguments are the folder of the data, and `arguments`.

        With `runs` it runs so many times in one process, as in a sift.
        """
        script = self.work / "job.py"
        script.write_text(text)
        environment = self.environment(
            self.spec(runs=runs, **fields), "LINEAGE_REPLAY" if is_confined else "UNCONFINED_REPLAY"
        )
        runner = [*interpreter] if is_confined else [*interpreter, str(UNCONFINED)]
        runner += ["-m", "spark_agent.driver.replay.rerun"] if runs else []
        before = self.digest()
        done = subprocess.run(
            [*runner, str(script), str(self.data), *arguments],
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
        after = self.digest()
        changed = {
            path: (before.get(path), after.get(path))
            for path in before.keys() | after.keys()
            if before.get(path) != after.get(path)
        }
        return Outcome(
            exit_code=done.returncode,
            output=done.stdout,
            notes=read_notes(str(self.sandbox)),
            changed=changed,
        )

    def digest(self) -> dict[str, Any]:
        """Of everything below the playground that is not the sandbox's."""
        return {
            str(path.relative_to(self.folder)): _digest(path)
            for path in [self.folder, *sorted(self.folder.rglob("*"))]
            if path != self.sandbox and self.sandbox not in path.parents
        }


def _names(path: Path) -> list[str] | None:
    return sorted(child.name for child in path.iterdir()) if path.is_dir() else None


def _digest(path: Path) -> tuple[Any, ...]:
    state = path.lstat()
    if path.is_symlink():
        content: Any = str(path.readlink())
    else:
        content = path.read_bytes() if path.is_file() else _names(path)
    attributes = () if path.is_symlink() else tuple(os.listxattr(path))
    return state.st_mode, state.st_ino, state.st_nlink, state.st_size, state.st_mtime_ns, attributes, content
