"""A program that `lineage replay` runs again: the rows that it keeps, where it writes, and what it reports.

The file that LINEAGE_REPLAY names says what to do, and the report in the sandbox what was done. Nothing here
knows Kafka.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from spark_agent.contract.replay_spec import (
    OUTPUTS,
    REPLAY_REPORT,
    SPEC_VARIABLE,
    decode_spec,
    started_fields,
)
from spark_agent.emitter.errors import LineageApiError

__all__ = ["ReplayedProgram", "replayed_program"]

_NEVER_ASKED = "the program did not ask LineageApi.keep about its rows"
#: How a source was read of which the program asked. Its rows keep their numbers.
_KEPT = "kept"


def replayed_program(application_id: str) -> ReplayedProgram | None:
    """The replay that this process is, None if it is none. Raises LineageApiError where it cannot be read."""
    path = os.environ.get(SPEC_VARIABLE)
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            spec = decode_spec(file.read())
    except (OSError, ValueError) as error:
        raise LineageApiError(f"the replay's spec {path} cannot be read: {error}") from None
    if spec["mode"] == "replace":
        raise LineageApiError("--replace is for Spark jobs: a program without Spark reads its rows itself")
    return ReplayedProgram(spec, application_id)


class ReplayedProgram:
    """One execution in a replay. It is an application of its own, whose id is `application_id`."""

    def __init__(self, spec: Mapping[str, Any], program_id: str) -> None:
        self._spec, self._sandbox = spec, str(spec["sandbox"]).rstrip("/")
        unique = f"{spec['replay']}-{spec['round']}-{os.urandom(4).hex()}"
        self.application_id = f"{program_id[:120]}.replay-{unique}"
        named = [source for source in spec["sources"] if not source["whole"]]
        self._rows = {(source["node"], source["name"]): _rows_of(source) for source in named}
        self._names = {source["node"]: source["name"] for source in named}
        self._asked: set[int] = set()
        self._sources: dict[int, str] = {}
        self._sinks: list[dict[str, Any]] = []
        self._report = os.path.join(self._sandbox, REPLAY_REPORT)
        #: Does the report of another execution stand there, whose rows are meant?
        self._is_other = os.path.exists(self._report)
        self.write()

    def started(self) -> dict[str, Any]:
        """What `application_started` says of it."""
        return started_fields(self._spec)

    def keeps(self, node: int, name: str, partition: int, row: int) -> bool:
        """Is the row of a source among those that the replay is about?"""
        self._sources[node] = name
        self._asked.add(node)
        rows = self._rows.get((node, name))
        if self._is_other or rows is None:
            return True
        is_named = any(first <= row < first + count for first, count in rows.get(partition, ()))
        return bool(is_named == (self._spec["mode"] == "only"))

    def output_path(self, node: int, name: str, path: str) -> str:
        """The file of the sandbox that is written instead of `path`."""
        folder = os.path.join(self._sandbox, OUTPUTS, f"{node}-output")
        os.makedirs(folder, exist_ok=True)
        sink = {"node": node, "name": name, "call_site": "", "format": "text"}
        entry = {**sink, "path": os.path.abspath(path), "to": folder}
        if entry not in self._sinks:
            self._sinks.append(entry)
            self.write()
        return os.path.join(folder, os.path.basename(path) or "output")

    def write(self, sources: Mapping[int, str] | None = None) -> None:
        """Write the report, with the names of all sources at the end of the program."""
        if self._is_other:
            return
        named = {**self._sources, **(sources or {})}
        report = {
            "application": self.application_id,
            "sources": [self._source(node, name) for node, name in sorted(named.items())],
            "sinks": self._sinks,
            "skipped": [],
            "skipped_total": 0,
            "differences": [],
        }
        draft = f"{self._report}.tmp"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(report, file, ensure_ascii=False)
        os.replace(draft, self._report)

    def _source(self, node: int, name: str) -> dict[str, Any]:
        is_meant = (node, name) in self._rows
        way = _KEPT if is_meant and node in self._asked else "whole"
        other = self._names.get(node)
        not_meant = "the row set does not name it" if other is None else f"it was {other} in the original"
        why = None if way == _KEPT else _NEVER_ASKED if is_meant else not_meant
        return {"node": node, "name": name, "call_site": "", "way": way, "why": why}


def _rows_of(source: Mapping[str, Any]) -> dict[int, list[list[int]]]:
    return {split["split"]: split["positions"] for split in source.get("splits", ())}
