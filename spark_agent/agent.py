"""The agent of one application: the one place that knows both RDDs and DataFrames.

`start` is called for each SparkContext whose conf asks for lineage. The agent ends when that context stops
or the interpreter ends. Promises that neither raises into the user's program, and that every patch is undone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from spark_agent.delivery import settings
from spark_agent.delivery.notices import Notices
from spark_agent.driver.rdd import method_patches
from spark_agent.driver.session import Session
from spark_agent.driver.shipping import ship_agent
from spark_agent.sql.runtime.spark_sessions import SparkSessions

_active: Agent | None = None
_latest: Agent | None = None  # ended or not


class Agent:
    """One application: the driver's `session` of it, and its `spark_sessions`."""

    def __init__(self, context: Any, names: Sequence[str] = ()) -> None:
        """`context`: a SparkContext, or what stands for one. `names`: as for `start`."""
        self.session = Session(context, names)
        self.spark_sessions = SparkSessions(self.session)
        self.session.on_stop.append(self._end)

    def begin(self) -> None:
        """Publish that the application runs. Of several in one program the last is judged by its end."""
        global _latest
        if _latest is not None:
            _latest.session.is_latest = False
        _latest, self.session.is_latest = self, True
        self.session.begin()

    def _end(self) -> None:
        global _active
        self.spark_sessions.end()
        if _active is self:
            _active = None


def active() -> Agent | None:
    """The agent of the running SparkContext, if lineage is on."""
    return _active


def start(context: Any, names: Sequence[str] = ()) -> None:
    """Begin to capture `context`, a new SparkContext. Never raises, but in a replay.

    `names` are the keys of its conf that may be meant for the agent.
    """
    global _active
    agent: Agent | None = None
    try:
        agent = Agent(context, names)
        method_patches.install(agent.session)
        agent.spark_sessions.install()
        ship_agent(context)  # first: executors without it could not run the job's tasks
        agent.begin()
        _active = agent
    except Exception as error:
        is_quiet = settings.flag(context._conf.get(settings.QUIET, "")) is True
        notices = agent.session.notices if agent is not None else Notices(context, is_quiet=is_quiet)
        notices.say(f"off for {context.applicationId}: the agent could not start ({error!r})")
        if agent is not None:
            agent.session.undo()
        if "LINEAGE_REPLAY" in os.environ:
            raise


def follow_connect(connect_session: Any, options: Mapping[str, Any]) -> None:
    """Publish what a new Spark Connect session executes. `options` are those of its builder.

    It belongs to the running application; without one to an application of its own, if `options` ask for it.
    """
    from spark_agent.sql.runtime import spark_connect  # what few jobs need

    agent = _active
    is_own = agent is None
    if agent is None:
        if settings.flag(str(options.get(settings.ENABLED, ""))) is not True:
            return
        names = [name for name in options if "lineage" in name.lower()]
        agent = Agent(spark_connect.Client(connect_session, options), names)
        agent.session.begin()
    application = spark_connect.Application(agent.session, agent.spark_sessions.coarse_queries, is_own=is_own)
    spark_connect.follow(connect_session, application)
