"""Writes `run.sh`: the command of a job, on saved rows, in a folder that looks as that of the original. Pure.

The saved files stand where the job expects its inputs, seen from the folder in which the command was given.
So paths that are relative, or are words of the command, lead to them. One that the program itself names from
the root leads to the original: nobody but the program can change it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

__all__ = ["SavedJob", "run_script"]

_ENABLED, _DISABLED = "spark.lineage.enabled=true", "spark.lineage.enabled=false"
_HEAD = """#!/bin/sh
# Runs the job on the rows that are saved here, without lineage, and marks the row that was explained.
# Its outputs are in the folder `job`. Exit code 3: the row did not come out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$here/job"
"""
_SHOWN = """
is_there=0
for file in {output}/part-* {output}; do
  [ -f "$file" ] || continue
  awk 'NR == FNR {{ asked[$0]; next }}
       {{ print ($0 in asked ? "=> " : "   ") $0; if ($0 in asked) found = 1 }}
       END {{ exit !found }}' "$here"/{asked} "$file" && is_there=1
done
[ "$is_there" = 1 ] || {{ echo "the row did not come out again" >&2; exit 3; }}
"""


@dataclass(frozen=True, slots=True)
class SavedJob:
    """`words` were given in the folder `where`. `inputs`: path -> its copy, below the folder of the script.

    `outputs` are what it writes. `asked`: output -> the file with the texts of the rows that were asked for.
    """

    words: Sequence[str]
    where: Path
    inputs: Mapping[str, str]
    outputs: Sequence[str]
    asked: Mapping[str, str]


def run_script(job: SavedJob) -> str:
    """The script."""
    inputs = {path: copy for path, copy in sorted(job.inputs.items()) if _plain(path).startswith("/")}
    places = _Places(job.where, (*inputs, *job.outputs))
    where, program, *words = str(job.where), *job.words
    folders = {places.of(where), *map(places.above, (*inputs, *job.outputs))}
    links = [f'ln -s "$here"/{quote(copy)} {places.of(path)}' for path, copy in inputs.items()]
    links += [f"# The job reads {path} where it is." for path in sorted(job.inputs.keys() - inputs.keys())]
    command = " ".join((places.program(program), *map(places.word, words)))
    shown = [
        _SHOWN.format(output=places.of(output), asked=quote(asked))
        for output, asked in sorted(job.asked.items())
    ]
    lines = [_HEAD, *(f"mkdir -p {folder}" for folder in sorted(folders)), *links, f"cd {places.of(where)}"]
    return "\n".join([*lines, command, *shown])


class _Places:
    """Paths of the original, as words of the script."""

    def __init__(self, where: Path, named: Iterable[str]) -> None:
        """`named` are inputs and outputs, in the folder `where` or anywhere else."""
        self._where = str(where)
        self._named = tuple(map(_plain, named))
        self._base = os.path.commonpath([self._where, *(str(Path(path).parent) for path in self._named)])

    def of(self, path: str) -> str:
        below = os.path.relpath(_plain(path), self._base)
        return '"$here"/job' + ("" if below == "." else f"/{quote(below)}")

    def above(self, path: str) -> str:
        return self.of(str(Path(_plain(path)).parent))

    def program(self, word: str) -> str:
        return quote(self._whole(word) if "/" in word else word)

    def word(self, word: str) -> str:
        """A word behind the program. Paths of the job lead to saved files; others stay where they are."""
        if word == _ENABLED:
            return _DISABLED
        name, sign, value = word.partition("=")
        if sign and "/" not in name and self._is_of_job(value):
            return quote(name + sign) + self.of(self._whole(value))
        if self._is_of_job(word):
            return self.of(self._whole(word))
        whole = self._whole(word)
        return quote(whole if not word.startswith("-") and Path(whole).is_file() else word)

    def _whole(self, word: str) -> str:
        return os.path.normpath(Path(self._where, _plain(word)))

    def _is_of_job(self, word: str) -> bool:
        """Does it name an input or an output, or a folder above one?"""
        if not word or word.startswith("-") or "://" in _plain(word):
            return False
        whole = self._whole(word)
        return whole != "/" and any(path == whole or path.startswith(f"{whole}/") for path in self._named)


def _plain(path: str) -> str:
    """Without the scheme of local files."""
    for scheme in ("file://", "file:"):
        if path.startswith(scheme):
            return path[len(scheme) :]
    return path
