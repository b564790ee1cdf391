"""What stands in for the sources of a later application."""

from __future__ import annotations

from typing import Any

from lineage_service.replays.chain import StandIn, with_stand_ins


def source(node: int) -> dict[str, Any]:
    return {
        "node": node,
        "name": "textFile",
        "whole": False,
        "files": [{"path": "/data/out/part-00000", "rows": [[2, 1]]}],
        "splits": [{"split": 0, "positions": [[2, 1]]}],
    }


def test_a_source_with_a_stand_in_is_read_whole() -> None:
    [changed, same] = with_stand_ins(
        [source(0), source(4)], [StandIn(0, "/data/out", "/replays/1/out/3-save")]
    )
    assert same == source(4)
    assert (changed["whole"], changed["files"], changed["splits"]) == (True, [], [])
    assert changed["why"] == "it was read from /replays/1/out/3-save"
