"""Where in the user's program an operation is called, and how often it was called there before: its site.

A site is the path of the program's frames, each with the instruction that it is at, and the loops around
these (`code_loops`). Equal paths are equal sites. Promises that the frames of PySpark, of Python's library
and of installed packages outside of the program's own code are left out, and that a recursion leaves its last
turn only. A recursion, `map(f, ...)`, `functools.reduce` and a cell that runs again have no loop in any
bytecode: they show as further visits of one path. Changes no frame, and keeps none.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import Any, NamedTuple

from spark_agent.driver.call_sites import is_cell, is_installed, is_of_user, named_place
from spark_agent.driver.code_loops import CodeLoops

#: What Python calls the code of `python -c`. Launchers start so: it is the program if there is no other.
COMMAND = "<string>"
#: Of a path that is longer, the innermost frames.
MAX_FRAMES = 32
#: How many functions a recursion may pass in one turn.
MAX_PERIOD = 8
#: Of more different paths and instructions than these, the further ones have no site.
MAX_SITES, MAX_POINTS = 50_000, 50_000


class _Point(NamedTuple):
    """An instruction of the program."""

    code: CodeType
    text: str  # FILE:LINE@OFFSET
    loops: tuple[str, ...]  # around it in its own code, FILE:LINE
    headers: tuple[str, ...]  # of these loops, FILE:LINE@OFFSET


@dataclass(frozen=True, slots=True)
class Site:
    """`path` and `loops` from the outermost to the innermost, `visit` from 0."""

    path: tuple[str, ...]
    loops: tuple[str, ...]
    visit: int
    #: The innermost loop with the way to it; all calls in one loop have the same. Empty outside of loops.
    loop: tuple[str, ...] = ()

    @property
    def is_repeated(self) -> bool:
        """Is it in a loop, as far as is known by now?"""
        return bool(self.loops) or self.visit > 0

    def event_field(self) -> dict[str, Any]:
        """What `node_registered` has of it."""
        return {"path": self.path, "loops": self.loops, "visit": self.visit}


class Sites:
    """The sites of one application, and how often each was visited. Thread-safe."""

    def __init__(self) -> None:
        self._codes: dict[CodeType, CodeLoops] = {}
        self._points: dict[tuple[int, int], _Point] = {}  # by the id of its code, which it holds
        self._in_cells: dict[tuple[CodeType, int], _Point] = {}
        self._numbers: dict[str, dict[CodeType, int]] = {}
        self._visited: dict[tuple[str, ...], Site] = {}  # with the next visit
        self._lock = threading.RLock()  # a finalizer may call an operation meanwhile

    def visit(self, innermost: FrameType | None = None) -> Site | None:
        """This thread's call out of the user's program, counted; None of none, and if there are too many.

        With the `innermost` frame of a thread that waits, that thread's call.
        """
        frame = innermost or sys._getframe(2)
        with self._lock:
            points = self._points_of_program(frame) if len(self._points) < MAX_POINTS else []
            if not points:
                return None
            path = tuple(point.text for point in points)
            site = self._visited.get(path)
            if site is None:
                if len(self._visited) >= MAX_SITES:
                    return None
                loops = tuple(loop for point in points for loop in point.loops)
                site = Site(path, loops, 0, _innermost_loop(points, path))
            self._visited[path] = replace(site, visit=site.visit + 1)
            return site

    def _points_of_program(self, innermost: FrameType) -> list[_Point]:
        points: list[_Point] = []
        own = 0  # so many, with the outermost of the program's own code
        frame: FrameType | None = innermost
        while frame is not None:
            file = frame.f_code.co_filename
            if is_of_user(file):
                points.append(self._point(frame.f_code, frame.f_lasti))
                if file != COMMAND and not is_installed(file):
                    own = len(points)
            frame = frame.f_back
        program = points[: own or len(points)]
        return _folded(program[::-1])[-MAX_FRAMES:]

    def _point(self, code: CodeType, last: int) -> _Point:
        point = self._points.get((id(code), last))
        if point is None:
            point = self._points[id(code), last] = self._new_point(code, last)
        return point

    def _new_point(self, code: CodeType, last: int) -> _Point:
        if code not in self._codes:
            self._codes[code] = CodeLoops(code)
        of_code, file = self._codes[code], code.co_filename
        offset = of_code.instruction_at(last)
        if is_cell(file) and (code, offset) in self._in_cells:
            return self._in_cells[code, offset]._replace(code=code)  # its number is that of its first run
        loops = of_code.around(offset)
        lines = tuple(named_place(file, loop.line) for loop in loops)
        point = _Point(
            code,
            self._own_text(f"{named_place(file, of_code.line_of(offset))}@{offset}", code),
            lines,
            tuple(f"{line}@{loop.header}" for line, loop in zip(lines, loops, strict=True)),
        )
        if is_cell(file):
            self._in_cells[code, offset] = point
        return point

    def _own_text(self, text: str, code: CodeType) -> str:
        """`text`, and a number behind it where other code has it: two lambdas of a line, lines of a shell."""
        numbers = self._numbers.setdefault(text, {})
        number = numbers.setdefault(code, len(numbers) + 1)
        return text if number == 1 else f"{text}.{number}"


def _innermost_loop(points: list[_Point], path: tuple[str, ...]) -> tuple[str, ...]:
    for index in range(len(points) - 1, -1, -1):
        if points[index].headers:
            return *path[:index], *points[index].headers
    return ()


def _folded(points: list[_Point]) -> list[_Point]:
    """Without the turns of a recursion but the last: of f > g > f > g > h, what is innermost, f > g > h."""
    path: list[_Point] = []
    for point in points:
        path.append(point)
        for period in range(1, min(MAX_PERIOD, len(path) // 2) + 1):
            if _is_same(path[-2 * period : -period], path[-period:]):
                del path[-2 * period : -period]
                break
    for period in range(2, MAX_PERIOD + 1):  # a turn that is not over: f > g > f
        for begun in range(min(period, len(path) - period + 1) - 1, 0, -1):
            if _is_same(path[-period - begun : -period], path[-begun:]):
                del path[-period - begun : -begun]
                return path
    return path


def _is_same(points: list[_Point], others: list[_Point]) -> bool:
    return all(point.code is other.code for point, other in zip(points, others, strict=True))
