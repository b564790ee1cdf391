"""What of an application was not followed at all: its holes, each told once, in the order of their coming.

A hole makes an application incomplete, for as long as it is kept: no answer may pass over it. A bound (known
records, with others beside them) is none. Promises that there are few, whatever a job does. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

#: So many different reasons are told of. One more says that there are others.
MOST = 50
#: Of a text: a reason is a sentence, and what it quotes (an error, a class) may be long.
_MOST_CHARACTERS = 500
_MORE = f"more than {MOST} different things were not followed: the others are not named"


class Gaps:
    """The holes of one application. `tell(reason, node)` is called once for each."""

    def __init__(self, tell: Callable[[str, int | None], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self.reasons: list[str] = []

    def add(self, reason: str, node: int | None = None) -> None:
        """`node` is the number of the node that stands for what was not followed, if there is one."""
        reason = reason[:_MOST_CHARACTERS]
        with self._lock:
            if reason in self.reasons or len(self.reasons) > MOST:
                return
            if len(self.reasons) == MOST:
                reason, node = _MORE, None
            self.reasons.append(reason)
        self._tell(reason, node)
