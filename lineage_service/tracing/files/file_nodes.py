"""Which of the nodes that read or wrote a file are meant where a trace begins at a row of it.

Pure. A job may read a file more than once, and read back what it wrote. No choice here loses a record: going
back there is one that made the row, going on there are all that took it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lineage_service.lineage import Direction

__all__ = ["FileHolder", "nodes_meant"]


@dataclass(frozen=True, slots=True)
class FileHolder:
    """A node that read or wrote a file. `state` is the size and the time of the file that it knows.

    None: it knows none, or may have looked after the file had changed.
    """

    kind: str
    state: tuple[int, int] | None = None


def nodes_meant(holders: Mapping[int, FileHolder], direction: Direction) -> list[int]:
    """The numbers of the nodes to begin at, of those with a file; the one to name first.

    The file is what its last sink left: the one with the latest time where all times are known, else the one
    with the largest number, since nodes are numbered as they came. Backward a row is that sink's, or any
    source's: nothing is before these, so one that knows the row will do. Forward it is that sink's, whose
    file other applications may have read, and of each source that read what it left.
    """
    sinks = [number for number, holder in holders.items() if holder.kind == "sink"]
    sources = sorted(holders.keys() - set(sinks))
    last = _last_of(sinks, holders)
    if last is None:
        return sources
    if direction == "backward":
        return [last]
    return [last, *(number for number in sources if _has_read(number, last, holders))]


def _last_of(sinks: list[int], holders: Mapping[int, FileHolder]) -> int | None:
    states = {number: holders[number].state for number in sinks}
    times = {number: state[1] for number, state in states.items() if state is not None}
    are_known = len(times) == len(sinks)
    return max(sinks, key=lambda number: (times[number] if are_known else 0, number), default=None)


def _has_read(source: int, sink: int, holders: Mapping[int, FileHolder]) -> bool:
    """An operation may be made before a file is written, and be run afterwards: then its state says so."""
    state = holders[source].state
    return source > sink or (state is not None and state == holders[sink].state)
