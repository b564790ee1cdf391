from __future__ import annotations

import pytest

from lineage_service.lineage import Direction
from lineage_service.tracing.files.file_nodes import nodes_meant

BACKWARD: Direction = "backward"
FORWARD: Direction = "forward"


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
    assert nodes_meant(kinds, direction) == meant
