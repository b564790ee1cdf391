"""Fits of Spark ML: a library of the JVM runs jobs for one call, whose result is one record, the model.

A fit is a sink, made of all rows that its jobs read. While it runs, a local property of its thread says so:
plans that Spark makes there give their rows to it, and so do task runs of a plan that was made before. These
runs wait until the fit has ended. Of several runs of one partition one is enough: algorithms read their input
again and again. An estimator inside of another one (of a pipeline, of a cross validation) is a part of that.
Whatever fails here leaves the estimator as it is; then the rows that it read are a sink of their own.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.log import logger
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.module_imports import when_imported
from spark_agent.driver.monkeypatch import frame_class, like
from spark_agent.driver.nodes import Node, failure_reason
from spark_agent.sql.runtime.planned_query import PlanningCall

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

#: The local property of the jobs of a fit: its number among fits. TapBuffer.java reads it.
TAKER = "spark.lineage.taker"
_MODULE = "pyspark.ml.base"
_UNSEEN = "an action on an RDD inside of it is a sink of its own: the rows that it read are not among these"

Manifest = dict[str, Any]


@dataclass(eq=False)
class _Fit:
    """One fit that is under way. `sink` is made when it has ended."""

    estimator: str
    part_name: str  # of the nodes that give it rows; empty: what Spark calls each of them
    actions_before: int
    nodes: list[int] = field(default_factory=list)  # whose plans were made for it
    bounds: list[str] = field(default_factory=list)  # why rows that it read are not known
    runs: dict[tuple[int, int], Manifest] = field(default_factory=dict)  # by node and split

    def add(self, run: Manifest) -> None:
        """Of runs of one partition the one counts that was delivered as a whole, and read the most."""
        place = run["input"], run["split"]
        before = self.runs.get(place)
        if before is None or _worth(run) > _worth(before):
            self.runs[place] = run


def _worth(run: Manifest) -> tuple[bool, int]:
    return not run["dropped"], run["outputs"]


class Fits:
    """The fits of one application. Users' threads begin and end them; the thread of `JvmEvents` adds runs."""

    def __init__(self, session: Session, report: Callable[[str], None], *, is_pinned: bool) -> None:
        """`report` puts a line behind those that the JVM has reported so far.

        Unless `is_pinned`, no thread of Python has jobs of the JVM to itself, and there are no fits.
        """
        self._session, self._report, self._is_pinned = session, report, is_pinned
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._fits: dict[int, _Fit] = {}
        self._sinks: dict[int, Node] = {}  # of fits that have ended, whose runs are not published yet
        self._given: set[int] = set()  # nodes whose rows a library of the JVM got

    def install(self) -> None:
        """Patch estimators, once the user's program has imported them."""
        if not self._is_pinned:
            return

        def patch(module: Any) -> None:
            estimator = module.Estimator
            self._session.patches.replace(estimator, "fit", self._fit(estimator.__dict__["fit"]))

        self._session.patches.waiting.append(when_imported(_MODULE, patch))

    # -- a call of the user's ------------------------------------------------------------------------

    def _fit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
            number = begin(self, args, kwargs)
            if number is None:
                return original(self, *args, **kwargs)
            try:
                model = original(self, *args, **kwargs)
            except BaseException as error:
                end(number, error)
                raise
            end(number, None)
            raise_if_lost()
            return model

        begin, end, raise_if_lost = self._begin, self._end, self._session.events.raise_if_lost
        return like(original, hiding(fit))

    def _begin(self, estimator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
        """The number of a fit that begins; None inside of another one, and of one for each of several params.

        Never raises.
        """
        dataset = args[0] if args else kwargs.get("dataset")
        params = args[1] if len(args) > 1 else kwargs.get("params")
        if isinstance(params, (list, tuple)) or not isinstance(dataset, frame_class()):
            return None
        return self._take(type(estimator).__name__)

    def _take(self, estimator: str, part_name: str = "") -> int | None:
        """Let jobs of this thread be those of a new fit; its number, None inside of another. Never raises."""
        try:
            context = self._session.context
            if not self._is_pinned or context.getLocalProperty(TAKER):
                return None
            number = next(self._numbers)
            with self._lock:
                self._fits[number] = _Fit(estimator, part_name, self._session.scope.actions)
            context.setLocalProperty(TAKER, str(number))
        except Exception:  # noqa: BLE001 - an agent bug, or a context that has gone
            logger.debug("a fit is not followed as one", exc_info=True)
            return None
        return number

    def _leave(self) -> None:
        """This thread's jobs are nobody's again. Never raises."""
        try:
            if getattr(self._session.context, "_jsc", None) is not None:
                self._session.context.setLocalProperty(TAKER, None)
        except Exception:  # noqa: BLE001 - a context that has gone
            logger.debug("a fit has no end", exc_info=True)

    @contextlib.contextmanager
    def rows_given(self, name: str) -> Iterator[list[int]]:
        """The nodes, of this name, whose rows a library of the JVM gets in a block that is no fit."""
        nodes: list[int] = []
        number = self._take("", name)
        try:
            yield nodes
        finally:
            if number is not None:
                self._leave()
                with self._lock:
                    nodes += self._fits.pop(number).nodes

    def _end(self, number: int, error: BaseException | None) -> None:
        """Never raises."""
        self._leave()
        try:
            fit = self._fits[number]
            sink = self._session.scope.new_node("fit", kind="sink", relation=contract.AGGREGATE)
            sink.description = fit.estimator
            if self._session.scope.actions != fit.actions_before:
                sink.make_inexact(_UNSEEN)
            if error is not None:
                sink.make_inexact(failure_reason(sink.name))
            self._session.nodes.register(sink)
            if error is None:
                self._session.events.emit(contract.PARTITIONS, node=sink.number, partitions=[{"split": 0}])
            self._session.events.action_ended(sink.number, sink.name, error)
            self._sinks[number] = sink
            self._report(json.dumps({"type": "taken", "number": number}))
        except Exception as problem:  # noqa: BLE001 - an agent bug, or a JVM that has gone
            self._session.events.gap(f"what a fit was made of is not followed ({problem!r})")

    # -- what queries report -------------------------------------------------------------------------

    def part_name(self, call: PlanningCall) -> str:
        """What the node of rows is called that a call of a library gets."""
        fit = None if call.taker is None else self._fits.get(call.taker)
        return fit.part_name if fit is not None and fit.part_name else call.spark_name

    def give(self, node: int, number: int | None) -> None:
        """A library of the JVM gets the rows of this node, in a call of that number, if in one."""
        with self._lock:
            self._given.add(node)
            if number in self._fits:
                self._fits[number].nodes.append(node)

    def give_unknown(self, number: int, reason: str) -> None:
        """A call of a library gets rows that are not followed."""
        with self._lock:
            if number in self._fits:
                self._fits[number].bounds.append(reason)

    def takes(self, run: Manifest) -> bool:
        """Is it a task run whose rows a fit got? Then it is published once the fit has ended."""
        number = run.pop("taker", None)
        with self._lock:
            fit = self._fits.get(number)
            if fit is None or run["input"] not in self._given:
                return False
            fit.add(run)
        return True

    def ended(self, number: int) -> None:
        """All that the JVM reports of a fit has been taken."""
        with self._lock:
            fit, sink = self._fits.pop(number), self._sinks.pop(number, None)
        for run in fit.runs.values():
            run["action"] = None if sink is None else sink.number
            self._session.events.publish_manifest(run)
        if sink is None:
            return
        events = self._session.events
        if fit.bounds and sink.exact:
            sink.make_inexact(f"rows that it read are not known: {fit.bounds[0]}")
            events.emit(contract.NODE_REGISTERED, **sink.event())
        for port, parent in enumerate(sorted({node for node, _ in fit.runs})):
            events.emit(contract.LINK, source=parent, target=sink.number, port=port)

    def end_all(self) -> None:
        """The application ends: what waits is published, of fits that have not ended as nobody's."""
        for number in list(self._fits):
            self.ended(number)
