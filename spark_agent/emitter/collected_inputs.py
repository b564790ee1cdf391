"""The inputs that an operation has collected for its next outputs: timed and tagged capture of Newt
(De, thesis, UCSD 2012, section 3.3.2).

An output comes from every input of its tag that was collected before it. What has been said of one output is
not said again while its tag collects more: so a running sum costs one flow for each input. Knows nothing of
records.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class _Tag(Generic[T]):
    """Different inputs in their order, and how many of them each output was linked to."""

    def __init__(self) -> None:
        self.inputs: list[T] = []
        self.seen: set[T] = set()
        self.linked: dict[str, int] = {}


class CollectedInputs(Generic[T]):
    """One set of inputs for each tag; None is a tag like any other."""

    def __init__(self) -> None:
        self._tags: dict[Hashable, _Tag[T]] = {}
        self.last: T | None = None

    def add(self, tag: Hashable, new: T) -> None:
        at = self._tags.setdefault(tag, _Tag())
        self.last = new
        if new not in at.seen:
            at.seen.add(new)
            at.inputs.append(new)

    def of(self, tag: Hashable) -> Sequence[T]:
        at = self._tags.get(tag)
        return () if at is None else at.inputs

    def take_new(self, tag: Hashable, output: str) -> Sequence[T]:
        """Those that `output` was not linked to yet; from now on it is."""
        at = self._tags.get(tag)
        if at is None:
            return ()
        first, at.linked[output] = at.linked.get(output, 0), len(at.inputs)
        return at.inputs[first:] if first else at.inputs

    def reset(self, tag: Hashable) -> None:
        self._tags.pop(tag, None)
