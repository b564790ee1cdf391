"""A job that is worth skipping, as evidence: each test changes one thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lineage_service.completeness import Completeness
from lineage_service.triggering.certain.evidence import Evidence
from lineage_service.triggering.certain.executions import Execution
from lineage_service.triggering.certain.file_looks import FileLook
from lineage_service.triggering.certain.given_inputs import GivenInput, WrittenOutput
from lineage_service.triggering.waves.question import Question
from lineage_service.triggering.waves.wave_history import SeenInput, Wave

#: Unix ms: the files are written, the job is asked about, it begins and ends, and it is asked about again.
WRITTEN, ASKED, BEGAN, ENDED, NOW = (1_795_000_000_000 + minute * 60_000 for minute in (0, 60, 61, 62, 600))
CODE = "sha256:1"


def execution(**changes: Any) -> Execution:
    values: dict[str, Any] = {
        "application_id": "app-1",
        "wave": None,
        "code": CODE,
        "code_files": ("/jobs/job.py",),
        "began": BEGAN,
        "ended": ENDED,
        "state": "ended",
        "completeness": Completeness(
            starts=1, has_ended=True, missing_runs=0, missing_events=0, events=1, runs=()
        ),
        "nodes": {},
        "datasets": {},
    }
    return Execution(**{**values, **changes})


def look(path: str, files: Mapping[str, tuple[int, int]], **changes: Any) -> FileLook:
    """Of files: path -> (size, Unix ms)."""
    newest = max(files.items(), key=lambda file: file[1][1], default=None)
    values: dict[str, Any] = {
        "path": path,
        "digest": repr(sorted(files.items())),
        "count": len(files),
        "bytes": sum(size for size, _ in files.values()),
        "newest_ns": None if newest is None else newest[1][1] * 1_000_000,
        "newest": None if newest is None else newest[0],
        "at_ns": NOW * 1_000_000,
        "is_local": True,
        "files": dict(files),
    }
    if changes.get("version") is not None:
        values["files"] = {}  # those of a table are not listed
    return FileLook(**{**values, **changes})


INPUTS = {"/in/a": (10, WRITTEN), "/in/b": (20, WRITTEN)}
OUTPUTS = {"/out/part-00000": (5, ENDED - 1)}


def unchanged(**changes: Any) -> Evidence:
    """Nobody was asked before: what the last execution read is all that there is."""
    values: dict[str, Any] = {
        "question": Question(job="nightly"),
        "now_ms": NOW,
        "executions": (execution(),),
        "inputs": (GivenInput(node=0, name="textFile /in", paths=("/in",), location="/in", files=INPUTS),),
        "outputs": (WrittenOutput(node=2, name="/out", path="/out", files=OUTPUTS),),
        "looks": {"/in": look("/in", INPUTS), "/out": look("/out", OUTPUTS)},
        "code": CODE,
    }
    return Evidence(**{**values, **changes})


def with_look(evidence: Evidence, at: FileLook | str, path: str = "/in") -> Evidence:
    return replace(evidence, looks={**evidence.looks, path: at})


def wave(name: str = "w1", time: int = ASKED, **changes: Any) -> Wave:
    """An answer that was given before the execution, upon the same inputs."""
    values: dict[str, Any] = {
        "job": "nightly",
        "wave": name,
        "number": 0,
        "time": time,
        "phase": "certain",
        "decision": "run",
        "reason": "never_ran",
        "why": "it was never seen",
        "inputs": {"/in": seen(INPUTS)},
    }
    return Wave(**{**values, **changes})


def seen(files: Mapping[str, tuple[int, int]], **changes: Any) -> SeenInput:
    at = look("/in", files)
    values: dict[str, Any] = {
        "digest": at.digest,
        "count": at.count,
        "bytes": at.bytes,
        "newest_ns": at.newest_ns,
        "is_settled": True,
    }
    return SeenInput(**{**values, **changes})


def others(paths: Sequence[str]) -> tuple[GivenInput, ...]:
    return tuple(GivenInput(node=0, name=f"textFile {path}", paths=(path,), location=path) for path in paths)
