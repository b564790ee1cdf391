"""Events on `lineage-node`: their types, the words that their fields hold, and how they are written.

Promises that no type and no word is ever taken away from here. `event_fields` says which fields each type
has, `event_checks` reads them, and `docs/contract.md` says what each one means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from spark_agent.contract.version import VERSION

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
EXPLANATION_CHECKED = "explanation_checked"

#: All say of a run what it did: its attempt was accepted; it may have filled a cache; a record made it fail.
MANIFESTS = (RUN_COMMITTED, RUN_KEPT, RUN_FAILED)

#: Types that say `ignorable`: a reader that does not know them gives the same answers without them. Not so
#: `gap` and `batch_committed`: without the first an answer claims too much, without the second it counts
#: batches that never were.
IGNORABLE = (ACTION_ENDED, ALIVE, RUN_FAILED, COLUMNS, DRIVER, EXPLANATION_CHECKED)

#: How an application ends, and how an action does.
SUCCEEDED, FAILED = "succeeded", "failed"
APPLICATION_STATES = (SUCCEEDED, FAILED)
ACTION_COMPLETE, ACTION_FAILED, ACTION_ABORTED = "complete", "failed", "aborted"
ACTION_STATES = (ACTION_COMPLETE, ACTION_FAILED, ACTION_ABORTED)

#: How the outputs of a node relate to its inputs. The first three need no flows.
IDENTITY = "identity"  # output k is input k
PARTITION = "partition"  # every input of its partition; an upper bound unless the node is exact
DATASET = "dataset"  # upper bound: any output may come from any input record of any partition
SOURCE = "source"  # no inputs: the records come from outside
STATIC = "static"  # a table from the driver (`partitions`): which parent partitions make one, in order
FLOWS = "flows"  # the flow store holds (output, input) positions
ZIP = "zip"  # output k of a partition is made of record k of the same partition of each parent
PRODUCT = "product"  # as `zip`; the parents' records are known from blocks of the run that reads the node
AGGREGATE = "aggregate"  # one record, made of every record that the jobs of this action read
CARRIED = "carried"  # no records of its own: rows pass it with their ids, or its steps stand for it
KEYED = "keyed"  # groups: the record of a key is made of the records of the parent with that key
RELATIONS = (IDENTITY, PARTITION, DATASET, SOURCE, STATIC, FLOWS, ZIP, PRODUCT, AGGREGATE, CARRIED, KEYED)

#: Of an operation that brings rows together in groups: which of them give the record of a group.
BY_ALL = "all"  # all of them may count: a sum
BY_WINNERS = "winners"  # those that blocks of `winners` name: a minimum; where they name none, any one
BY_ONE = "one"  # any one of them, whichever it is: `distinct`
DECISIONS = (BY_ALL, BY_WINNERS, BY_ONE)

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
