from __future__ import annotations

import pytest

from lineage_service.lineage import Direction
from lineage_service.tracing.files.file_nodes import FileHolder, nodes_meant

BACKWARD: Direction = "backward"
FORWARD: Direction = "forward"
OLD, NEW = (10, 1_000), (12, 2_000)


@pytest.mark.parametrize(
    ("kinds", "direction", "meant"),
    [
        ({3: "source"}, BACKWARD, [3]),
        ({3: "source"}, FORWARD, [3]),
        ({8: "sink"}, BACKWARD, [8]),
        ({8: "sink"}, FORWARD, [8]),
        # Read back: it was made by the sink, and went on from both.
        ({8: "sink", 9: "source"}, BACKWARD, [8]),
        ({8: "sink", 9: "source", 12: "source"}, FORWARD, [8, 9, 12]),
        # Read, then written anew: who read before has read another file.
        ({2: "source", 8: "sink"}, BACKWARD, [8]),
        ({2: "source", 8: "sink", 9: "source"}, FORWARD, [8, 9]),
        # Written twice: what is there is of the last.
        ({4: "sink", 5: "source", 8: "sink"}, BACKWARD, [8]),
        ({4: "sink", 5: "source", 8: "sink"}, FORWARD, [8]),
        # Read twice.
        ({5: "source", 2: "source"}, BACKWARD, [2, 5]),
        ({5: "source", 2: "source"}, FORWARD, [2, 5]),
    ],
)
def test_who_is_meant_by_a_row_of_a_file(
    kinds: dict[int, str], direction: Direction, meant: list[int]
) -> None:
    assert nodes_meant({number: FileHolder(kind) for number, kind in kinds.items()}, direction) == meant


def test_of_two_writers_the_later_one_counts_whichever_began_first() -> None:
    holders = {4: FileHolder("sink", NEW), 6: FileHolder("source", NEW), 8: FileHolder("sink", OLD)}
    assert nodes_meant(holders, BACKWARD) == [4]
    assert nodes_meant(holders, FORWARD) == [4, 6]
    holders[9] = FileHolder("sink")  # of which nothing is known but its number
    assert nodes_meant(holders, BACKWARD) == [9]


def test_who_was_made_before_the_file_and_has_read_it_is_meant_too() -> None:
    holders = {2: FileHolder("source", NEW), 3: FileHolder("source", OLD), 8: FileHolder("sink", NEW)}
    assert nodes_meant(holders, FORWARD) == [8, 2]
    assert nodes_meant(holders, BACKWARD) == [8]


def test_who_knows_no_state_is_meant_by_its_number() -> None:
    holders = {2: FileHolder("source"), 8: FileHolder("sink"), 9: FileHolder("source", OLD)}
    assert nodes_meant(holders, FORWARD) == [8, 9]
