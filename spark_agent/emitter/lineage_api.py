"""LineageApi: how a program without Spark reports its lineage, to stand beside that of Spark's jobs.

Promises that the reported lineage counts as a whole or not at all: only when the `with` block ends without an
error are the program's flows committed. Wrong calls raise LineageApiError at once; what cannot be delivered
is counted and never raised, unless `on_error="fail"`. Thread-safe. Needs confluent-kafka, nothing of Spark.

What the program calls a record is a text that it chooses, its *hash*; what travels is a position (see
docs/contract.md). So every hash is remembered until the end: some 200 bytes for each record. Inputs that are
collected are remembered until they are reset, some 50 bytes for each.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from spark_agent import contract
from spark_agent.delivery.notices import Notices
from spark_agent.delivery.settings import AgentSettings, default_bootstrap_servers
from spark_agent.emitter.argument_checks import check_error, check_hash, check_id, check_number, check_tag
from spark_agent.emitter.errors import LineageApiError, LineageDeliveryError
from spark_agent.emitter.execution_end import publish_end
from spark_agent.emitter.operations import Operation, OperationRun, Place
from spark_agent.emitter.publisher import MAX_FAILURES, Publisher
from spark_agent.emitter.record_names import RecordNames, source_row
from spark_agent.emitter.replayed_program import ReplayedProgram, replayed_program

__all__ = ["LineageApi", "LineageApiError", "LineageDeliveryError"]

ON_ERROR = ("silent", "fail")
#: How long the end may take to empty the spool.
END_WAIT_S = 1.0


class LineageApi:
    """One execution of a program. Use it as a context manager; its end commits what was captured.

    `application_id` must be another one for each execution: 1 to 200 letters, digits or `.` `_` `:` `-`.
    `bootstrap_servers` are found like the agent's where none are given. `on_error`: what to do at the end
    when something could not be delivered, `silent` or `fail`. `parent_application`: the id of what started
    this execution, such as a workflow. Raises LineageApiError.
    """

    def __init__(
        self,
        application_id: str,
        name: str,
        *,
        bootstrap_servers: str = "",
        node_topic: str = contract.NODE_TOPIC,
        flow_topic: str = contract.FLOW_TOPIC,
        on_error: str = "silent",
        delivery_timeout_s: float = 10.0,
        parent_application: str | None = None,
    ) -> None:
        check_id("application_id", application_id)
        if parent_application is not None:
            check_id("parent_application", parent_application)
            if parent_application == application_id:
                raise LineageApiError(f"{application_id} cannot be its own parent_application")
        if on_error not in ON_ERROR:
            raise LineageApiError(f"on_error={on_error!r} is none of {', '.join(ON_ERROR)}")
        self.application_id = application_id
        self.name = name
        self.dropped = 0  # messages that were not delivered; final once the program has ended
        self._parent_application = parent_application
        self._on_error = on_error
        self._settings = AgentSettings(
            bootstrap_servers=bootstrap_servers or default_bootstrap_servers(os.environ),
            node_topic=node_topic,
            flow_topic=flow_topic,
            delivery_timeout_s=delivery_timeout_s,
            spool_dir=os.environ.get("LINEAGE_SPOOL_DIR", ""),
        )
        self._lock = threading.RLock()
        self._operations: dict[int, Operation] = {}
        self._names = RecordNames(application_id, self._new_run)
        self._failures = 0
        self._publisher: Publisher | None = None  # between begin and end
        self._was_started = False
        self._replay: ReplayedProgram | None = None  # of this process, while it runs

    # -- begin and end -------------------------------------------------------------------------------

    def __enter__(self) -> LineageApi:
        """Publish that the application has started. Raises LineageApiError without confluent-kafka."""
        with self._lock:
            if self._was_started:
                raise LineageApiError(
                    f"{self.application_id} was started before: one LineageApi, one execution"
                )
            replay = self._replay = replayed_program(self.application_id)
            sent_id = self.application_id if replay is None else replay.application_id
            self._publisher = Publisher(sent_id, self._settings)
            self._was_started = True
            parent = self._parent_application
            self._publisher.emit(
                contract.APPLICATION_STARTED,
                name=self.name,
                detailed=True,
                **({} if parent is None else {"parent": {"run": parent}}),
                **({} if replay is None else {"replay": replay.started()}),
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commit what was captured, or, after an error of the program, leave it uncommitted: it never shows.

        But for the input rows of records that it said it failed on. Raises LineageDeliveryError if `on_error`
        is `fail` and the program itself did not fail.
        """
        with self._lock:
            publisher, operations = self._publisher, list(self._operations.values())
            if publisher is None:
                return
            self._publisher = None
            if self._replay is not None:
                sources = {one.number: one.name for one in operations if not one.parents}
                self._replay.write(sources)
            self.dropped = publish_end(publisher, operations, error, self._failures)
            if not publisher.empty_spool(END_WAIT_S):
                Notices().say(
                    f"messages of {self.application_id} wait on this machine to be delivered, since Kafka "
                    f"at {self._settings.bootstrap_servers} does not take them: `lineage spool deliver` "
                    "sends them"
                )
            if not self.dropped:
                return
            problem = (
                f"{self.dropped} messages of the lineage of {self.application_id} are lost: Kafka at "
                f"{self._settings.bootstrap_servers} does not take them"
            )
            if self._on_error == "fail" and error is None:
                raise LineageDeliveryError(problem)
            Notices().say(problem)

    # -- what the program reports --------------------------------------------------------------------

    def register(
        self,
        node_id: int,
        name: str,
        description: str = "",
        *,
        path: str | None = None,
        parent: int | None = None,
    ) -> None:
        """An operation of the program. It has a larger number than what it reads.

        One that nothing is linked to is a source, one that is linked to nothing a sink; `path` names the text
        file that it reads or writes, so that rows can be asked for and shown. `parent` is the operation that
        this one is a step of: results leave out steps between others, and what goes through them is that
        operation's. It is registered before, and the last step is linked to it.
        """
        check_number(node_id)
        with self._running():
            if node_id in self._operations:
                raise LineageApiError(
                    f"node {node_id} is registered already, as {self._operations[node_id].name!r}"
                )
            if parent is not None:
                self._check_parent(node_id, parent)
            self._operations[node_id] = Operation(node_id, name, description, path, parent)

    def _check_parent(self, node_id: int, parent: int) -> None:
        whole = self._operation(parent)
        if whole.parent is not None:
            raise LineageApiError(
                f"node {parent} is a step itself: node {node_id} is a step of node {whole.parent}, too"
            )
        if node_id >= parent:
            raise LineageApiError(
                f"node {node_id} is a step of node {parent}: an operation must have a larger number than its "
                "steps"
            )

    def link(self, source: int, target: int) -> None:
        """Records of `source` go into `target`."""
        with self._running():
            reader = self._operation(target)
            self._operation(source)
            if source >= target:
                raise LineageApiError(
                    f"link({source}, {target}): an operation must have a larger number than what it reads"
                )
            if reader.reads_rows:
                raise LineageApiError(
                    f"link({source}, {target}): node {target} read records from outside (read#...), so it is "
                    "a source and nothing goes into it"
                )
            if source not in reader.parents:
                reader.parents.append(source)

    def capture(self, flow_id: str, hash_in: str, hash_out: str, value: Any = None) -> None:
        """One flow: the record `hash_in` went into an operation and came out of it as the record `hash_out`.

        `flow_id`: `NODE#ANYTHING` or `APPLICATION_ID#NODE#ANYTHING`; names the operation.
        `hash_in`: `read#PARTITION#ROW` where a source reads a row, counted from 0; else the `hash_out` of
        an earlier flow, of a node that is linked to this one.
        `hash_out`: any text that names one record of the application. Flows with the same one make one record
        together (a sum). `write#PARTITION#ROW` says where it stands in what is written.
        `value`: what the record looks like, if that shall be stored; the first one of a record counts.
        """
        with self._running():
            check_hash("hash_in", hash_in)
            check_hash("hash_out", hash_out)
            operation = self._operation_of(flow_id)
            place = self._names.input_place(operation, hash_in, f"flow {flow_id}")
            if operation.parents:
                _add_flows(self._names.output_place(operation, hash_out), [place], value)
            else:
                self._names.add_row(operation, place, hash_out, value)

    def add_input(self, node: int, hash_in: str, tag: Hashable = None, reset: bool = False) -> None:
        """Collect a record that goes into an operation: the next outputs of its tag come from it.

        `hash_in`: as of `capture`. `tag`: whatever can be a key; inputs without one are a set of their own.
        `reset`: forget first what was collected of this tag.
        """
        with self._running():
            check_hash("hash_in", hash_in)
            check_tag(tag)
            operation = self._operation(node)
            place = self._names.input_place(operation, hash_in, f"add_input({node}, {hash_in!r})")
            if reset:
                operation.collected.reset(tag)
            operation.collected.add(tag, place)
            operation.reads_rows = not operation.parents

    def add_output(
        self, node: int, hash_out: str, tag: Hashable = None, value: Any = None, reset: bool = False
    ) -> None:
        """A record that comes out of an operation, made of all inputs of its tag that are collected.

        It has no inputs where none are. Given again it comes from those that were collected since, too. A
        record of a source is one row. `hash_out`, `value`: as of `capture`. `reset`: forget then what was
        collected of this tag.
        """
        with self._running():
            check_hash("hash_out", hash_out)
            check_tag(tag)
            operation = self._operation(node)
            if operation.parents:
                output = self._names.output_place(operation, hash_out)
                _add_flows(output, operation.collected.take_new(tag, hash_out), value)
            else:
                self._names.add_row(operation, self._row_of(operation, tag, hash_out), hash_out, value)
            if reset:
                operation.collected.reset(tag)

    def fail(self, node: int, hash_in: str | None, error: BaseException, value: Any = None) -> None:
        """The operation could not deal with a record: `lineage failures` shows it and its input rows.

        It shows whether the program goes on or fails. `hash_in`: as of `capture`; None: the input that was
        collected last, if any, which need not be the one. `value`: what the record looks like, if that shall
        be stored.
        """
        with self._running():
            check_error(error)
            operation = self._operation(node)
            if hash_in is None:
                place = operation.collected.last
            else:
                check_hash("hash_in", hash_in)
                place = self._names.input_place(operation, hash_in, f"fail({node}, {hash_in!r})")
            self._failures += 1
            if self._failures <= MAX_FAILURES:
                assert self._publisher is not None
                record = None if value is None else contract.typed_text(value)
                self._publisher.fail(operation, place, error, record, is_certain=hash_in is not None)

    # -- replays -------------------------------------------------------------------------------------

    def keep(self, node: int, hash_in: str) -> bool:
        """Shall the program read this row? True, but for the rows that a replay leaves out.

        `node` is a source, and `hash_in` is `read#PARTITION#ROW`. All records of other operations are kept.
        """
        with self._running():
            check_hash("hash_in", hash_in)
            operation = self._operation(node)
            if operation.parents:
                return True
            partition, row = source_row(hash_in)
            return self._replay is None or self._replay.keeps(node, operation.name, partition, row)

    def output_path(self, node: int) -> str:
        """Where the program shall write: the path of a sink, or in a replay a file of its sandbox."""
        with self._running():
            operation = self._operation(node)
            if operation.path is None:
                raise LineageApiError(f"node {node} has no path: register({node}, name, path=...)")
            if self._replay is not None and not operation.is_redirected:
                operation.path = self._replay.output_path(node, operation.name, operation.path)
                operation.is_redirected = True
            return operation.path

    def _row_of(self, operation: Operation, tag: Hashable, hash_out: str) -> Place:
        """The one row that is collected of a source."""
        rows, number = operation.collected.of(tag), operation.number
        if len(rows) != 1:
            raise LineageApiError(
                f"add_output({number}, {hash_out!r}): nothing is linked to node {number}, so each of its "
                f"records is one row, and {len(rows)} rows are collected: call "
                f"add_input({number}, 'read#PARTITION#ROW', reset=True) before it"
            )
        return rows[0]

    def _new_run(self, operation: Operation, partition: int) -> OperationRun:
        assert self._publisher is not None
        return OperationRun(operation, partition, self._publisher.send_block)

    def _operation_of(self, flow_id: str) -> Operation:
        number = flow_id.removeprefix(f"{self.application_id}#").partition("#")[0]
        if not (number.isascii() and number.isdigit() and len(number) < 11):
            raise LineageApiError(
                f"flow_id {flow_id!r} is neither NODE#ANYTHING nor {self.application_id}#NODE#ANYTHING"
            )
        return self._operation(int(number))

    def _operation(self, number: int) -> Operation:
        operation = self._operations.get(number) if isinstance(number, int) else None
        if operation is None:
            raise LineageApiError(f"node {number} is not registered: call register({number}, name) first")
        return operation

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Holds the lock while the application runs. Raises LineageApiError where it does not."""
        with self._lock:
            if self._publisher is None:
                raise LineageApiError(
                    f"{self.application_id} does not run: call inside of `with LineageApi(...)`"
                )
            yield


def _add_flows(output: Place, inputs: Sequence[Place], value: Any) -> None:
    run, at = output
    for of_run, position in inputs:
        run.add_flow(at, position, of_run.number)
    run.add_value(at, value)
