"""Which rows must come out: each as often as it was asked for, and numbers nearly so."""

from __future__ import annotations

import pytest

from lineage_service.lineage import AskedRecord
from lineage_service.replays.explain.asked_outputs import AskedOutputs

pytestmark = pytest.mark.unit


def asked(*texts: str, node: int = 8) -> AskedOutputs:
    return AskedOutputs(
        [
            AskedRecord(node=node, record_id=f"write#0#{at}", path=None, row=None, text=text, key=None)
            for at, text in enumerate(texts)
        ]
    )


@pytest.mark.parametrize(
    ("texts", "rows", "verdict"),
    [
        (["a,1"], ["b,2", "a,1"], "reproduced"),
        (["a,1", "a,1"], ["a,1"], "no"),
        (["a,1", "a,1"], ["a,1", "a,1"], "reproduced"),
        (["a,0.3"], ["a,0.30000000000000004"], "close"),
        (["a,0.3", "a,0.3"], ["a,0.3", "a,0.30000000000000004"], "close"),
        (["a,0.3"], ["a,0.31"], "no"),
        (["a,1"], [], "no"),
    ],
)
def test_rows_are_compared_as_multisets(texts: list[str], rows: list[str], verdict: str) -> None:
    assert asked(*texts).verdict({8: rows}) == verdict


def test_a_sink_that_wrote_nothing_gives_nothing() -> None:
    assert asked("a").verdict({9: ["a"]}) == "no"
