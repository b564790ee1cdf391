"""The Kafka client of a process, with no more of its package than a Python worker needs.

`confluent_kafka` loads asyncio and more that has nothing to do with sending: 30 ms of each worker that is
started. Its extension module, which has the producer, takes 2 ms.
"""

from __future__ import annotations

import contextlib
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

_PACKAGE, _EXTENSION = "confluent_kafka", "confluent_kafka.cimpl"

#: The extension module, where it was loaded by itself. Module state, as every loaded module is.
_extension: Any = None


def load_alone() -> None:
    """Load the extension module by itself, if it is there and nobody has loaded the package yet.

    Not for processes in which another thread may import at the same time. A job that imports the package
    later gets the very same classes: the module does not stay in `sys.modules`.
    """
    global _extension
    if _extension is not None or _PACKAGE in sys.modules:
        return
    with contextlib.suppress(ImportError, ValueError):  # said where something is to be sent
        package = find_spec(_PACKAGE)
        folders = package.submodule_search_locations if package is not None else None
        spec = PathFinder.find_spec(_EXTENSION, folders) if folders else None
        if spec is None or spec.loader is None:
            return
        try:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
        finally:
            sys.modules.pop(_EXTENSION, None)
        if hasattr(module, "Producer"):
            _extension = module


def producer(conf: dict[str, Any]) -> Any:
    """A new producer. Raises ImportError where there is no Kafka client."""
    if _extension is not None:
        return _extension.Producer(conf)
    from confluent_kafka import Producer  # a C extension: never imported before it is needed

    return Producer(conf)
