"""Where DataFrames become RDDs, and RDDs DataFrames: the same records in the same partitions, one to one.

`DataFrame.rdd` (so `foreach` and `foreachPartition`, too) reads the plan's rows in Python: its node is that
of the tap at the top of the plan, which counts them in the same task. `createDataFrame` of an RDD or a list,
and `toDF`, number the rows of an RDD that a Python worker of the same task gives: their ids are those of its
node. `checkpoint` and `localCheckpoint` keep the rows of a plan. Whatever fails here leaves DataFrame and RDD
as PySpark made them; their records then are not followed across that border, and answers say so.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.producer import logger
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.monkeypatch import frame_class, is_rdd, like, rdd_module
from spark_agent.driver.nodes import Node
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.runtime.persisted import KeptNodes
from spark_agent.sql.runtime.rdd_reads import ReadAgain
from spark_agent.sql.types import Plan

if TYPE_CHECKING:
    from spark_agent.driver.session import Session
    from spark_agent.sql.jvm_gateway import Jvm

#: RDDs that DataFrames were made of and that are remembered: of older ones the records are not followed.
MOST_GIVEN = 10_000
#: What the JVM puts between a DataFrame and the RDD that Python gave it: at most so many, of one class.
_MOST_BETWEEN, _BETWEEN = 10, "MapPartitionsRDD"


class Borders:
    """The borders of one application. Thread-safe, as far as `Queries` and users' threads meet here."""

    def __init__(
        self, session: Session, jvm: Jvm, catalyst: Catalyst, kept: KeptNodes, read_again: ReadAgain
    ) -> None:
        self._session, self._jvm, self._catalyst = session, jvm, catalyst
        self._kept, self._read_again = kept, read_again
        self._local = threading.local()
        self._lock = threading.Lock()
        self._given: OrderedDict[int, Node] = OrderedDict()  # by the number of the JVM's RDD
        self._undescribed: dict[int, Node] = {}
        self._below: dict[int, list[Node]] = {}  # node of a plan's rows -> RDDs that the plan reads
        self._limited: set[int] = set()  # nodes that are told of more rows than their plans give
        self._unfollowed: dict[tuple[int, ...], int] = {}  # columns of plans that are not covered -> node

    def install(self) -> None:
        """Patch DataFrame, SparkSession and RDD, once there is a SparkSession."""
        from pyspark.sql import SparkSession

        replace, rdd = self._session.patches.replace, rdd_module().RDD
        frame = frame_class()
        stock = frame.__dict__["rdd"]
        is_kept = isinstance(stock, functools.cached_property)
        getter = self._rdd(stock.func if is_kept else stock.fget)
        patched: Any = functools.cached_property(getter) if is_kept else property(getter)
        if is_kept:
            patched.__set_name__(frame, "rdd")
        replace(frame, "rdd", patched)
        for name in ("checkpoint", "localCheckpoint"):
            replace(frame, name, self._checkpoint(getattr(frame, name)))
        replace(SparkSession, "_create_dataframe", self._create(SparkSession.__dict__["_create_dataframe"]))
        replace(rdd, "_to_java_object_rdd", self._give(rdd._to_java_object_rdd))

    # -- an RDD of a DataFrame -----------------------------------------------------------------------

    def _rdd(self, stock: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def rdd(self: Any) -> Any:
            made = stock(self)
            if getattr(made, "_lineage_node", None) is None:
                node = attempt(self._jdf)
                if node is not None:
                    made._lineage_node = node
            return made

        attempt = self._safe(self._node_of_rows)
        return like(stock, hiding(rdd))

    def _node_of_rows(self, java_frame: Any) -> Node:
        """The node of an RDD that has the rows of a plan."""
        plan = java_frame.queryExecution().optimizedPlan()
        number = self._rows_of(plan)
        if number is None:
            number = self._unfollowed.get(self._kept.output(plan))
            why = "made of a DataFrame whose own records are not followed"
        elif number in self._limited:
            why = "made of a DataFrame with a limit that another action had run before"
        else:
            rows = _stand_in(number)
            rows.parents = self._below.get(number, [])
            return rows
        parents = [] if number is None else [_stand_in(number)]
        node = self._session.scope.new_node(
            "rdd", relation=contract.DATASET, exact=False, reason=why, parents=parents
        )
        if number is None:
            node.kind, node.relation = "source", contract.SOURCE
        return node

    def _rows_of(self, plan: Plan) -> int | None:
        """The node whose records are the rows of an optimised plan."""
        found = self._jvm.outputs(plan)
        return found[0] if len(found) == 1 else None

    # -- a DataFrame of an RDD -----------------------------------------------------------------------

    def _create(self, stock: Callable[..., Any]) -> Callable[..., Any]:
        session, local = self._session, self._local

        def _create_dataframe(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
            if session.scope.frames:
                return stock(self, data, *args, **kwargs)
            local.given = None
            local.is_creating = True
            try:
                if not is_rdd(data):
                    return stock(self, data, *args, **kwargs)
                with session.scope.operation("createDataFrame", [data]) as frame:
                    made = stock(self, data, *args, **kwargs)
                session.scope.finish(frame, local.given)
                return made
            finally:
                local.is_creating = False
                given, local.given = local.given, None
                if given is not None:
                    attempt(given)

        attempt = self._safe(self._remember_given)
        return like(stock, hiding(_create_dataframe))

    def _give(self, stock: Callable[[Any], Any]) -> Callable[[Any], Any]:
        local = self._local

        def _to_java_object_rdd(self: Any) -> Any:
            if not getattr(local, "is_creating", False):
                return stock(self)
            pickled = self._pickled()
            made = stock(pickled)
            local.given = pickled
            return made

        return like(stock, hiding(_to_java_object_rdd))

    def _remember_given(self, pickled: Any) -> None:
        node = self._session.scope.node_of(pickled)
        if node.relation != contract.IDENTITY:
            return
        node.by_id, node.name = True, "createDataFrame"
        with self._lock:
            self._given[int(pickled._jrdd.id())] = node
            if len(self._given) > MOST_GIVEN:
                self._given.popitem(last=False)

    def given(self, leaf: Plan, kind: str) -> int | None:
        """The node of the RDD that a leaf of a plan reads; it is published."""
        if kind != "LogicalRDD":
            return None
        rdd = leaf.rdd()
        for _ in range(_MOST_BETWEEN):
            node = self._given.get(int(rdd.id()))
            if node is not None:
                self._session.nodes.register(node)
                self._undescribed[node.number] = node
                return node.number
            if self._catalyst.kind(rdd) != _BETWEEN:
                break
            rdd = rdd.dependencies().apply(0).rdd()
        return None

    # -- what is kept --------------------------------------------------------------------------------

    def _checkpoint(self, stock: Callable[..., Any]) -> Callable[..., Any]:
        def checkpoint(self: Any, *args: Any, **kwargs: Any) -> Any:
            made = stock(self, *args, **kwargs)
            attempt(self._jdf, made._jdf, bool(kwargs.get("eager", args[0] if args else True)))
            return made

        attempt = self._safe(self._keep)
        return like(stock, hiding(checkpoint))

    def _keep(self, java_frame: Any, kept: Any, is_eager: bool) -> None:
        number = self._rows_of(java_frame.queryExecution().optimizedPlan())
        if number is None or number in self._limited:
            return
        self._kept.remember(kept.queryExecution().analyzed(), number)
        if is_eager:
            self._read_again.add(number)
        else:
            self._read_again.leave_out(number)

    # -- what queries tell ---------------------------------------------------------------------------

    def note(self, node: int, parents: Iterable[int], *, is_limited: bool) -> None:
        """A plan was rewritten: `node` is that of its rows, `parents` are those that its operators read."""
        below = [found for each in parents if (found := self._undescribed.get(each)) is not None]
        if below:
            self._below[node] = below
        if is_limited:
            self._limited.add(node)

    def note_unfollowed(self, query: Plan, node: int) -> None:
        """A plan that is read as an RDD is not covered; `node` stands for it in the graph."""
        self._unfollowed[self._kept.output(query)] = node

    def _safe(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, or None where it fails: the border is not followed then, and the job goes on."""

        def attempt(*args: Any) -> Any:
            try:
                return function(*args)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with us, the user's job goes on
                problem = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
                logger.debug("while a border was crossed", exc_info=True)
                self._session.events.gap(
                    f"records are not followed between an RDD and a DataFrame ({problem})"
                )
                return None

        return attempt

    def describe(self) -> None:
        """Tell of the files of the RDDs that queries have read."""
        while self._undescribed:
            _, node = self._undescribed.popitem()
            self._session.nodes.describe(node)


def _stand_in(number: int) -> Node:
    """The node of a plan's rows as RDDs see it: it is published, and runs say how many records it has."""
    return Node(number, "rdd", relation=contract.FLOWS, is_published=True, is_in_python=True)
