"""Which record an error of a task is about: noted by the operator whose function raised it, found at the end.

An operator keeps a `CulpritNote` in a variable of the frame in which it pulls records and calls a function.
The frames that an error has passed are in its traceback, and so are their notes. A filled note names the
record: the outermost one, since an error that a program raises again and again carries older ones further in.
Where all are empty, the error came from before the innermost of these operators.
So nothing is held here of an error that a user's code has caught, and a record that goes well costs nothing.
"""

from __future__ import annotations

import contextlib
import opcode
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, GeneratorType, TracebackType
from typing import Any, NamedTuple

Variables = Mapping[str, Any]

#: In place of a node: what takes the records that leave the chain.
BEHIND = -1
_NO_RECORD = object()
#: Who reads what a task is given, and writes what leaves it.
_SERIALIZERS = (
    "pyspark.serializers",
    "spark_agent.worker.serializer",
    "spark_agent.worker.batch_serializers",
    "spark_agent.worker.text_reader",
)
_LOADING = ("load_stream", "_load_stream_without_unbatching", "loads", "_read_with_length", "_rows")


class Culprit(NamedTuple):
    """The record at which an operator failed: the input at `position` of `node`.

    If it is not certain, it is one of those from `first` to `position`. Without a position it may be any
    record that the run has read.
    """

    node: int
    position: int | None
    is_certain: bool = False
    record: tuple[Any, ...] = ()  # the record itself, if the frame has it
    first: int = 0


class CulpritNote:
    """A context for the pulling of records and the calls of functions with them, in one frame.

    `position_in` says from the variables of the frame which input it was, `is_certain_in` whether it alone
    may have caused the error. If not, it may be one from `first` on. `depth`: how many frames further in the
    records are pulled.
    """

    __slots__ = ("_is_certain_in", "culprit", "depth", "first", "node", "position_in")

    def __init__(
        self,
        node: int,
        position_in: Callable[[Variables], int | None] = lambda _variables: None,
        *,
        is_certain_in: Callable[[Variables, str], bool] = lambda _variables, _instruction: True,
        depth: int = 0,
        first: int = 0,
    ) -> None:
        self.node, self.first = node, first
        self.culprit: Culprit | None = None
        self.position_in, self.depth = position_in, depth
        self._is_certain_in = is_certain_in

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, passed: TracebackType | None
    ) -> None:
        if passed is not None and kind is not GeneratorExit:
            with contextlib.suppress(Exception):  # an agent bug is no reason to hide the user's error
                self._note(passed)

    def _note(self, passed: TracebackType) -> None:
        for _ in range(self.depth):
            passed = passed.tb_next or passed
        instruction = instruction_at(passed)
        if instruction == "FOR_ITER":  # the record before did no harm
            return
        variables = passed.tb_frame.f_locals
        is_certain = self._is_certain_in(variables, instruction)
        self.fill(self.position_in(variables), is_certain=is_certain)

    def fill(self, position: int | None, *, is_certain: bool = True) -> None:
        self.culprit = Culprit(self.node, position, is_certain, first=self.first)


@dataclass(slots=True)
class Stage:
    """One function of a chain, as far as an error is concerned that no operator has noted."""

    node: int
    #: How many inputs have been pulled; None if it is not known.
    pulled: Callable[[], int] | None = None
    #: Do its own notes say what its function raised?
    has_notes: bool = False
    #: The input whose lazy result is being pulled, and that result.
    lazy: Callable[[], tuple[int, Any] | None] = lambda: None
    #: Is the row that was read last the one at hand?
    is_at_row: Callable[[], bool] = lambda: False
    #: The input that its function is at while it runs, where its notes say it only of a function that failed.
    at: Callable[[], int] | None = None
    #: Is what it is at made of the record that the run has read last?
    is_by_input: bool = False
    #: Of the generator that the function gave: its code, and the id of its frame, which is not held here.
    code: CodeType | None = None
    frame: int = 0

    def gave(self, result: Any) -> None:
        """Note how a generator that a user's function gave is known in a traceback."""
        if isinstance(result, GeneratorType) and result.gi_frame is not None:
            self.code, self.frame = result.gi_code, id(result.gi_frame)

    def is_in(self, frames: Sequence[FrameType]) -> bool:
        """Has an error with these frames passed the generator?"""
        return any(id(frame) == self.frame and frame.f_code is self.code for frame in frames)


def instruction_at(entry: TracebackType) -> str:
    """The name of the instruction at which the frame of a traceback's entry was left."""
    return _instruction(entry.tb_frame.f_code.co_code, entry.tb_lasti)


def instruction_in(frame: FrameType) -> str:
    """The name of the instruction at which a frame is."""
    return _instruction(frame.f_code.co_code, frame.f_lasti)


