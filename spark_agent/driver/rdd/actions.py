"""The actions of RDDs while lineage is on: each is a sink, and gives its jobs a number for their manifests.

Four kinds. *Rows*: each record that the action took is a record of the sink. *Chosen*: the driver takes some
records (take, top), and reports which. *Aggregates*: the result is one record, made of all that the jobs
read. *Savers*: as rows, with the files that they are in. Inside a transformation (sortBy counts and samples)
an action is the library's own job and captures nothing.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery import process_sender
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver import partitions
from spark_agent.driver.call_sites import call_site
from spark_agent.driver.monkeypatch import like
from spark_agent.driver.nodes import Node, bound_reason, failure_reason
from spark_agent.driver.operation_scope import is_left_out
from spark_agent.driver.rdd.batch_formats import plain_form
from spark_agent.driver.rdd.batch_headers import (
    can_go_through_worker,
    is_pipelinable,
    through_worker,
    write_headers,
)
from spark_agent.worker.operators.adapters import WithPosition
from spark_agent.worker.plan import ACTION, Plan
from spark_agent.worker.task_run import TaskRun

if TYPE_CHECKING:
    from spark_agent.driver.session import Session
    from spark_agent.driver.sites import Site

Action = Callable[..., Any]

ROWS = ("collect", "collectAsMap", "collectWithJobGroup", "foreach", "foreachPartition", "toLocalIterator")
CHOSEN = ("first", "take", "takeOrdered", "takeSample", "top")
AGGREGATES = (
    "aggregate", "count", "countApprox", "countApproxDistinct", "countByKey", "countByValue", "fold",
    "histogram", "isEmpty", "max", "mean", "meanApprox", "min", "reduce", "reduceByKeyLocally",
    "sampleStdev", "sampleVariance", "stats", "stdev", "sum", "sumApprox", "treeAggregate", "treeReduce",
    "variance",
)  # fmt: skip
SAVERS = {
    "saveAsHadoopDataset": "hadoop",
    "saveAsHadoopFile": "hadoop",
    "saveAsNewAPIHadoopDataset": "hadoop",
    "saveAsNewAPIHadoopFile": "hadoop",
    "saveAsPickleFile": "pickle",
    "saveAsSequenceFile": "hadoop",
}
#: Where a Hadoop configuration names the folder that is written.
_OUTPUT_FOLDERS = ("mapreduce.output.fileoutputformat.outputdir", "mapred.output.dir")
ACTIONS = frozenset((*ROWS, *CHOSEN, *AGGREGATES, *SAVERS, "lookup", "saveAsTextFile", "runJob"))


def replacements(session: Session, original: Callable[[str], Action]) -> dict[str, Action]:
    """Name -> what runs in the place of `original(name)`."""
    return {
        **{name: _rows(session, name, original(name)) for name in ROWS},
        **{name: _chosen(session, name, original(name)) for name in CHOSEN},
        **{name: _aggregate(session, name, original(name)) for name in AGGREGATES},
        **{name: _saver(session, name, original(name)) for name in SAVERS},
        "lookup": _lookup(session, original("lookup")),
        "saveAsTextFile": _save_as_text_file(session, original("saveAsTextFile")),
    }


def run_job(session: Session, original: Action) -> Action:
    """SparkContext.runJob: what its function makes of the partitions is not known."""

    def action(self: Any, rdd: Any, *args: Any, **kwargs: Any) -> Any:
        if session.scope.frames or is_left_out(rdd):
            return original(self, rdd, *args, **kwargs)
        sink = _sink(session, "runJob", rdd, contract.DATASET)
        sink.make_inexact(bound_reason("runJob", contract.DATASET))
        return _run(session, sink, [rdd], lambda: original(self, rdd, *args, **kwargs))

    return like(original, hiding(action))


def _sink(session: Session, name: str, dataset: Any, relation: str, site: Site | None = None) -> Node:
    parents = [session.scope.node_of(dataset)]
    sink = session.scope.new_node(name, kind="sink", relation=relation, parents=parents, site=site)
    session.recipes.add_sink(sink.number, dataset, is_saved=name in SAVERS)
    return sink


def _run(session: Session, sink: Node, inputs: list[Any], action: Callable[[], Any]) -> Any:
    """Publish the sink, run the action with its number, describe what it read and wrote."""
    session.scope.actions += 1
    session.nodes.publish(sink)
    with (
        session.scope.operation(sink.name, inputs, site=sink.site),
        session.scope.serving(str(sink.number)),
    ):
        try:
            result = action()
        except BaseException as error:
            _publish_failure(session, sink, error)
            raise
    session.nodes.describe(sink)
    session.events.action_ended(sink.number, sink.name)
    if session.replay is not None:
        records = _records(sink.name, result)
        if records is not None:
            session.replay.gave(session.settings, sink, records)
    return result


def _records(name: str, result: Any) -> list[Any] | None:
    """The records that an action gave the program; None if it gave none, or gives them one by one."""
    if name == "first" or name in AGGREGATES:
        return [result]
    if isinstance(result, dict):
        return list(result.items())
    return result if isinstance(result, list) else None


def _publish_failure(session: Session, sink: Node, error: BaseException) -> None:
    """Tasks of it that had ended have reported their records, which are no result."""
    session.events.action_ended(sink.number, sink.name, error)
    sink.make_inexact(failure_reason(sink.name))
    session.events.emit(contract.NODE_REGISTERED, **sink.event())
    if isinstance(error, Exception):  # else the user wants to go
        session.nodes.describe_static(sink)


def _top_level(session: Session, original: Action, action: Action) -> Action:
    """`action` where the user calls it; inside another operation the original.

    So is what a program does with a replay in the session.
    """

    def dispatched(self: Any, *args: Any, **kwargs: Any) -> Any:
        frames = session.scope.frames
        if not frames and not is_left_out(self):
            return action(self, *args, **kwargs)
        if frames and frames[0].name in ACTIONS:
            return original(self, *args, **kwargs)
        with (
            session.scope.adapting(adapter=None, indexed_adapter=None),
            session.scope.serving(None),
            session.scope.inner_job(),
        ):
            return original(self, *args, **kwargs)

    return like(original, hiding(dispatched))


def _rows(session: Session, name: str, original: Action) -> Action:
    is_read_by_jvm = name in ("collect", "collectAsMap", "collectWithJobGroup", "toLocalIterator")

    def action(self: Any, *args: Any, **kwargs: Any) -> Any:
        sink = _sink(session, name, self, contract.IDENTITY)
        is_in_jvm = is_read_by_jvm and not is_pipelinable(self)
        if is_in_jvm:
            _note_unread(session, sink, self)
        elif is_read_by_jvm:
            write_headers(self)  # what it asks for is there when the RDD is persisted after this

        def run() -> Any:
            return original(through_worker(session, self) if is_in_jvm else self, *args, **kwargs)

        return _run(session, sink, [self], run)

    return _top_level(session, original, action)


def _note_unread(session: Session, sink: Node, dataset: Any) -> None:
    """Records have task runs only if a Python worker reads them; say so where none can."""
    if not can_go_through_worker(session, dataset):
        sink.make_inexact(f"the records that {sink.name} took were in the JVM only, in a form of their own")


def _aggregate(session: Session, name: str, original: Action) -> Action:
    def action(self: Any, *args: Any, **kwargs: Any) -> Any:
        sink = _sink(session, name, self, contract.AGGREGATE)
        sink.describe = lambda: [{"split": 0}]  # the result is there
        return _run(session, sink, [self], lambda: original(self, *args, **kwargs))

    return _top_level(session, original, action)


# -- records that the driver chooses ------------------------------------------------------------------

_RECORD = operator.itemgetter(0)


def _chosen(session: Session, name: str, original: Action) -> Action:
    def action(self: Any, *args: Any, **kwargs: Any) -> Any:
        sink = _sink(session, name, self, contract.FLOWS)
        if name in ("top", "takeOrdered"):
            args, kwargs = _by_record(args, kwargs)

        def run() -> Any:
            chosen = original(self.mapPartitionsWithIndex(WithPosition(), True), *args, **kwargs)
            if name == "first":
                return _report(session, sink, [chosen])[0]
            return _report(session, sink, chosen)

        return _run(session, sink, [self], run)

    return _top_level(session, original, action)


def _by_record(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments (num, key) of top and takeOrdered, with a key for triples (record, run, position)."""
    key = kwargs.get("key", args[1] if len(args) > 1 else None)
    record_key = _RECORD if key is None else lambda triple: key(triple[0])
    if len(args) > 1:
        return (args[0], record_key, *args[2:]), kwargs
    return args, {**kwargs, "key": record_key}


