"""Replaced attributes of PySpark's classes: put in place, and given back.

Knows nothing of lineage. `like` lets a replacement pass for the original where Spark and Python name it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Patches:
    """Replaced attributes and how to give them back."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []
        #: Ends what waits to patch more; called before the patches are undone.
        self.waiting: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        self._replaced.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    def undo(self) -> None:
        while self.waiting:
            self.waiting.pop()()
        while self._replaced:
            owner, name, original = self._replaced.pop()
            setattr(owner, name, original)


def rdd_module() -> Any:
    """The module that holds RDD and PipelinedRDD."""
    try:
        from pyspark.core import rdd
    except ImportError:  # PySpark 3.5
        from pyspark import rdd
    return rdd


def frame_class() -> Any:
    """The class of DataFrames that are not Spark Connect's."""
    try:
        from pyspark.sql.classic.dataframe import DataFrame
    except ImportError:  # PySpark 3.5
        from pyspark.sql import DataFrame
    return DataFrame


def is_rdd(value: object) -> bool:
    return isinstance(value, rdd_module().RDD)


def like(original: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` under the name and file of `original`: PySpark takes the first frame of its own as the call.

    Spark's UI shows that call and the user's line before it; with our file there it would show ours.
    """
    functools.update_wrapper(function, original)
    code = function.__code__
    original_code = original.__code__
    function.__code__ = code.replace(
        co_filename=original_code.co_filename,
        co_name=original_code.co_name,
        co_firstlineno=original_code.co_firstlineno,
    )
    return function
