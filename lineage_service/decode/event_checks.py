"""What the fields of an event may hold: the values that others rely on, and that the tables have room for.

Promises that an event which passes says of each field what docs/contract.md says, whatever else it carries.
Fields of no known name are left as they came, and so is all of a type that is not known. Knows nothing of
stores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spark_agent import contract
from spark_agent.contract import ContractError

__all__ = ["MAX_NUMBER", "MAX_POSITION", "MAX_TIME", "check_application", "check_event", "check_number"]

MAX_POSITION = (1 << 63) - 1
MAX_NUMBER = (1 << 31) - 1  # node, split, seq
#: The last millisecond of the year 9999: people are shown times as dates.
MAX_TIME = 253_402_300_799_999
#: What a manifest has of slow records at most.
MAX_SLOW = 20

#: Refuses a value that a field may not hold: (name for people, value). Raises ContractError.
_Check = Callable[[str, object], None]


def check_event(event: Mapping[str, Any]) -> None:
    """Refuse what the contract's decoder leaves open. Raises ContractError."""
    check_number("time", event["time"], MAX_TIME)
    check_number("event", event.get("event", 0), MAX_POSITION)
    kind = event["type"]
    if kind not in contract.EVENT_FIELDS:
        return
    for name, types in contract.EVENT_FIELDS[kind].items():
        if int in types and event[name] is not None:
            check_number(name, event[name], _LARGEST.get(name, MAX_POSITION))
    for name, type_ in _ANYWHERE.items():
        if event.get(name) is not None and not isinstance(event[name], type_):
            raise ContractError(f"{kind} event has no valid field {name!r}")
    if kind in contract.MANIFESTS:
        _check_manifest(event)
    for name, check in _FIELDS.get(kind, {}).items():
        if event.get(name) is not None:
            check(f"{name} of {kind}", event[name])


def check_application(application_id: str) -> None:
    """Raises ContractError."""
    if contract.APPLICATION_ID.fullmatch(application_id) is None:
        raise ContractError(
            f"application_id {application_id[:80]!r} is not 1 to 200 letters, digits or . _ : - "
            "that begin with a letter or digit, with at most 20 colons"
        )


