"""What the JVM reports of queries: one thread takes its lines in their order and hands them on.

Each line is a JSON object whose `type` says what it is: the manifest of an accepted task run, a task that
failed, the end of an execution, a gap, or of our own a mark or the end of a fit. Promises that a line that
cannot be read costs no other line.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from typing import Any

from spark_agent.sql.py4j_errors import in_short
from spark_agent.sql.runtime.executions import Executions

#: What the JVM waits at most for its next line before it looks whether the session has ended.
_POLL_MS = 500
#: What the end of an application waits at most for the lines that there are still.
_END_WAIT_S = 10


class JvmEvents:
    """Those of one application. `manifests` is the accumulator of the JVM that they arrive in."""

    def __init__(self, manifests: Any, executions: Executions, gap: Callable[[str], None]) -> None:
        self._manifests, self._executions, self._gap = manifests, executions, gap
        self._marks: dict[int, threading.Event] = {}
        self._mark_numbers = itertools.count()
        self._is_ended = threading.Event()
        self._reader = threading.Thread(target=self._read, name="lineage-queries", daemon=True)
        self._reader.start()

    def flush(self, within_s: float) -> None:
        """Wait until all that the JVM has reported so far is published. Never raises."""
        mark, number = threading.Event(), next(self._mark_numbers)
        self._marks[number] = mark
        try:
            self._manifests.add(json.dumps({"type": "mark", "number": number}))
        except Exception:  # noqa: BLE001 - the JVM has gone
            return
        mark.wait(within_s)
        self._marks.pop(number, None)

    def end(self) -> None:
        """Publish what there is still; bounded by what the JVM holds."""
        self._is_ended.set()
        self.flush(0)  # wakes the reader, which would else wait for a line that does not come
        self._reader.join(_END_WAIT_S)

    def _read(self) -> None:
        while True:
            is_ended = self._is_ended.is_set()
            try:
                line = self._manifests.poll(0 if is_ended else _POLL_MS)
            except Exception:  # noqa: BLE001 - the JVM has gone
                return
            if line is None:
                if is_ended:
                    return
                self._executions.look_for_commits()
                continue
            try:
                self._take(json.loads(line))
            except Exception as error:  # noqa: BLE001 - one line is not the others' fault
                self._gap(f"what the JVM reported of a query is lost ({in_short(error)})")

    def _take(self, event: dict[str, Any]) -> None:
        kind = event.pop("type")
        if kind == "mark":
            self._executions.look_for_commits(is_eager=True)
            self._marks.get(event["number"], threading.Event()).set()
        elif kind == "taken":
            self._executions.taken(event["number"])
        elif kind == "gap":
            self._gap(event["reason"])
        elif kind == "failed":
            self._executions.failed(event)
        elif kind == "end":
            self._executions.ended(
                event["nodes"], event["name"], is_failed=event["failed"], error=event.get("error")
            )
        else:
            self._executions.committed(event)
