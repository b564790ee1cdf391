"""Whether explained rows alone give their records again: one run of the job by PySpark without lineage.

Nothing of the product decides here: the job is its file, the rows are those of the inputs' files, and the
output is compared as text.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from perf.capture.drivers import JobError
from perf.explain.asking import Start
from perf.explain.cases import Workload
from perf.explain.stores import plain_run


class Explained(Protocol):
    """A start, and (file, row) of the inputs that explain it. `total`: how many these are."""

    @property
    def start(self) -> Start: ...

    @property
    def rows(self) -> tuple[tuple[Path, str], ...]: ...

    @property
    def total(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Of so many explanations so many gave their record again."""

    tested: int
    verified: int
    rows: int


def proof(
    input_file: Path, workload: Workload, explained: Sequence[Explained], folder: Path, *, memory: str
) -> Proof:
    """Raises JobError where a row is not in its file, or the job fails."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    by_file: dict[Path, list[str]] = defaultdict(list)
    for number, explanation in enumerate(explained):
        if len(explanation.rows) != explanation.total:
            raise JobError(f"{explanation.start}: {explanation.total} rows, {len(explanation.rows)} listed")
        for path, text in explanation.rows:
            by_file[path].append(workload.mark(_mark(number), text))
    source, output = folder / "input.txt", folder / "output"
    _write(source, by_file.pop(input_file, []))
    if workload.reads:
        read = [line for path in sorted(by_file) for line in by_file.pop(path)]
        _write(output / workload.reads / "part-00000", read)
    if by_file:
        raise JobError(f"rows of files that the job does not read: {sorted(map(str, by_file))[:3]}")
    plain_run(workload, source, output, folder / "job.log", memory=memory)
    lines = {
        line for part in (output / workload.sink).glob("part-*") for line in part.read_text().splitlines()
    }
    verified = sum(
        workload.mark_output(_mark(number), explanation.start.text) in lines
        for number, explanation in enumerate(explained)
    )
    return Proof(
        tested=len(explained), verified=verified, rows=sum(explanation.total for explanation in explained)
    )


def _mark(number: int) -> str:
    return f"x{number}."


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
