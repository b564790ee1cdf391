"""What a program calls its records, and where each of them stands.

Promises that a call which raises LineageApiError has named nothing. Knows nothing of Kafka and of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_agent import contract
from spark_agent.emitter.argument_checks import MAX_NUMBER
from spark_agent.emitter.errors import LineageApiError
from spark_agent.emitter.operations import Operation, OperationRun, Place

MAX_POSITION = (1 << 53) - 1


class RecordNames:
    """The records of one execution. `new_run` makes the run of an operation in a partition."""

    def __init__(self, application_id: str, new_run: Callable[[Operation, int], OperationRun]) -> None:
        self._application_id, self._new_run = application_id, new_run
        self._places: dict[str, Place] = {}  # name -> where the record stands
        self._rows: set[Place] = set()  # that were read

    def input_place(self, operation: Operation, hash_in: str, call: str) -> Place:
        """Where the record stands that goes into `operation`. `call` is what the program called."""
        if hash_in.startswith("read#"):
            if operation.parents:
                raise LineageApiError(
                    f"{hash_in!r}: node {operation.number} is no source, node {operation.parents[0]} is "
                    "linked to it"
                )
            return self._row(operation, hash_in, "source")
        place = self._places.get(hash_in)
        if place is None:
            raise LineageApiError(
                f"{call}: hash_in {hash_in!r} is neither read#PARTITION#ROW nor the hash_out of an earlier "
                "flow"
            )
        parent = place[0].operation.number
        if parent not in operation.parents:
            raise LineageApiError(
                f"{call}: {hash_in!r} is a record of node {parent}, and no link goes from there to node "
                f"{operation.number}: call link({parent}, {operation.number}) first"
            )
        return place

    def add_row(self, operation: Operation, place: Place, hash_out: str, value: Any) -> None:
        """The row that a source has read is the record `hash_out`."""
        if hash_out in self._places:
            raise LineageApiError(f"hash_out {hash_out!r} is the name of a record already")
        if place in self._rows:
            run, row = place
            raise LineageApiError(
                f"'read#{run.partition}#{row}' was captured already; a row is one record of its source"
            )
        run, row = place
        operation.reads_rows = True
        run.records = max(run.records, row + 1)
        self._rows.add(place)
        self._name(hash_out, place)
        run.add_value(row, value)

    def output_place(self, operation: Operation, hash_out: str) -> Place:
        """Where a record of `operation` stands that is no row of a source; made if it is new."""
        if hash_out.startswith("write#"):
            run, row = self._row(operation, hash_out, "sink")
            run.records = max(run.records, row + 1)
            return run, row
        place = self._places.get(hash_out)
        if place is None:
            run = self._run(operation, 0)
            place, run.records = (run, run.records), run.records + 1
            self._name(hash_out, place)
        elif place[0].operation is not operation:
            raise LineageApiError(
                f"hash_out {hash_out!r} names a record of node {place[0].operation.number}; give the one of "
                f"node {operation.number} another name"
            )
        return place

    def _name(self, hash_out: str, place: Place) -> None:
        """Remember the record, and take its name as its key."""
        self._places[hash_out] = place
        run, position = place
        prefix = f"{contract.node_id(self._application_id, run.operation.number)}#"
        run.add_key(position, hash_out.removeprefix(prefix))

    def _row(self, operation: Operation, text: str, kind: str) -> Place:
        """The row of a `source` or `sink` that `text` names."""
        partition, row = _row_named(text, kind)
        return self._run(operation, partition), row

    def _run(self, operation: Operation, partition: int) -> OperationRun:
        run = operation.runs.get(partition)
        if run is None:
            run = operation.runs[partition] = self._new_run(operation, partition)
        return run


def source_row(text: str) -> tuple[int, int]:
    """The partition and row that `read#PARTITION#ROW` names. Raises LineageApiError."""
    return _row_named(text, "source")


def _row_named(text: str, kind: str) -> tuple[int, int]:
    """The partition and row of a `source` or `sink`. Raises LineageApiError."""
    try:
        parsed, partition, row = contract.parse_record_id(text)
    except contract.ContractError as error:
        raise LineageApiError(str(error)) from None
    if parsed != kind or partition > MAX_NUMBER or row > MAX_POSITION:
        raise LineageApiError(f"{text!r} is no row of a {kind}")
    return partition, row
