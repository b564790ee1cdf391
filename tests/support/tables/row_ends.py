"""What became of a row of an input through statements that change a table: by the oracle, and by a trace."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lineage_service.queries import Queries, TraceQuery
from tests.support.tables.delta_oracle import INSERTING, Changes, Origin

_STATEMENTS = ("MERGE", "UPDATE", "DELETE", "TRUNCATE", "OPTIMIZE")
_DELETED = re.compile(r"these rows were deleted: version (\d+) of .* is without them")


@dataclass
class Ends:
    """What became of a row of an input."""

    rows: set[int] = field(default_factory=set)  # ids of the rows of the last output
    deleted: set[tuple[str, int]] = field(default_factory=set)  # (statement, version)
    operations: Counter[tuple[str, str]] = field(
        default_factory=Counter
    )  # (statement, what it did); no copies


def ends_by(changes: Changes, inserting: str | None = "MERGE") -> Mapping[Origin, Ends]:
    """`inserting` is the name of a MERGE that only inserts; None: nothing is said of its rows."""
    ends: dict[Origin, Ends] = defaultdict(Ends)
    for key, table_row in changes.table.items():
        for origin in table_row.origins:
            ends[origin].rows.add(key)
    for version, statement, origins in changes.deleted:
        for origin in origins:
            ends[origin].deleted.add((statement, version))
    for statement, operation, origins in changes.events:
        name = inserting if statement == INSERTING else statement
        for origin in origins if name is not None else ():
            ends[origin].operations[name, operation] += 1
    return ends


def traced_ends(queries: Queries, application_id: str, path: Path, row: int) -> Ends:
    """By a forward trace, which is complete and exact."""
    trace = queries.trace(
        application_id, TraceQuery(direction="forward", path=str(path), row=row, limit=1000)
    )
    assert trace.complete, trace
    assert trace.exact, trace
    ends = Ends()
    for node in trace.nodes:
        statement = node.name.partition(":")[0]
        if node.name.endswith(": change rows"):  # what the table itself has of them is another record
            assert {record.operation for record in node.records} <= {"change"}
            continue
        for record in node.records if node.kind == "sink" else ():
            if statement in _STATEMENTS:
                assert record.operation is not None, node
                if record.operation != "copy":
                    ends.operations[statement, record.operation] += 1
            if record.operation == "delete":
                match = _DELETED.fullmatch(node.reason)
                assert match is not None, node
                ends.deleted.add((statement, int(match[1])))
            if record.source is not None and record.source.path.endswith(".csv"):
                assert record.source.text is not None
                ends.rows.add(int(record.source.text.split(",")[0]))
    return ends
