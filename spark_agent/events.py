"""The types of events on `lineage-node`, and the fields that each must carry.

Promises that nothing is ever taken away from here. Names only: `contract` reads and writes messages, the
service checks what optional fields hold, and `docs/contract.md` says what each one means.
"""

from __future__ import annotations

from collections.abc import Mapping

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
