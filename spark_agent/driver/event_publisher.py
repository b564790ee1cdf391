"""Publishes the events of one application, and says what of them was lost.

Promises that events leave in their order, that those from before the topics exist are sent once these do, and
that nothing is raised but the DeliveryError that the user asked for (`spark.lineage.onError=fail`).
Thread-safe. Knows nothing of RDDs: `node_publisher` makes events of nodes.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from spark_agent import contract
from spark_agent.delivery import kafka_errors, process_sender
from spark_agent.delivery.notices import Notices
from spark_agent.delivery.producer import Delivery, DeliveryError, Sender
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.spool import host
from spark_agent.driver import error_descriptions, summaries
from spark_agent.driver.delivery_warnings import DeliveryWarnings
from spark_agent.driver.gaps import Gaps, UnclaimedRuns
from spark_agent.driver.heartbeat import Heartbeat
from spark_agent.driver.topics import Topics
from spark_agent.worker.task_run import TaskRun

#: The end of an application says what is missing of it: worth a wait when the wait budget is spent, too.
END_WAIT_S = 1.0
#: How often the driver looks for messages that no broker takes.
KEEP_S = 1.0
#: What a manifest adds to the counters of its application.
_SUMMED = ("blocks", "dropped", "spooled", "cut", "withheld", "waited_ms")
#: A library of the JVM (MLlib, say) has computed an RDD of Python's, and no action of PySpark's asked for it.
_OF_JVM = "records went to a job that a library of the JVM ran: what it made of them is not followed"


class EventPublisher:
    """The events of one application."""

    def __init__(self, context: Any, application_id: str, settings: AgentSettings, notices: Notices) -> None:
        self._application_id, self._settings, self._notices = application_id, settings, notices
        #: What `application_ended` says beside the state.
        self.counters = {
            "runs": 0,
            "blocks": 0,
            "dropped": 0,
            "spooled": 0,
            "cut": 0,
            "withheld": 0,
            "events_lost": 0,
            "queries_failed": 0,
            "waited_ms": 0,
            "driver_waited_ms": 0,
        }
        #: Task runs that no action has claimed so far.
        self.unclaimed = UnclaimedRuns()
        #: Called with each event's type and fields, before it is sent; and with the manifest of a task run
        #: that dropped records, with the first of its failures and their number. Of replays.
        self.observe: Callable[[str, dict[str, Any]], None] | None = None
        self.on_skipped: Callable[[dict[str, Any], list[dict[str, Any]], int], None] | None = None
        self._watched: dict[int, set[tuple[frozenset[int], int]]] = {}  # by action
        self._topics = Topics(settings)
        self._gaps = Gaps(self._publish_gap)
        self._warnings = DeliveryWarnings(context, application_id, settings, notices)
        self._heartbeat = Heartbeat(self._beat)
        self._keeper = Heartbeat(self._keep, KEEP_S)
        self._lock = threading.RLock()
        self._delivery = Delivery()
        self._early: list[bytes] | None = []  # events from before it was known whether the topics are there
        self._has_topics = True
        self._spool_hosts: set[str] = set()  # where blocks wait
        self._events = 0
        self._operations: set[object] = set()  # the numbers of published nodes, without internal nodes
        self._dropped_because = ""
        self._end: dict[str, Any] = {}  # as it was published
        self._is_ending = False

    # -- begin and end -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Prepare the topics and send signs of life."""
        self._topics.prepare(self._send_early)
        self._heartbeat.start()

    def _send_early(self, has_topics: bool) -> None:
        """Send what was published before the topics were there. Called in the thread that prepared them.

        Without topics it goes into the spool, and what follows too, until they are there.
        """
        sender = process_sender.sender_for(self._settings)
        with self._lock:
            self._has_topics = has_topics
            if not has_topics and sender is not None:
                sender.wait_budget.pause()
            early, self._early = self._early or [], None
            for message in early:
                self._send(message, self._delivery)
        if self._topics.problem and not self._is_ending:
            what = "flows" if has_topics else "messages"
            self._notices.say(
                f"{what} of {self._application_id} are not delivered so far: {self._topics.problem}"
            )

    def prepare_end(self) -> None:
        """Send no more signs of life, and leave problems with topics to the last line."""
        self._is_ending = True
        self._heartbeat.stop()
        self._topics.stop()

    def application_ended(self, error: BaseException | None) -> None:
        """Publish the end and the counters, and wait until they have arrived or are lost."""
        if self.unclaimed.has_any():
            self.gap(_OF_JVM)
        self._wait_for_topics()
        begin = time.monotonic()
        self._count_losses(END_WAIT_S)
        self._publish_end(error)
        self._count_losses()
        self._keeper.stop()
        self._empty_spool(begin + END_WAIT_S)
        self.log_problems()

    def _empty_spool(self, until: float) -> None:
        """Send what waits in the spool of this machine, if that is quick."""
        sender = process_sender.sender_for(self._settings)
        if sender is None or sender.spool_delivery is None or not self._spooled():
            return
        if sender.spool_delivery.finish(max(0.0, until - time.monotonic())):
            self._delivery.spooled = 0
            if self._spool_hosts <= {host()}:
                self.counters["spooled"] = 0

    def correct_end(self, error: BaseException | None) -> None:
        """Publish the end again, if it was another than the one that was published."""
        before = self._end
        self._publish_end(error)
        if self._end != before:
            self._flush(END_WAIT_S)

    def _publish_end(self, error: BaseException | None) -> None:
        end: dict[str, Any] = {"state": contract.SUCCEEDED}
        if error is not None:
            end = {"state": contract.FAILED, "error": error_descriptions.of_exception(error, self._settings)}
        if end != self._end:
            self._end = end
            self.emit(contract.APPLICATION_ENDED, counters=self.counters, **end)

    def _spooled(self) -> int:
        """How many messages wait in a spool, as far as is known here."""
        return self.counters["spooled"] + self._delivery.spooled

    def _count_losses(self, at_least_s: float = 0.0) -> None:
        self.counters["events_lost"] = self._flush(at_least_s)
        self.counters["driver_waited_ms"] = round(1000 * self._delivery.waited_s)

    def summary(self) -> str:
        """The last line of the application."""
        is_lossy = self.counters["dropped"] or self.counters["events_lost"]
        return summaries.ended(
            self._application_id,
            operations=len(self._operations),
            events=self._events,
            counters=self.counters,
            problem=(self._dropped_because or self._problem()) if is_lossy or self._spooled() else "",
            gaps=self.gaps,
            spooled_events=self._delivery.spooled,
            hosts=sorted(self._spool_hosts | {host()} if self._delivery.spooled else self._spool_hosts),
        )

    # -- events --------------------------------------------------------------------------------------

    def emit(self, event_type: str, **fields: object) -> None:
        """Publish one event. Waits for nothing, except where undelivered ones have filled their room."""
        now = int(time.time() * 1000)
        if self.observe is not None:
            self.observe(event_type, fields)
        with self._lock:
            fields["event"], self._events = self._events, self._events + 1
            if event_type == contract.NODE_REGISTERED:
                self.unclaimed.publish(fields["node"])
                if fields.get("operation") is None:
                    self._operations.add(fields["node"])
            message = contract.encode_event(event_type, self._application_id, now, fields)
            self._send(message, self._delivery)

    def _send(self, message: bytes, delivery: Delivery) -> None:
        with self._lock:
            if self._early is not None:
                self._early.append(message)
            elif (sender := process_sender.sender_for(self._settings)) is not None:
                self._hand_over(sender, message, delivery)
            else:
                delivery.fail(process_sender.process_sender.unavailable)

    def _hand_over(self, sender: Sender, message: bytes, delivery: Delivery) -> None:
        topic, key = self._settings.node_topic, self._application_id.encode()
        if self._has_topics or sender.spool is None:
            sender.send(topic, -1, key, message, delivery)
        else:
            sender.set_aside(topic, -1, key, message, delivery, self._topics.problem)

    def _keep(self) -> None:
        """What no broker has taken for a while goes on the disk: the driver may be killed at any moment."""
        with contextlib.suppress(Exception):  # an agent bug must not end the job
            sender = process_sender.process_sender.sender
            if sender is not None:
                sender.spool_stale(max(self._settings.delivery_timeout_s, KEEP_S))

    def _beat(self) -> None:
        """Send a sign of life. It has no number, and nobody misses it."""
        with contextlib.suppress(Exception):  # an agent bug must not end the job
            now = int(time.time() * 1000)
            message = contract.encode_event(contract.ALIVE, self._application_id, now, {})
            if self._has_topics:  # else it would wait on the disk, and say nothing when it comes
                self._send(message, Delivery())

    def action_ended(self, node: int, name: str, error: BaseException | None = None) -> None:
        """Publish how an action ended. `error` is not an Exception where the user wanted it to go."""
        if error is None:
            self.emit(contract.ACTION_ENDED, node=node, state=contract.ACTION_COMPLETE)
        else:
            is_failed = isinstance(error, Exception)
            state = contract.ACTION_FAILED if is_failed else contract.ACTION_ABORTED
            error_fields = error_descriptions.of_exception(error, self._settings, name)
            self.emit(contract.ACTION_ENDED, node=node, state=state, error=error_fields)

    # -- task runs -----------------------------------------------------------------------------------

    def publish_manifest(self, fields: dict[str, Any]) -> None:
        """Publish a task run that Spark accepted. Never raises.

        Also called in the accumulator server's thread, which Spark waits for.
        """
        try:
            problem = fields["problem"]
            fields.pop("has_client", None)
            skipped, skipped_total = fields.pop("skipped", None), fields.pop("skipped_total", 0)
            if skipped and self.on_skipped is not None:
                self.on_skipped(fields, skipped, skipped_total)
            self.counters["runs"] += 1
            for name in _SUMMED:
                self.counters[name] += fields.get(name, 0)
            if fields.get("spooled"):
                self._spool_hosts.add(fields["host"])
            if fields["dropped"]:
                self._dropped_because = problem
                self._warnings.add(f"not all was delivered: {problem}")
            elif fields.get("spooled"):
                self._warnings.add(f"not all was delivered so far, the rest waits in a spool: {problem}")
            elif problem:
                self._warnings.add(problem)
            sender = process_sender.sender_for(self._settings)
            nodes = frozenset((fields["input"], *fields["nodes"]))
            self.unclaimed.add(nodes)
            if (watched := self._watched.get(fields["action"])) is not None:
                watched.add((nodes, fields["split"]))
            if (fields["unconfirmed"] or fields.get("spooled")) and sender is not None:
                sender.wait_budget.pause()  # until it hears something itself
            self.emit(contract.RUN_COMMITTED, **fields)
        except Exception as error:  # noqa: BLE001 - Spark's accumulators must go on
            self.gap(f"the commit manifest of a task run is lost ({error!r})")

    @contextlib.contextmanager
    def watching(self, action: int) -> Iterator[set[tuple[frozenset[int], int]]]:
        """(nodes, split) of each task run that Spark accepts for an action meanwhile."""
        watched = self._watched[action] = set()
        try:
            yield watched
        finally:
            del self._watched[action]

    def commit(self, run: TaskRun, action: int) -> None:
        """Close and publish a task run of the driver itself, which serves the action of this number."""
        dropped, problem = run.close()
        self.publish_manifest(json.loads(run.manifest(dropped, problem, action)))
        if dropped and self._settings.on_error == "fail":
            raise self._incomplete(f"{dropped} of {run.blocks} blocks of the driver are lost; {problem}")
        self.raise_if_lost()

    @property
    def committed_runs(self) -> int:
        """How many task runs Spark has accepted so far."""
        return self.counters["runs"]

    @property
    def emitted_events(self) -> int:
        """How many events were published so far."""
        with self._lock:
            return self._events

    # -- gaps ----------------------------------------------------------------------------------------

    def gap(self, reason: str, node: int | None = None) -> None:
        """Something of the application is not followed, so that it is not complete. Never raises.

        For holes only: of an upper bound the node says so. `node` is the number of a node that stands for it.
        """
        try:
            self._gaps.add(reason, node)
        except Exception as error:  # noqa: BLE001 - an agent bug must not end the job
            self._notices.say(f"{self._application_id}: a gap could not be published: {error!r}")

    def say(self, text: str) -> None:
        """Say once on standard error what a node says, too."""
        self._notices.say(f"{self._application_id}: {text}")

    def query_failed(self, problem: str, node: int | None = None) -> None:
        """Count a query that ran as it was, since its plan could not be rewritten. Never raises.

        `node` stands for it in the graph.
        """
        with self._lock:
            self.counters["queries_failed"] += 1
        self.gap(f"a query could not be followed ({problem})", node)

    def _publish_gap(self, reason: str, node: int | None) -> None:
        self.emit(contract.GAP, reason=reason, node=node)
        self._notices.say(f"{self._application_id}: not followed: {reason}")

    @property
    def gaps(self) -> list[str]:
        """What is not followed, each reason once, in the order in which it was found out."""
        return list(self._gaps.reasons)

    # -- losses --------------------------------------------------------------------------------------

    def raise_if_lost(self) -> None:
        """Raise DeliveryError if events were lost and the user wants the job to fail then."""
        if self._settings.on_error != "fail":
            return
        self._wait_for_topics()
        if lost := self._flush():
            raise self._incomplete(f"{lost} events are lost; {self._problem()}")

    def log_problems(self) -> None:
        """Say each problem once. Called by user threads, never by one that Spark waits for."""
        self._warnings.log(said_before=self._topics.problem)

    def flow_partitions(self) -> int:
        """How many partitions the flow topic has. Waits for the topics."""
        self._wait_for_topics()
        return self._topics.flow_partitions

    def block_problem(self) -> str:
        """Why blocks will not arrive, as far as the driver knows; empty where they will."""
        sender = process_sender.sender_for(self._settings)
        return self._topics.flow_problem or (sender.pause_reason() if sender is not None else "")

    def _wait_for_topics(self) -> None:
        self._delivery.waited_s += self._topics.wait()

    def _flush(self, at_least_s: float = 0.0) -> int:
        """Wait, within the wait budget, until the events have arrived. Returns how many have not."""
        sender = process_sender.sender_for(self._settings)
        with self._lock:
            lost = len(self._early or ())
            if sender is not None:
                lost += sender.flush(self._delivery, at_least_s)
            else:
                lost += self._delivery.failed
        if lost:
            self._warnings.add(f"not all was delivered: {self._problem()}")
        return lost

    def _problem(self) -> str:
        problem = process_sender.process_sender.unavailable or self._topics.problem or self._delivery.problem
        return problem or kafka_errors.silent(self._settings.bootstrap_servers, "")

    def _incomplete(self, losses: str) -> DeliveryError:
        return DeliveryError(
            f"the lineage of {self._application_id} is incomplete, and spark.lineage.onError=fail: {losses}"
        )
