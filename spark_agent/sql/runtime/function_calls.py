"""Lets workers of Python say on which row a user's function has failed, by the way in which it is pickled.

Knows nothing of queries. A replay, whose workers may write nothing outside of its sandbox, does without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent.driver.monkeypatch import like
from spark_agent.worker.function_failures import Attended

if TYPE_CHECKING:
    from spark_agent.driver.monkeypatch import Patches


def install(patches: Patches) -> None:
    """Patch what pickles the functions of `udf` and its like."""
    from pyspark.sql import udf

    patches.replace(udf, "_wrap_function", _wrap_function(udf._wrap_function))


def _wrap_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """What has no type of results is none for rows: a source of data, or a function for tables."""

    def _wrap_function(sc: Any, func: Any, *type_of_results: Any, **named: Any) -> Any:
        is_for_rows = callable(func) and bool(type_of_results or named)
        return original(sc, Attended(func) if is_for_rows else func, *type_of_results, **named)

    return like(original, _wrap_function)
