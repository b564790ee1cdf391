"""Whatever a job does to a file: a row is its last writer's, and goes on from who read what that wrote."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.files.file_nodes import FileHolder, nodes_meant

#: What happens to the file: it is written, read by an operation that is made for it, or by one made before.
STEPS = st.lists(st.sampled_from(("write", "read", "read early", "make")), max_size=12)


@given(STEPS)
def test_the_nodes_meant_are_the_last_writer_and_who_read_what_it_left(steps: list[str]) -> None:
    holders: dict[int, FileHolder] = {}
    made: list[int] = []  # operations that have not run yet
    version, writer, readers = (0, 0), None, set[int]()
    for number, step in enumerate(steps):
        if step == "write":
            version, writer, readers = (number, 1_000 * number), number, set()
            holders[number] = FileHolder("sink", version)
        elif step == "make":
            made.append(number)
        else:
            reader = made.pop(0) if step == "read early" and made else number
            readers.add(reader)
            holders[reader] = FileHolder("source", version)
    forward = nodes_meant(holders, "forward")
    backward = nodes_meant(holders, "backward")
    if writer is None:
        assert set(forward) == set(backward) == set(holders)
    else:
        assert forward[0] == writer
        assert set(forward) == {writer, *readers}
        assert backward == [writer]
    assert len(forward) == len(set(forward))
