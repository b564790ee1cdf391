"""The driver's side of one application: from its first event to its last.

`events` publishes what happens, `nodes` what is computed, and `scope` knows which operation each thread is
in. Promises that nothing but a DeliveryError that the user asked for is raised into the user's program, and
that every patch is undone on stop. Knows nothing of DataFrames.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.contract.program_code import WAVE_VARIABLE
from spark_agent.delivery import process_sender, settings
from spark_agent.delivery.notices import Notices
from spark_agent.driver import monkeypatch, outcome, summaries
from spark_agent.driver.event_publisher import EventPublisher
from spark_agent.driver.node_publisher import NodePublisher
from spark_agent.driver.operation_scope import OperationScope
from spark_agent.driver.pickled_chains import PickledChains
from spark_agent.driver.program_code import program_code
from spark_agent.driver.recipes import Recipes
from spark_agent.worker.manifests import Manifests

if TYPE_CHECKING:
    from spark_agent.driver.replay.replay import Replay

#: Far above any id that a SparkContext counts up to, so that the ids of the user's accumulators stay.
MANIFESTS_ACCUMULATOR = 1 << 40


class Session:
    """One application. Thread-safe: user threads may start jobs at the same time."""

    def __init__(self, context: Any, names: Sequence[str] = ()) -> None:
        from pyspark.accumulators import Accumulator

        self.context = context
        self.application_id: str = context.applicationId
        self.settings = settings.read(lambda key, default: context._conf.get(key, default), names)
        #: The replay that this program is; None if it is none.
        self.replay = _replay()
        if self.replay is not None:
            self.settings = self.replay.adapted(self.settings)
        #: Is nothing captured and sent, since only what the sinks of a replay write is asked for?
        self.is_silent = self.replay is not None and self.replay.is_silent
        #: Lines on standard error: `say` is for whatever the user of the job should read.
        self.notices = Notices(context, is_quiet=self.settings.is_quiet)
        self.patches = monkeypatch.Patches()
        process_sender.process_sender.local_folders = str(getattr(context, "_temp_dir", "") or "")
        self.events = _publisher(self)
        self.nodes = NodePublisher(self.events, describes=not self.is_silent)
        self.scope = OperationScope(context, self.events, has_sites=self.settings.is_explained)
        takes_digests = self.settings.is_explained and not self.settings.redact and self.replay is None
        #: Of the digests of records; empty where none are taken. It stays in the application.
        self.digest_salt = os.urandom(16) if takes_digests else b""
        self.recipes = Recipes(has_states=self.settings.is_explained)
        #: Are functions kept as executors get them? Only what asks in this session uses them.
        self.keeps_pickled = self.settings.is_explained and self.replay is None
        self.pickled = PickledChains()
        parameter = Manifests()
        parameter.publish = lambda manifest: self.events.publish_manifest(json.loads(manifest))
        self.manifests = Accumulator(MANIFESTS_ACCUMULATOR, [], parameter)
        #: Called when the application ends, once the patches are undone.
        self.on_stop: list[Callable[[], None]] = []
        #: Is this the last application of the program, so that the program's end is its own?
        self.is_latest = False
        self._lock = threading.RLock()  # the handler of a signal may stop the context, too
        self._is_stopped = False
        if self.replay is not None:
            self.replay.attach(self.application_id, context.appName, self.events)
            self.replay.watch(self.patches)
            self.on_stop.append(self.replay.end)

    @property
    def api(self) -> str:
        """The address of `lineage serve` that the conf names, if it does."""
        return str(self.context._conf.get("spark.lineage.api", "") or "").strip()

    def begin(self) -> None:
        """Publish that the application has started, and follow it until it stops or Python exits."""
        self.events.emit(
            contract.APPLICATION_STARTED,
            name=self.context.appName,
            detailed=self.settings.detailed,
            values_sample=self.settings.values_sample,
            spark_version=self.context.version,
            master=self.context.master,
            problems=list(self.settings.problems),
            **({} if self.replay is None else {"replay": self.replay.started()}),
            **self._execution(),
        )
        servers = self.settings.bootstrap_servers
        self.notices.say(summaries.started(self.application_id, self.context.appName, servers))
        for problem in self.settings.problems:
            self.notices.say(problem)
        self.notices.expect_progress_bar()
        self.events.begin()
        outcome.watch()
        atexit.register(self._correct_end)
        atexit.register(self.stop, at_exit=True)  # before the other: the last one that is registered is first

    def _execution(self) -> dict[str, Any]:
        """Which job this is an execution of, for which wave of it, and of which code."""
        conf = self.context._conf
        wave = os.environ.get(WAVE_VARIABLE, "").strip()
        return {
            "job": str(conf.get(settings.JOB, "") or "").strip() or self.context.appName,
            **({"wave": wave} if wave else {}),
            **program_code(str(conf.get("spark.submit.pyFiles", "") or "")),
        }

    def stop(self, *, at_exit: bool = False) -> None:
        """Publish the end and the counters, undo the patches. Does nothing the second time."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
        error = outcome.at_exit() if at_exit else outcome.under_way()
        atexit.unregister(self.stop)
        if at_exit or outcome.is_interactive():
            atexit.unregister(self._correct_end)
        self.events.prepare_end()
        self.undo()
        for end in self.on_stop:
            end()
        self.events.application_ended(error)
        self.notices.say(self.events.summary(), is_last=True)

    def undo(self) -> None:
        """Give PySpark back what was patched."""
        self.patches.undo()

    def _correct_end(self) -> None:
        """At the interpreter's exit, if the context was stopped before: publish the end again if it differs.

        Of several applications of one program only the last is judged by the program's end.
        """
        if self.is_latest:
            self.events.correct_end(outcome.at_exit())


def _publisher(session: Session) -> EventPublisher:
    arguments = session.context, session.application_id, session.settings, session.notices
    if not session.is_silent:
        return EventPublisher(*arguments)
    from spark_agent.driver.replay.silent_events import SilentEvents

    return SilentEvents(*arguments)


def _replay() -> Replay | None:
    if "LINEAGE_REPLAY" not in os.environ:
        return None
    from spark_agent.driver.replay import replay

    return replay.current()