def check_number(name: str, value: object, largest: int) -> None:
    """Raises ContractError."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise ContractError(f"{name} is {contract.in_short(value)}, not a number from 0 to {largest}")


#: Numbers in events that are smaller than positions.
_LARGEST = {
    "node": MAX_NUMBER,
    "source": MAX_NUMBER,
    "target": MAX_NUMBER,
    "split": MAX_NUMBER,
    "input": MAX_NUMBER,
    "blocks": MAX_NUMBER,
    "failed_node": MAX_NUMBER,
    "run": contract.MAX_RUN - 1,
}
#: Optional fields that mean the same in whatever event they stand.
_ANYWHERE: Mapping[str, type] = {
    "spark_version": str,
    "master": str,
    "user": str,
    "problems": list,
    "reason": str,
    "call_site": str,
    "dataset": dict,
    "problem": str,
    "ids": bool,
    "by_id": bool,
    "operation": int,
    "ignorable": bool,
}


def _check_manifest(event: Mapping[str, Any]) -> None:
    _check_numbers("nodes", event["nodes"])
    _check_numbers("overridden", event.get("overridden", []))
    for name in ("cut", "withheld", "unconfirmed", "waited_ms", "execution", "spooled"):
        check_number(name, event.get(name, 0), MAX_POSITION)
    counts = event.get("counts", {})
    if not isinstance(counts, dict) or not all(node.isascii() and node.isdigit() for node in counts):
        raise ContractError("counts is not an object with node numbers as names")
    for count in counts.values():
        check_number("counts", count, MAX_POSITION)
    _check_parts(event.get("parts", []))
    _check_read(event.get("read", []))
    for name, check in (("slow", _check_slow), ("batch", _natural)):
        if event.get(name) is not None:
            check(name, event[name])


def _check_slow(name: str, value: object) -> None:
    if not isinstance(value, list) or len(value) > MAX_SLOW:
        raise ContractError(f"{name} of a manifest is no list of at most {MAX_SLOW} [node, position, ms]")
    for entry in value:
        if not isinstance(entry, list) or len(entry) != 3:
            raise ContractError(f"{name} of a manifest is not a list of [node, position, ms]")
        check_number(f"a node of {name}", entry[0], MAX_NUMBER)
        check_number(f"a position of {name}", entry[1], MAX_POSITION)
        check_number(f"ms of {name}", entry[2], MAX_POSITION)


def _check_partition(_name: str, partition: object) -> None:
    if not isinstance(partition, dict):
        raise ContractError("partitions holds an entry that is not an object")
    check_number("split", partition.get("split"), MAX_NUMBER)
    if "path" in partition or "record_length" in partition or partition.get("length") is not None:
        _check_file(partition)
        check_number("start", partition.get("start"), MAX_POSITION)
        check_number("length", partition.get("length") or 0, MAX_POSITION)
        check_number("record_length", partition.get("record_length", 1), MAX_POSITION)
        if partition.get("record_length") == 0:
            raise ContractError("record_length of a partition is 0")
    if "parts" in partition:
        _check_parts(partition["parts"])
    files = partition.get("files", [])
    if not isinstance(files, list):
        raise ContractError("files of a partition are not a list")
    for file in files:
        _check_file(file)
        check_number("start", file.get("start", 0), MAX_POSITION)
    parents = partition.get("parents", [])
    if not isinstance(parents, list) or not all(
        isinstance(pair, list) and len(pair) == 2 for pair in parents
    ):
        raise ContractError("parents of a partition are not a list of [port, split]")
    for pair in parents:
        _check_numbers("parents", pair)


def _check_parts(parts: object) -> None:
    """Pieces of files that together are a partition: the positions of each begin at its `first`."""
    if not isinstance(parts, list):
        raise ContractError("parts of a partition are not a list")
    before = 0
    for part in parts:
        _check_file(part)
        for name in ("start", "length", "row"):
            check_number(f"{name} of a part", part.get(name) or 0, MAX_POSITION)
        check_number("first of a part", part.get("first"), MAX_POSITION)
        for name, check in (("row_id_first", _natural), ("version", _text)):
            if part.get(name) is not None:
                check(f"{name} of a part", part[name])
        if part["first"] < before:
            raise ContractError("parts of a partition do not stand in the order of their first positions")
        before = part["first"]


def _check_read(pieces: object) -> None:
    """Which records of which runs together are the inputs of a run."""
    if not isinstance(pieces, list) or not all(
        isinstance(piece, list) and len(piece) == 3 for piece in pieces
    ):
        raise ContractError("read of a manifest is not a list of [run, first, count]")
    for run, first, count in pieces:
        check_number("a run of read", run, contract.MAX_RUN - 1)
        check_number("a first of read", first, MAX_POSITION)
        check_number("a count of read", count, MAX_POSITION)


def _check_file(file: object) -> None:
    path = file.get("path") if isinstance(file, dict) else None
    if not isinstance(file, dict) or not isinstance(path, str) or "\0" in path:
        raise ContractError(f"path of a partition is {contract.in_short(path)}, not a text that names a file")
    check_number("size", file.get("size") or 0, MAX_POSITION)
    modified = file.get("modified") or 0
    if not isinstance(modified, int) or abs(modified) > MAX_POSITION:  # a file may be older than 1970
        raise ContractError(f"modified is {contract.in_short(modified)}, not a number")


def _check_numbers(name: str, values: object) -> None:
    if not isinstance(values, list):
        raise ContractError(f"{name} is not a list")
    for value in values:
        check_number(name, value, MAX_NUMBER)


# -- shapes of optional fields ------------------------------------------------------------------------


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ContractError(f"{name} is {contract.in_short(value)}, not a text")


def _natural(name: str, value: object) -> None:
    check_number(name, value, MAX_POSITION)


def _boolean(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ContractError(f"{name} is {contract.in_short(value)}, neither true nor false")


def _any(_name: str, _value: object) -> None:
    """Whatever it is: it goes back to where it came from."""


def _one_of(*words: str) -> _Check:
    def check(name: str, value: object) -> None:
        if value not in words:
            raise ContractError(f"{name} is {contract.in_short(value)}, none of {', '.join(words)}")

    return check


def _list_of(check_entry: _Check) -> _Check:
    def check(name: str, value: object) -> None:
        if not isinstance(value, list):
            raise ContractError(f"{name} is {contract.in_short(value)}, not a list")
        for entry in value:
            check_entry(f"an entry of {name}", entry)

    return check


def _object(required: Mapping[str, _Check] | None = None, **optional: _Check) -> _Check:
    """An object whose `required` fields must be there, and whose optional ones may be missing or null."""
    needed = required or {}

    def check(name: str, value: object) -> None:
        if not isinstance(value, dict):
            raise ContractError(f"{name} is {contract.in_short(value)}, not an object")
        for field, check_field in needed.items():
            check_field(f"{field} of {name}", value.get(field))
        for field, check_field in optional.items():
            if value.get(field) is not None:
                check_field(f"{field} of {name}", value[field])

    return check


def _values_of(check_value: _Check) -> _Check:
    """An object with any names."""

    def check(name: str, value: object) -> None:
        if not isinstance(value, dict):
            raise ContractError(f"{name} is {contract.in_short(value)}, not an object")
        for key, entry in value.items():
            check_value(f"{name} {key[:80]!r}", entry)

    return check


def _typed_text(name: str, value: object) -> None:
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(part, str) for part in value):
        raise ContractError(f"{name} is {contract.in_short(value)}, not [type, text]")


def _bound(name: str, value: object) -> None:
    """Where a window's frame begins or ends: rows before (negative) or behind, or a literal of a range."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ContractError(f"{name} is {contract.in_short(value)}, neither a number nor a text")


