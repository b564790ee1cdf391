"""SparkContext's makers of RDDs while lineage is on: the sources of a graph.

A source's records are known by their split and their offset in it. Where a split is a part of a file, or
some whole files, the driver says which after the first job, so that people can be shown the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver import partitions
from spark_agent.driver.monkeypatch import like
from spark_agent.driver.nodes import Node

if TYPE_CHECKING:
    from spark_agent.driver.replay.outputs import Outputs
    from spark_agent.driver.session import Session

#: SparkContext's makers of RDDs -> the parameter that names their files, if any.
SOURCES = {
    "binaryFiles": "path",
    "binaryRecords": "path",
    "emptyRDD": None,
    "hadoopFile": "path",
    "hadoopRDD": None,
    "newAPIHadoopFile": "path",
    "newAPIHadoopRDD": None,
    "parallelize": None,
    "pickleFile": "name",
    "range": None,
    "sequenceFile": "path",
    "textFile": "name",
    "wholeTextFiles": "path",
}
#: Of these, the ones whose records any Python can unpickle.
PLAIN_SOURCES = frozenset(("binaryFiles", "binaryRecords", "emptyRDD", "textFile", "wholeTextFiles"))
#: Why the trail ends at a list that the program gave, though actions may have given it to the program.
OF_DRIVER = "a list of the driver: where its records came from is not followed"
#: Format of the dataset in the record of the node.
FORMATS = {"textFile": "text", "wholeTextFiles": "file", "binaryFiles": "file", "binaryRecords": "binary"}
#: Where a Hadoop configuration has one of these, the records of a text file are not its rows.
NO_ROWS = ("textinputformat.record.delimiter", "mapreduce.input.linerecordreader.line.maxlength")


def source(session: Session, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """`original` with its result registered as a source."""

    def maker(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.scope.frames:
            return original(self, *args, **kwargs)
        replay, parameter, is_copy = session.replay, SOURCES[name], False
        if replay is not None and parameter is not None:
            args, kwargs, is_copy = _with_copies(replay.outputs, args, kwargs, parameter)
        with session.scope.operation(name, []) as frame:
            result = original(self, *args, **kwargs)
        session.scope.finish(frame, result)
        node = session.scope.node_of(result)
        node.make_source(is_plain=name in PLAIN_SOURCES)
        if name == "parallelize":
            node.reason = OF_DRIVER  # and exact all the same: these are the records
        if parameter is not None:
            node.description = str(args[0] if args else kwargs.get(parameter))
            length = kwargs.get("recordLength", args[1] if len(args) > 1 else 0)
            _note_files(node, name, result._jrdd, self._jsc.hadoopConfiguration(), length)
        if replay is not None:
            return replay.restricted(result, node, is_copy=is_copy)
        session.recipes.add_source(result)
        return result

    return like(original, hiding(maker))


def _with_copies(
    outputs: Outputs, args: tuple[Any, ...], kwargs: dict[str, Any], parameter: str
) -> tuple[tuple[Any, ...], dict[str, Any], bool]:
    """The arguments, with the copies of what this replay has written; and whether there are any."""
    paths = args[0] if args else kwargs.get(parameter)
    copies = outputs.with_copies(paths)
    if copies == paths:
        return args, kwargs, False
    return ((copies, *args[1:]), kwargs, True) if args else (args, {**kwargs, parameter: copies}, True)


def _note_files(node: Node, name: str, jvm_rdd: Any, hadoop: Any, record_length: Any) -> None:
    """The files that a source reads, and how to find out which of them a partition is made of.

    `hadoop` is the Hadoop configuration, `record_length` that of binaryRecords in bytes.
    """
    has_rows = name != "textFile" or all(hadoop.get(key) is None for key in NO_ROWS)
    format = FORMATS.get(name, "hadoop") if has_rows else "hadoop"
    node.dataset = partitions.dataset(node.description, format)
    if not has_rows:
        return  # a record is known by its partition and offset
    if name == "textFile":
        node.describe = lambda: partitions.file_splits(jvm_rdd, hadoop)
    elif name == "binaryRecords":
        node.describe = lambda: partitions.binary_splits(jvm_rdd, int(record_length))
    elif name in FORMATS:
        node.describe = lambda: partitions.whole_files(jvm_rdd)
