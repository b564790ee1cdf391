"""What ran an application again: replays, influences and sifts whose sandboxes are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from lineage_service.lineage import Influence, Replay, Replays, Result, Sift
from lineage_service.replays.sandbox import INFLUENCE_FILE, RESULT_FILE, SIFT_FILE, Sandbox, Sandboxes
from lineage_service.result_json import read_result

__all__ = ["replays_of"]

R = TypeVar("R", bound=Result)
#: Rows of an influence or a sift that are listed here.
_MOST_ROWS = 20


def replays_of(home: Path, application_id: str) -> Replays:
    """The newest first. Those that run, or ended without a result, are none."""
    sandboxes = Sandboxes(home).all()
    return Replays(
        application_id=application_id,
        replays=tuple(one for one in _results(Replay, sandboxes, RESULT_FILE) if one.of == application_id),
        influences=tuple(
            replace(influence, inputs=influence.inputs[:_MOST_ROWS])
            for influence in _results(Influence, sandboxes, INFLUENCE_FILE)
            if influence.application_id == application_id
        ),
        sifts=tuple(
            replace(sift, rows=sift.rows[:_MOST_ROWS], outputs=sift.outputs[:_MOST_ROWS])
            for sift in _results(Sift, sandboxes, SIFT_FILE)
            if sift.application_id == application_id
        ),
    )


def _results(kind: type[R], sandboxes: Sequence[Sandbox], name: str) -> Iterator[R]:
    for sandbox in sandboxes:
        try:
            result = read_result(kind, (sandbox.folder / name).read_bytes())
        except OSError:
            continue
        if result is not None:
            yield result
