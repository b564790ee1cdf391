"""PySpark's RDD operations while lineage is on: which are replaced, which are only named.

`install` patches the classes, `Patches.undo` gives them back. An operation that is not captured keeps its
own code; its node says that it is a bound and why. Replaced operations give the same rows in the same
order; what is captured is in `operators` and `shuffle`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from spark_agent import contract, partitions
from spark_agent.capture import ACTION, CapturingSerializer, Operator, Pipeline, hide_agent
from spark_agent.nodes import Node, inexact
from spark_agent.operators import Combine, Filter, FlatMap, Join, Map, Merge, Order, Sort, TextSink

if TYPE_CHECKING:
    from spark_agent.session import Session

#: Operations that only need their name; what they do is made of the captured ones, or is a bound.
NAMED = (
    "aggregateByKey", "cartesian", "cogroup", "distinct", "flatMapValues", "foldByKey", "glom", "groupBy",
    "groupByKey", "groupWith", "intersection", "keyBy", "keys", "mapPartitionsWithIndex", "mapValues",
    "pipe", "randomSplit", "reduceByKey", "repartition", "repartitionAndSortWithinPartitions", "sample",
    "sampleByKey", "sortBy", "subtract", "subtractByKey", "values", "zip", "zipWithIndex",
    "zipWithUniqueId",
)  # fmt: skip
#: Actions whose result is not captured record by record: a sink with a bound.
BOUNDED_ACTIONS = (
    "aggregate", "collectAsMap", "collectWithJobGroup", "count", "countApprox", "countApproxDistinct",
    "countByKey", "countByValue", "first", "fold", "foreach", "foreachPartition", "histogram", "isEmpty",
    "lookup", "max", "mean", "meanApprox", "min", "reduce", "reduceByKeyLocally", "sampleStdev",
    "sampleVariance", "saveAsHadoopDataset", "saveAsHadoopFile", "saveAsNewAPIHadoopDataset",
    "saveAsNewAPIHadoopFile", "saveAsPickleFile", "saveAsSequenceFile", "stats", "stdev", "sum",
    "sumApprox", "take", "takeOrdered", "takeSample", "toLocalIterator", "top", "treeAggregate",
    "treeReduce", "variance",
)  # fmt: skip
#: SparkContext's makers of RDDs that are sources.
SOURCES = (
    "binaryFiles", "binaryRecords", "emptyRDD", "hadoopFile", "hadoopRDD", "newAPIHadoopFile",
    "newAPIHadoopRDD", "parallelize", "pickleFile", "range", "sequenceFile", "textFile", "wholeTextFiles",
)  # fmt: skip


#: Of these, the ones whose records any Python can unpickle.
PLAIN_SOURCES = frozenset(("binaryFiles", "binaryRecords", "textFile", "wholeTextFiles"))


class Patches:
    """Replaced attributes and how to give them back."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        self._replaced.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    def undo(self) -> None:
        while self._replaced:
            owner, name, original = self._replaced.pop()
            setattr(owner, name, original)


