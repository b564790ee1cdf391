"""The one table of what is explained: jobs, their inputs, and how explanations are tested together.

A proof runs the job as it is, by PySpark without lineage, on the explained rows alone. A thousand share one
run: the names in the rows of each get a mark in front that no other has. So their records never meet.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perf.capture.cases import WORKLOADS

_EXAMPLES = WORKLOADS.parents[1] / "examples"
DOCUMENTS = 65_000

Mark = Callable[[str, str], str]
"""(mark, a row) -> the row with the mark in front of each of its names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A job on one input file. `rows`: how many lines that has; 0: all of a kind that has an end."""

    name: str
    title: str
    job: Path
    kind: str  # of perf.workloads.generate
    rows: int = 0
    #: What the job is called with behind input and output.
    further: tuple[str, ...] = ()
    #: The folder of the output whose rows are explained.
    sink: str = "."
    #: What makes other inputs in the output first, without lineage.
    before: tuple[str, ...] = ()
    #: Folder of rows in the output that the job reads, too.
    reads: str = ""
    mark: Mark
    #: As `mark`, of a row of the output.
    mark_output: Mark
    #: Whether rows that decided a record are known to give it again.
    is_sufficient: bool = True
    #: Whether it is also asked with all rows of the input that have the first field of its output row.
    demands: bool = False

    def arguments(self, source: Path, output: Path, *, further: Sequence[str] | None = None) -> list[str]:
        return [str(source), str(output), *(self.further if further is None else further)]

    def input_file(self, folder: Path, seed: int) -> Path:
        """Made if it is not there yet."""
        path = folder / f"{self.kind}-{self.rows or 'all'}-{seed}.txt"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            rows = ["--rows", str(self.rows)] if self.rows else []
            command = [sys.executable, "-m", "perf.workloads.generate", self.kind, *rows]
            out = ["--seed", str(seed), "--out", str(path)]
            subprocess.run([*command, *out], check=True, cwd=WORKLOADS.parents[1])
        return path


def _fields(*marked: int, separator: str) -> Mark:
    """Marks these fields of a row."""

    def mark(mark: str, row: str) -> str:
        fields = row.split(separator)
        return separator.join(
            f"{mark}{field}" if number in marked else field for number, field in enumerate(fields)
        )

    return mark


def _document(mark: str, row: str) -> str:
    document, text = row.split("\t")
    return f"{mark}{document}\t{' '.join(f'{mark}{word}' for word in text.split(' '))}"


def _label(mark: str, row: str) -> str:
    """Of a pair as Python writes it."""
    return row.replace("'n", f"'{mark}n")


def _customer(mark: str, row: str) -> str:
    """Of a record, and of a pair of two."""
    is_pair = row.count(",") == 2
    return _fields(*((0, 1) if is_pair else (0,)), separator=",")(mark, row)


def workloads(edges: int, turns: int, most_rows: int | None = None) -> Mapping[str, Workload]:
    """By name. No input has more than `most_rows`."""
    documents = min(DOCUMENTS, most_rows or DOCUMENTS)
    table = (
        Workload(
            name="components",
            title=f"Connected components, {edges:,} edges, {turns} turns",
            job=WORKLOADS / "components.py",
            kind="grown-edges",
            rows=edges,
            further=(str(turns),),
            mark=_fields(0, 1, separator="\t"),
            mark_output=_label,
        ),
        Workload(
            name="customers",
            title="Records of customers in clusters, until nothing changes",
            job=_EXAMPLES / "customer_clusters.py",
            kind="customer-records",
            rows=most_rows or 0,
            before=("pairs",),
            further=("clusters",),
            sink="clusters",
            reads="pairs",
            mark=_customer,
            mark_output=_fields(0, 1, separator=","),
        ),
        Workload(
            name="matching",
            title="Stable matching, until nobody is refused",
            job=WORKLOADS / "matching.py",
            kind="ranked-pairs",
            rows=most_rows or 0,
            mark=_fields(0, 1, separator="\t"),
            mark_output=_fields(0, 1, separator=","),
            demands=True,
        ),
        Workload(
            name="unique-words",
            title=f"Words of one document only, {documents:,} documents",
            job=WORKLOADS / "unique_words.py",
            kind="zipf-documents",
            rows=documents,
            further=("rdd",),
            mark=_document,
            mark_output=_fields(0, 1, separator=","),
        ),
        Workload(
            name="unique-counts",
            title=f"How many such words a document has, {documents:,} documents",
            job=WORKLOADS / "unique_counts.py",
            kind="zipf-documents",
            rows=documents,
            mark=_document,
            mark_output=_fields(0, separator=","),
            is_sufficient=False,
        ),
    )
    return {workload.name: workload for workload in table}


NAMES = tuple(workloads(1, 1))
