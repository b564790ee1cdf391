"""The replays of an application whose sandboxes are there."""

from __future__ import annotations

from pathlib import Path

from lineage_service.lineage import Replay, Replays
from lineage_service.replays.sandbox import RESULT_FILE, Sandbox, Sandboxes
from lineage_service.result_json import read_result

__all__ = ["replays_of"]


def replays_of(home: Path, application_id: str) -> Replays:
    """The newest first. Those that run, or ended without a result, are none."""
    results = (_result_of(sandbox) for sandbox in Sandboxes(home).all())
    return Replays(
        application_id=application_id,
        replays=tuple(result for result in results if result is not None and result.of == application_id),
    )


def _result_of(sandbox: Sandbox) -> Replay | None:
    try:
        return read_result(Replay, (sandbox.folder / RESULT_FILE).read_bytes())
    except OSError:
        return None
