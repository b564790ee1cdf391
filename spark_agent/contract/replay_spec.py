"""What a replay does: the file that `lineage replay` writes and the agent reads, before the job's first line.

The environment variable LINEAGE_REPLAY names the file. The agent answers with `REPORT` in the sandbox.
Promises that a spec which is not understood refuses the replay: no job runs unguarded instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spark_agent.contract.errors import ContractError
from spark_agent.contract.field_types import Boolean, Integer, ListOf, MapOf, Object, OneOf, Text
from spark_agent.contract.ids import APPLICATION_ID, APPLICATION_ID_RULE
from spark_agent.contract.limits import MAX_NUMBER, MAX_POSITION
from spark_agent.contract.row_sets import RANGES, ROW_SOURCE, count_rows

__all__ = [
    "INFLUENCE",
    "MODES",
    "OUTPUTS",
    "REPLAY_REPORT",
    "REPLAY_SPEC",
    "RUNS",
    "RUNS_OVER",
    "RUN_ENDED",
    "SANDBOX_LOCK",
    "SPEC_VARIABLE",
    "STRATEGIES",
    "decode_spec",
    "started_fields",
]

#: Names the file of the spec.
SPEC_VARIABLE = "LINEAGE_REPLAY"
#: In the sandbox: where sinks write (`out/NODE-NAME`), and what the agent says of the run.
OUTPUTS, REPLAY_REPORT = "out", "report.json"
#: Of a sift: the folder of its runs, each with a spec of its own; the file that says how a run ended; and the
#: one that says that no further run will come.
RUNS, RUN_ENDED, RUNS_OVER = "runs", "ended.json", "over"
#: In the sandbox: locked by the process that works there, as long as it lives.
SANDBOX_LOCK = "lock"
#: What a run has computed of the influence of its rows.
INFLUENCE = "influence.json"
#: `only` the rows of the sources, all `without` them, all with some texts `replace`d, or `all` rows.
MODES = ("only", "without", "replace", "all")
#: How the rows were chosen: those of the lineage, with rows added by `repair`, or all with the way `watch`ed.
STRATEGIES = ("rows", "repair", "watch")

_TEXT, _FLAG = Text(), Boolean()
_POSITION = Integer(MAX_POSITION)
_PATH = Text(r"/[^\u0000]*", "an absolute path")
#: A block of a file that a scan read: `length` bytes from `start` on, with the rows that are named. They are
#: counted from its first one. `row`: which row of the file that is, where the file knows. `candidates`: the
#: rows of which further runs of the same process name others.
_BLOCK = Object(
    {"path": _TEXT, "start": _POSITION, "length": _POSITION, "rows": RANGES},
    {"row": _POSITION | None, "candidates": RANGES | None},
)
#: A source as in a row set. `texts`: the lines to read, by partition, in the place of its file.
#: `replaced`: the new text of a record, by partition and position in it.
#: `blocks`: of a scan of a DataFrame, all that the original read.
_SOURCE = Object(
    {**ROW_SOURCE.required},
    {
        **ROW_SOURCE.optional,
        "texts": MapOf(ListOf(_TEXT), "[0-9]+") | None,
        "replaced": MapOf(MapOf(_TEXT, "[0-9]+"), "[0-9]+") | None,
        "blocks": ListOf(_BLOCK) | None,
    },
)
REPLAY_SPEC = Object(
    {
        "version": Integer(1, 1),
        "replay": Text("[a-z0-9-]{1,64}", "a replay's id"),
        "of": Text(APPLICATION_ID.pattern, APPLICATION_ID_RULE),
        "mode": OneOf(MODES),
        "strategy": OneOf(STRATEGIES),
        "round": Integer(MAX_NUMBER),
        "sandbox": _PATH,
        "sources": ListOf(_SOURCE),
        # Files and folders that the application read or wrote: nothing below them may change.
        "protected": ListOf(_TEXT),
    },
    {
        "skip_failing": _FLAG,
        "step": _FLAG,
        # Nothing is captured: only what the sinks write is asked for.
        "silent": _FLAG,
        # Lines are read in few partitions, and each shuffle makes one: no operation of the program can tell.
        "compact": _FLAG,
        # The saved row of a sink of which is asked what it is without each of the rows of the sources. What
        # the actions `kept` give the program is the same without one of them.
        "influence": Object(
            {"node": Integer(MAX_NUMBER), "text": _TEXT}, {"kept": ListOf(Integer(MAX_NUMBER))}
        ),
        "run_foreach": _FLAG,
        # Of the application: of several in one program, the one of this name is its replay.
        "name": _TEXT,
        "allow_processes": _FLAG,
        # With `step`: values of what these rows go into; without it, of all records.
        "watched": ListOf(ROW_SOURCE),
        # Those of the protected that it wrote and did not read: a script may remove them before it writes.
        "outputs": ListOf(_TEXT),
        # What the replay of an earlier application wrote into `folder` is read in the place of `path`.
        "stand_ins": ListOf(Object({"path": _TEXT, "folder": _PATH})),
    },
)


def decode_spec(text: str | bytes) -> dict[str, Any]:
    """The spec that a file holds. Raises ContractError, which names the field."""
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"the replay's spec is not JSON: {error}") from None
    REPLAY_SPEC.check(spec)
    return dict(spec)


def started_fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What `application_started` says of a replay."""
    return {
        "of": spec["of"],
        "mode": spec["mode"],
        "rows": sum(map(count_rows, spec["sources"])),
        "strategy": spec["strategy"],
        "round": spec["round"],
    }
