"""The Cypher statements, one a file, and the little that finds them.

Each file opens with its purpose, its parameters, the indexes it must use, and why it is eager if it is;
tests compare these lines with the statement and with Neo4j's plan. `migrations/` is the schema, applied in
the order of its numbers. `show/` is for people: docs/neo4j.md; `browser/` makes of it what Neo4j Browser
imports. Knows nothing of Neo4j's driver.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_SUFFIX = ".cypher"
MIGRATIONS = "migrations/"


@cache
def names() -> tuple[str, ...]:
    """Every statement's name, sorted: `flow/upsert`, `migrations/0001_migration_name`."""
    return tuple(sorted(_walk(files(__name__), "")))


def migrations() -> tuple[str, ...]:
    """The names of the schema's statements, in the order in which they are applied."""
    return tuple(name for name in names() if name.startswith(MIGRATIONS))


@cache
def statement(name: str) -> str:
    """The text of one statement with its header, which is legal Cypher and tells a query log what runs.

    Raises KeyError for a name that is not in `names()`.
    """
    if name not in names():
        raise KeyError(f"no statement {name!r} in cypher/lineage_cypher/; see lineage_cypher.names()")
    return files(__name__).joinpath(name + _SUFFIX).read_text(encoding="utf-8")


def body(name: str) -> str:
    """The statement without its header."""
    lines = statement(name).splitlines()
    return "\n".join(line for line in lines if not line.startswith("//"))


def schema_name(migration: str) -> str:
    """What the constraint or index is called that a migration makes or drops."""
    match = re.search(r"\b(?:CONSTRAINT|INDEX) (\w+) IF\b", body(migration))
    if match is None:
        raise ValueError(f"{migration} neither makes nor drops a constraint or an index")
    return match[1]


def pasted(name: str, **parameters: str | int) -> str:
    """The statement with its parameters written in, for pasting into Neo4j Browser.

    For people's eyes only: programs pass parameters to `statement`. Raises KeyError for one that is missing.
    """
    return re.sub(r"\$(\w+)", lambda match: literal(parameters[match[1]]), body(name))


def literal(value: str | int) -> str:
    """A value as Cypher writes it."""
    # Cypher reads every escape that JSON writes. Characters beyond ASCII stay as they are.
    return json.dumps(value, ensure_ascii=False)


def _walk(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            yield prefix + entry.name.removesuffix(_SUFFIX)