def _column(name: str, value: object) -> None:
    """A column of a schema; a struct has `fields` of the same kind. Its depth is bounded with the event's."""
    _object({"name": _text, "type": _text}, nullable=_boolean, fields=_list_of(_column))(name, value)


_ERROR = _object({"type": _text, "message": _text}, frame=_text)
_PARENT = _object(namespace=_text, job=_text, run=_text)
_DATASET = _object(
    namespace=_text,
    name=_text,
    format=_text,
    version=_text,
    symlinks=_list_of(_object({"namespace": _text, "name": _text}, type=_text)),
    partitions=_list_of(_text),
    columns=_list_of(_text),
)
#: Event type -> its fields that the decoder has not looked into.
_FIELDS: Mapping[str, Mapping[str, _Check]] = {
    contract.APPLICATION_STARTED: {
        "replay": _object({"of": _text}, mode=_text, rows=_natural, strategy=_text, round=_natural),
        "job": _text,
        "wave": _text,
        "code": _text,
        "parent": _PARENT,
        "root": _PARENT,
    },
    contract.APPLICATION_ENDED: {
        "counters": _values_of(_natural),
        "state": _one_of(*contract.APPLICATION_STATES),
        "error": _ERROR,
    },
    contract.NODE_REGISTERED: {
        "kind": _one_of(*contract.KINDS),
        "relation": _one_of(*contract.RELATIONS),
        "limit": _natural,
        "dataset": _DATASET,
        "schema": _list_of(_column),
        "site": _object(path=_list_of(_text), loops=_list_of(_text), visit=_natural),
        "frame": _object({"unit": _one_of("rows", "range")}, **{"from": _bound, "to": _bound}),
        "session": _object({"id": _text}, user=_text),
    },
    contract.PARTITIONS: {"partitions": _list_of(_check_partition)},
    contract.RUN_FAILED: {"record": _typed_text},
    contract.ACTION_ENDED: {
        "state": _one_of(*contract.ACTION_STATES),
        "error": _ERROR,
        "rows": _natural,
        "bytes": _natural,
        "files": _natural,
        "dataset_version": _text,
    },
    contract.COLUMNS: {"fields": _values_of(_list_of(_object()))},
    contract.BATCH_COMMITTED: {"offsets": _values_of(_any)},
}
