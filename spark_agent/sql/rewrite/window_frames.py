"""Which rows of its partition the values of a row of a window are made of, by what its functions are.

Pure. The row itself always counts, so that a function which ranks it adds none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: So many single rows are cheaper than the ends of frames.
_FEW = 4
RANKED = "ranked among the rows of its partition"


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A function of a window. `kind` is as WindowFunctions.java says.

    `start` and `end` are those of its frame: a number of rows, the text of a literal, or None for no bound.
    """

    kind: str
    name: str
    unit: str | None  # rows or range
    start: int | str | None
    end: int | str | None
    offset: int | None
    ignores_nulls: bool

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> WindowFunction:
        return cls(start=fields.pop("from"), end=fields.pop("to"), **fields)

    @property
    def frame(self) -> dict[str, int | str | None] | None:
        """As the event of its node has it."""
        return None if self.unit is None else {"unit": self.unit, "from": self.start, "to": self.end}

    @property
    def sees_all(self) -> bool:
        return self.unit is not None and self.start is None and self.end is None


class Frame(NamedTuple):
    """All rows of it go into a value. `function` is one that has it; the ends are as in `FrameSpec`."""

    function: int
    is_rows: bool
    start: int | None
    end: int | None


@dataclass(slots=True)
class OtherRows:
    """The rows beside a row itself that go into its values.

    With `is_all` these are all rows of its partition; with a `reason` they are not known.
    """

    is_all: bool = False
    reason: str = ""
    distances: set[int] = field(default_factory=set)  # of single rows behind it; negative: before it
    picks: list[int] = field(default_factory=list)  # functions that give a row of their frame
    frames: list[Frame] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many rows at most are named one by one."""
        return len(self.distances) + len(self.picks)


def other_rows(functions: Sequence[WindowFunction], most: int = _FEW) -> OtherRows:
    """Frames of at most so many rows, and offsets up to that, are followed row by row."""
    rows, seen = OtherRows(), set[object]()
    for at, function in enumerate(functions):
        if function.kind == "offset" and function.offset is not None:
            _add_rows(rows, at, function.offset, function.offset, most)
        elif function.kind == "pick":
            same = (function.name, function.unit, function.start, function.end, function.offset)
            if function.ignores_nulls or same not in seen:
                rows.picks.append(at)
            seen.add(same)
        elif function.kind == "aggregate" and function.unit is not None:
            _add_frame(rows, at, function, most, seen)
        elif function.kind != "rank":
            rows.reason = f"which rows {function.name} takes its value from is not known"
    rows.distances.discard(0)
    return rows


def _add_rows(rows: OtherRows, at: int, start: int, end: int, most: int) -> None:
    new = rows.distances | set(range(start, end + 1)) if end - start < most else None
    if new is not None and len(new - {0}) <= most:
        rows.distances = new
    else:
        rows.frames.append(Frame(at, True, start, end))


def _add_frame(rows: OtherRows, at: int, function: WindowFunction, most: int, seen: set[object]) -> None:
    start, end, is_rows = function.start, function.end, function.unit == "rows"
    frame = (function.unit, start, end)
    if function.sees_all:
        rows.is_all = True
    elif is_rows and (isinstance(start, str) or isinstance(end, str)):
        rows.reason = f"the frame of {function.name} has an end that is no number"
    elif frame in seen:
        pass
    elif is_rows and isinstance(start, int) and isinstance(end, int):
        _add_rows(rows, at, start, end, most)
    elif is_rows:
        rows.frames.append(Frame(at, True, _number(start), _number(end)))
    else:
        bounds = (None if end_ is None else 0 for end_ in (start, end))
        rows.frames.append(Frame(at, False, *bounds))
    seen.add(frame)


def _number(end: int | str | None) -> int | None:
    return end if isinstance(end, int) else None


def frame_of(functions: Sequence[WindowFunction]) -> dict[str, int | str | None] | None:
    """The frame of a window, where all functions that take values of other rows have the same one."""
    frames = [function.frame for function in functions if function.kind != "rank"]
    return frames[0] if frames and all(frame == frames[0] for frame in frames) else None
