"""Events and blocks of one program, as messages to Kafka.

Promises that events are numbered, so that a lost one is noticed. What cannot be delivered is counted.
"""

from __future__ import annotations

import os
import time
from typing import Any

from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.contract.dataset_names import dataset_at
from spark_agent.delivery import producer, topics
from spark_agent.delivery.process_sender import process_spool
from spark_agent.delivery.producer import Delivery
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.spool import host
from spark_agent.delivery.wait_budget import WaitBudget
from spark_agent.emitter.errors import LineageApiError
from spark_agent.emitter.operations import Operation, OperationRun, Place, new_run_number
from spark_agent.emitter.program_errors import MAX_TYPE_CHARACTERS, frame_of, message_of

#: Failures that are sent of one execution; a gap says how many the others are.
MAX_FAILURES = 1_000


class Publisher:
    """The messages of one execution. Raises LineageApiError where there can be no Kafka producer."""

    def __init__(self, application_id: str, settings: AgentSettings) -> None:
        self._application_id, self._settings = application_id, settings
        try:
            wait_budget = WaitBudget(settings.delivery_timeout_s, forgives_answers=True)
            self._sender = producer.Sender(settings, wait_budget, spool=process_spool(settings))
        except ImportError:
            raise LineageApiError("LineageApi needs `pip install confluent-kafka`") from None
        except Exception as error:
            raise LineageApiError(f"no Kafka producer for {settings.bootstrap_servers}: {error}") from error
        self._events = Delivery()
        self._emitted = 0
        partitions = {
            settings.node_topic: contract.NODE_PARTITIONS,
            settings.flow_topic: contract.FLOW_PARTITIONS,
        }
        existing, _problem = topics.create_missing_topics(settings, partitions)
        self._flow_partitions = existing.get(settings.flow_topic, contract.FLOW_PARTITIONS)

    def flush(self, run: OperationRun) -> int:
        """How many blocks of `run` were not delivered."""
        return self._sender.flush(run.delivery)

    def flush_events(self) -> int:
        """How many events were not delivered."""
        return self._sender.flush(self._events)

    def empty_spool(self, within_s: float) -> bool:
        """Send what waits in the spool. False where something still does."""
        delivery = self._sender.spool_delivery
        return delivery is None or delivery.finish(within_s)

    def send_block(self, run: OperationRun, relation: str, columns: dict[str, Any]) -> None:
        seq, run.blocks = run.blocks, run.blocks + 1
        node = run.operation.number
        block = Block(self._application_id, node, run.number, run.partition, seq, relation, columns=columns)
        self._sender.send(
            self._settings.flow_topic,
            run.partition % self._flow_partitions,
            f"{self._application_id}#{run.number}".encode(),
            contract.encode_record(block),
            run.delivery,
        )

    def emit(self, event_type: str, **fields: object) -> None:
        fields["event"], self._emitted = self._emitted, self._emitted + 1
        message = contract.encode_event(event_type, self._application_id, int(time.time() * 1000), fields)
        key = self._application_id.encode()
        self._sender.send(self._settings.node_topic, -1, key, message, self._events)

    def publish(self, operation: Operation, *, is_read: bool) -> None:
        """The operation as a node. `is_read`: another operation is linked to it."""
        path = None if operation.path is None else os.path.abspath(operation.path)
        parents = operation.parents
        kind = "operator" if parents and is_read else "sink" if parents else "source"
        is_step = kind == "operator" and operation.parent is not None
        self.emit(
            contract.NODE_REGISTERED,
            node=operation.number,
            name=operation.name,
            description=operation.description or path or "",
            kind="step" if is_step else kind,
            operation=operation.parent if is_step else None,
            relation=contract.FLOWS if parents else contract.SOURCE,
            exact=True,
            dataset=None if path is None else dataset_at(path, "text"),
        )
        for port, parent in enumerate(parents):
            self.emit(contract.LINK, source=parent, target=operation.number, port=port)
        if path is not None:
            self.emit(contract.PARTITIONS, node=operation.number, partitions=[_file(path)])

    def commit(self, run: OperationRun, dropped: int) -> None:
        self.emit(contract.RUN_COMMITTED, **_manifest(run, dropped))

    def keep(self, run: OperationRun, dropped: int) -> None:
        """The run does not count; a failure may be traced through it."""
        self.emit(contract.RUN_KEPT, **_manifest(run, dropped))

    def fail(
        self,
        operation: Operation,
        failed_on: Place | None,
        error: BaseException,
        record: contract.Text | None,
        *,
        is_certain: bool,
    ) -> None:
        """`operation` could not deal with the record at `failed_on`: a run of its own that never counts.

        What it has read is what the run of the record holds. A row that a source read is in the run itself.
        """
        is_source = not operation.parents
        split = inputs = 0
        position, node, read = None, operation.number if is_source else operation.parents[0], []
        if failed_on is not None:
            run, position = failed_on
            node, split, inputs = run.operation.number, run.partition, max(run.records, position + 1)
            read = [[run.number, 0, inputs]] if run.operation.parents else []
        self.emit(
            contract.RUN_FAILED,
            **_head(new_run_number(), split, node, [] if is_source else [operation.number]),
            blocks=0,
            dropped=0,
            inputs=inputs,
            outputs=0,
            read=read,
            failed_node=operation.number,
            position=position,
            certain=is_certain,
            error=type(error).__name__[:MAX_TYPE_CHARACTERS],
            message=message_of(error),
            frame=frame_of(error),
            record=record,
        )


def _manifest(run: OperationRun, dropped: int) -> dict[str, Any]:
    return {
        **_head(run.number, run.partition, run.operation.number, [run.operation.number]),
        "blocks": run.blocks,
        "dropped": dropped,
        **({"spooled": run.delivery.spooled, "host": host()} if run.delivery.spooled else {}),
        "inputs": run.records,
        "outputs": run.records,
    }


def _head(run: int, split: int, node: int, nodes: list[int]) -> dict[str, Any]:
    """What is said of every run of a program that is no Spark job."""
    fields = {"run": run, "split": split, "attempt": 0, "stage": 0, "action": None}
    return {**fields, "input": node, "nodes": nodes}


def _file(path: str) -> dict[str, Any]:
    """A whole text file as the one partition of a node."""
    try:
        status = os.stat(path)
    except OSError:
        size = modified = None
    else:
        size, modified = status.st_size, status.st_mtime_ns // 1_000_000
    return {"split": 0, "path": path, "start": 0, "length": size, "size": size, "modified": modified}
