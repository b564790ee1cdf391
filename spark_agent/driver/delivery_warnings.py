"""Problems with the delivery of lineage, each said once, by a thread of the user's.

Promises at most `MAX_WARNINGS` lines of one application. A problem is noted by any thread, also by one that
Spark waits for; it is said later, by a thread that may take its time.
"""

from __future__ import annotations

import contextlib
from typing import Any

from spark_agent.delivery.notices import Notices
from spark_agent.delivery.settings import AgentSettings

#: Different problems of one application that are worth a line in its log.
MAX_WARNINGS = 5


class DeliveryWarnings:
    """The problems of one application."""

    def __init__(self, context: Any, application_id: str, settings: AgentSettings, notices: Notices) -> None:
        self._context, self._application_id = context, application_id
        self._settings, self._notices = settings, notices
        self._is_logged: dict[str, bool] = {}  # by the problem

    def add(self, problem: str) -> None:
        """Note a problem, unless one of its kind was noted before."""
        kind = _kind(problem)
        if len(self._is_logged) < MAX_WARNINGS and not any(text.startswith(kind) for text in self._is_logged):
            self._is_logged[problem] = False

    def log(self, said_before: str) -> None:
        """Say the problems that were not said yet. `said_before` is one that the user has read elsewhere."""
        for problem in [problem for problem, is_logged in list(self._is_logged.items()) if not is_logged]:
            self._is_logged[problem] = True
            if not said_before or _kind(said_before) not in problem:
                self._notices.say(f"{self._application_id}: {problem}")
            if self._settings.on_error != "partial":
                continue
            message = f"the lineage of {self._application_id} is incomplete; {problem}"
            with contextlib.suppress(Exception):  # the JVM may have gone first
                self._context._jvm.org.slf4j.LoggerFactory.getLogger("spark_agent").warn(message)


def _kind(problem: str) -> str:
    """What a problem is in general: processes may know more or less exactly why it came."""
    return problem.partition(" (")[0]
