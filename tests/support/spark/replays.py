"""Runs a program as a replay, without the command that does so: makes its spec, and reads its sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from spark_agent.contract.row_sets import ranges_of
from tests.support.spark.application import part_rows

#: Of the application that is replayed. No replay asks for it.
ORIGINAL = "local-1795263429425"

Source = dict[str, Any]


def split_lines(path: Path, partitions: int) -> list[list[int]]:
    """The rows of a text file that each partition of textFile(path, partitions) has, by Hadoop's rules."""
    data = path.read_bytes()
    starts, at = [], 0
    for line in data.splitlines(keepends=True):
        starts.append(at)
        at += len(line)
    size = max(1, len(data) // max(partitions, 1))
    ends, left = [], len(data)
    while left / size > 1.1:
        ends.append(len(data) - left + size)
        left -= size
    if left:
        ends.append(len(data))
    rows: list[list[int]] = [[] for _ in ends]
    for row, start in enumerate(starts):
        rows[next(split for split, end in enumerate(ends) if start <= end)].append(row)
    return rows


def site_of(program: Path, text: str) -> str:
    """FILE:LINE of the one line of a program that has this text."""
    (line,) = [
        number for number, line in enumerate(program.read_text("utf-8").splitlines(), 1) if text in line
    ]
    return f"{program}:{line}"


def text_source(
    node: int, site: str, path: Path, partitions: int, rows: Collection[int], *, is_literal: bool
) -> Source:
    """The source of a spec that names these rows of a text file."""
    rows_of = split_lines(path, partitions)
    lines = path.read_text("utf-8").split("\n")
    meant = [[row for row in of_split if row in rows] for of_split in rows_of]
    stat = path.stat()
    source: Source = {
        "node": node,
        "name": "textFile",
        "call_site": site,
        "whole": False,
        "path": str(path),
        "partitions": len(rows_of),
        "total": sum(map(len, rows_of)),
        "files": [
            {
                "path": str(path),
                "rows": ranges_of(rows),
                "size": stat.st_size,
                "modified": stat.st_mtime_ns // 1_000_000,
            }
        ],
        "splits": [
            {"split": split, "positions": ranges_of(rows_of[split].index(row) for row in of_split)}
            for split, of_split in enumerate(meant)
            if of_split
        ],
    }
    if is_literal:
        source["texts"] = {
            str(split): [lines[row] for row in of_split] for split, of_split in enumerate(meant) if of_split
        }
    return source


def replaced_source(node: int, site: str, path: Path, partitions: int, texts: Mapping[int, str]) -> Source:
    """The source of a spec that replaces the texts of these rows."""
    source = text_source(node, site, path, partitions, texts, is_literal=False)
    replaced: dict[str, dict[str, str]] = {}
    for split, rows in enumerate(split_lines(path, partitions)):
        for row in sorted(set(rows) & set(texts)):
            replaced.setdefault(str(split), {})[str(rows.index(row))] = texts[row]
    return {**source, "replaced": replaced}


@dataclass(frozen=True)
class Replayed:
    """What became of a replay."""

    sandbox: Path
    process: subprocess.CompletedProcess[str]

    @cached_property
    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.sandbox / "report.json").read_text("utf-8"))
        return report

    def folder(self, path: Path | str) -> Path:
        """Where it wrote what the job wanted to write to `path`."""
        (to,) = [sink["to"] for sink in self.report["sinks"] if sink["path"] == str(path)]
        return Path(to)

    def texts(self, path: Path | str) -> Counter[str]:
        """The rows of such a text output."""
        return texts_in(self.folder(path))

    def ways(self) -> dict[int, str]:
        return {source["node"]: source["way"] for source in self.report["sources"]}


def texts_in(folder: Path) -> Counter[str]:
    assert (folder / "_SUCCESS").exists(), folder
    return Counter(text for _, _, text in part_rows(folder))


def replay(
    command: Sequence[str],
    sandbox: Path,
    mode: str,
    sources: Sequence[Source],
    conf: Mapping[str, str],
    **more: Any,
) -> Replayed:
    """Run a program (the arguments of Python) as a replay. `conf` is Spark's, `more` further fields."""
    (sandbox / "out").mkdir(parents=True)
    (sandbox / "tmp").mkdir()
    sandbox.chmod(0o700)
    spec = {
        "version": 1,
        "replay": sandbox.name,
        "of": ORIGINAL,
        "mode": mode,
        "strategy": "rows",
        "round": 0,
        "sandbox": str(sandbox),
        "sources": list(sources),
        "protected": [],
        **more,
    }
    (sandbox / "spec.json").write_text(json.dumps(spec), "utf-8")
    return Replayed(sandbox, run_program(command, conf, {"LINEAGE_REPLAY": str(sandbox / "spec.json")}))


def run_program(
    command: Sequence[str], conf: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program with this conf of Spark."""
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=800,
        env={**program_environment(conf), **(environment or {})},
    )


def program_environment(conf: Mapping[str, str]) -> dict[str, str]:
    """That of a program with this conf of Spark."""
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    settings = {**quiet, "spark.default.parallelism": "3", **conf}
    arguments = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    return {**os.environ, "PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell"}


def write_silent_spec(folder: Path, sources: list[dict[str, Any]], *, is_compact: bool = False) -> None:
    """The spec of a run that sends no lineage, for a process that runs a program several times."""
    spec = {
        "version": 1,
        "replay": "1",
        "of": ORIGINAL,
        "mode": "only" if sources else "all",
        "strategy": "rows",
        "round": 0,
        "sandbox": str(folder),
        "sources": sources,
        "protected": [],
        "silent": True,
        "compact": is_compact,
    }
    (folder / "spec.json").write_text(json.dumps(spec))
