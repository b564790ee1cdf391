"""LineageApi: how a program without Spark reports its lineage, to stand beside that of Spark's jobs.

Promises that the reported lineage counts as a whole or not at all: only when the `with` block ends without an
error are the program's flows committed. Wrong calls raise LineageApiError at once; what cannot be delivered
is counted and never raised, unless `on_error="fail"`. Thread-safe. Needs confluent-kafka, nothing of Spark.

What the program calls a record is a text that it chooses, its *hash*; what travels is a position (see
docs/contract.md). So every hash is remembered until the end: some 200 bytes for each record.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from spark_agent import contract
from spark_agent.delivery.notices import Notices
from spark_agent.delivery.settings import AgentSettings, default_bootstrap_servers
from spark_agent.emitter.errors import LineageApiError, LineageDeliveryError
from spark_agent.emitter.operations import Operation, OperationRun
from spark_agent.emitter.publisher import Publisher

__all__ = ["LineageApi", "LineageApiError", "LineageDeliveryError"]

MAX_NUMBER = (1 << 31) - 1
MAX_POSITION = (1 << 53) - 1
ON_ERROR = ("silent", "fail")
#: How long the end may take to empty the spool.
END_WAIT_S = 1.0


class LineageApi:
    """One execution of a program. Use it as a context manager; its end commits what was captured.

    `application_id` must be another one for each execution: 1 to 200 letters, digits or `.` `_` `:` `-`.
    `bootstrap_servers` are found like the agent's where none are given. `on_error`: what to do at the end
    when something could not be delivered, `silent` or `fail`. Raises LineageApiError.
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
    ) -> None:
        if contract.APPLICATION_ID.fullmatch(application_id) is None:
            raise LineageApiError(
                f"application_id {application_id[:80]!r} is not 1 to 200 letters, digits or . _ : - "
                "that begin with a letter or digit"
            )
        if on_error not in ON_ERROR:
            raise LineageApiError(f"on_error={on_error!r} is none of {', '.join(ON_ERROR)}")
        self.application_id = application_id
        self.name = name
        self.dropped = 0  # messages that were not delivered; final once the program has ended
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
        self._records: dict[str, tuple[OperationRun, int]] = {}  # hash_out -> where it stands
        self._publisher: Publisher | None = None  # between begin and end
        self._was_started = False

    # -- begin and end -------------------------------------------------------------------------------

    def __enter__(self) -> LineageApi:
        """Publish that the application has started. Raises LineageApiError without confluent-kafka."""
        with self._lock:
            if self._was_started:
                raise LineageApiError(
                    f"{self.application_id} was started before: one LineageApi, one execution"
                )
            self._publisher = Publisher(self.application_id, self._settings)
            self._was_started = True
            self._publisher.emit(contract.APPLICATION_STARTED, name=self.name, detailed=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commit what was captured, or, after an error of the program, leave it uncommitted: it never shows.

        Raises LineageDeliveryError if `on_error` is `fail` and the program itself did not fail.
        """
        with self._lock:
            publisher, operations = self._publisher, self._operations.values()
            if publisher is None:
                return
            self._publisher = None
            runs = [run for operation in operations for run in operation.runs.values()]
            for run in runs:
                run.ship()
            dropped = {run.number: publisher.flush(run) for run in runs}
            linked = {parent for operation in operations for parent in operation.parents}
            for operation in operations:
                publisher.publish(operation, is_read=operation.number in linked)
            committed = runs if kind is None else []
            for run in committed:
                publisher.commit(run, dropped[run.number])
            counters = {
                "runs": len(committed),
                "blocks": sum(run.blocks for run in committed),
                "dropped": sum(dropped[run.number] for run in committed),
            }
            publisher.emit(contract.APPLICATION_ENDED, counters=counters)
            self.dropped = sum(dropped.values()) + publisher.flush_events()
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
            if self._on_error == "fail" and kind is None:
                raise LineageDeliveryError(problem)
            Notices().say(problem)

    # -- what the program reports --------------------------------------------------------------------

    def register(self, node_id: int, name: str, description: str = "", *, path: str | None = None) -> None:
        """An operation of the program. It has a larger number than what it reads.

        One that nothing is linked to is a source, one that is linked to nothing a sink; `path` names the text
        file that it reads or writes, so that rows can be asked for and shown.
        """
        if isinstance(node_id, bool) or not isinstance(node_id, int) or not 0 <= node_id <= MAX_NUMBER:
            raise LineageApiError(f"node_id {node_id!r} is not a number from 0 to {MAX_NUMBER}")
        with self._running():
            if node_id in self._operations:
                raise LineageApiError(
                    f"node {node_id} is registered already, as {self._operations[node_id].name!r}"
                )
            self._operations[node_id] = Operation(node_id, name, description, path)

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
            operation = self._operation_of(flow_id)
            if hash_in.startswith("read#"):
                self._capture_read(operation, hash_in, hash_out, value)
                return
            record = self._records.get(hash_in)
            if record is None:
                raise LineageApiError(
                    f"flow {flow_id}: hash_in {hash_in!r} is neither read#PARTITION#ROW nor the hash_out of "
                    "an earlier flow"
                )
            parent, position = record
            if parent.operation.number not in operation.parents:
                raise LineageApiError(
                    f"flow {flow_id}: {hash_in!r} is a record of node {parent.operation.number}, and no link "
                    f"goes from there to node {operation.number}: call "
                    f"link({parent.operation.number}, {operation.number}) first"
                )
            run, output = self._output(operation, hash_out)
            run.add_flow(output, position, parent.number)
            run.add_value(output, value)

    def _capture_read(self, operation: Operation, hash_in: str, hash_out: str, value: Any) -> None:
        if operation.parents:
            raise LineageApiError(
                f"{hash_in!r}: node {operation.number} is no source, node {operation.parents[0]} is linked "
                "to it"
            )
        if hash_out in self._records:
            raise LineageApiError(f"hash_out {hash_out!r} is the name of a record already")
        run, row = self._row(operation, hash_in, "source")
        name = f"{operation.number}#{hash_in}"
        if name in self._records:
            raise LineageApiError(f"{hash_in!r} was captured already; a row is one record of its source")
        operation.reads_rows = True
        run.records = max(run.records, row + 1)
        self._records[name] = run, row
        self._name(hash_out, run, row)
        run.add_value(row, value)

    def _output(self, operation: Operation, hash_out: str) -> tuple[OperationRun, int]:
        """Where the record stands, made if it is new."""
        if hash_out.startswith("write#"):
            run, row = self._row(operation, hash_out, "sink")
            run.records = max(run.records, row + 1)
            return run, row
        record = self._records.get(hash_out)
        if record is None:
            run = self._run(operation, 0)
            row, run.records = run.records, run.records + 1
            self._name(hash_out, run, row)
            return run, row
        if record[0].operation is not operation:
            raise LineageApiError(
                f"hash_out {hash_out!r} names a record of node {record[0].operation.number}; give the one of "
                f"node {operation.number} another name"
            )
        return record

    def _name(self, hash_out: str, run: OperationRun, position: int) -> None:
        """Remember the record, and take its name as its key."""
        self._records[hash_out] = run, position
        prefix = f"{contract.node_id(self.application_id, run.operation.number)}#"
        run.add_key(position, hash_out.removeprefix(prefix))

    def _row(self, operation: Operation, text: str, kind: str) -> tuple[OperationRun, int]:
        """The row of a `source` or `sink` that `text` names."""
        try:
            parsed, partition, row = contract.parse_record_id(text)
        except contract.ContractError as error:
            raise LineageApiError(str(error)) from None
        if parsed != kind or partition > MAX_NUMBER or row > MAX_POSITION:
            raise LineageApiError(f"{text!r} is no row of a {kind}")
        return self._run(operation, partition), row

    def _run(self, operation: Operation, partition: int) -> OperationRun:
        run = operation.runs.get(partition)
        if run is None:
            assert self._publisher is not None
            run = operation.runs[partition] = OperationRun(operation, partition, self._publisher.send_block)
        return run

    def _operation_of(self, flow_id: str) -> Operation:
        number = flow_id.removeprefix(f"{self.application_id}#").partition("#")[0]
        if not (number.isascii() and number.isdigit() and len(number) < 11):
            raise LineageApiError(
                f"flow_id {flow_id!r} is neither NODE#ANYTHING nor {self.application_id}#NODE#ANYTHING"
            )
        return self._operation(int(number))

    def _operation(self, number: int) -> Operation:
        operation = self._operations.get(number)
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