def _instruction(code: bytes, at: int) -> str:
    while at > 0 and opcode.opname[code[at]] == "CACHE":  # it belongs to the instruction before
        at -= 2
    return opcode.opname[code[at]]


def culprit_of(error: BaseException, stages: Sequence[Stage], input_node: int, written: int) -> Culprit:
    """The record that `error` is about, which has just left the chain of `stages`.

    An error that led to it counts if this one is not noted. `written`: how many records have left the chain.
    """
    suspected: Culprit | None = None
    for led in _chain(error):
        frames = [frame for frame, _ in traceback.walk_tb(led.__traceback__)]
        noted = _noted(frames)
        if isinstance(noted, Culprit):
            return noted
        if suspected is None:
            suspected = _suspected(frames, noted, stages, input_node, written)
    assert suspected is not None
    return suspected


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    led: BaseException | None = error
    while led is not None and id(led) not in seen:
        seen.add(id(led))
        yield led
        led = led.__cause__ or led.__context__


def _noted(frames: Sequence[FrameType]) -> Culprit | CulpritNote | None:
    """What is in the outermost note that is filled, else the innermost note."""
    innermost: CulpritNote | None = None
    for frame in frames:
        if module_of(frame).startswith("spark_agent.worker."):
            variables = frame.f_locals
            note = variables.get("note")
            if isinstance(note, CulpritNote):
                if note.culprit is not None:
                    return _with_record(note.culprit, variables)
                innermost = note
    return innermost


def module_of(frame: FrameType) -> str:
    """The name of the module whose code a frame runs."""
    return str(frame.f_globals.get("__name__", ""))


def _with_record(culprit: Culprit, variables: Variables) -> Culprit:
    record = variables.get("record", _NO_RECORD)
    return culprit if record is _NO_RECORD else culprit._replace(record=(record,))


# -- what nobody has noted ----------------------------------------------------------------------------


def _suspected(
    frames: Sequence[FrameType],
    passed: CulpritNote | None,
    stages: Sequence[Stage],
    input_node: int,
    written: int,
) -> Culprit:
    """Of an error that came from before the operator whose note is `passed`, or from the end of the chain."""
    if passed is None and (batch := _pickled(frames)) is not None:
        first = max(written - len(batch), 0)
        return Culprit(BEHIND, written - 1 if written else None, is_certain=len(batch) == 1, first=first)
    end = len(stages)
    if passed is not None:
        end = next((at for at, stage in enumerate(stages) if stage.node == passed.node), end)
    begin = next((at for at in range(end - 1, -1, -1) if stages[at].has_notes), -1)
    silent = stages[begin + 1 : end]
    lazy = stages[begin].lazy() if begin >= 0 else None
    if lazy is not None and (not silent or _has_raised(lazy[1], frames)):
        return Culprit(stages[begin].node, lazy[0], is_certain=True)
    if (not silent and begin < 0) or any(map(_is_reader, frames)):
        return Culprit(input_node, None)
    if not silent:
        return Culprit(BEHIND if passed is None else passed.node, None)
    return _of_silent(frames, silent, is_alone=lazy is None)


def _has_raised(result: Any, frames: Sequence[FrameType]) -> bool:
    is_ended = isinstance(result, GeneratorType) and result.gi_frame is None
    return is_ended and any(frame.f_code is result.gi_code for frame in frames)


def _of_silent(frames: Sequence[FrameType], silent: Sequence[Stage], *, is_alone: bool) -> Culprit:
    """Of functions that note nothing: the innermost whose frame the error has passed, else the last one.

    `is_alone`: what stands before these functions did not raise. Where it is not sure whose function raised,
    a record may have got lost in one before.
    """
    running = [stage for stage in silent if stage.is_in(frames)]
    stage = running[0] if running else silent[-1]
    count = 0 if stage.pulled is None else stage.pulled()
    is_first = is_alone and stage is silent[0]
    is_known = bool(running) or (stage.code is None and len(silent) == 1)
    if count == 0 or not (is_known and is_first):
        return Culprit(stage.node, None)
    return Culprit(stage.node, count - 1, stage.is_at_row())


def _pickled(frames: Sequence[FrameType]) -> Sequence[Any] | None:
    """The batch that was being pickled when the error came."""
    for frame in frames:
        if module_of(frame) not in _SERIALIZERS:
            return None
        if frame.f_code.co_name == "dumps" and module_of(frame) == "pyspark.serializers":
            batch = frame.f_locals.get("obj")
            return batch if isinstance(batch, list) else [batch]
    return None


def _is_reader(frame: FrameType) -> bool:
    """Does it read what the task is given?"""
    return module_of(frame) in _SERIALIZERS and frame.f_code.co_name in _LOADING
