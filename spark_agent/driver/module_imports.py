"""Waits for a module that the user's program may import, or may never import.

Promises that the import itself stays as it is: what fails here is the waiting one's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from spark_agent.delivery.log import logger


def when_imported(name: str, action: Callable[[Any], None]) -> Callable[[], None]:
    """Call `action(module)` once this module has been loaded, or now. Gives what ends the waiting."""
    module = sys.modules.get(name)
    if module is not None:
        _attempt(action, module)
        return lambda: None
    finder = _Finder(name, action)
    sys.meta_path.insert(0, finder)
    return finder.remove


class _Finder:
    """Finds nothing itself: asks the other finders and wraps the loader of one module."""

    def __init__(self, name: str, action: Callable[[Any], None]) -> None:
        self._name, self._action = name, action

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        self.remove()
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = None if find is None else find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._wrap(spec.loader)
                return spec
        return None

    def _wrap(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _attempt(self._action, module)

        loader.exec_module = exec_module

    def remove(self) -> None:
        """Wait no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def _attempt(action: Callable[[Any], None], module: Any) -> None:
    try:
        action(module)
    except Exception:  # noqa: BLE001 - an agent bug: the module is there, as it is without the agent
        logger.debug("while %s was imported", module.__name__, exc_info=True)
