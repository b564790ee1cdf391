"""`lineage consume` that kills itself: python -m tests.support.soak.crash POINT [flags of lineage consume].

POINT is `before:WHAT` or `after:WHAT`; WHAT is a table that is written, `graph`, `dead_letters` or `offsets`.
The first time that the process comes there it gets SIGKILL from itself. The service knows nothing of it: what
is wrapped here are the things that it writes with.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from lineage_service.cli import main as cli
from lineage_service.graph.neo4j_store import Neo4jGraph
from lineage_service.kafka.dead_letters import KafkaDeadLetters
from lineage_service.kafka.group_member import KafkaSubscription
from lineage_service.store import delta_table

#: In the order of the protocol of a batch (lineage_service/ingest/consumer.py).
PLACES = ("dead_letters", "flows", "records", "annotations", "blocks", "events", "graph", "offsets")
POINTS = tuple(f"{when}:{place}" for place in PLACES for when in ("before", "after"))


def main(point: str, flags: list[str]) -> int:
    when, _, place = point.partition(":")

    def dying(call: Callable[..., Any], is_it: Callable[..., bool] = lambda *_: True) -> Callable[..., Any]:
        """`call`, which dies before or after it does its work."""

        @wraps(call)
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if is_it(*arguments) and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*arguments, **options)
            if is_it(*arguments):
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return wrapped

    if place == "graph":
        Neo4jGraph.write_events = dying(Neo4jGraph.write_events)  # type: ignore[method-assign]
    elif place == "dead_letters":
        KafkaDeadLetters.send = dying(KafkaDeadLetters.send)  # type: ignore[method-assign]
    elif place == "offsets" and when == "before":
        KafkaSubscription.commit = dying(KafkaSubscription.commit)  # type: ignore[method-assign]
    elif place == "offsets":  # the broker's answer: a commit is asynchronous
        KafkaSubscription._on_commit = dying(KafkaSubscription._on_commit)  # type: ignore[method-assign]
    else:

        def is_it(delta: Any, *_: Any) -> bool:
            return str(delta.table_uri).rstrip("/").endswith(f"/{place}")

        delta_table.write_deltalake = dying(delta_table.write_deltalake, is_it)
    return cli.main(["consume", *flags])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
