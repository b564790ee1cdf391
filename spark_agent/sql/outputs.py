"""Where a query writes, and which rows of which file its records have become."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from spark_agent import partitions
from spark_agent.sql.catalyst import Plan

#: part-00000-<uuid>-c000.snappy.parquet, part-00000-<uuid>_00000.c000.parquet of a bucket
_PART = re.compile(r"part-([0-9]{5,})-([0-9a-fA-F-]{36})(?:_[0-9]+)?[-.]c([0-9]+)\.")


@dataclass(frozen=True)
class Output:
    """Files that a command writes below a path."""

    path: str
    dataset: dict[str, str]
    before: frozenset[str]  # names that were there before

    def files(self) -> list[dict[str, Any]]:
        """The file of each partition; none of those that wrote several, or that the driver cannot see."""
        by_split: dict[int, list[str]] = defaultdict(list)
        for name in sorted(_names(self.path) - self.before):
            match = _PART.match(name)
            if match is not None:
                by_split[int(match[1])].append(f"{self.path}/{name}")
        return [
            partitions.part_file(split, paths[0])
            for split, paths in sorted(by_split.items())
            if len(paths) == 1
        ]


def of_command(command: Plan) -> Output | None:
    """Where a command writes; None where that is no folder of files."""
    if str(command.getClass().getSimpleName()) != "InsertIntoHadoopFsRelationCommand":
        return None
    path = partitions.local_path(str(command.outputPath().toString()))
    format = str(command.fileFormat().toString()).lower()
    header = command.options().get("header")
    if format == "csv" and header.isDefined() and str(header.get()).lower() == "true":
        format = "csv+header"
    return Output(path, partitions.dataset(path, format), _names(path))


def _names(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except (OSError, ValueError):
        return frozenset()
