"""DStreams while lineage is on: they take an RDD's form in the JVM for the one that they expect.

What the function of a `transform` gives is handed to the JVM without its deserializer. Batches with headers
are read through a worker that takes these away; other RDDs go on as they are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.monkeypatch import is_rdd, like
from spark_agent.driver.rdd.batch_headers import has_headers, through_worker

if TYPE_CHECKING:
    from spark_agent.driver.session import Session


def install(session: Session) -> None:
    """Patch what the JVM calls for each interval of a stream."""
    from pyspark.streaming.util import TransformFunction

    session.patches.replace(TransformFunction, "call", _call(session, TransformFunction.call))


def _call(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, milliseconds: int, jrdds: Any) -> Any:
        def func(*args: Any) -> Any:
            result = self.func(*args)
            return through_worker(session, result) if is_rdd(result) and has_headers(result) else result

        another = copy.copy(self)  # intervals may be worked on side by side
        another.func = hiding(func)
        try:
            return original(another, milliseconds, jrdds)
        finally:
            self.failure = another.failure

    return like(original, hiding(call))
