"""Random statements that change a table, and what becomes of each row by a plain Python program.

A row of the table has the rows of the inputs that it is of. Nothing here knows Spark or Delta Lake.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

Origin = tuple[str, int]
"""(name of a file, row in it)."""
Values = tuple[int, int, str, str]
"""id, v, name, p."""
#: The name of a MERGE that only inserts, in events.
INSERTING = "MERGE that inserts"


@dataclass
class TableRow:
    """One row of the table, and the rows of inputs that it is of."""

    values: Values
    origins: frozenset[Origin]


@dataclass(frozen=True)
class Condition:
    """On the columns of a row, as SQL with `{of}` for its table, and as a function."""

    sql: str
    holds: Callable[[Values], bool]


@dataclass
class Changes:
    """Statements, their inputs, and the table that they make by the oracle."""

    random: Random
    statements: list[str] = field(default_factory=list)
    files: dict[str, list[Values]] = field(default_factory=dict)
    table: dict[int, TableRow] = field(default_factory=dict)  # by id
    deleted: list[tuple[int, str, frozenset[Origin]]] = field(default_factory=list)
    """(version, name of the statement, origins of a row that it deleted, and of what made it do so)."""
    events: list[tuple[str, str, frozenset[Origin]]] = field(default_factory=list)
    """(name of the statement, what it did with a row of the table, origins of that row); no copies."""
    feed: list[tuple[str, Values, frozenset[Origin]]] = field(default_factory=list)
    """(type of a change, the row that the change data feed has of it, origins of that)."""
    version: int = 0
    statement_of: dict[int, int] = field(
        default_factory=dict
    )  # version -> number of its statement, from 1 on
    next_id: int = 1000

    def put(self, folder: Path, **job: Any) -> None:
        """Write the inputs, and for the job the statements and what else it is told."""
        for name, rows in self.files.items():
            text = "".join(f"{','.join(map(str, row))}\n" for row in rows)
            (folder / f"{name}.csv").write_text(text)
        (folder / "job.json").write_text(json.dumps({"statements": self.statements, **job}))

    @classmethod
    def of(cls, seed: int, count: int, *, are_files_removed: bool = False) -> Changes:
        """`are_files_removed`: some statements delete all rows of a value of `p`, or of the table."""
        changes = cls(Random(seed))
        rows = [changes.row(key) for key in range(60)]
        changes.files["first"] = rows
        for row, values in enumerate(rows):
            changes._add(TableRow(values, frozenset({("first.csv", row)})))
        while len(changes.statements) < count:
            kinds = (changes.merge, changes.merge, changes.merge, changes.update, changes.delete)
            more = (changes.insert, changes.optimize)
            if are_files_removed:
                kinds = (changes.merge, changes.update, changes.delete, changes.delete_files)
            changes.random.choice((*kinds, *kinds, *more))()
        return changes

    def row(self, key: int) -> Values:
        return key, self.random.randrange(20), f"n{self.random.randrange(9)}", str(key % 3)

    def condition(self) -> Condition:
        divisor, rest = self.random.choice((2, 3, 5, 7)), self.random.randrange(2)
        bound = self.random.randrange(4, 16)
        return self.random.choice(
            (
                Condition(f"{{of}}id % {divisor} = {rest}", lambda row: row[0] % divisor == rest),
                Condition(f"{{of}}v < {bound}", lambda row: row[1] < bound),
                Condition(
                    f"({{of}}v >= {bound} AND {{of}}id % 2 = 0 OR {{of}}name = 'n3')",
                    lambda row: (row[1] >= bound and row[0] % 2 == 0) or row[2] == "n3",
                ),
            )
        )

    def done(self, statement: str, *, is_changed: bool = True) -> None:
        """A statement that changes nothing commits nothing."""
        self.statements.append(statement)
        self.version += is_changed
        if is_changed:
            self.statement_of[self.version] = len(self.statements)

    def delete(self) -> None:
        condition = self.condition()
        gone = [key for key, row in self.table.items() if condition.holds(row.values)]
        if not gone or len(gone) > len(self.table) * 3 // 4:
            return
        self.done(f"DELETE FROM {{table}} WHERE {condition.sql.format(of='')}")
        for key in gone:
            self._delete("DELETE", key, self.table[key].origins)

    def delete_files(self) -> None:
        """Where the table is partitioned by `p`, no rows are read for that."""
        p = self.random.choice(("0", "1", "2", None))
        condition = Condition(f"p = '{p}'", lambda row: row[3] == p) if p else None
        gone = [key for key, row in self.table.items() if not condition or condition.holds(row.values)]
        if not gone:
            return
        name, text = "DELETE", "DELETE FROM {table}"
        if condition:
            text = f"{text} WHERE {condition.sql}"
        elif self.random.random() < 0.5:
            name, text = "TRUNCATE", "TRUNCATE TABLE {table}"
        self.done(text)
        for key in gone:
            self._delete(name, key, self.table[key].origins)
        self.insert()

    def update(self) -> None:
        condition = self.condition()
        changed = [key for key, row in self.table.items() if condition.holds(row.values)]
        self.done(
            f"UPDATE {{table}} SET v = v + 7 WHERE {condition.sql.format(of='')}", is_changed=bool(changed)
        )
        for key in changed:
            _, v, name, p = self.table[key].values
            self._put("UPDATE", "update", TableRow((key, v + 7, name, p), self.table[key].origins))

    def insert(self) -> None:
        name, rows = self.source(range(self.next_id, self.next_id + 8))
        self.next_id += 8
        self.done(f"INSERT INTO {{table}} SELECT * FROM {name}")
        for row, values in enumerate(rows):
            self._add(TableRow(values, frozenset({(f"{name}.csv", row)})))

    def optimize(self) -> None:
        """Whether it commits depends on the files, so that nothing counts versions behind it."""
        self.statements.append("OPTIMIZE {table}")

    def source(self, keys: range | list[int]) -> tuple[str, list[Values]]:
        name = f"s{len(self.files)}"
        self.files[name] = [self.row(key) for key in keys]
        return name, self.files[name]

    def merge(self) -> None:
        fresh = list(range(self.next_id, self.next_id + 5))
        known = self.random.sample(sorted(self.table), min(len(self.table), 12))
        keys = [*known, *fresh]
        self.random.shuffle(keys)
        matched = self.clauses(("UPDATE SET *", "UPDATE SET v = t.v + s.v", "DELETE"), "s.")
        unmatched = self.clauses(("INSERT *",), "s.", most=1)
        only_table = self.clauses(("UPDATE SET v = t.v - 1", "DELETE"), "t.")
        if not (matched or unmatched or only_table):
            return
        self.next_id += 5
        name, rows = self.source(keys)
        text = f"MERGE INTO {{table}} t USING {name} s ON t.id = s.id"
        for words, clauses in (
            ("MATCHED", matched),
            ("NOT MATCHED", unmatched),
            ("NOT MATCHED BY SOURCE", only_table),
        ):
            for action, condition in clauses:
                side = "t." if words.endswith("BY SOURCE") else "s."
                also = "" if condition is None else f" AND {condition.sql.format(of=side)}"
                text += f" WHEN {words}{also} THEN {action}"
        table, deleted = dict(self.table), len(self.deleted)
        self.done(text)
        self._merged(name, rows, matched, unmatched, only_table)
        if self.table == table and len(self.deleted) == deleted:
            self.version -= 1
            self.statements.pop()  # whether it commits is not known
            del self.files[name]

    def clauses(
        self, actions: tuple[str, ...], side: str, most: int = 2
    ) -> list[tuple[str, Condition | None]]:
        """All but the last one have a condition."""
        count = self.random.randrange(most + 1)
        if side == "t." and self.random.random() < 0.5:
            count = 0
        chosen: list[tuple[str, Condition | None]] = []
        for at in range(count):
            is_last = at == count - 1 and self.random.random() < 0.5 and side == "s."
            chosen.append((self.random.choice(actions), None if is_last else self.condition()))
        return chosen

    def _merged(
        self,
        name: str,
        rows: list[Values],
        matched: list[tuple[str, Condition | None]],
        unmatched: list[tuple[str, Condition | None]],
        only_table: list[tuple[str, Condition | None]],
    ) -> None:
        of_source = {values[0]: (row, values) for row, values in enumerate(rows)}
        for key in list(self.table):
            old = self.table[key]
            if key in of_source:
                row, new = of_source[key]
                action = _first(matched, new)
                origins = old.origins | {(f"{name}.csv", row)}
            else:
                action, origins, new = _first(only_table, old.values), old.origins, old.values
            if action == "DELETE":
                self._delete("MERGE", key, origins)
            elif action == "UPDATE SET *":
                self._put("MERGE", "update", TableRow(new, origins))
            elif action is not None:
                v = old.values[1] + (new[1] if key in of_source else -1)
                self._put("MERGE", "update", TableRow((key, v, *old.values[2:]), origins))
        for row, values in of_source.values():
            if values[0] >= self.next_id - 5 and _first(unmatched, values) is not None:
                self._put(
                    "MERGE" if matched or only_table else INSERTING,
                    "insert",
                    TableRow(values, frozenset({(f"{name}.csv", row)})),
                )

    def _add(self, row: TableRow) -> None:
        self.table[row.values[0]] = row
        self.feed.append(("insert", row.values, row.origins))

    def _put(self, statement: str, operation: str, row: TableRow) -> None:
        """Both rows of an update in the feed are of what made it."""
        if operation == "update":
            self.feed.append(("update_preimage", self.table[row.values[0]].values, row.origins))
            self.feed.append(("update_postimage", row.values, row.origins))
            self.table[row.values[0]] = row
        else:
            self._add(row)
        self.events.append((statement, operation, row.origins))

    def _delete(self, statement: str, key: int, origins: frozenset[Origin]) -> None:
        self.feed.append(("delete", self.table.pop(key).values, origins))
        self.deleted.append((self.version, statement, origins))
        self.events.append((statement, "delete", origins))

    def written(self) -> dict[int, Values]:
        """The rows of the table in the end."""
        return {key: row.values for key, row in self.table.items()}


def _first(clauses: list[tuple[str, Condition | None]], values: Values) -> str | None:
    for action, condition in clauses:
        if condition is None or condition.holds(values):
            return action
    return None
