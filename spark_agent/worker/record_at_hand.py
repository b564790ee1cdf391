"""Which record a task is at just now, as another thread sees it: by the frames of the task's thread.

The innermost frame of an operator has a `CulpritNote`, and stands at the call of its function: then the
record is the one that this function was given. Where it stands at its next input instead, a function further
in may be known by its own frame. In all other cases the task is at no record: it reads, writes or sorts.
Promises to hold no object of the task's, and to change none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import FrameType, GeneratorType
from typing import NamedTuple

from spark_agent.worker.culprits import CulpritNote, Stage, instruction_in, module_of
from spark_agent.worker.reading.static_lookup import variables_of

__all__ = ["AtHand", "record_at_hand"]

_OPERATORS = "spark_agent.worker."
#: What runs here waits for data, or handles many records at once.
_NOT_OF_A_RECORD = ("spark_agent.", "pyspark.serializers", "pyspark.shuffle", "pyspark.worker")
_AROUND_A_FUNCTION = "spark_agent.worker.derived_values"
_CALLING, _READING = ("CALL", "PRECALL"), "FOR_ITER"


class AtHand(NamedTuple):
    """The record at `position` of the inputs of `node`, whose function is at it."""

    node: int
    position: int


def record_at_hand(running: FrameType | None, stages: Sequence[Stage]) -> AtHand | None:
    """What the thread is at whose innermost frame is `running`; the chain of its task run has `stages`.

    May raise: what it looks at belongs to a thread that goes on.
    """
    inner: list[FrameType] = []  # the innermost first
    frame = running
    while frame is not None:
        if _may_have_note(frame):
            at_hand = _at_operator(frame, inner, stages)
            if at_hand is not _OTHER:
                return at_hand
        inner.append(frame)
        frame = frame.f_back
    return _of_functions(inner, stages)


#: The frame is none of an operator with a note.
_OTHER = AtHand(-1, -1)


def _may_have_note(frame: FrameType) -> bool:
    return "note" in frame.f_code.co_varnames and module_of(frame).startswith(_OPERATORS)


def _at_operator(frame: FrameType, inner: list[FrameType], stages: Sequence[Stage]) -> AtHand | None:
    """By the frame of an operator, which has called those of `inner`."""
    if not instruction_in(frame).startswith((*_CALLING, _READING)):
        return None
    variables = variables_of(frame)
    note = variables.get("note")
    if not isinstance(note, CulpritNote):
        return _OTHER
    called = [frame, *reversed(inner)]
    # The innermost of the operator's own frames: records may be pulled further in.
    own = max(at for at in range(min(note.depth + 1, len(called))) if at == 0 or _is_own(called[at]))
    instruction = instruction_in(called[own])
    if instruction == _READING:
        return _of_functions(inner, stages)
    if not instruction.startswith(_CALLING) or any(map(_is_of_many, called[own + 1 :])):
        return None
    stage = next((stage for stage in stages if stage.node == note.node), None)
    at = None if stage is None else stage.at
    position = note.position_in(variables) if at is None else at()
    return None if position is None or position < 0 else AtHand(note.node, position)


def _of_functions(inner: Sequence[FrameType], stages: Sequence[Stage]) -> AtHand | None:
    """By the frames of functions that no operator has called: they gave a generator, which is pulled."""
    if not inner or _is_of_many(inner[0]):
        return None
    return next(_known(inner, stages), None)


def _known(inner: Sequence[FrameType], stages: Sequence[Stage]) -> Iterator[AtHand]:
    for frame in inner:
        for stage in stages:
            if stage.is_in((frame,)) and stage.is_at_row() and stage.pulled is not None and stage.pulled():
                yield AtHand(stage.node, stage.pulled() - 1)
            lazy = stage.lazy()
            if lazy is not None and isinstance(lazy[1], GeneratorType) and lazy[1].gi_frame is frame:
                yield AtHand(stage.node, lazy[0])


def _is_own(frame: FrameType) -> bool:
    return module_of(frame).startswith(_OPERATORS)


def _is_of_many(frame: FrameType) -> bool:
    module = module_of(frame)
    return module.startswith(_NOT_OF_A_RECORD) and module != _AROUND_A_FUNCTION
