"""Which operation of the user's program is being recorded in each thread, and the nodes that it makes.

A public call (`join`) is one operation. The RDDs that are made inside of it are its internal nodes. Promises
that threads do not see each other's operations. Publishes no node.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from spark_agent import contract
from spark_agent.delivery.log import logger
from spark_agent.driver.call_sites import call_site
from spark_agent.driver.event_publisher import EventPublisher
from spark_agent.driver.loop_variables import LoopVariables
from spark_agent.driver.nodes import UNNAMED_OPERATION, Node
from spark_agent.driver.pickled_chains import PickledFunction
from spark_agent.driver.sites import Site, Sites
from spark_agent.worker.plan import ACTION, PERSISTING


@dataclass
class Frame:
    """One call of a public operation by the user; RDDs that are made inside of it are its internal nodes."""

    name: str
    call_site: str
    inputs: list[Node]
    site: Site | None = None
    nodes: list[Node] = field(default_factory=list)  # that were made inside of it
    #: Wraps what an original operation gives to mapPartitions while it runs (Sort in sortByKey).
    adapter: Callable[[Any], Any] | None = None
    #: The same for mapPartitionsWithIndex (LastRead in sample).
    indexed_adapter: Callable[[Any], Any] | None = None
    #: Of saveAsTextFile: the next RDD is the sink, and its job is about to start.
    sink: Callable[[Node], None] | None = None
    #: What the next node is numbered, if that was decided before it is made.
    reserved: int | None = None
    #: Its operators in chains that were pickled meanwhile.
    pickled: list[PickledFunction] = field(default_factory=list)


class OperationScope:
    """The operations that the threads of one application are in."""

    def __init__(self, context: Any, events: EventPublisher, *, has_sites: bool = True) -> None:
        """`has_sites`: do nodes say where in the program they were made?"""
        self._context, self._events = context, events
        self._numbers = itertools.count()
        self._newest = -1
        self._sites: Sites | None = Sites() if has_sites else None
        self._loop_variables = LoopVariables()
        self._left_out_numbers = itertools.count(-1, -1)  # the job's own are those of any other run of it
        self._local = threading.local()
        #: Why the queries of SparkSessions are not followed; empty where they are.
        self.dataframes_off = ""
        #: How many actions on RDDs have begun.
        self.actions = 0

    # -- nodes ---------------------------------------------------------------------------------------

    def next_number(self) -> int:
        """The number of a new node."""
        self._newest = number = next(self._numbers)
        return number

    def new_node(self, name: str, **fields: Any) -> Node:
        """A node in the current operation; outside of one it is public.

        What is made of a node that is left out of the lineage is left out, too.
        """
        frames = self.frames
        if any(parent.is_left_out for parent in fields.get("parents", ())):
            node = Node(next(self._left_out_numbers), name, is_left_out=True, **fields)
        else:
            place = frames[0].call_site if frames else call_site()
            number = None
            if frames and frames[-1].reserved is not None:
                number, frames[-1].reserved = frames[-1].reserved, None
            node = Node(self.next_number() if number is None else number, name, call_site=place, **fields)
            if not frames and node.site is None:
                node.site = self._visit()
        if frames:
            frames[0].nodes.append(node)
            node.operation = UNNAMED_OPERATION
        return node

    def left_out_source(self, name: str, *, is_plain: bool) -> Node:
        """The node of an RDD that is read for a question about lineage, not by the job."""
        number = next(self._left_out_numbers)
        return Node(
            number, name, kind="source", relation=contract.SOURCE, is_plain=is_plain, is_left_out=True
        )

    def node_of(self, dataset: Any) -> Node:
        """The node of an RDD; one that the agent did not see being made becomes a source."""
        node: Node | None = getattr(dataset, "_lineage_node", None)
        if node is None:
            node = Node(
                self.next_number(),
                dataset.name() or type(dataset).__name__,
                kind="source",
                relation=contract.SOURCE,
                exact=False,
                reason="made outside of the RDD operations that are captured",
            )
            dataset._lineage_node = node
            if self.dataframes_off:  # else the RDD-DataFrame boundary knows the RDDs of DataFrames
                self._events.gap(self.dataframes_off, node.number)
        return node

    def operation_names(self, nodes: Iterable[Node]) -> tuple[str, ...]:
        """The name of the public operation that each node is or belongs to."""
        current = self.frames[0].name if self.frames else ""  # has not named its internal nodes yet
        return tuple(
            current if current and node.operation == UNNAMED_OPERATION else node.name.partition(":")[0]
            for node in nodes
        )

    # -- operations ----------------------------------------------------------------------------------

    @property
    def frames(self) -> list[Frame]:
        """The operations that this thread is in, outermost first."""
        frames: list[Frame] | None = getattr(self._local, "frames", None)
        if frames is None:
            frames = self._local.frames = []
        return frames

    @contextlib.contextmanager
    def operation(
        self,
        name: str,
        inputs: list[Any],
        *,
        sink: Callable[[Node], None] | None = None,
        site: Site | None = None,
    ) -> Iterator[Frame]:
        """One call of an operation of PySpark; nested calls are parts of the outermost.

        `site`: where it is called, if that was asked for.
        """
        newest: int = getattr(self._local, "newest", self._newest)
        nodes = [self.node_of(dataset) for dataset in inputs]
        frame = Frame(name, call_site(), nodes, sink=sink)
        if not self.frames and not any(node.is_left_out for node in nodes):
            frame.site = site or self._visit()
            self._note_read(frame, newest)
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()
            self._local.newest = self._newest

    @property
    def has_sites(self) -> bool:
        """Do nodes say where in the program they were made?"""
        return self._sites is not None

    def site_at(self, waiting: FrameType | None) -> Site | None:
        """The call in which a thread waits, counted, as an operation has it. Never raises."""
        return None if waiting is None else self._visit(waiting)

    def _visit(self, innermost: FrameType | None = None) -> Site | None:
        """This call out of the user's program, counted, where nodes have sites. Never raises."""
        try:
            return None if self._sites is None else self._sites.visit(innermost)
        except Exception as error:  # noqa: BLE001 - an agent bug must not fail the user's operation
            self._end_sites(error)
            return None

    def _note_read(self, frame: Frame, newest: int) -> None:
        """Never raises."""
        try:
            if frame.site is not None:
                self._loop_variables.note(frame.site, frame.name, frame.inputs, newest)
        except Exception as error:  # noqa: BLE001 - an agent bug must not fail the user's operation
            self._end_sites(error)

    def _end_sites(self, error: Exception) -> None:
        self._sites = None
        logger.warning("from here on operations have no site, and explanations are longer: %r", error)

    def finish(self, frame: Frame, result: Any) -> None:
        """Name the node of the operation's result after it; its other nodes are internal.

        An operation may give several RDDs in a list (randomSplit): each is a result.
        """
        results = result if isinstance(result, list) else [result]
        nodes = [getattr(dataset, "_lineage_node", None) for dataset in results]
        public = [node for node in nodes if node is not None and node in frame.nodes]
        if not public:
            return
        for node in frame.nodes:
            if node not in public:
                node.make_internal(public[0].number, frame.name)
        for node in public:
            node.make_public(frame.name, frame.call_site, frame.site)

    @property
    def adapter(self) -> Callable[[Any], Any] | None:
        """Of the innermost operation (see Frame)."""
        return self.frames[-1].adapter if self.frames else None

    @property
    def indexed_adapter(self) -> Callable[[Any], Any] | None:
        """Of the innermost operation (see Frame)."""
        return self.frames[-1].indexed_adapter if self.frames else None

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

    # -- jobs ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def serving(self, action: str | None) -> Iterator[None]:
        """Jobs that this thread starts serve the action of this number; None: that of before."""
        with contextlib.ExitStack() as properties:
            if action is not None:
                properties.enter_context(self._property(ACTION, action))
            properties.enter_context(self._property(PERSISTING, self._has_persisted()))
            yield

    def _has_persisted(self) -> str | None:
        """For PERSISTING: is an RDD persisted, or the rows of a DataFrame?"""
        try:
            return None if self._context._jsc.sc().getPersistentRDDs().isEmpty() else "true"
        except Exception:  # noqa: BLE001 - the JVM may have gone
            return None

    @contextlib.contextmanager
    def _property(self, key: str, value: str | None) -> Iterator[None]:
        """A local property of the jobs that this thread starts; None takes it away."""
        before = self._context.getLocalProperty(key)
        self._context.setLocalProperty(key, value)
        try:
            yield
        finally:
            if getattr(self._context, "_jsc", None) is not None:
                self._context.setLocalProperty(key, before)

    @contextlib.contextmanager
    def inner_job(self) -> Iterator[None]:
        """A job that a transformation runs for itself (sortBy counts and samples): its tail is not captured.

        What such a job leaves behind is captured: a shuffle that it wrote, or a partition that it cached, is
        read again by the jobs that follow. Those chains were wrapped before, outside of this.
        """
        before = self.is_in_inner_job
        self._local.is_in_inner_job = True
        self._events.unclaimed.begin_inner_job()
        try:
            yield
        finally:
            self._events.unclaimed.end_inner_job()
            self._local.is_in_inner_job = before

    @property
    def is_in_inner_job(self) -> bool:
        """Does this thread start the jobs of a transformation?"""
        return getattr(self._local, "is_in_inner_job", False)


def is_left_out(dataset: Any) -> bool:
    """Is an RDD made of what was read for a question about lineage, so that it is no part of the job?"""
    node: Node | None = getattr(dataset, "_lineage_node", None)
    return node is not None and node.is_left_out