def install(session: Session) -> None:
    """Patch RDD, PipelinedRDD and SparkContext for `session`."""
    from pyspark import SparkContext

    module = _rdd_module()
    replace = session.patches.replace
    base, pipelined = module.RDD, module.PipelinedRDD
    replace(base, "__init__", _jvm_rdd_init(session, base.__init__))
    replace(pipelined, "__init__", _pipelined_init(session, pipelined, pipelined.__init__))
    replace(module, "_wrap_function", _wrap_function(session, module._wrap_function))
    operations: dict[str, Callable[..., Any]] = {
        "map": _map,
        "flatMap": _flat_map,
        "filter": _filter,
        "mapPartitions": _map_partitions(session, base.mapPartitions),
        "combineByKey": _combine_by_key,
        "partitionBy": _partition_by(session),
        "sortByKey": _sort_by_key(session, base.sortByKey),
        "join": _join(keep_left=False, keep_right=False),
        "leftOuterJoin": _join(keep_left=True, keep_right=False),
        "rightOuterJoin": _join(keep_left=False, keep_right=True),
        "fullOuterJoin": _join(keep_left=True, keep_right=True),
        "union": _union(session, base.union),
        "coalesce": _coalesce(session, base.coalesce),
    }
    for name in NAMED:
        if name in base.__dict__:
            operations[name] = base.__dict__[name]
    for name, function in operations.items():
        replace(base, name, _operation(session, name, function, base.__dict__[name]))
    for name in BOUNDED_ACTIONS:
        if name in base.__dict__:
            stock = base.__dict__[name]
            replace(base, name, _action(session, name, stock, stock))
    replace(base, "collect", _action(session, "collect", _collect(session, base.collect), base.collect))
    replace(base, "saveAsTextFile", _save_as_text_file(session, base.saveAsTextFile))
    for name in SOURCES:
        if name in SparkContext.__dict__:
            replace(SparkContext, name, _source(session, name, SparkContext.__dict__[name]))
    replace(SparkContext, "union", _context_union(session, SparkContext.union))
    replace(SparkContext, "stop", _stop(session, SparkContext.stop))


def _rdd_module() -> Any:
    try:
        from pyspark.core import rdd
    except ImportError:  # PySpark 3.5
        from pyspark import rdd
    return rdd


def _is_rdd(value: Any) -> bool:
    return isinstance(value, _rdd_module().RDD)


