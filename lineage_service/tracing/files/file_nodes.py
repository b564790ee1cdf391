"""Which of the nodes that read or wrote a file are meant where a trace begins at a row of it.

Pure. A job may read a file more than once, and read back what it wrote. No choice here loses a record: going
back there is one that made the row, going on there are all that took it.
"""

from __future__ import annotations

from collections.abc import Mapping

from lineage_service.lineage import Direction

__all__ = ["nodes_meant"]


def nodes_meant(kinds: Mapping[int, str], direction: Direction) -> list[int]:
    """The numbers of the nodes to begin at, of those with a file by their kinds; the one to name first.

    Nodes are numbered as they came. The file is what its last sink left; who read it before read another one.
    Backward a row is that sink's, or any source's: nothing is before these, so one that knows the row will
    do. Forward it is that sink's, whose file other applications may have read, and of each source behind it.
    """
    sinks = sorted(number for number, kind in kinds.items() if kind == "sink")
    sources = sorted(kinds.keys() - set(sinks))
    if direction == "backward":
        return sinks[-1:] or sources
    return [*sinks[-1:], *(number for number in sources if not sinks or number > sinks[-1])]
