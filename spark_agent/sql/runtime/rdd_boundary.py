"""Where DataFrames become RDDs, and RDDs DataFrames: the same records in the same partitions, one to one.

`DataFrame.rdd` (so `foreach` and `foreachPartition`, too) reads the plan's rows in Python: its node is that
of the tap at the top of the plan, which counts them in the same task. `toJSON` reads the texts of these rows.
`createDataFrame` of an RDD or a list, and `toDF`, number the rows of an RDD that a Python worker of the same
task gives: their ids are those of its node. `checkpoint` and `localCheckpoint` persist the rows of a plan.
Whatever fails here leaves DataFrame and RDD as PySpark made them; their records then are not followed across
the boundary, and results say so.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.log import logger
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.monkeypatch import frame_class, is_rdd, like, rdd_module
from spark_agent.driver.nodes import Node
from spark_agent.driver.operation_scope import is_left_out
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.py4j_errors import in_short
from spark_agent.sql.runtime.fits import Fits
from spark_agent.sql.runtime.persisted_nodes import PersistedNodes
from spark_agent.sql.runtime.re_executions import ReExecutions
from spark_agent.sql.types import Plan

if TYPE_CHECKING:
    from spark_agent.driver.session import Session
    from spark_agent.sql.jvm_gateway import Jvm

#: RDDs that DataFrames were made of and that are remembered: of older ones the records are not followed.
MOST_RDDS = 10_000
#: What the JVM puts between a DataFrame and the RDD that Python gave it: at most so many, of one class.
_MOST_BETWEEN, _BETWEEN = 10, "MapPartitionsRDD"


class RddBoundary:
    """The boundary of one application. Thread-safe, as far as `Queries` and users' threads meet here."""

    def __init__(
        self,
        session: Session,
        jvm: Jvm,
        catalyst: Catalyst,
        persisted_nodes: PersistedNodes,
        re_executions: ReExecutions,
        fits: Fits,
        leave_out: Callable[[Any], None],
    ) -> None:
        """`leave_out` keeps the queries of a DataFrame out of the lineage of the job."""
        self._session, self._jvm, self._catalyst, self._fits = session, jvm, catalyst, fits
        self._leave_out = leave_out
        self._persisted_nodes, self._re_executions = persisted_nodes, re_executions
        self._local = threading.local()
        self._lock = threading.Lock()
        self._rdd_nodes: OrderedDict[int, Node] = OrderedDict()  # by the number of the JVM's RDD
        self._undescribed: dict[int, Node] = {}
        self._below: dict[int, list[Node]] = {}  # node of a plan's rows -> RDDs that the plan reads
        self._limited: set[int] = set()  # nodes with more records than their plans give rows
        self._coarse_nodes: dict[tuple[int, ...], int] = {}  # columns of plans that are not covered -> node

    def install(self) -> None:
        """Patch DataFrame, SparkSession and RDD, once there is a SparkSession."""
        from pyspark.sql import SparkSession

        replace, rdd = self._session.patches.replace, rdd_module().RDD
        frame = frame_class()
        original = frame.__dict__["rdd"]
        is_cached = isinstance(original, functools.cached_property)
        getter = self._rdd(original.func if is_cached else original.fget)
        patched: Any = functools.cached_property(getter) if is_cached else property(getter)
        if is_cached:
            patched.__set_name__(frame, "rdd")
        replace(frame, "rdd", patched)
        replace(frame, "toJSON", self._to_json(frame.toJSON))
        for name in ("checkpoint", "localCheckpoint"):
            replace(frame, name, self._checkpoint(getattr(frame, name)))
        replace(SparkSession, "_create_dataframe", self._create(SparkSession.__dict__["_create_dataframe"]))
        replace(rdd, "_to_java_object_rdd", self._to_java(rdd._to_java_object_rdd))

    # -- an RDD of a DataFrame -----------------------------------------------------------------------

    def _rdd(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def rdd(self: Any) -> Any:
            result = original(self)
            if getattr(result, "_lineage_node", None) is None:
                node = attempt(self._jdf)
                if node is not None:
                    result._lineage_node = node
            return result

        attempt = self._safe(self._node_of_rows)
        return like(original, hiding(rdd))

    def _to_json(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def toJSON(self: Any, *args: Any, **kwargs: Any) -> Any:
            with rows_given("toJSON") as nodes:
                result = original(self, *args, **kwargs)
            if len(nodes) == 1 and is_rdd(result):
                result._lineage_node = attempt(nodes[0])
            return result

        rows_given, attempt = self._fits.rows_given, self._safe(self._node_of_given)
        return like(original, hiding(toJSON))

    def _node_of_given(self, number: int) -> Node:
        """The node of an RDD that has one record for each row of a plan."""
        node = _stand_in(number)
        node.parents = self._below.get(number, [])
        return node

    def _node_of_rows(self, java_frame: Any) -> Node:
        """The node of an RDD that has the rows of a plan."""
        execution = java_frame.queryExecution()
        number = self._rows_of(execution)
        if number is None:
            number = self._coarse_nodes.get(self._catalyst.column_ids(execution.optimizedPlan()))
            why = "made of a DataFrame whose own records are not followed"
        elif number in self._limited:
            why = "made of a DataFrame with a limit that another action had run before"
        else:
            return self._node_of_given(number)
        parents = [] if number is None else [_stand_in(number)]
        node = self._session.scope.new_node(
            "rdd", relation=contract.DATASET, exact=False, reason=why, parents=parents
        )
        if number is None:
            node.kind, node.relation = "source", contract.SOURCE
        return node

    def _rows_of(self, execution: Any) -> int | None:
        """The node whose records are the rows of the plan of a QueryExecution."""
        nodes = self._jvm.outputs(execution)
        return nodes[0] if len(nodes) == 1 else None

    # -- a DataFrame of an RDD -----------------------------------------------------------------------

    def _create(self, original: Callable[..., Any]) -> Callable[..., Any]:
        session, local = self._session, self._local

        def _create_dataframe(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
            if session.scope.frames:
                return original(self, data, *args, **kwargs)
            if is_left_out(data):
                result = original(self, data, *args, **kwargs)
                leave_out(result)
                return result
            local.pickled = None
            local.is_creating = True
            try:
                if not is_rdd(data):
                    return original(self, data, *args, **kwargs)
                with session.scope.operation("createDataFrame", [data]) as frame:
                    result = original(self, data, *args, **kwargs)
                session.scope.finish(frame, local.pickled)
                return result
            finally:
                local.is_creating = False
                pickled, local.pickled = local.pickled, None
                if pickled is not None:
                    attempt(pickled)

        attempt, leave_out = self._safe(self._remember_rdd), self._safe(self._leave_out)
        return like(original, hiding(_create_dataframe))

    def _to_java(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        local = self._local

        def _to_java_object_rdd(self: Any) -> Any:
            if not getattr(local, "is_creating", False):
                return original(self)
            pickled = self._pickled()
            result = original(pickled)
            local.pickled = pickled
            return result

        return like(original, hiding(_to_java_object_rdd))

    def _remember_rdd(self, pickled: Any) -> None:
        node = self._session.scope.node_of(pickled)
        if node.relation != contract.IDENTITY:
            return
        node.by_id, node.name = True, "createDataFrame"
        with self._lock:
            self._rdd_nodes[int(pickled._jrdd.id())] = node
            if len(self._rdd_nodes) > MOST_RDDS:
                self._rdd_nodes.popitem(last=False)

    def rdd_node(self, leaf: Plan, kind: str) -> int | None:
        """The node of the RDD that a leaf of a plan reads; it is published."""
        if kind != "LogicalRDD":
            return None
        rdd = leaf.rdd()
        for _ in range(_MOST_BETWEEN):
            node = self._rdd_nodes.get(int(rdd.id()))
            if node is not None:
                self._session.nodes.register(node)
                self._undescribed[node.number] = node
                return node.number
            if self._catalyst.kind(rdd) != _BETWEEN:
                break
            rdd = rdd.dependencies().apply(0).rdd()
        return None

    # -- what is persisted --------------------------------------------------------------------------------

    def _checkpoint(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def checkpoint(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            attempt(self._jdf, result._jdf, bool(kwargs.get("eager", args[0] if args else True)))
            return result

        attempt = self._safe(self._remember_checkpoint)
        return like(original, hiding(checkpoint))

    def _remember_checkpoint(self, java_frame: Any, checkpoint: Any, is_eager: bool) -> None:
        number = self._rows_of(java_frame.queryExecution())
        if number is None or number in self._limited:
            return
        self._persisted_nodes.remember(checkpoint.queryExecution().analyzed(), number)
        if is_eager:
            self._re_executions.add(number)
        else:
            self._re_executions.leave_out(number)

    # -- what queries report -------------------------------------------------------------------------

    def note(self, node: int, parents: Iterable[int], *, is_limited: bool) -> None:
        """A plan was rewritten: `node` is that of its rows, `parents` are those that its operators read."""
        rdd_nodes = map(self._undescribed.get, parents)
        below = [rdd_node for rdd_node in rdd_nodes if rdd_node is not None]
        if below:
            self._below[node] = below
        if is_limited:
            self._limited.add(node)

    def note_coarse(self, query: Plan, node: int) -> None:
        """A plan that is read as an RDD is not covered; `node` stands for it in the graph."""
        self._coarse_nodes[self._catalyst.column_ids(query)] = node

    def _safe(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, or None where it fails: the boundary is not followed then, and the job goes on."""

        def attempt(*args: Any) -> Any:
            try:
                return function(*args)
            except Exception as error:  # noqa: BLE001 - an agent bug: the user's job goes on
                logger.debug("while the boundary of RDDs and DataFrames was crossed", exc_info=True)
                self._session.events.gap(
                    f"records are not followed between an RDD and a DataFrame ({in_short(error)})"
                )
                return None

        return attempt

    def describe(self) -> None:
        """Publish the files of the RDDs that queries have read."""
        while self._undescribed:
            _, node = self._undescribed.popitem()
            self._session.nodes.describe(node)


def _stand_in(number: int) -> Node:
    """The node of a plan's rows as RDDs see it: it is published, and runs say how many records it has."""
    return Node(number, "rdd", relation=contract.FLOWS, is_published=True, is_in_python=True)
