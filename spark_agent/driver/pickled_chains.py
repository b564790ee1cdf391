"""The bytes that executors got of chains of operators, kept so that a function can run again as it was then.

PySpark pickles a function with the values of that moment, and a program may change them afterwards. Nothing
is pickled or copied here. Recipes hold what is kept, so it lives no longer than they do, and of all of it no
more than `MOST_BYTES`: the oldest bytes go first.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

from spark_agent.driver.monkeypatch import like

__all__ = ["MOST_BYTES", "MOST_OF_CHAIN", "PickledChain", "PickledChains", "PickledFunction"]

MOST_BYTES = 8 << 20
#: Of one chain. Of larger ones PySpark makes broadcast variables.
MOST_OF_CHAIN = 1 << 20


class PickledChain:
    """What one chain was pickled to; None once newer ones needed the space."""

    __slots__ = ("__weakref__", "data")

    def __init__(self, data: bytes) -> None:
        self.data: bytes | None = data


class PickledFunction(NamedTuple):
    """The operator `function` of the program's process, and its place in a chain that was pickled."""

    chain: PickledChain
    place: int
    function: Any


class PickledChains:
    """Of one application. Thread-safe."""

    def __init__(self) -> None:
        self._local = threading.local()
        #: By number: a chain that somebody has, and its bytes.
        self._kept: OrderedDict[int, tuple[weakref.ref[PickledChain], int]] = OrderedDict()
        self._bytes = 0
        self._numbers = itertools.count()
        #: Chains that nobody has any more: garbage is collected at any time, in any thread.
        self._gone: deque[int] = deque()
        self._lock = threading.Lock()

    def noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`_prepare_for_python_RDD` of PySpark, which pickles a chain."""

        def prepare(sc: Any, command: Any) -> Any:
            prepared = original(sc, command)
            self._local.data = prepared[0]
            return prepared

        return like(original, prepare)

    def latest(self) -> PickledChain | None:
        """The chain that this thread has just pickled; None if it is too large, or was asked for before."""
        data = getattr(self._local, "data", None)
        self._local.data = None
        if type(data) is not bytes or len(data) > MOST_OF_CHAIN:
            return None
        chain = PickledChain(data)
        with self._lock:
            number, gone = next(self._numbers), self._gone
            self._kept[number] = weakref.ref(chain, lambda _: gone.append(number)), len(data)
            self._bytes += len(data)
            self._make_room()
        return chain

    def _make_room(self) -> None:
        while self._gone:
            _, size = self._kept.pop(self._gone.popleft(), (None, 0))
            self._bytes -= size
        while self._bytes > MOST_BYTES:
            _, (reference, size) = self._kept.popitem(last=False)
            self._bytes -= size
            chain = reference()
            if chain is not None:
                chain.data = None
