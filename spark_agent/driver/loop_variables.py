"""Which RDDs are versions of a variable that a loop hands from turn to turn: their records get digests.

A version is what an operation in a loop reads and was not made in the turn at hand: what there was before the
loop, and what an earlier turn has made. What is the same RDD in two turns is a constant of the loop, and is
no version any more. The last version is read behind the loop. Promises nothing but thrift: a digest too many
costs time, one too few makes an explanation longer.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from spark_agent.driver.nodes import Node
from spark_agent.driver.sites import Site

#: Of one version, so many chains take the digests, as where a turn joins it and unites it with what came out.
MAX_CHAINS = 2

_Call = tuple[tuple[str, ...], str]
"""The path of a site, and the operation there: several may be called by one instruction of a helper."""


@dataclass
class _Turn:
    first: int  # node that was made in it
    calls: dict[_Call, int] = field(default_factory=dict)  # with the visit


class LoopVariables:
    """Follows what the operations of one application read. Thread-safe: each thread has turns of its own."""

    def __init__(self) -> None:
        self._local = threading.local()
        #: What each input of an operation was at the last visit.
        self._read: dict[tuple[_Call, int], int] = {}
        self._made_at: set[_Call] = set()
        self._lock = threading.RLock()  # a finalizer may call an operation meanwhile

    def note(self, site: Site, name: str, inputs: Sequence[Node], newest: int) -> None:
        """The operation `name` at `site` reads `inputs`.

        `newest` is the last node that there was when the operation before it had ended, in this thread.
        """
        call = (site.path, name)
        turn = self._turn(site, call, newest)
        if turn is None:
            return
        with self._lock:
            for port, node in enumerate(inputs):
                before = self._read.get((call, port))
                self._read[call, port] = node.number
                if before == node.number:
                    node.digests_left = 0  # a constant
                elif self._is_version(site, turn, node):
                    node.digests_left = MAX_CHAINS

    def _turn(self, site: Site, call: _Call, newest: int) -> _Turn | None:
        """The turn of the innermost loop: it ends with the first call that it has had already.

        None if this very visit was noted.
        """
        turns: dict[tuple[str, ...], _Turn] | None = getattr(self._local, "turns", None)
        if turns is None:
            turns = self._local.turns = {}
        turn = turns.get(site.loop)
        if turn is not None and turn.calls.get(call) == site.visit:
            return None
        if turn is None or call in turn.calls:
            turn = turns[site.loop] = _Turn(newest + 1)
        turn.calls[call] = site.visit
        return turn

    def _is_version(self, site: Site, turn: _Turn, node: Node) -> bool:
        made_at = None if node.site is None else (node.site.path, node.name)
        is_of_loop = node.site is not None and node.site.is_repeated
        if site.is_repeated and node.number < turn.first:
            if made_at is not None and is_of_loop:
                self._made_at.add(made_at)
            return True
        is_behind = node.site is not None and (site.loop != node.site.loop or not site.is_repeated)
        return is_behind and made_at in self._made_at
