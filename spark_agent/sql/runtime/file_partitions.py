"""Publishes which parts of which files the partitions of scans and outputs are.

A partition is published again where another task has read more of it. Promises events that a broker takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from spark_agent import contract
from spark_agent.driver import partitions
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.tables import has_numbered_rows

#: Of the partitions of one event: a broker takes 900,000.
_MOST_BYTES = 800_000
#: How the formats begin whose scans name files by their paths; Spark's own name them by URIs.
_ICEBERG = "iceberg"


class FilePartitions:
    """Those of one application. Only the thread of `JvmEvents` publishes."""

    def __init__(self, emit: Callable[..., None]) -> None:
        self._emit = emit
        self._scans: dict[int, str] = {}  # nodes of scans of files -> formats
        self._published: dict[tuple[int, int], int] = {}  # (node, split) -> parts of files

    def add_scans(self, nodes: Iterable[PlanNode]) -> None:
        """These nodes are about to be published: remember which of them read files."""
        self._scans.update(
            (node.number, node.dataset["format"])
            for node in nodes
            if node.kind == "source" and node.dataset is not None and has_numbered_rows(node.dataset)
        )

    def has_files(self, node: int) -> bool:
        """Is it a scan of files, or of topics, whose records are known by their offsets?"""
        return node in self._scans

    def scanned(self, node: int, split: int, parts: list[dict[str, Any]]) -> None:
        """A task has read these parts of files."""
        if parts and self.has_files(node):
            is_escaped = not self._scans[node].startswith(_ICEBERG)
            parts = described_parts(parts, is_escaped=is_escaped)
            self.publish(node, [{"split": split, "parts": parts}])

    def publish(self, node: int, file_partitions: list[dict[str, Any]]) -> None:
        fresh = []
        for partition in file_partitions:
            key, parts = (node, partition["split"]), len(partition.get("parts", ()))
            if parts > self._published.get(key, -1):
                self._published[key] = parts
                fresh.append(partition)
        for batch in _batches(fresh):
            self._emit(contract.PARTITIONS, node=node, partitions=batch)


def described_parts(parts: Iterable[dict[str, Any]], *, is_escaped: bool = True) -> list[dict[str, Any]]:
    """The parts of files that a task reports, as events have them: with the files as they are now.

    `is_escaped`: are their paths those of URIs?
    """
    described = []
    for part in parts:
        path = partitions.local_path(unquote(part["path"]) if is_escaped else part["path"])
        fields = {"path": path, "start": part["start"], "length": part["length"], "first": part["first"]}
        if "row" in part:
            fields["row"] = part["row"]
        described.append(fields if part["start"] is None else {**fields, **partitions.status(path)})
    return described


def _batches(file_partitions: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """As many partitions at once as fit into an event; none of one that does not fit by itself."""
    batch: list[dict[str, Any]] = []
    size = 0
    for partition in file_partitions:
        more = len(json.dumps(partition).encode())
        if size + more > _MOST_BYTES and batch:
            yield batch
            batch, size = [], 0
        if more <= _MOST_BYTES:
            batch.append(partition)
            size += more
    if batch:
        yield batch
