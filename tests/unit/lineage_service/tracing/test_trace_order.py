"""In which order the applications of a trace are listed."""

from __future__ import annotations

import pytest

from lineage_service.lineage import Direction, TracedNode
from lineage_service.tracing.query.trace_results import along
from lineage_service.tracing.walk.linked_files import FileSplit

BACKWARD: Direction = "backward"


def nodes_of(application_id: str) -> tuple[TracedNode, ...]:
    about = {"application_id": application_id, "application_name": "", "name": "Scan", "kind": "source"}
    return (TracedNode(node_id=f"{application_id}#0", **about, exact=True, total=1, records=()),)


def split_of(application_id: str) -> FileSplit:
    place = {"path": "/f", "start": 0, "size": None, "modified": None}
    return FileSplit(application_id=application_id, began=0, node=0, partition=0, **place)


def order(reached: str, *links: str, direction: Direction = BACKWARD) -> str:
    """Applications are letters; a link `ab` says that b read what a wrote."""
    pairs = [(split_of(link[0]), split_of(link[1])) for link in links]
    listed = along(pairs, direction, [nodes_of(name) for name in reached])
    return "".join(nodes[0].application_id for nodes in listed)


@pytest.mark.parametrize(
    ("reached", "links", "direction", "expected"),
    [
        ("r", (), BACKWARD, "r"),
        ("rab", ("ar", "ba"), BACKWARD, "rab"),
        ("rxy", ("xr", "yr", "xy"), BACKWARD, "ryx"),
        ("rxy", ("rx", "ry", "yx"), "forward", "ryx"),
        ("rx", ("xr", "rx"), BACKWARD, "rx"),
        ("rxyz", ("xr", "yx", "xy", "zy"), BACKWARD, "rxyz"),
        ("ra", ("rr", "ar"), BACKWARD, "ra"),
    ],
)
def test_an_application_comes_behind_those_that_lead_to_it(
    reached: str, links: tuple[str, ...], direction: Direction, expected: str
) -> None:
    assert order(reached, *links, direction=direction) == expected