def _report(session: Session, sink: Node, chosen: list[Any]) -> list[Any]:
    """The records of triples (record, run, position).

    Which records they are is sent as a task run of the driver that read them.
    """
    if session.is_silent:
        return [record for record, _, _ in chosen]
    plan = Plan(
        application_id=session.application_id,
        settings=session.settings,
        flow_partitions=session.events.flow_partitions(),
        input_node=sink.number,
        reads_shuffle=True,
        nodes=(),
    )
    run = TaskRun(plan, 0, process_sender.sender_for(session.settings))
    stream = run.stream(sink.number, contract.SPANS)
    stream.extend((1, position, 1, writer) for _, writer, position in chosen)
    deque(run.inputs.through(chosen), 0)
    session.events.commit(run, sink.number)
    return [record for record, _, _ in chosen]


def _lookup(session: Session, original: Action) -> Action:
    def action(self: Any, key: Any) -> Any:
        with session.scope.operation("lookup", [self]) as frame:
            values = self.filter(lambda pair: pair[0] == key).values()
        session.scope.finish(frame, values)
        sink = _sink(session, "lookup", values, contract.IDENTITY, frame.site)

        def run() -> Any:
            if self.partitioner is not None:
                return self.ctx.runJob(values, lambda records: records, [self.partitioner(key)])
            return values.collect()

        return _run(session, sink, [values], run)

    return _top_level(session, original, action)


