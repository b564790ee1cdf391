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
    def _wrap_function(sc: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        return original(sc, Attended(func) if callable(func) else func, *args, **kwargs)

    return like(original, _wrap_function)
