"""The door to the agent's Java classes in the running driver and its executors.

Promises that the user's conf is not touched: the jar beside this package is added to the class loader of
the running driver, and given to the executors, once a query is captured, as `SparkContext.addJar` does.
Knows what the classes are called and how they are made, and nothing of plans.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from spark_agent import contract
from spark_agent.delivery.log import logger
from spark_agent.delivery.settings import AgentSettings
from spark_agent.driver import jar, shipping
from spark_agent.sql.kafka_options import java_options
from spark_agent.sql.types import OutputFiles

JAR = jar.JAR
_ROOT = "lineagemaster"
#: The agent's Java packages, and the classes in them that Python or a plan names, one of each kind.
_CLASSES = {
    "expression": (
        "LineageTap",
        "LineageSource",
        "BranchSource",
        "LineageFrame",
        "LineageWindowRow",
        "LineageKey",
        "LineageRow",
        "LineageRoundRobin",
        "LineageReads",
        "LineageRecordKey",
    ),
    "capture": ("TapSpec", "FrameSpec", "KeptRows"),
    "delivery": ("AgentConfig", "ManifestAccumulator"),
    "plan": (
        "PlanReader",
        "PlanBuilder",
        "PythonFunctions",
        "PlanStrategy",
        "PlanCheck",
        "WindowFunctions",
        "PickingFunctions",
        "CallSites",
        "ChangeFeeds",
        "RowIndexes",
        "AnsweredQueries",
        "CorrelatedSubqueries",
        "DeletionVectors",
        "IcebergDelete",
        "IcebergScans",
        "IcebergWrite",
        "MergeInstructions",
        "QueryEndListener",
        "RowOperations",
        "TableKeys",
    ),
}
_PLAN_CALLBACK = f"{_ROOT}.plan.PlanCallback"
#: What the producer of the JVM compresses with: as cheap as lz4 and a sixth smaller.
COMPRESSION = "zstd"
#: As FrameSpec.java has it.
_UNBOUNDED = -(1 << 31)
#: java.util.List.of takes no more items, each for itself.
_MOST_AT_ONCE = 10


class JvmUnavailableError(RuntimeError):
    """The agent's Java classes cannot be used in this application; the text says why and what to do."""


