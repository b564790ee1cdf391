"""LineageApi: how a program that is not a Spark job tells its lineage, to stand beside that of Spark's jobs.

Promises that what is told counts as a whole or not at all: only when the `with` block ends without an error
are the program's flows committed. Wrong calls raise LineageApiError at once; what cannot be delivered is
counted and never raised, unless `on_error="fail"`. Thread-safe. Needs confluent-kafka and nothing of Spark.

What the program calls a record is a text that it chooses, its *hash*; what travels is a position (see
docs/contract.md). So every hash is remembered until the end: some 200 bytes for each record.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.delivery import producer, topics
from spark_agent.delivery.notices import Notices
from spark_agent.delivery.producer import Delivery
from spark_agent.delivery.settings import AgentSettings, default_bootstrap_servers
from spark_agent.delivery.wait_budget import WaitBudget

__all__ = ["LineageApi", "LineageApiError", "LineageDeliveryError"]

#: A message leaves with so many flows, or texts of so many characters.
MESSAGE_FLOWS = 10_000
MESSAGE_CHARACTERS = 100_000
MAX_NUMBER = (1 << 31) - 1
MAX_POSITION = (1 << 53) - 1
ON_ERROR = ("silent", "fail")


class LineageApiError(ValueError):
    """A call that cannot be meant; nothing of it was taken."""


class LineageDeliveryError(RuntimeError):
    """Lineage could not be delivered and `on_error` is `fail`."""


@dataclass
class _Node:
    """One operation of the program."""

    number: int
    name: str
    description: str
    path: str | None
    parents: list[int] = field(default_factory=list)
    runs: dict[int, _Run] = field(default_factory=dict)  # by partition
    is_read: bool = False  # it has records from outside


class _Run:
    """The records of one node in one partition: a run of the contract, its position and streams."""

    def __init__(self, node: _Node, split: int, send: Callable[[_Run, str, dict[str, Any]], None]) -> None:
        self.node = node
        self.split = split
        self.number = int.from_bytes(os.urandom(8), "little") % (contract.MAX_RUN - 1) + 1
        self.delivery = Delivery()
        self.blocks = 0
        self.records = 0  # all positions are below it
        self.valued: set[int] = set()
        self._send = send
        self._pairs: tuple[list[int], list[int], list[int]] = ([], [], [])
        self._texts: dict[str, tuple[list[int], list[contract.Text]]] = {
            contract.KEYS: ([], []),
            contract.VALUES: ([], []),
        }
        self._characters = {contract.KEYS: 0, contract.VALUES: 0}

    def add_flow(self, output: int, input_: int, run: int) -> None:
        for column, value in zip(self._pairs, (output, input_, run), strict=True):
            column.append(value)
        if len(self._pairs[0]) >= MESSAGE_FLOWS:
            self._ship_pairs()

    def add_text(self, relation: str, position: int, value: Any) -> None:
        outputs, texts = self._texts[relation]
        outputs.append(position)
        texts.append(contract.typed_text(value))
        self._characters[relation] += len(texts[-1][1]) + 16
        if self._characters[relation] >= MESSAGE_CHARACTERS:
            self._ship_texts(relation)

    def ship(self) -> None:
        self._ship_pairs()
        for relation in self._texts:
            self._ship_texts(relation)

    def _ship_pairs(self) -> None:
        if self._pairs[0]:
            self._send(self, contract.PAIRS, dict(zip(("out", "in", "run"), self._pairs, strict=True)))
            self._pairs = ([], [], [])

    def _ship_texts(self, relation: str) -> None:
        outputs, texts = self._texts[relation]
        if texts:
            self._send(self, relation, {"out": outputs, "text": texts})
            self._texts[relation], self._characters[relation] = ([], []), 0


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
        self.dropped = 0  # messages that did not arrive; final once the program has ended
        self._on_error = on_error
        self._settings = AgentSettings(
            bootstrap_servers=bootstrap_servers or default_bootstrap_servers(os.environ),
            node_topic=node_topic,
            flow_topic=flow_topic,
            delivery_timeout_s=delivery_timeout_s,
        )
        self._lock = threading.RLock()
        self._nodes: dict[int, _Node] = {}
        self._records: dict[str, tuple[_Run, int]] = {}  # hash_out -> where it stands
        self._sender: producer.Sender | None = None
        self._events = Delivery()
        self._emitted = 0
        self._flow_partitions = contract.FLOW_PARTITIONS
        self._is_ended = False

    # -- begin and end -------------------------------------------------------------------------------

    def __enter__(self) -> LineageApi:
        """Tell that the application has started. Raises LineageApiError without confluent-kafka."""
        with self._lock:
            if self._sender is not None or self._is_ended:
                raise LineageApiError(
                    f"{self.application_id} was started before: one LineageApi, one execution"
                )
            try:
                wait_budget = WaitBudget(self._settings.delivery_timeout_s, forgives_answers=True)
                self._sender = producer.Sender(self._settings, wait_budget)
            except ImportError:
                raise LineageApiError("LineageApi needs `pip install confluent-kafka`") from None
            except Exception as error:
                raise LineageApiError(
                    f"no Kafka producer for {self._settings.bootstrap_servers}: {error}"
                ) from error
            partitions = {
                self._settings.node_topic: contract.NODE_PARTITIONS,
                self._settings.flow_topic: contract.FLOW_PARTITIONS,
            }
            existing, _problem = topics.create_missing_topics(self._settings, partitions)
            self._flow_partitions = existing.get(self._settings.flow_topic, contract.FLOW_PARTITIONS)
            self._emit(contract.APPLICATION_STARTED, name=self.name, detailed=True)
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
            if self._sender is None or self._is_ended:
                return
            self._is_ended = True
            runs = [run for node in self._nodes.values() for run in node.runs.values()]
            for run in runs:
                run.ship()
            dropped = {run.number: self._sender.flush(run.delivery) for run in runs}
            for node in self._nodes.values():
                self._publish(node)
            committed = runs if kind is None else []
            for run in committed:
                self._commit(run, dropped[run.number])
            counters = {
                "runs": len(committed),
                "blocks": sum(run.blocks for run in committed),
                "dropped": sum(dropped[run.number] for run in committed),
            }
            self._emit(contract.APPLICATION_ENDED, counters=counters)
            self.dropped = sum(dropped.values()) + self._sender.flush(self._events)
            if not self.dropped:
                return
            problem = (
                f"{self.dropped} messages of the lineage of {self.application_id} are lost: Kafka at "
                f"{self._settings.bootstrap_servers} does not take them"
            )
            if self._on_error == "fail" and kind is None:
                raise LineageDeliveryError(problem)
            Notices().say(problem)

    # -- what the program tells ----------------------------------------------------------------------

    def register(self, node_id: int, name: str, description: str = "", *, path: str | None = None) -> None:
        """An operation of the program. It has a larger number than what it reads.

        One that nothing is linked to is a source, one that is linked to nothing a sink; `path` names the text
        file that it reads or writes, so that rows can be asked for and shown.
        """
        if isinstance(node_id, bool) or not isinstance(node_id, int) or not 0 <= node_id <= MAX_NUMBER:
            raise LineageApiError(f"node_id {node_id!r} is not a number from 0 to {MAX_NUMBER}")
        with self._running():
            if node_id in self._nodes:
                raise LineageApiError(
                    f"node {node_id} is registered already, as {self._nodes[node_id].name!r}"
                )
            self._nodes[node_id] = _Node(node_id, name, description, path)

    def link(self, source: int, target: int) -> None:
        """Records of `source` go into `target`."""
        with self._running():
            reader = self._node(target)
            self._node(source)
            if source >= target:
                raise LineageApiError(
                    f"link({source}, {target}): an operation must have a larger number than what it reads"
                )
            if reader.is_read:
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
        `value`: what the record looks like, if that shall be kept; the first one that is given counts.
        """
        with self._running():
            node = self._node_of(flow_id)
            if hash_in.startswith("read#"):
                self._capture_read(node, hash_in, hash_out, value)
                return
            record = self._records.get(hash_in)
            if record is None:
                raise LineageApiError(
                    f"flow {flow_id}: hash_in {hash_in!r} is neither read#PARTITION#ROW nor the hash_out of "
                    "an earlier flow"
                )
            parent, position = record
            if parent.node.number not in node.parents:
                raise LineageApiError(
                    f"flow {flow_id}: {hash_in!r} is a record of node {parent.node.number}, and no link goes "
                    f"from there to node {node.number}: call link({parent.node.number}, {node.number}) first"
                )
            run, output = self._output(node, hash_out)
            run.add_flow(output, position, parent.number)
            self._keep(run, output, value)

    def _capture_read(self, node: _Node, hash_in: str, hash_out: str, value: Any) -> None:
        if node.parents:
            raise LineageApiError(
                f"{hash_in!r}: node {node.number} is no source, node {node.parents[0]} is linked to it"
            )
        if hash_out in self._records:
            raise LineageApiError(f"hash_out {hash_out!r} is the name of a record already")
        run, row = self._place(node, hash_in, "source")
        name = f"{node.number}#{hash_in}"
        if name in self._records:
            raise LineageApiError(f"{hash_in!r} was captured already; a row is one record of its source")
        node.is_read = True
        run.records = max(run.records, row + 1)
        self._records[name] = run, row
        self._name(hash_out, run, row)
        self._keep(run, row, value)

    def _output(self, node: _Node, hash_out: str) -> tuple[_Run, int]:
        """Where the record stands, made if it is new."""
        if hash_out.startswith("write#"):
            run, row = self._place(node, hash_out, "sink")
            run.records = max(run.records, row + 1)
            return run, row
        record = self._records.get(hash_out)
        if record is None:
            run = self._run(node, 0)
            row, run.records = run.records, run.records + 1
            self._name(hash_out, run, row)
            return run, row
        if record[0].node is not node:
            raise LineageApiError(
                f"hash_out {hash_out!r} names a record of node {record[0].node.number}; give the one of node "
                f"{node.number} another name"
            )
        return record

    def _name(self, hash_out: str, run: _Run, position: int) -> None:
        """Remember the record, and keep its name as its key."""
        self._records[hash_out] = run, position
        prefix = f"{contract.node_id(self.application_id, run.node.number)}#"
        run.add_text(contract.KEYS, position, hash_out.removeprefix(prefix))

    @staticmethod
    def _keep(run: _Run, position: int, value: Any) -> None:
        if value is not None and position not in run.valued:
            run.valued.add(position)
            run.add_text(contract.VALUES, position, value)

    def _place(self, node: _Node, text: str, kind: str) -> tuple[_Run, int]:
        try:
            parsed, split, row = contract.parse_record_id(text)
        except contract.ContractError as error:
            raise LineageApiError(str(error)) from None
        if parsed != kind or split > MAX_NUMBER or row > MAX_POSITION:
            raise LineageApiError(f"{text!r} is no row of a {kind}")
        return self._run(node, split), row

    def _run(self, node: _Node, split: int) -> _Run:
        run = node.runs.get(split)
        if run is None:
            run = node.runs[split] = _Run(node, split, self._send)
        return run

    def _node_of(self, flow_id: str) -> _Node:
        number = flow_id.removeprefix(f"{self.application_id}#").partition("#")[0]
        if not (number.isascii() and number.isdigit() and len(number) < 11):
            raise LineageApiError(
                f"flow_id {flow_id!r} is neither NODE#ANYTHING nor {self.application_id}#NODE#ANYTHING"
            )
        return self._node(int(number))

    def _node(self, number: int) -> _Node:
        node = self._nodes.get(number)
        if node is None:
            raise LineageApiError(f"node {number} is not registered: call register({number}, name) first")
        return node

    def _running(self) -> threading.RLock:
        """The lock, if the application runs."""
        if self._sender is None or self._is_ended:
            raise LineageApiError(
                f"{self.application_id} does not run: call inside of `with LineageApi(...)`"
            )
        return self._lock

    # -- messages ------------------------------------------------------------------------------------

    def _send(self, run: _Run, relation: str, columns: dict[str, Any]) -> None:
        seq, run.blocks = run.blocks, run.blocks + 1
        block = Block(
            self.application_id, run.node.number, run.number, run.split, seq, relation, columns=columns
        )
        assert self._sender is not None
        self._sender.send(
            self._settings.flow_topic,
            run.split % self._flow_partitions,
            f"{self.application_id}#{run.number}".encode(),
            contract.encode_record(block),
            run.delivery,
        )

    def _emit(self, event_type: str, **fields: object) -> None:
        assert self._sender is not None
        fields["event"], self._emitted = self._emitted, self._emitted + 1  # so that a lost one is noticed
        message = contract.encode_event(event_type, self.application_id, int(time.time() * 1000), fields)
        key = self.application_id.encode()
        self._sender.send(self._settings.node_topic, -1, key, message, self._events)

    def _publish(self, node: _Node) -> None:
        is_read = any(node.number in other.parents for other in self._nodes.values())
        path = None if node.path is None else os.path.abspath(node.path)
        self._emit(
            contract.NODE_REGISTERED,
            node=node.number,
            name=node.name,
            description=node.description or path or "",
            kind="operator" if node.parents and is_read else "sink" if node.parents else "source",
            relation=contract.FLOWS if node.parents else contract.SOURCE,
            exact=True,
            dataset=None if path is None else {"namespace": "file", "name": path, "format": "text"},
        )
        for port, parent in enumerate(node.parents):
            self._emit(contract.LINK, source=parent, target=node.number, port=port)
        if path is not None:
            self._emit(contract.PARTITIONS, node=node.number, partitions=[_file(path)])

    def _commit(self, run: _Run, dropped: int) -> None:
        self._emit(
            contract.RUN_COMMITTED,
            run=run.number,
            split=run.split,
            attempt=0,
            stage=0,
            action=None,
            input=run.node.number,
            nodes=[run.node.number],
            blocks=run.blocks,
            dropped=dropped,
            inputs=run.records,
            outputs=run.records,
        )


def _file(path: str) -> dict[str, Any]:
    """A whole text file as the one partition of a node."""
    try:
        status = os.stat(path)
    except OSError:
        size = modified = None
    else:
        size, modified = status.st_size, status.st_mtime_ns // 1_000_000
    return {"split": 0, "path": path, "start": 0, "length": size, "size": size, "modified": modified}
