"""The values of broadcast variables, as far as they are known before the user's code loads them."""

from __future__ import annotations

import functools
import os
import pickle
from typing import Any

from spark_agent.worker.reading.static_lookup import Unknown, module_of, static_attribute

#: A larger file is not read: what kind of container it holds is known by its first bytes.
MAX_BYTES = 1 << 20
_CONTAINERS = (b"}", b"]", b"\x8f")  # a dictionary, a list, a set
#: In place of a container with unknown parts.
_UNKNOWN_PARTS = {None: object()}


def is_broadcast(value: Any) -> bool:
    return module_of(type(value)) in ("pyspark.core.broadcast", "pyspark.broadcast")


def value_of(broadcast: Any) -> Any:
    """The value if it was loaded, or else something that is like it."""
    try:
        return static_attribute(broadcast, "_value")
    except Unknown:
        path = static_attribute(broadcast, "_path")
    if type(path) is not str:
        raise Unknown
    try:
        return _in_file(path)
    except (OSError, pickle.UnpicklingError, EOFError, ValueError):
        raise Unknown from None


@functools.lru_cache(maxsize=16)
def _in_file(path: str) -> Any:
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size <= MAX_BYTES:
            return _Plain(file).load()
        head = file.read(16)
    # The protocol in two bytes; a frame has a code and eight bytes for its size.
    first = head[11:12] if head[2:3] == b"\x95" else head[2:3]
    if first not in _CONTAINERS:
        raise Unknown
    return _UNKNOWN_PARTS


class _Plain(pickle.Unpickler):
    """Reads constants and containers. Objects of classes would run the user's code."""

    def find_class(self, _module: str, _name: str) -> Any:
        raise Unknown