class Jvm:
    """The agent's Java classes of one SparkContext. `load` makes it.

    `manifests` is registered with the context: tasks' manifests arrive there, and what tasks that failed
    report; `manifests.poll(ms)` takes one.
    `plan_reader` says what is in plans, `plan_builder` makes them, `windows` does both of windows.
    `iceberg_scans`, `iceberg_writes` and `iceberg_deletes` know tables of Iceberg.
    """

    def __init__(self, context: Any, classes: SimpleNamespace) -> None:
        self._context = context
        self._classes = classes
        self._source, self._spec, self._tap = classes.LineageSource, classes.TapSpec, classes.LineageTap
        of_branch = classes.BranchSource
        self._branch_source = of_branch if of_branch.areUnionsCompiled() else self._source
        self._problem = classes.PlanCheck.problem
        self._list_of = context._jvm.java.util.List.of
        self._empty = self._list_of()
        self.plan_reader, self.plan_builder = classes.PlanReader(), classes.PlanBuilder()
        self.windows = classes.WindowFunctions()
        self.picking_functions = classes.PickingFunctions()
        self.row_operations = classes.RowOperations()
        self.merge_instructions = classes.MergeInstructions()
        self.correlated = classes.CorrelatedSubqueries
        self.iceberg_scans, self.iceberg_writes = classes.IcebergScans(), classes.IcebergWrite
        self.iceberg_deletes = classes.IcebergDelete
        self.python_functions = classes.PythonFunctions()
        self.call_sites = classes.CallSites
        self.table_keys = classes.TableKeys()
        self.change_feeds, self.row_indexes = classes.ChangeFeeds(), classes.RowIndexes()
        self.answered_queries = classes.AnsweredQueries(context._jsc.sc())
        self.deletion_vectors = classes.DeletionVectors
        self._nil = self.plan_builder.seq(self._empty)
        self.manifests = classes.ManifestAccumulator()
        context._jsc.sc().register(self.manifests)
        self._failures = self.manifests.ofFailures(context._jsc.sc())

    def agent_config(
        self,
        application_id: str,
        settings: AgentSettings,
        flow_partitions: int,
        say: Callable[[str], None] = logger.warning,
        *,
        is_silent: bool = False,
    ) -> Any:
        """What all expressions of the application share. `say` hears which options Java cannot have.

        `is_silent`: nothing is sent.
        """
        options, problems = java_options(dict(settings.client))
        for problem in problems:
            say(problem)
        return self._classes.AgentConfig(
            application_id,
            {**options, "bootstrap.servers": settings.bootstrap_servers},
            contract.VERSION,
            settings.node_topic,
            settings.flow_topic,
            flow_partitions,
            self.manifests,
            self._failures,
            float(settings.delivery_timeout_s),
            COMPRESSION,
            settings.on_error == "fail",
            settings.spool_dir,
            settings.spool_max_bytes,
            settings.spool_fsync,
            is_silent,
        )

    def agent_archives(self) -> list[str]:
        """The names under which Python's workers find the agent where it is not installed."""
        return [name for name in self._context._python_includes if name == shipping.ARCHIVE]

    def ship(self) -> None:
        """Give the jar to the executors, before the first task that needs it."""
        self._context._jsc.addJar(JAR)

    def source(
        self,
        config: Any,
        node: int,
        row_index: Any = None,
        *,
        is_striped: bool = False,
        is_of_branch: bool = False,
        kept: Any = None,
        topic_place: Sequence[Any] = (),
    ) -> Any:
        """A LineageSource; `row_index` is the expression of a row's index in its file, where there is one.

        `topic_place` are those of offset, topic, partition and servers of a record of Kafka.

        `is_of_branch` says that it may be compiled into one piece with a union. With `kept` (`kept_rows`) the
        id of a row that is dropped is negative.
        """
        new = self._branch_source if is_of_branch else self._source
        return new(
            config, node, is_striped, kept, self.seq(topic_place if row_index is None else [row_index])
        )

    def kept_rows(
        self, blocks: Sequence[Mapping[str, Any]], *, is_without: bool, has_candidates: bool = False
    ) -> Any:
        """KeptRows of the blocks of a replay's spec."""
        name = _name_of_candidates(blocks) if has_candidates else ""
        paths = list(dict.fromkeys(str(block["path"]) for block in blocks))
        numbers_of = {path: number for number, path in enumerate(paths)}
        numbers = array("q")
        for block in blocks:
            row = block.get("row", -1)
            numbers.extend((numbers_of[block["path"]], block["start"], block["length"], row))
            for ranges in (block["rows"], block["candidates"] if name else ()):
                numbers.append(len(ranges))
                for range_ in ranges:
                    numbers.extend(range_)
        if sys.byteorder == "little":
            numbers.byteswap()
        return self._classes.KeptRows(is_without, name, self.java_list(paths), numbers.tobytes())

    def record_key(self, config: Any, node: int, columns: Sequence[str], children: Sequence[Any]) -> Any:
        """A LineageRecordKey: `children` are the id of a row, and the texts of these columns of its key."""
        names = self.java_list(columns)
        return self._classes.LineageRecordKey(config, node, names, self.seq(children))

    def asks_for_files(self, plan: Any) -> bool:
        """Do expressions of a plan ask which file a row is of?"""
        return bool(self._classes.PlanStrategy.asksForFiles(plan))

    def tap(
        self,
        config: Any,
        node: int,
        ids: Sequence[Any],
        sources: Sequence[int],
        *,
        key: Any = None,
        codes: int = -1,
        keys: int = -1,
        output_files: OutputFiles | None = None,
        is_persisted: bool = False,
        step_size: int = 0,
        digest: Any = None,
        operation: Any = None,
        record_key: tuple[Sequence[str], Sequence[Any]] | None = None,
    ) -> Any:
        """A LineageTap over columns of ids, of the nodes `sources`.

        With a `key` (an expression of a long, neither null nor negative), `codes` and `keys` are the nodes D
        and K of its groups; without, it is an output's, which may have `output_files`. With `is_persisted`
        it is of a plan whose rows are to be cached or checkpointed. With a `step_size` it is one for `reads`,
        and its key is not used. A `digest` is as a key, of the rows of an output without files. An
        `operation` says what a statement of a table did with a row of an output, see contract.OPERATIONS.
        A `record_key` names the records of an output without files: columns, and texts of their values.
        """
        if (key is None) != (codes < 0) or (key is None) != (keys < 0) or len(ids) != len(sources):
            raise ValueError(f"tap {node} has a key without its nodes, or columns without theirs")
        if key is not None and output_files is not None:
            raise ValueError(f"tap {node} has a key, so it is none of an output of files")
        if digest is not None and (key is not None or output_files is not None):
            raise ValueError(f"tap {node} has digests beside a key, or beside files")
        if operation is not None and (key is not None or digest is not None):
            raise ValueError(f"tap {node} has operations beside a key, or beside digests")
        if record_key is not None and (key is not None or output_files is not None):
            raise ValueError(f"tap {node} names records beside a key, or beside files")
        files = output_files or OutputFiles()
        texts = self._empty if files.texts is None else files.texts
        spec = self._tap_spec(config, node, sources, codes, keys, files, is_persisted=is_persisted)
        spec = spec.inSteps(step_size)
        if digest is not None:
            spec = spec.withDigests()
        if operation is not None:
            spec = spec.withOperations()
        if record_key is not None:
            columns, texts = record_key[0], self.java_list(record_key[1])
            spec = spec.withRecordKeys(self.java_list(columns))
        optional = (key, digest, operation, files.key, files.bucket)
        children = [*ids, *(child for child in optional if child is not None), *files.values]
        return self._tap(spec, self.plan_builder.joined(self.java_list(children), texts))

    def winners_tap(
        self,
        config: Any,
        nodes: Sequence[int],
        ids: Sequence[Any],
        sources: Sequence[int],
        key: Any,
        *,
        is_persisted: bool = False,
    ) -> Any:
        """A LineageTap over groups with the `key`: of each column of ids, which row decides the group.

        What it writes is of `nodes`, one for each column. A negative id is none.
        """
        spec = self._tap_spec(
            config, nodes[0], sources, -1, -1, OutputFiles(), is_persisted=is_persisted
        ).ofWinners(self.java_list(nodes))
        return self._tap(spec, self.seq([*ids, key]))

    def frames(
        self,
        config: Any,
        nodes: tuple[int, int, int],
        sources: Sequence[int],
        frames: Sequence[tuple[bool, int | None, int | None]],
        *,
        is_persisted: bool = False,
    ) -> Any:
        """A FrameSpec of the nodes of rows, frames and keys. A frame is (is it of rows, its ends or None)."""
        rows, codes, keys = nodes
        spec = self._tap_spec(config, rows, sources, codes, keys, OutputFiles(), is_persisted=is_persisted)
        numbers = [
            number
            for is_rows, *ends in frames
            for number in (int(is_rows), *(_UNBOUNDED if end is None else end for end in ends))
        ]
        return self._classes.FrameSpec(spec, self.java_list(numbers))

    def _tap_spec(
        self,
        config: Any,
        node: int,
        sources: Sequence[int],
        codes: int,
        keys: int,
        files: OutputFiles,
        *,
        is_persisted: bool,
    ) -> Any:
        return self._spec(
            config,
            node,
            codes,
            keys,
            self.java_list(int(source) for source in sources),
            self.java_list(files.columns),
            files.bucket is not None,
            files.writers,
            0 if files.texts is None else len(files.texts),
            files.is_alone,
            is_persisted,
        )

    def reads(self, tap: Any) -> Any:
        """The key of all rows that a tap in steps has seen by now."""
        return self._classes.LineageReads(tap.spec(), self._nil)

    def strategy(self, rewrite: Callable[[Any, str], Any]) -> Any:
        """A strategy of Spark's planner that calls `rewrite(plan, entry)`: a plan, or None for the same one.

        `entry` is the method of Spark SQL that was called, Class.method, behind `cached:` where Spark caches;
        and before `@` and the number of the JVM's thread, where that works for Python. `#` and the number of
        a call follow while a library of the JVM works for that, and `|` and what a library of tables does
        where that has the plan made (`TableWork`).
        """
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(self._context._gateway)
        return self._classes.PlanStrategy(_Callback(rewrite), self._context._jsc.sc())

    @property
    def is_pinned(self) -> bool:
        """Has each thread of Python one of the JVM's to itself?"""
        return type(self._context._gateway).__name__ == "ClientServer"

    def thread(self) -> int:
        """The number of the JVM's thread that now works for this one of Python."""
        return int(self._context._jvm.java.lang.Thread.currentThread().getId())

    def install(self, java_session: Any, strategy: Any) -> None:
        """Give the strategy to the planner of a SparkSession of the JVM, before what the user put there."""
        experimental = java_session.experimental()
        others = experimental.extraStrategies()
        extended = self.seq([strategy, *(others.apply(index) for index in range(others.size()))])
        getattr(experimental, "extraStrategies_$eq")(extended)

    def problem(self, before: Any, after: Any) -> str:
        """Why a rewritten plan could not run; empty where it can."""
        return str(self._problem(before, after))

    def ends(self) -> Any:
        """A QueryExecutionListener that puts a line into `manifests` when a query with outputs has ended."""
        return self._classes.QueryEndListener(self.manifests)

    def mark(self, plan: Any, node: int) -> None:
        """Of a query whose plan stays as it is: let its end be reported as that of `node`."""
        self._classes.QueryEndListener.mark(plan, node)

    def outputs(self, execution: Any) -> list[int]:
        """The nodes of the taps of outputs in the plan of a QueryExecution."""
        return [int(node) for node in self._classes.QueryEndListener.outputs(execution)]

    def java_list(self, items: Iterable[Any]) -> Any:
        """For a java.util.List: py4j makes one with a call for each item, the JVM a short one at once."""
        listed = [*items]
        if not listed:
            return self._empty
        return self._list_of(*listed) if len(listed) <= _MOST_AT_ONCE else listed

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala Seq."""
        listed = self.java_list(items)
        return self._nil if listed is self._empty else self.plan_builder.seq(listed)


def _name_of_candidates(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Other candidates have another name. None of a spec that has not named them."""
    if any("candidates" not in block for block in blocks):
        return ""
    parts = [
        [block["path"], block["start"], block["length"], block.get("row"), block["candidates"]]
        for block in blocks
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class _Callback:
    """Python's side of PlanCallback.java."""

    def __init__(self, rewrite: Callable[[Any, str], Any]) -> None:
        self._rewrite = rewrite

    def rewrite(self, plan: Any, entry: str) -> Any:
        return self._rewrite(plan, entry)

    def toString(self) -> str:
        return "the lineage strategy"

    class Java:
        implements = (_PLAN_CALLBACK,)


def load(context: Any) -> Jvm:
    """The classes in the JVM of `context`, a running SparkContext. Raises JvmUnavailableError."""
    if not os.path.isfile(JAR):
        raise JvmUnavailableError(
            "this installation is without the agent's jar, so DataFrames and SQL have no record lineage: "
            "install a wheel that `make wheel` made; in a clone, run `make jar`"
        )
    try:
        loader = jar.loader_of(context._jvm)
        if loader is None:
            raise JvmUnavailableError(
                "the driver's class loader takes no more jars, so DataFrames and SQL have no record lineage: "
                f"start Spark with spark.jars={JAR}"
            )
        jar.add_to_loader(context._jvm, loader, JAR)
        return Jvm(context, _load_classes(context._jvm, loader))
    except JvmUnavailableError:
        raise
    except Exception as error:  # py4j's errors, which are not imported here
        cause = getattr(error, "java_exception", None)  # py4j's own first line says only what it called
        reason = str(error if cause is None else cause.toString())
        raise JvmUnavailableError(
            "the agent's classes do not load into this Spark, so DataFrames and SQL have no record lineage: "
            f"{reason.splitlines()[0][:300]}"
        ) from error


def _load_classes(jvm: Any, loader: Any) -> SimpleNamespace:
    """The classes by their names. Each look-up is a round trip, so all are made once."""
    classes = SimpleNamespace()
    for package_name, class_names in _CLASSES.items():
        package = getattr(getattr(jvm, _ROOT), package_name)
        for class_name in class_names:
            jvm.java.lang.Class.forName(f"{_ROOT}.{package_name}.{class_name}", True, loader)
            setattr(classes, class_name, getattr(package, class_name))
    return classes
