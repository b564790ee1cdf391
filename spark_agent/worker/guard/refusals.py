"""What a replay refuses: the error that a script sees, and the note that the report is made of.

Promises one sentence: what was refused, of what, where in the user's program, that nothing was changed, and
what to do. The error is a PermissionError, as of a file that belongs to somebody else.
"""

from __future__ import annotations

import errno
from typing import Any

from spark_agent.contract.replay_notes import REPLAY_REFUSED, note
from spark_agent.worker.guard.places import place_of_user

__all__ = ["ADVICE", "Refusals", "ReplayRefused"]

#: What to do, unless something better is known.
ADVICE = "write below the temporary folder instead, or leave this step out of the script that is replayed"


class ReplayRefused(PermissionError):
    """A replay does not do this, since it may change what is not the replay's own."""

    def __init__(self, what: str, path: str = "", where: str = "", advice: str = ADVICE) -> None:
        self.what, self.path, self.where, self.advice = what, path, where, advice
        of_path = f" {path}" if path else ""
        at_place = f" at {where}" if where else ""
        self.sentence = f"{REPLAY_REFUSED}{what}{of_path}{at_place}; nothing was changed; {advice}"
        super().__init__(errno.EACCES, self.sentence)

    def __str__(self) -> str:
        return self.sentence

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.path, self.where, self.advice)


class Refusals:
    """Raises and notes, for the replay with this sandbox."""

    def __init__(self, sandbox: str) -> None:
        self._sandbox = sandbox
        self._noted: set[tuple[str, str]] = set()

    def refuse(self, what: str, path: str = "", advice: str = ADVICE) -> None:
        """Raises ReplayRefused, always."""
        error = ReplayRefused(what, path, place_of_user(), advice)
        note(self._sandbox, "refused", {"what": what, "path": path, "where": error.where})
        raise error

    def pretended(self, what: str, path: str) -> None:
        """That nothing was done, though the script goes on as if it had been."""
        note(self._sandbox, "pretended", {"what": what, "path": path, "where": place_of_user()})

    def connected(self, address: str) -> None:
        self._note_once("connection", address)

    def remark(self, sentence: str) -> None:
        self._note_once("remark", sentence)

    def _note_once(self, kind: str, text: str) -> None:
        if (kind, text) not in self._noted:
            self._noted.add((kind, text))
            note(self._sandbox, kind, text)
