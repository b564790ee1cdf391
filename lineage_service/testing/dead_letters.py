"""The in-memory twin of the dead letters: a list."""

from __future__ import annotations

from collections.abc import Sequence

from lineage_service.decode.batches import DeadLetter

__all__ = ["MemoryDeadLetters"]


class MemoryDeadLetters:
    """Dead letters in a list."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []

    def send(self, letters: Sequence[DeadLetter]) -> None:
        self.letters.extend(letters)
