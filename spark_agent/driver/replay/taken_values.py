"""What Spark has given a program in the driver: its functions may use it, and then depend on more rows.

Actions of RDDs are known by their nodes. Here are the others: accumulators, observations, and whatever a
method of a DataFrame gives that is not for Spark again. Promises to notice too much rather than too little.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from spark_agent.driver.monkeypatch import Patches, frame_class, like

__all__ = ["TakenValues"]

#: Packages that reach the JVM's DataFrames by themselves.
_READERS = ("pyspark.ml.base", "pyspark.mllib.common", "pyspark.pandas")
_OF_SPARK = "pyspark."
#: Classes of Spark's whose objects hold values.
_HOLDERS = ("Row", "Observation", "DenseVector", "SparseVector", "DenseMatrix", "SparseMatrix")


class TakenValues:
    """Of one application."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    @property
    def names(self) -> list[str]:
        """What gave them, in the order of names."""
        return sorted({*self._names, *(name for name in _READERS if name in sys.modules)})

    def add(self, name: str) -> None:
        """An action of this name gives values."""
        self._names[name] = None

    def watch(self, patches: Patches) -> None:
        """Notice what gives values from now on, until the patches are undone."""
        from pyspark.accumulators import Accumulator
        from pyspark.sql.observation import Observation

        patches.replace(Accumulator, "value", self._noted(Accumulator.value, "an accumulator"))
        patches.replace(Observation, "get", self._noted(Observation.get, "an observation"))
        for owner in frame_class().__mro__:
            if owner.__module__.startswith(_OF_SPARK):
                for name, member in list(vars(owner).items()):
                    if isinstance(member, FunctionType) and not name.startswith("_"):
                        patches.replace(owner, name, self._watched(name, member))

    def _noted(self, original: Any, name: str) -> property:
        """A property that gives values."""

        def value(owner: Any) -> Any:
            self.add(name)
            return original.fget(owner)

        return property(value, original.fset, original.fdel, original.__doc__)

    def _watched(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """A method of DataFrames."""

        def method(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not _is_for_spark(result):
                self.add(name)
            return result

        return like(original, method)


def _is_for_spark(result: object) -> bool:
    """Is it nothing, or an object that only Spark can look into?"""
    if isinstance(result, (list, tuple)) and type(result) in (list, tuple):
        return bool(result) and all(map(_is_for_spark, result))
    kind = type(result)
    return result is None or (kind.__module__.startswith(_OF_SPARK) and kind.__name__ not in _HOLDERS)
