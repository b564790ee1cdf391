"""Events on `lineage-node`: their types, the fields that each must carry, and their JSON.

Promises that no type and no field is ever taken away from here. The service checks what optional fields hold,
and `docs/contract.md` says what each one means.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

from spark_agent.contract.errors import ContractError, check_size, in_short
from spark_agent.contract.limits import MAX_EVENT_DEPTH, MAX_MESSAGE_BYTES
from spark_agent.contract.version import VERSION, check_version

APPLICATION_STARTED = "application_started"
APPLICATION_ENDED = "application_ended"
NODE_REGISTERED = "node_registered"
LINK = "link"
PARTITIONS = "partitions"
RUN_COMMITTED = "run_committed"
RUN_KEPT = "run_kept"
RUN_FAILED = "run_failed"
PERSISTED = "persisted"
ACTION_ENDED = "action_ended"
ALIVE = "alive"
GAP = "gap"
COLUMNS = "columns"
DRIVER = "driver"
BATCH_COMMITTED = "batch_committed"

#: All say of a run what it did: its attempt was accepted; it may have filled a cache; a record made it fail.
MANIFESTS = (RUN_COMMITTED, RUN_KEPT, RUN_FAILED)

#: Types that say `ignorable`: a reader that does not know them gives the same answers without them. Not so
#: `gap` and `batch_committed`: without the first an answer claims too much, without the second it counts
#: batches that never were.
IGNORABLE = (ACTION_ENDED, ALIVE, RUN_FAILED, COLUMNS, DRIVER)

#: How an application ends, and how an action does.
SUCCEEDED, FAILED = "succeeded", "failed"
APPLICATION_STATES = (SUCCEEDED, FAILED)
ACTION_COMPLETE, ACTION_FAILED, ACTION_ABORTED = "complete", "failed", "aborted"
ACTION_STATES = (ACTION_COMPLETE, ACTION_FAILED, ACTION_ABORTED)

_MANIFEST: Mapping[str, tuple[type, ...]] = {
    "run": (int,),
    "split": (int,),
    "attempt": (int,),
    "stage": (int,),
    "action": (int, type(None)),
    "input": (int,),
    "nodes": (list,),
    "blocks": (int,),
    "dropped": (int,),
    "inputs": (int,),
    "outputs": (int,),
}

#: Each event type with the fields that it must carry beside `version`, `type`, `application_id`, `time`.
#: Any of them may also carry `event`: its number in the application, by which a lost one is noticed.
EVENT_FIELDS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    APPLICATION_STARTED: {"name": (str,), "detailed": (bool,)},
    APPLICATION_ENDED: {"counters": (dict,)},
    NODE_REGISTERED: {
        "node": (int,),
        "name": (str,),
        "description": (str,),
        "kind": (str,),
        "relation": (str,),
        "exact": (bool,),
    },
    LINK: {"source": (int,), "target": (int,), "port": (int,)},
    PARTITIONS: {"node": (int,), "partitions": (list,)},
    RUN_COMMITTED: _MANIFEST,
    RUN_KEPT: _MANIFEST,
    RUN_FAILED: {
        **_MANIFEST,
        "failed_node": (int,),
        "position": (int, type(None)),
        "certain": (bool,),
        "error": (str,),
        "message": (str,),
        "frame": (str, type(None)),
    },
    PERSISTED: {"node": (int,)},
    ACTION_ENDED: {"node": (int,), "state": (str,)},
    ALIVE: {},
    GAP: {"reason": (str,), "node": (int, type(None))},
    COLUMNS: {"node": (int,), "piece": (int,), "fields": (dict,)},
    DRIVER: {"source": (int,), "target": (int,)},
    BATCH_COMMITTED: {"query": (str,), "batch": (int,), "node": (int,), "offsets": (dict,)},
}

#: How the outputs of a node relate to its inputs. The first three need no flows.
IDENTITY = "identity"  # output k is input k
PARTITION = "partition"  # every input of its split; a bound unless the node is exact
DATASET = "dataset"  # bound: any output may come from any input record of any split
SOURCE = "source"  # no inputs: the records come from outside
STATIC = "static"  # a table from the driver (`partitions`): which parent splits make a split, in order
FLOWS = "flows"  # the flow store holds (output, input) positions
ZIP = "zip"  # output k of a split is made of record k of the same split of each parent
PRODUCT = "product"  # as `zip`; the parents' records are known from blocks of the run that reads the node
AGGREGATE = "aggregate"  # one record, made of every record that the jobs of this action read
CARRIED = "carried"  # no records of its own: rows pass it with their ids, or its steps stand for it
KEYED = "keyed"  # groups: the record of a key is made of the records of the parent with that key
RELATIONS = (IDENTITY, PARTITION, DATASET, SOURCE, STATIC, FLOWS, ZIP, PRODUCT, AGGREGATE, CARRIED, KEYED)

#: Kinds of nodes. A `step` is a part of a public operation (the shuffle inside a join, say).
KINDS = ("source", "operator", "step", "sink")


def encode_event(event_type: str, application_id: str, time_ms: int, fields: Mapping[str, object]) -> bytes:
    """One event for `lineage-node` as UTF-8 JSON; `time_ms` is Unix time in milliseconds."""
    body: dict[str, object] = {
        "version": VERSION,
        "type": event_type,
        "application_id": application_id,
        "time": time_ms,
    }
    if event_type in IGNORABLE:
        body["ignorable"] = True
    return json.dumps({**body, **fields}, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def decode_event(message: bytes) -> dict[str, Any]:
    """The event as a dictionary, its required fields checked. Raises ContractError.

    An event of a type that is not known comes as it is if it says that it may be ignored.
    """
    check_size("event", message, MAX_MESSAGE_BYTES)
    try:
        event = json.loads(message.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ContractError(f"event is not JSON: {error}") from None
    if not isinstance(event, dict):
        raise ContractError("event is not a JSON object")
    _check_depth(event)
    check_version(event.get("version"))
    for name, kind in (("type", str), ("application_id", str), ("time", int)):
        if not isinstance(event.get(name), kind) or isinstance(event[name], bool):
            raise ContractError(f"event has no {kind.__name__} field {name!r}")
    required = EVENT_FIELDS.get(event["type"])
    if required is None:
        if event.get("ignorable") is True and _EVENT_TYPE.fullmatch(event["type"]):
            return event
        raise ContractError(f"event type {in_short(event['type'])} is not known")
    for name, kinds in required.items():
        if name not in event or not isinstance(event[name], kinds):
            raise ContractError(f"{event['type']} event has no valid field {name!r}")
        if isinstance(event[name], bool) and bool not in kinds:
            raise ContractError(f"{event['type']} event has a boolean in field {name!r}")
    return event


def _check_depth(event: Mapping[str, Any]) -> None:
    level: list[Any] = [event]
    for _ in range(MAX_EVENT_DEPTH):
        within = itertools.chain.from_iterable(
            value.values() if isinstance(value, dict) else value for value in level
        )
        level = [value for value in within if isinstance(value, (dict, list))]
        if not level:
            return
    raise ContractError(f"event is nested more than {MAX_EVENT_DEPTH} deep")


#: What a type that is not known may be called: it becomes a cell of a table.
_EVENT_TYPE = re.compile("[a-z][a-z0-9_]{0,79}", re.ASCII)
