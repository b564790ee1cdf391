"""What each event says: its fields, their types and their limits. Said once, for readers and for writers.

`event_checks` refuses what is not so, `docs/event.schema.json` is the same as a JSON Schema, and
`docs/contract.md` says what each field means. Tests hold them together. Promises that no type and no field is
ever taken away, that no limit gets smaller, and that what a later version adds is optional.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_agent.contract import events
from spark_agent.contract.field_types import (
    Anything,
    Boolean,
    FieldType,
    Integer,
    ListOf,
    Literal,
    MapOf,
    Number,
    Object,
    OneOf,
    Reference,
    Text,
    TupleOf,
)
from spark_agent.contract.ids import APPLICATION_ID, APPLICATION_ID_RULE
from spark_agent.contract.limits import MAX_NUMBER, MAX_POSITION, MAX_RUN, MAX_SLOW_RECORDS, MAX_TIME

__all__ = ["DEFINITIONS", "EVENT_FIELDS", "HEAD", "LATER_EVENT"]

TEXT, BOOLEAN = Text(), Boolean()
TEXTS = ListOf(TEXT)
NUMBER = Integer(MAX_POSITION)
NODE = SPLIT = Integer(MAX_NUMBER)
RUN = Integer(MAX_RUN - 1)
PATH = Text(r"[^\u0000]*", "a text that names a file")

#: What every event has, of whatever type. `event` numbers the events of an application, so that a lost one is
#: noticed.
HEAD = Object(
    required={
        "version": TEXT,  # `check_version` says more
        "type": TEXT,
        "application_id": Text(APPLICATION_ID.pattern, APPLICATION_ID_RULE),
        "time": Integer(MAX_TIME),
    },
    optional={"event": NUMBER, "ignorable": BOOLEAN | None},
)
#: An event of a type that is not known may be ignored if it says so. Its type becomes a cell of a table.
LATER_EVENT = Object(required={"type": Text("[a-z][a-z0-9_]{0,79}"), "ignorable": Boolean(only=True)})

#: Types with a name of their own, which others refer to.
DEFINITIONS: dict[str, FieldType] = {}
ERROR, COLUMN, PART, EXPRESSION, EXPRESSIONS = (
    Reference(name, DEFINITIONS) for name in ("error", "column", "part", "expression", "expressions")
)

DEFINITIONS["error"] = Object({"type": TEXT, "message": TEXT}, {"frame": TEXT | None})

# -- of nodes -----------------------------------------------------------------------------------------

# Of a schema; a struct has `fields` of the same kind. Their depth is bounded with the event's.
DEFINITIONS["column"] = Object(
    {"name": TEXT, "type": TEXT}, {"nullable": BOOLEAN | None, "fields": ListOf(COLUMN) | None}
)
DATASET = Object(
    optional={
        "namespace": TEXT | None,
        "name": TEXT | None,
        "format": TEXT | None,
        "location": PATH | None,
        "version": TEXT | None,
        "symlinks": ListOf(Object({"namespace": TEXT, "name": TEXT}, {"type": TEXT | None})) | None,
        "partitions": TEXTS | None,
        "columns": TEXTS | None,
        "options": MapOf(TEXT) | None,
        "paths": ListOf(PATH) | None,
        "appends": BOOLEAN | None,
        "replaces_part": BOOLEAN | None,
        "operation": TEXT | None,
        "unknown_files": BOOLEAN | None,
    }
)
# What an operator computes of a row: a column, a literal, a function of others, or what is not said.
DEFINITIONS["expression"] = Object(
    optional={
        "of": TEXT,
        "inputs": ListOf(EXPRESSION),
        "column": NUMBER,
        "name": TEXT,
        "type": TEXT,
        "value": TEXT | None,
        "unknown": TEXT,
    }
)
COLUMN_IDS = ListOf(NUMBER)
DEFINITIONS["expressions"] = Object(
    optional={
        "columns": ListOf(COLUMN_IDS),
        "options": MapOf(TEXT),
        "condition": EXPRESSION | None,
        "defined": ListOf(Object({"column": NUMBER, "as": EXPRESSION})),
        "join": TEXT,
        "keys": ListOf(EXPRESSION),
        "distinct": BOOLEAN,
        "output": COLUMN_IDS,
        "inputs": ListOf(COLUMN_IDS),
    }
)
SITE = Object(optional={"path": TEXTS | None, "loops": TEXTS | None, "visit": NUMBER | None})
#: Where a window's frame begins or ends: rows before (negative) or behind, a literal of a range, or no bound.
FRAME_END = Literal() | None
FRAME = Object({"unit": OneOf(("rows", "range"))}, {"from": FRAME_END, "to": FRAME_END})
SESSION = Object({"id": TEXT}, {"user": TEXT | None})

# -- of partitions ------------------------------------------------------------------------------------

_FILE = {"size": NUMBER | None, "modified": Integer(MAX_POSITION, -MAX_POSITION) | None}  # or before 1970
FILE = Object({"path": PATH}, {**_FILE, "start": NUMBER})
# A piece of a file that is a piece of a partition: its positions begin at `first`.
DEFINITIONS["part"] = Object(
    {"path": PATH, "first": NUMBER},
    {
        **_FILE,
        "start": NUMBER | None,
        "length": NUMBER | None,
        "row": NUMBER | None,
        "row_id_first": NUMBER | None,
        "version": TEXT | None,
    },
)
PARTS = ListOf(PART, ascending="first")
PARTITION = Object(
    {"split": SPLIT},
    {
        "path": PATH,
        "start": NUMBER,
        "length": NUMBER | None,
        **_FILE,
        "record_length": Integer(MAX_POSITION, 1),
        "files": ListOf(FILE),
        "parents": ListOf(TupleOf({"port": SPLIT, "split": SPLIT})),
        "parts": PARTS,
    },
    needs={"path": ("start",), "length": ("path", "start"), "record_length": ("path", "start")},
)

# -- of task runs -------------------------------------------------------------------------------------

#: What a task run did. Python, the JVM and programs without Spark write it, of accepted runs as
#: `run_committed`.
MANIFEST = Object(
    required={
        "run": RUN,
        "split": SPLIT,
        "attempt": NUMBER,
        "stage": NUMBER,
        "action": NUMBER | None,
        "input": NODE,
        "nodes": ListOf(NODE),
        "blocks": Integer(MAX_NUMBER),
        "dropped": NUMBER,
        "inputs": NUMBER,
        "outputs": NUMBER,
    },
    optional={
        "unconfirmed": NUMBER,
        "problem": TEXT | None,
        "waited_ms": NUMBER,
        "whole": BOOLEAN | None,
        "read": ListOf(TupleOf({"run": RUN, "first": NUMBER, "count": NUMBER})),
        "overridden": ListOf(NODE),
        "cut": NUMBER,
        "withheld": NUMBER,
        "counts": MapOf(NUMBER, names="[0-9]+"),
        "execution": NUMBER,
        "batch": NUMBER | None,
        "slow": ListOf(TupleOf({"node": NODE, "position": NUMBER, "ms": NUMBER}), MAX_SLOW_RECORDS) | None,
        "spooled": NUMBER,
        "host": TEXT | None,
        "parts": PARTS,
    },
)

# -- events -------------------------------------------------------------------------------------------

_STARTED_BY = Object(optional={"namespace": TEXT | None, "job": TEXT | None, "run": TEXT | None}) | None

#: Each event type with its fields, beside those of `HEAD`.
EVENT_FIELDS: Mapping[str, Object] = {
    events.APPLICATION_STARTED: Object(
        required={"name": TEXT, "detailed": BOOLEAN},
        optional={
            "values_sample": Number() | None,
            "spark_version": TEXT | None,
            "master": TEXT | None,
            "user": TEXT | None,
            "problems": TEXTS | None,
            "replay": Object(
                {"of": TEXT},
                {
                    "mode": TEXT | None,
                    "rows": NUMBER | None,
                    "strategy": TEXT | None,
                    "round": NUMBER | None,
                },
            )
            | None,
            "job": TEXT | None,
            "wave": TEXT | None,
            "code": TEXT | None,
            "code_files": ListOf(PATH) | None,
            "parent": _STARTED_BY,
            "root": _STARTED_BY,
        },
    ),
    events.APPLICATION_ENDED: Object(
        required={"counters": MapOf(NUMBER)},
        optional={"state": OneOf(events.APPLICATION_STATES) | None, "error": ERROR | None},
    ),
    events.NODE_REGISTERED: Object(
        required={
            "node": NODE,
            "name": TEXT,
            "description": TEXT,
            "kind": OneOf(events.KINDS),
            "relation": OneOf(events.RELATIONS),
            "exact": BOOLEAN,
        },
        optional={
            "by_id": BOOLEAN | None,
            "limit": NUMBER | None,
            "reason": TEXT | None,
            "call_site": TEXT | None,
            "operation": NODE | None,
            "dataset": DATASET | None,
            "schema": ListOf(COLUMN) | None,
            "schema_note": TEXT | None,
            "site": SITE | None,
            "frame": FRAME | None,
            "expressions": EXPRESSIONS | None,
            "decided_by": OneOf(events.DECISIONS) | None,
            "session": SESSION | None,
        },
    ),
    events.LINK: Object(
        required={"source": NODE, "target": NODE, "port": NUMBER},
        optional={"ids": BOOLEAN | None},
    ),
    events.PARTITIONS: Object(required={"node": NODE, "partitions": ListOf(PARTITION)}),
    events.RUN_COMMITTED: MANIFEST,
    events.RUN_KEPT: MANIFEST,
    events.RUN_FAILED: Object(
        required={
            **MANIFEST.required,
            "failed_node": NODE,
            "position": NUMBER | None,
            "certain": BOOLEAN,
            "error": TEXT,
            "message": TEXT,
            "frame": TEXT | None,
        },
        optional={
            **MANIFEST.optional,
            "record": TupleOf({"type": TEXT, "text": TEXT}) | None,
            "first": NUMBER | None,
            "reason": TEXT | None,
            "scans": ListOf(Object({"node": NODE, "split": SPLIT, "rows": NUMBER}, {"parts": PARTS})) | None,
        },
    ),
    events.PERSISTED: Object(required={"node": NODE}),
    events.ACTION_ENDED: Object(
        required={"node": NODE, "state": OneOf(events.ACTION_STATES)},
        optional={
            "error": ERROR | None,
            "rows": NUMBER | None,
            "bytes": NUMBER | None,
            "files": NUMBER | None,
            "dataset_version": TEXT | None,
        },
    ),
    events.ALIVE: Object(),
    events.GAP: Object(required={"reason": TEXT, "node": NODE | None}),
    events.COLUMNS: Object(required={"node": NODE, "piece": NUMBER, "fields": MapOf(ListOf(Object()))}),
    events.DRIVER: Object(required={"source": NODE, "target": NODE}),
    events.BATCH_COMMITTED: Object(
        required={"query": TEXT, "batch": NUMBER, "node": NODE, "offsets": MapOf(Anything())}
    ),
    events.EXPLANATION_CHECKED: Object(
        required={
            "records": ListOf(
                Object({"node": NODE, "split": SPLIT, "position": NUMBER}, {"run": RUN | None}),
            ),
            "rows": ListOf(
                Object(
                    {
                        "node": NODE,
                        "split": SPLIT,
                        "positions": ListOf(TupleOf({"first": NUMBER, "count": NUMBER})),
                    }
                )
            ),
            "runs": NUMBER,
            "added": NUMBER,
            "minimal": BOOLEAN,
        },
        optional={"notes": TEXTS | None},
    ),
}