def _like(stock: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` under the name and file of `stock`: PySpark takes the first frame of its own as the call.

    Spark's UI shows that call and the user's line before it; with our file there it would show ours.
    """
    functools.update_wrapper(function, stock)
    code = function.__code__
    stock_code = stock.__code__
    function.__code__ = code.replace(
        co_filename=stock_code.co_filename,
        co_name=stock_code.co_name,
        co_firstlineno=stock_code.co_firstlineno,
    )
    return function


# -- wrappers ---------------------------------------------------------------------------------------


def _inputs(self: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> list[Any]:
    given = [self, *args, *kwargs.values()]
    flat = [one for each in given for one in (each if isinstance(each, list) else [each])]
    return [each for each in flat if _is_rdd(each)]


def _operation(
    session: Session, name: str, function: Callable[..., Any], stock: Callable[..., Any]
) -> Callable[..., Any]:
    """A transformation: what it makes is one public node and its steps."""
    function.__qualname__ = stock.__qualname__  # Python names it where the arguments are wrong

    def operation(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.frames:
            return function(self, *args, **kwargs)
        try:
            with session.operation(name, _inputs(self, args, kwargs)) as frame:
                result = function(self, *args, **kwargs)
        except BaseException as error:
            hide_agent(error)
            raise
        session.finish(frame, result)
        return result

    return _like(stock, operation)


def _action(
    session: Session, name: str, function: Callable[..., Any], stock: Callable[..., Any]
) -> Callable[..., Any]:
    """An action: a sink node, and a number that the manifests of its jobs carry.

    Inside a transformation (sortBy counts and samples) it is the library's own job and captures nothing.
    """

    def action(self: Any, *args: Any, **kwargs: Any) -> Any:
        frames = session.frames
        if frames and frames[0].name not in _ACTIONS:
            adapter, frames[-1].adapter = frames[-1].adapter, None
            try:
                with session.inner_job():
                    return function(self, *args, **kwargs)
            finally:
                frames[-1].adapter = adapter
        if frames:
            return function(self, *args, **kwargs)
        sink = session.new_node(name, kind="sink", parents=[session.node_of(self)])
        if name == "collect":
            sink.relation = contract.IDENTITY
        else:
            sink.relation, sink.exact = contract.DATASET, False
            sink.reason = inexact(name, contract.DATASET)
        session.publish(sink)
        try:
            with session.operation(name, [self]), session.property_set(ACTION, str(sink.number)):
                result = function(self, *args, **kwargs)
        except BaseException as error:
            hide_agent(error)
            raise
        session.describe(sink)
        return result

    return _like(stock, action)


_ACTIONS = frozenset((*BOUNDED_ACTIONS, "collect", "saveAsTextFile"))


def _source(session: Session, name: str, stock: Callable[..., Any]) -> Callable[..., Any]:
    def source(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.frames:
            return stock(self, *args, **kwargs)
        with session.operation(name, []) as frame:
            result = stock(self, *args, **kwargs)
        session.finish(frame, result)
        node = session.node_of(result)
        node.kind, node.relation, node.exact, node.reason = "source", contract.SOURCE, True, ""
        node.parents = []
        if name == "textFile":
            path = str(args[0] if args else kwargs.get("name"))
            node.description = path
            node.dataset = partitions.dataset(path)
            jvm_rdd = result._jrdd
            node.describe = lambda: partitions.file_splits(jvm_rdd)
        return result

    return _like(stock, source)


def _stop(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def stop(self: Any) -> None:
        try:
            if self is session.context:
                session.stop()
        finally:
            stock(self)

    return _like(stock, stop)


# -- where RDDs are made ----------------------------------------------------------------------------


def _jvm_rdd_init(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    """RDDs that the JVM computes: a bound on their inputs until the operation says better."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        stock(self, *args, **kwargs)
        frames = session.frames
        if frames:
            name = frames[-1].name
            node = session.new_node(name, parents=list(frames[-1].inputs))
            node.relation, node.exact = contract.DATASET, False
            node.reason = inexact(name, contract.DATASET)
            self._lineage_node = node

    return _like(stock, __init__)


def _pipelined_init(session: Session, pipelined: Any, stock: Callable[..., Any]) -> Callable[..., Any]:
    """RDDs that Python computes: the chain stays flat, each function with its node."""

    def __init__(
        self: Any, prev: Any, func: Any, preservesPartitioning: bool = False, isFromBarrier: bool = False
    ) -> None:
        is_first = not isinstance(prev, pipelined) or not prev._is_pipelinable()
        stock(self, prev, func, preservesPartitioning, isFromBarrier)
        frames = session.frames
        begin_sink = frames[-1].sink if frames else None
        if begin_sink is not None:
            func = TextSink(func)
        node = session.new_node(_step_name(func, frames), parents=[session.node_of(prev)], is_piped=True)
        if isinstance(func, Operator):
            func.node = node.number
            node.relation = func.relation
        else:
            node.relation, node.exact = contract.PARTITION, False
            node.reason = inexact(node.name, contract.PARTITION)
        self._lineage_node = node
        if is_first:
            self.func = Pipeline((func,), (node,), node.parents[0])
        elif isinstance(prev.func, Pipeline):
            before = prev.func
            self.func = Pipeline((*before.functions, func), (*before.nodes, node), before.input_node)
        if begin_sink is not None:
            begin_sink(node)

    return _like(stock, __init__)


def _step_name(func: Any, frames: list[Any]) -> str:
    if isinstance(func, Operator):
        return type(func).__name__.lower()
    return frames[-1].name if frames else "mapPartitions"


def _wrap_function(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def _wrap_function(sc: Any, func: Any, deserializer: Any, serializer: Any, profiler: Any = None) -> Any:
        if isinstance(func, Pipeline):
            func = session.captured(func)
            serializer = CapturingSerializer(serializer, session.manifests)
        return stock(sc, func, deserializer, serializer, profiler)

    return _like(stock, _wrap_function)


# -- replaced operations ----------------------------------------------------------------------------


def _map(self: Any, f: Callable[[Any], Any], preservesPartitioning: bool = False) -> Any:
    return self.mapPartitionsWithIndex(Map(f), preservesPartitioning)


def _flat_map(self: Any, f: Callable[[Any], Iterable[Any]], preservesPartitioning: bool = False) -> Any:
    return self.mapPartitionsWithIndex(FlatMap(f), preservesPartitioning)


def _filter(self: Any, f: Callable[[Any], Any]) -> Any:
    return self.mapPartitionsWithIndex(Filter(f), True)


def _map_partitions(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def map_partitions(self: Any, f: Callable[[Any], Any], preservesPartitioning: bool = False) -> Any:
        adapter = session.frames[-1].adapter if session.frames else None
        if adapter is not None:
            return self.mapPartitionsWithIndex(adapter(f), preservesPartitioning)
        return stock(self, f, preservesPartitioning)

    return map_partitions


def _combine_by_key(
    self: Any,
    createCombiner: Callable[[Any], Any],
    mergeValue: Callable[[Any, Any], Any],
    mergeCombiners: Callable[[Any, Any], Any],
    numPartitions: int | None = None,
    partitionFunc: Callable[[Any], int] | None = None,
) -> Any:
    from pyspark.shuffle import Aggregator

    if numPartitions is None:
        numPartitions = self._defaultReducePartitions()
    serializer, memory = self.ctx.serializer, self._memory_limit()
    aggregator = Aggregator(createCombiner, mergeValue, mergeCombiners)
    order = Order()
    combined = self.mapPartitionsWithIndex(Combine(aggregator, memory * 0.9, serializer, order), True)
    ordered = combined.mapPartitionsWithIndex(order, True)
    shuffled = ordered.partitionBy(numPartitions, partitionFunc or _rdd_module().portable_hash)
    order = Order()
    merged = shuffled.mapPartitionsWithIndex(Merge(aggregator, memory, serializer, order), True)
    return merged.mapPartitionsWithIndex(order, True)


def _partition_by(session: Session) -> Callable[..., Any]:
    def partition_by(
        self: Any, numPartitions: int | None, partitionFunc: Callable[[Any], int] | None = None
    ) -> Any:
        from pyspark.serializers import BatchedSerializer
        from pyspark.traceback_utils import SCCallSiteSync

        from spark_agent.shuffle import ShuffleWrite, TaggedSerializer

        module = _rdd_module()
        hashed = partitionFunc or module.portable_hash
        count = self._defaultReducePartitions() if numPartitions is None else numPartitions
        partitioner = module.Partitioner(count, hashed)
        if self.partitioner == partitioner:
            return self
        inner = self.ctx._unbatched_serializer
        write = ShuffleWrite(hashed, count, inner, self._memory_limit() / 2)
        keyed = self.mapPartitionsWithIndex(write, preservesPartitioning=True)
        keyed._bypass_serializer = True
        jvm = self.ctx._jvm
        with SCCallSiteSync(self.context):
            pairs = jvm.PairwiseRDD(keyed._jrdd.rdd()).asJavaPairRDD()
            jvm_partitioner = jvm.PythonPartitioner(count, id(hashed))
        values = jvm.PythonRDD.valueOfPair(pairs.partitionBy(jvm_partitioner))
        shuffled = module.RDD(values, self.ctx, BatchedSerializer(TaggedSerializer(inner)))
        shuffled.partitioner = partitioner
        _settle(shuffled._lineage_node, "shuffle", contract.FLOWS, [session.node_of(keyed)])
        shuffled._lineage_node.is_shuffle = True
        return shuffled

    return partition_by


def _settle(node: Node, name: str, relation: str, parents: list[Node]) -> None:
    """The operation knows better than the bound with which every JVM-side RDD begins."""
    node.name, node.relation, node.parents, node.exact, node.reason = name, relation, parents, True, ""


def _sort_by_key(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def sort_by_key(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = session.frames[-1]
        frame.adapter = Sort
        try:
            return stock(self, *args, **kwargs)
        finally:
            frame.adapter = None

    return sort_by_key


def _join(*, keep_left: bool, keep_right: bool) -> Callable[..., Any]:
    def join(self: Any, other: Any, numPartitions: int | None = None) -> Any:
        from pyspark.shuffle import Aggregator

        left = self.mapValues(lambda value: (1, value))
        right = other.mapValues(lambda value: (2, value))
        both = left.union(right)
        memory, serializer = both._memory_limit(), both._jrdd_deserializer
        count = both._defaultReducePartitions() if numPartitions is None else numPartitions
        aggregator = Aggregator(_list_of, _append, _extend)
        joining = Join(aggregator, memory, serializer, keep_left, keep_right)
        return both.partitionBy(count).mapPartitionsWithIndex(joining, True)

    return join


def _list_of(value: Any) -> list[Any]:
    return [value]


def _append(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


def _extend(values: list[Any], more: list[Any]) -> list[Any]:
    values.extend(more)
    return values


def _union(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def union(self: Any, other: Any) -> Any:
        parts = [_placed(session, each) for each in (self, other)]
        result = stock(*parts)
        _concatenate(session, result, parts)
        return result

    return union


def _context_union(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def union(self: Any, rdds: list[Any]) -> Any:
        if session.frames:
            return stock(self, rdds)
        with session.operation("union", list(rdds)) as frame:
            parts = [_placed(session, each) for each in rdds]
            result = stock(self, parts)
            _concatenate(session, result, parts)
        session.finish(frame, result)
        return result

    return _like(stock, union)


def _concatenate(session: Session, result: Any, parts: list[Any]) -> None:
    node = result._lineage_node
    # Inputs in another serialised form were copied by a map first; that keeps partitions and positions.
    _settle(node, "union", contract.STATIC, [session.node_of(part) for part in parts])
    jvm_rdd, jvm_parts = result._jrdd, [part._jrdd for part in parts]
    node.describe = lambda: partitions.union(jvm_rdd, jvm_parts)


def _coalesce(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def coalesce(self: Any, numPartitions: int, shuffle: bool = False) -> Any:
        if shuffle:
            return stock(self, numPartitions, shuffle)
        # A coalesce must know how many records each part has: the runs say it.
        is_counted = all(end.is_piped for end in session.node_of(self).ends(contract.STATIC))
        part = self if is_counted else _piped(session, self)
        result = stock(part, numPartitions, shuffle)
        node = result._lineage_node
        _settle(node, "coalesce", contract.STATIC, [session.node_of(part)])
        jvm_rdd = result._jrdd
        node.describe = lambda: partitions.coalesced(jvm_rdd)
        return result

    return coalesce


def _piped(session: Session, dataset: Any) -> Any:
    """`dataset` read through a Python worker, so that its records have runs and are counted.

    Not where it comes from the driver: a worker may lack the classes to unpickle it.
    """
    if all(end.is_piped or end.name in PLAIN_SOURCES for end in session.node_of(dataset).ends()):
        return dataset.mapPartitionsWithIndex(Order(), True)
    return dataset


def _placed(session: Session, dataset: Any) -> Any:
    """A part of a union: a static boundary can name the partitions of a file or of runs, not of a shuffle."""
    node = session.node_of(dataset)
    if node.is_piped or node.relation in (contract.STATIC, contract.SOURCE):
        return dataset
    return _piped(session, dataset)


def _collect(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def collect(self: Any) -> Any:
        if isinstance(getattr(self, "func", None), Pipeline) and self._is_pipelinable():
            return stock(self)
        return stock(_piped(session, self))

    return collect


def _save_as_text_file(session: Session, stock: Callable[..., Any]) -> Callable[..., Any]:
    def saveAsTextFile(self: Any, path: str, compressionCodecClass: str | None = None) -> None:
        if session.frames:
            stock(self, path, compressionCodecClass)
            return
        sinks: list[Node] = []

        def begin(sink: Node) -> None:
            sink.name, sink.kind, sink.description = "saveAsTextFile", "sink", str(path)
            sink.dataset, sink.operation = partitions.dataset(str(path)), None
            sinks.append(sink)
            session.publish(sink)
            session.context.setLocalProperty(ACTION, str(sink.number))

        with session.operation("saveAsTextFile", [self]) as frame, session.property_set(ACTION, ""):
            frame.sink = begin
            stock(self, path, compressionCodecClass)
        for sink in sinks:
            sink.describe = lambda: partitions.text_files(
                self.getNumPartitions(), str(path), compressionCodecClass
            )
            session.describe(sink)

    return _like(stock, saveAsTextFile)
