"""The driver's side of one application: its nodes, its events and the manifests of its accepted runs.

Promises that nothing but a DeliveryError that the user asked for is raised into the user's program, and that
every patch is undone on stop. Knows nothing of DataFrames.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from spark_agent import contract
from spark_agent.delivery import kafka_errors, producer, settings
from spark_agent.delivery.notices import Notices
from spark_agent.delivery.producer import Delivery, DeliveryError
from spark_agent.driver import monkeypatch, outcome, summaries, value_filters
from spark_agent.driver.call_sites import call_site
from spark_agent.driver.gaps import Gaps, UnclaimedRuns
from spark_agent.driver.heartbeat import Heartbeat
from spark_agent.driver.nodes import Frame, Node
from spark_agent.worker import task_run
from spark_agent.worker.manifests import Manifests
from spark_agent.worker.pipeline import Capture, Pipeline
from spark_agent.worker.plan import ACTION, KEEPING, Plan

#: Far above any id that a SparkContext counts up to, so that the ids of the user's accumulators stay.
MANIFESTS_ACCUMULATOR = 1 << 40
#: A `partitions` event holds at most this many, to stay far below a broker's message limit.
PARTITIONS_IN_EVENT = 2_000
#: Different problems of one application that are worth a line in its log.
MAX_WARNINGS = 5
#: The end of an application says what is missing of it: worth a wait when all patience is spent, too.
END_WAIT_S = 1.0

#: A library of the JVM (MLlib, say) has computed an RDD of Python's, and no action of PySpark's asked for it.
_OF_JVM = "records went to a job that a library of the JVM ran: what it made of them is not followed"


class Session:
    """One application. Thread-safe: user threads may start jobs at the same time."""

    def __init__(self, context: Any, names: Sequence[str] = ()) -> None:
        from pyspark.accumulators import Accumulator

        self.context = context
        self.application_id: str = context.applicationId
        self.settings = settings.read(lambda key, default: context._conf.get(key, default), names)
        #: Lines on standard error: `say` is for whatever the user of the job should read.
        self.notices = Notices(context, is_quiet=self.settings.is_quiet)
        self.patches = monkeypatch.Patches()
        self._gaps = Gaps(self._tell_gap)
        self._numbers = itertools.count()
        self._unclaimed = UnclaimedRuns()
        self._lock = threading.RLock()
        self._local = threading.local()
        self._delivery = Delivery()
        self._flow_partitions = contract.FLOW_PARTITIONS
        self._early: list[bytes] | None = []  # events from before the topics were there
        self._events = 0
        self._operations: set[object] = set()  # the numbers of nodes that are told, without steps
        self._dropped_because = ""
        self._topic_problem = self._flow_problem = ""  # why topics are not there, or that of flows
        self._counters = {
            "runs": 0,
            "blocks": 0,
            "dropped": 0,
            "cut": 0,
            "withheld": 0,
            "events_lost": 0,
            "queries_failed": 0,
            "waited_ms": 0,
            "driver_waited_ms": 0,
        }
        self._warnings: dict[str, bool] = {}  # text -> was it logged
        self._is_stopped = False
        self._end: dict[str, Any] = {}  # as it was told
        self._heartbeat = Heartbeat(self._beat)
        parameter = Manifests()
        parameter.publish = self._publish_manifest
        self.manifests = Accumulator(MANIFESTS_ACCUMULATOR, [], parameter)
        #: Called when the application ends, once the patches are undone.
        self.on_stop: list[Callable[[], None]] = []
        #: Why the queries of SparkSessions are not followed; empty where they are.
        self.dataframes_off = ""
        #: Is this the last application of the program, so that the program's end is its own?
        self.is_latest = False

    # -- begin and end -------------------------------------------------------------------------------

    def begin(self) -> None:
        started = {
            "name": self.context.appName,
            "detailed": self.settings.detailed,
            "values_sample": self.settings.values_sample,
            "spark_version": self.context.version,
            "master": self.context.master,
            "problems": list(self.settings.problems),
        }
        self.emit(contract.APPLICATION_STARTED, **started)
        servers = self.settings.bootstrap_servers
        self.notices.say(summaries.started(self.application_id, self.context.appName, servers))
        for problem in self.settings.problems:
            self.notices.say(problem)
        self.notices.expect_progress_bar()
        self._preparing = threading.Thread(target=self._prepare, name="lineage-topics", daemon=True)
        self._prepared_by = time.monotonic() + self.settings.delivery_timeout_s
        self._preparing.start()
        outcome.watch()
        atexit.register(self._correct_end)
        atexit.register(self.stop, at_exit=True)  # before the other: the last one that is registered is first
        self._heartbeat.start()

    def _prepare(self) -> None:
        """In a thread beside the start of the job. A message before the topics would make them, too small."""
        wanted = {
            self.settings.node_topic: contract.NODE_PARTITIONS,
            self.settings.flow_topic: contract.FLOW_PARTITIONS,
        }
        found, self._topic_problem = producer.prepare_topics(self.settings, wanted)
        if found and self.settings.flow_topic not in found:
            self._flow_problem = self._topic_problem
        self._flow_partitions = found.get(self.settings.flow_topic) or contract.FLOW_PARTITIONS
        sender = producer.sender_for(self.settings)
        with self._lock:
            if not found and sender is not None:
                sender.patience.give_up()
            early, self._early = self._early or [], None
            for message in early:
                self._queue(message)
        if self._topic_problem and not self._is_stopped:
            what = "flows" if found else "messages"
            self.notices.say(
                f"{what} of {self.application_id} are not delivered so far: {self._topic_problem}"
            )

    def _wait_for_topics(self) -> None:
        """Once, and for a bounded time: the job's own start has taken a part of it already."""
        if self._preparing.is_alive():
            begin = time.monotonic()
            until = self._prepared_by + producer.STEP_S
            self._preparing.join(max(0.0, until - begin))
            self._delivery.waited_s += time.monotonic() - begin
            sender = producer.sender_for(self.settings)
            if sender is not None:
                sender.patience.charge(begin, is_answered=True)

    @property
    def flow_partitions(self) -> int:
        """Partitions of the flow topic."""
        self._wait_for_topics()
        return self._flow_partitions

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
        self._heartbeat.stop()
        self.undo()
        for end in self.on_stop:
            end()
        if self._unclaimed.has_any():
            self.gap(_OF_JVM)
        self._wait_for_topics()
        self._counters["events_lost"] = self._settle(END_WAIT_S)
        self._counters["driver_waited_ms"] = round(1000 * self._delivery.waited_s)
        self._tell_end(error)
        self._counters["events_lost"] = self._settle()
        self._counters["driver_waited_ms"] = round(1000 * self._delivery.waited_s)
        self._log_warnings()
        self.notices.say(self._summary(), is_last=True)

    def _summary(self) -> str:
        is_lossy = self._counters["dropped"] or self._counters["events_lost"]
        return summaries.ended(
            self.application_id,
            operations=len(self._operations),
            events=self._events,
            counters=self._counters,
            problem=(self._dropped_because or self._problem()) if is_lossy else "",
            gaps=self.gaps,
        )

    def undo(self) -> None:
        self.patches.undo()

    def _tell_end(self, error: BaseException | None) -> None:
        end: dict[str, Any] = {"state": contract.SUCCEEDED}
        if error is not None:
            end = {"state": contract.FAILED, "error": outcome.told(error, self.settings)}
        if end != self._end:
            self._end = end
            self.emit(contract.APPLICATION_ENDED, counters=self._counters, **end)

    def _correct_end(self) -> None:
        """At the interpreter's exit, if the context was stopped before: tell the end again if it was another.

        Of several applications of one program only the last is judged by the program's end.
        """
        if self.is_latest:
            before = self._end
            self._tell_end(outcome.at_exit())
            if self._end != before:
                self._settle(END_WAIT_S)

    def _beat(self) -> None:
        """Send a sign of life. It has no number, and nobody misses it."""
        with contextlib.suppress(Exception):  # whatever is wrong with us, the user's job goes on
            now = int(time.time() * 1000)
            message = contract.encode_event(contract.ALIVE, self.application_id, now, {})
            with self._lock:
                if self._early is not None:
                    self._early.append(message)
                elif (sender := producer.sender_for(self.settings)) is not None:
                    key = self.application_id.encode()
                    sender.send(self.settings.node_topic, -1, key, message, Delivery())

    def action_ended(self, node: int, name: str, error: BaseException | None = None) -> None:
        """Publish how an action ended. `error` is not an Exception where the user wanted it to go."""
        if error is None:
            self.emit(contract.ACTION_ENDED, node=node, state=contract.ACTION_COMPLETE)
        else:
            is_failed = isinstance(error, Exception)
            state = contract.ACTION_FAILED if is_failed else contract.ACTION_ABORTED
            said = outcome.told(error, self.settings, name)
            self.emit(contract.ACTION_ENDED, node=node, state=state, error=said)

    def _settle(self, at_least_s: float = 0.0) -> int:
        """Wait, within the patience, until the events have arrived; how many have not."""
        sender = producer.sender_for(self.settings)
        with self._lock:
            lost = len(self._early or ())
            if sender is not None:
                lost += sender.settle(self._delivery, at_least_s)
            else:
                lost += self._delivery.failed
        if lost:
            self._warn(f"not all was delivered: {self._problem()}")
        return lost

    def _problem(self) -> str:
        servers = self.settings.bootstrap_servers
        known = producer.unavailable or self._topic_problem or self._delivery.problem
        return known or kafka_errors.silent(servers, "")

    def insist(self) -> None:
        """Raise DeliveryError if events were lost and the user wants the job to fail then."""
        if self.settings.on_error != "fail":
            return
        self._wait_for_topics()
        if lost := self._settle():
            raise DeliveryError(
                f"the lineage of {self.application_id} is incomplete, and spark.lineage.onError=fail: "
                f"{lost} events are lost; {self._problem()}"
            )

    def _warn(self, problem: str) -> None:
        kind = _kind(problem)
        if len(self._warnings) < MAX_WARNINGS and not any(each.startswith(kind) for each in self._warnings):
            self._warnings[problem] = False

    def _log_warnings(self) -> None:
        """Say each problem once; called by user threads, never by one that Spark waits for."""
        for text in [text for text, is_logged in list(self._warnings.items()) if not is_logged]:
            self._warnings[text] = True
            if not self._topic_problem or _kind(self._topic_problem) not in text:  # said when it was met
                self.notices.say(f"{self.application_id}: {text}")
            if self.settings.on_error != "partial":
                continue
            message = f"the lineage of {self.application_id} is incomplete; {text}"
            with contextlib.suppress(Exception):  # the JVM may have gone first
                self.context._jvm.org.slf4j.LoggerFactory.getLogger("spark_agent").warn(message)

    @property
    def committed_runs(self) -> int:
        """How many runs Spark has accepted so far."""
        return self._counters["runs"]

    @property
    def emitted_events(self) -> int:
        """How many events were published so far."""
        with self._lock:
            return self._events

    @property
    def api(self) -> str:
        """The address of `lineage serve` that the conf names, if it does."""
        return str(self.context._conf.get("spark.lineage.api", "") or "").strip()

    # -- events --------------------------------------------------------------------------------------

    def emit(self, event_type: str, **fields: object) -> None:
        """Publish one event. Waits for nothing, except where undelivered ones have filled their room."""
        now = int(time.time() * 1000)
        with self._lock:
            fields["event"], self._events = self._events, self._events + 1
            if event_type == contract.NODE_REGISTERED:
                self._unclaimed.publish(fields["node"])
                if fields.get("operation") is None:
                    self._operations.add(fields["node"])
            message = contract.encode_event(event_type, self.application_id, now, fields)
            if self._early is not None:
                self._early.append(message)
            else:
                self._queue(message)

    def _queue(self, message: bytes) -> None:
        sender = producer.sender_for(self.settings)
        if sender is None:
            self._delivery.fail(producer.unavailable)
        else:
            sender.send(self.settings.node_topic, -1, self.application_id.encode(), message, self._delivery)

    def next_number(self) -> int:
        """The number of a new node."""
        return next(self._numbers)

    def _publish_manifest(self, manifest: str) -> None:
        """Called in the accumulator server's thread, which Spark waits for, for each run that it accepted."""
        self.publish_manifest(json.loads(manifest))

    def publish_manifest(self, fields: dict[str, Any]) -> None:
        """Publish a run that Spark accepted. Never raises."""
        try:
            problem = fields["problem"]
            fields.pop("has_client", None)
            self._counters["runs"] += 1
            for name in ("blocks", "dropped", "cut", "withheld", "waited_ms"):
                self._counters[name] += fields[name]
            if fields["dropped"]:
                self._dropped_because = problem
                self._warn(f"not all was delivered: {problem}")
            elif problem:
                self._warn(problem)
            sender = producer.sender_for(self.settings)
            self._unclaimed.add((fields["input"], *fields["nodes"]))
            if fields["unconfirmed"] and sender is not None:
                sender.patience.give_up()  # until it hears something itself
            self.emit(contract.RUN_COMMITTED, **fields)
        except Exception as error:  # noqa: BLE001 - Spark's accumulators must go on
            self.gap(f"what a task told of its records is lost ({error!r})")

    def query_failed(self, problem: str, node: int | None = None) -> None:
        """Count a query that ran as it was, since its plan could not be rewritten. Never raises.

        `node` stands for it in the graph.
        """
        with self._lock:
            self._counters["queries_failed"] += 1
        self.gap(f"a query could not be followed ({problem})", node)

    def gap(self, reason: str, node: int | None = None) -> None:
        """Something of the application is not followed, so that it is not complete. Never raises.

        For holes only: of a bound the node says so. `node` is the number of the node that stands for it.
        """
        try:
            self._gaps.add(reason, node)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with us, the user's job goes on
            self.notices.say(
                f"{self.application_id}: that something is not followed could not be told: {error!r}"
            )

    def _tell_gap(self, reason: str, node: int | None) -> None:
        self.emit(contract.GAP, reason=reason, node=node)
        self.notices.say(f"{self.application_id}: not followed: {reason}")

    @property
    def gaps(self) -> list[str]:
        """What is not followed, each reason once, in the order in which it was found out."""
        return list(self._gaps.reasons)

    def commit(self, run: task_run.Run, action: int) -> None:
        """Close and publish a run of the driver itself, which serves the action of this number."""
        dropped, problem = run.close()
        self._publish_manifest(run.manifest(dropped, problem, action))
        if dropped and self.settings.on_error == "fail":
            raise DeliveryError(
                f"the lineage of {self.application_id} is incomplete, and spark.lineage.onError=fail: "
                f"{dropped} of {run.blocks} blocks of the driver are lost; {problem}"
            )
        self.insist()

    def publish(self, node: Node) -> None:
        """Publish `node` and what it comes from, once. Raises DeliveryError as `insist` does."""
        self.tell(node)
        self.insist()

    def tell(self, node: Node) -> None:
        """Publish `node` and what it comes from, once, whatever becomes of the events."""
        with self._lock:
            fresh = [(each, each.parents) for each in node.ancestry(lambda each: each.is_published)]
            for each, _ in fresh:
                each.is_published = True
        for each, parents in fresh:  # the parents of then: another thread may settle the node meanwhile
            self.emit(contract.NODE_REGISTERED, **each.event())
            for port, parent in enumerate(parents):
                self.emit(contract.LINK, source=parent.number, target=each.number, port=port)

    def describe(self, node: Node) -> None:
        """Publish the partitions of `node` and of what it comes from, once, after a job has computed them."""
        with self._lock:
            pending = node.ancestry(lambda each: each.is_described)
        for each in pending:
            with self._lock:
                describe = each.settle()
            if describe is None:
                continue
            try:
                partitions = describe()
            except Exception as error:  # noqa: BLE001 - an unusual input format, or the JVM has gone
                problem = str(error).partition("\n")[0]
                self.gap(
                    f"what the partitions of {each.name} are made of is not known ({problem})", each.number
                )
                continue
            self._tell_partitions(each, partitions)
        self.insist()
        self._log_warnings()

    def describe_parts(self, node: Node) -> None:
        """After a job that failed, publish of what the JVM puts together what it is made of.

        The tasks that had ended may have left it to others. What else there is to tell may still change.
        """
        with self._lock:
            pending = node.ancestry(lambda each: each.is_described)
        for each in pending:
            describe = each.describe
            if each.relation == contract.STATIC and describe is not None:
                with contextlib.suppress(Exception):  # what it is made of is missing, or the JVM has gone
                    self._tell_partitions(each, describe())
                    each.describe = None

    def _tell_partitions(self, node: Node, partitions: list[Any]) -> None:
        for start_at in range(0, len(partitions), PARTITIONS_IN_EVENT):
            piece = partitions[start_at : start_at + PARTITIONS_IN_EVENT]
            self.emit(contract.PARTITIONS, node=node.number, partitions=piece)

    # -- nodes and operations ------------------------------------------------------------------------

    @property
    def frames(self) -> list[Frame]:
        """The operations that this thread is in, outermost first."""
        frames: list[Frame] | None = getattr(self._local, "frames", None)
        if frames is None:
            frames = self._local.frames = []
        return frames

    def new_node(self, name: str, **fields: Any) -> Node:
        """A node in the current operation; outside of one it is public."""
        frames = self.frames
        node = Node(
            next(self._numbers), name, call_site=frames[0].call_site if frames else call_site(), **fields
        )
        if frames:
            frames[0].made.append(node)
            node.operation = -1  # a step until its operation says which node it gave
        return node

    def node_of(self, dataset: Any) -> Node:
        """The node of an RDD; one that the agent did not see being made becomes a source."""
        node = getattr(dataset, "_lineage_node", None)
        if node is None:
            node = Node(
                next(self._numbers),
                dataset.name() or type(dataset).__name__,
                kind="source",
                relation=contract.SOURCE,
                exact=False,
                reason="made outside of the RDD operations that are captured",
            )
            dataset._lineage_node = node
            if self.dataframes_off:  # else borders know the RDDs of DataFrames
                self.gap(self.dataframes_off, node.number)
        return node

    @contextlib.contextmanager
    def operation(self, name: str, inputs: list[Any]) -> Iterator[Frame]:
        """One call of an operation of PySpark; nested calls are parts of the outermost."""
        frame = Frame(name, call_site(), [self.node_of(each) for each in inputs])
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()

    def finish(self, frame: Frame, result: Any) -> None:
        """Name the node of the operation's result after it; the others that it made are its steps.

        An operation may give several RDDs in a list (randomSplit): each is a result, with no steps.
        """
        results = result if isinstance(result, list) else [result]
        nodes = [getattr(each, "_lineage_node", None) for each in results]
        public = [node for node in nodes if node is not None and node in frame.made]
        if not public:
            return
        for made in frame.made:
            if made not in public:
                made.operation, made.name = public[0].number, f"{frame.name}: {made.name}"
                made.kind = "step"
        for node in public:
            node.operation, node.name, node.call_site = None, frame.name, frame.call_site

    @contextlib.contextmanager
    def serving(self, action: str | None) -> Iterator[None]:
        """Jobs that this thread starts serve the action of this number; None: that of before."""
        with contextlib.ExitStack() as properties:
            if action is not None:
                properties.enter_context(self.property_set(ACTION, action))
            properties.enter_context(self.property_set(KEEPING, self._is_keeping()))
            yield

    def _is_keeping(self) -> str | None:
        """For KEEPING: is an RDD persisted, or the rows of a DataFrame?"""
        try:
            return None if self.context._jsc.sc().getPersistentRDDs().isEmpty() else "true"
        except Exception:  # noqa: BLE001 - the JVM may have gone
            return None

    @contextlib.contextmanager
    def property_set(self, key: str, value: str | None) -> Iterator[None]:
        """A local property of the jobs that this thread starts; None takes it away."""
        before = self.context.getLocalProperty(key)
        self.context.setLocalProperty(key, value)
        try:
            yield
        finally:
            if getattr(self.context, "_jsc", None) is not None:
                self.context.setLocalProperty(key, before)

    @contextlib.contextmanager
    def adapting(self, **adapters: Any) -> Iterator[None]:
        """Adapters of the current operation (see Frame) while a part of it runs."""
        if not self.frames:
            yield
            return
        frame = self.frames[-1]
        before = {name: getattr(frame, name) for name in adapters}
        vars(frame).update(adapters)
        try:
            yield
        finally:
            vars(frame).update(before)

    @contextlib.contextmanager
    def inner_job(self) -> Iterator[None]:
        """A job that a transformation runs for itself (sortBy counts and samples): its tail is not captured.

        What such a job leaves behind for others is: a shuffle that it wrote or a partition that it cached is
        read again by the jobs that follow. Those chains were wrapped before, outside of this.
        """
        before = getattr(self._local, "is_inner", False)
        self._local.is_inner = True
        self._unclaimed.begin_inner_job()
        try:
            yield
        finally:
            self._unclaimed.end_inner_job()
            self._local.is_inner = before

    def captured(self, pipeline: Pipeline, *, writes_tags: bool = False) -> Capture:
        """What the executors run for `pipeline`."""
        if getattr(self._local, "is_inner", False):
            return Capture(pipeline.functions, None)
        nodes = tuple(node.number for node in pipeline.nodes)
        ours = [node.number for node in pipeline.nodes if node.is_published]
        partitions = self.flow_partitions
        sender = producer.sender_for(self.settings)
        plan = Plan(
            application_id=self.application_id,
            settings=self.settings,
            flow_partitions=partitions,
            input_node=pipeline.input_node.number,
            reads_shuffle=pipeline.input_node.is_shuffle,
            read_by_action=ours[-1] if ours and ours[-1] != nodes[-1] else None,
            sides=pipeline.input_node.sides,
            reads_sides=pipeline.input_node.has_sides,
            writes_tags=writes_tags,
            nodes=nodes,
            value_nodes=value_filters.filtered_operations(self.settings, pipeline.nodes)
            if self.settings.detailed
            else (),
            user_nodes=tuple(node.number for node in pipeline.nodes if node.name.startswith("mapPartitions")),
            names=self._names(pipeline.nodes) if self.settings.redact else (),
            problem=self._flow_problem or (sender.silence() if sender is not None else ""),
        )
        return Capture(pipeline.functions, plan)

    def _names(self, nodes: Iterable[Node]) -> tuple[str, ...]:
        """The name of the public operation that each node is or belongs to."""
        now = self.frames[0].name if self.frames else ""  # has not named its steps yet
        return tuple(now if now and node.operation == -1 else node.name.partition(":")[0] for node in nodes)


def _kind(problem: str) -> str:
    """What a problem is in general: processes may know more or less exactly why it came."""
    return problem.partition(" (")[0]