# -- savers -----------------------------------------------------------------------------------------


def _saver(session: Session, name: str, original: Action) -> Action:
    def action(self: Any, *args: Any, **kwargs: Any) -> Any:
        sink = _sink(session, name, self, contract.IDENTITY)
        path = _output_folder(args, kwargs)
        if session.replay is not None:
            path = session.replay.redirected(sink.number, name, sink.call_site, path, SAVERS[name])
            args, kwargs = _into_folder(path, args, kwargs)
        if path:
            sink.description, sink.dataset = path, partitions.dataset(path, SAVERS[name])
            sink.describe = lambda: partitions.hadoop_files(path)
        is_in_jvm = not is_pipelinable(self) and plain_form(self) == _saved_form(name, args, kwargs)
        if is_in_jvm:
            _note_unread(session, sink, self)

        def run() -> Any:
            return original(through_worker(session, self) if is_in_jvm else self, *args, **kwargs)

        return _run(session, sink, [self], run)

    return _top_level(session, original, action)


def _saved_form(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The serializer with which a saver leaves records to the JVM.

    Records in another form are brought into this one in a Python worker.
    """
    from pyspark.serializers import AutoBatchedSerializer, BatchedSerializer, CPickleSerializer

    size = kwargs.get("batchSize", args[1] if len(args) > 1 else 10) if name == "saveAsPickleFile" else 0
    return (
        BatchedSerializer(CPickleSerializer(), size) if size else AutoBatchedSerializer(CPickleSerializer())
    )


def _output_folder(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The folder that a saver's arguments name; empty where they do not."""
    target = args[0] if args else kwargs.get("path", kwargs.get("conf"))
    if isinstance(target, dict):
        return next((str(target[key]) for key in _OUTPUT_FOLDERS if key in target), "")
    return str(target) if target is not None else ""


def _into_folder(
    folder: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a saver that writes into `folder` instead."""
    target = args[0] if args else kwargs.get("path", kwargs.get("conf"))
    moved: Any = folder
    if isinstance(target, dict):
        moved = {**target, **{key: folder for key in _OUTPUT_FOLDERS if key in target}}
    if args:
        return (moved, *args[1:]), kwargs
    return args, {**kwargs, ("path" if "path" in kwargs else "conf"): moved}


def _save_as_text_file(session: Session, original: Action) -> Action:
    def action(self: Any, path: str, compressionCodecClass: str | None = None) -> None:
        sinks: list[Node] = []
        number = None
        if session.replay is not None:
            session.scope.node_of(self)  # which may take a number, too
            number = session.scope.next_number()
            name, site = "saveAsTextFile", call_site()
            path = session.replay.redirected(number, name, site, str(path), "text")

        def begin(sink: Node) -> None:
            sink.make_sink("saveAsTextFile")
            sink.site = frame.site
            sink.description, sink.dataset = str(path), partitions.dataset(str(path), "text")
            sinks.append(sink)
            session.recipes.add_sink(sink.number, self, is_saved=True)
            session.nodes.publish(sink)
            if session.replay is not None:
                session.replay.saves(sink)
            session.context.setLocalProperty(ACTION, str(sink.number))

        with (
            session.scope.operation("saveAsTextFile", [self], sink=begin) as frame,
            session.scope.serving(""),
        ):
            frame.reserved = number
            try:
                original(self, path, compressionCodecClass)
            except BaseException as error:
                for sink in sinks:
                    _publish_failure(session, sink, error)
                raise
        for sink in sinks:
            sink.describe = lambda: partitions.text_files(
                self.getNumPartitions(), str(path), compressionCodecClass
            )
            session.nodes.describe(sink)
            session.events.action_ended(sink.number, sink.name)

    return _top_level(session, original, action)
