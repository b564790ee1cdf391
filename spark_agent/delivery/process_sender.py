"""The one sender of a process, made when it is first needed, and only after the process was forked."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final

from spark_agent.delivery import kafka_errors
from spark_agent.delivery.log import logger
from spark_agent.delivery.producer import Sender
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.spool import Spool
from spark_agent.delivery.wait_budget import WaitBudget


class ProcessSender:
    """The sender of one process, made when it is first needed.

    Module state, since Spark reuses a Python worker for many tasks: a producer for each task would connect
    again, and lose what its queue still holds.
    """

    def __init__(self) -> None:
        self.sender: Sender | None = None
        #: Why there is no sender; empty when there is one.
        self.unavailable = ""
        #: Spark's local folders on this machine, separated by commas: the spool is beside them.
        self.local_folders = ""
        self._owner: tuple[int, AgentSettings] | None = None  # set when `sender` is, also to None
        self._lock = threading.Lock()

    def get(
        self, settings: AgentSettings, shared: Callable[[], str] | None = None, problem: str = ""
    ) -> Sender | None:
        """The sender of this process, or None where there can be none: `unavailable` says why.

        `shared` gives the file by which processes share their wait budget. With a `problem`, which is why
        nothing will be delivered, a new sender begins with a pause.
        """
        owner = (os.getpid(), settings)
        if self._owner != owner:
            # Two threads of the driver may come at once; a second producer would lose its messages.
            with self._lock:
                if self._owner != owner:
                    self._replace(owner, shared, problem)
        return self.sender

    def _replace(
        self, owner: tuple[int, AgentSettings], shared: Callable[[], str] | None, problem: str
    ) -> None:
        process, settings = owner
        if self.sender is not None and self._owner is not None and self._owner[0] == process:
            self.sender.close()
        self.sender, self.unavailable = None, ""
        try:
            self.sender = self._new_sender(settings, shared, problem)
        except ImportError:
            self.unavailable = kafka_errors.missing_client()
        except Exception as error:  # noqa: BLE001 - a bad address must not fail the job
            self.unavailable = f"no Kafka producer for {settings.bootstrap_servers}: {error}"
        if self.unavailable:
            logger.warning("no lineage leaves this process: %s", self.unavailable)
        self._owner = owner

    def _new_sender(self, settings: AgentSettings, shared: Callable[[], str] | None, problem: str) -> Sender:
        wait_budget = WaitBudget(
            settings.delivery_timeout_s,
            shared() if shared is not None else None,
            forgives_answers=settings.on_error == "fail",
        )
        if problem:
            wait_budget.pause()
        sender = Sender(settings, wait_budget, problem, process_spool(settings, self.local_folders))
        if sender.spool_delivery is not None:
            sender.spool_delivery.start()  # what processes that have ended left there
        return sender


def process_spool(settings: AgentSettings, local_folders: str = "") -> Spool | None:
    """The spool of a process; None where it is switched off. `local_folders`: as of `ProcessSender`."""
    if not settings.spool_max_bytes:
        return None
    return Spool(settings, local_folders or os.environ.get("SPARK_LOCAL_DIRS", ""))


process_sender: Final = ProcessSender()


def sender_for(settings: AgentSettings) -> Sender | None:
    """The sender of this process; None where there can be none: `process_sender.unavailable` says why."""
    return process_sender.get(settings)


def sender_in_worker(settings: AgentSettings, application_id: str, problem: str) -> Sender | None:
    """`sender_for`, whose waits count together with those of the executor's other worker processes."""

    def shared() -> str:
        from pyspark import SparkFiles

        # A folder of this application alone, which goes with it.
        return os.path.join(SparkFiles.getRootDirectory(), f".lineage-waits-{application_id}")

    return process_sender.get(settings, shared, problem)
