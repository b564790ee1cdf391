"""Keys and values of records as texts: which are captured, what leaves the executor, how they are sent.

Promises that no text leaves before the user's redaction function gave it, that a text is never longer than
asked for, and that what was cut or withheld is counted. Never raises into the job. Nothing is pickled: the
service unpickles nothing, so what has no form as text, number or JSON goes as its repr.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from spark_agent import contract

if TYPE_CHECKING:
    from spark_agent.capture import Run
    from spark_agent.nodes import Node
    from spark_agent.settings import AgentSettings

#: A column leaves before it holds more: below the block limit even if JSON makes six bytes of each character.
MAX_COLUMN_CHARACTERS = 140_000
#: What a text costs besides its characters: its type, quotes, brackets.
TEXT_OVERHEAD = 16

Redact = Callable[[str, str, Any], Any]
"""(name of the operation, `key` or `value`, the key or value) -> what may leave in its place."""


def chosen(settings: AgentSettings, nodes: Iterable[Node]) -> tuple[int, ...]:
    """The public operations whose values the filters let through. Decided on the driver, once for a chain."""
    return tuple(
        node.number
        for node in nodes
        if node.kind == "operator"
        and node.operation is None
        and _matches(settings.values_nodes, node.name)
        and _matches(settings.values_call_sites, node.call_site, os.path.basename(node.call_site))
    )


def _matches(patterns: tuple[str, ...], *names: str) -> bool:
    """Some name matches one of the patterns, or there are only those with `!`; and none of these matches."""
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    refused = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return _match(wanted, names) and not _match(refused, names)


def _match(patterns: list[str], names: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


@dataclass
class Tally:
    """What one run could not send as it was; its manifest says it."""

    cut: int = 0
    withheld: int = 0
    problem: str = ""  # says nothing of any value


class TextStream:
    """Typed texts of the outputs of one node, in output order: its keys or its values."""

    __slots__ = (
        "_characters",
        "_limit",
        "_outputs",
        "_relation",
        "_run",
        "_shipped",
        "_tally",
        "_texts",
        "add",
        "node",
    )

    def __init__(self, run: Run, node: int, relation: str) -> None:
        settings = run.plan.settings
        self._run = run
        self.node = node
        self._relation = relation
        is_value = relation == contract.VALUES
        self._limit = settings.values_max_characters if is_value else contract.MAX_TEXT_CHARACTERS
        self._tally = run.tally
        self._texts: list[contract.Text] = []
        self._outputs: list[int] = []  # their positions, where not every output has a text
        self._characters = 0
        self._shipped = 0
        #: add(value): the text of the next output.
        self.add: Callable[[Any], None] = self._add
        if settings.redact:
            name = dict(zip(run.plan.nodes, run.plan.names, strict=False)).get(node, "")
            self.add = self._redacting(settings.redact, name, "value" if is_value else "key")

    def _add(self, value: Any) -> None:
        self._append(contract.whole_text(value, self._limit))

    def _append(self, text: contract.Text) -> None:
        size = len(text[1])
        if size > self._limit:
            self._tally.cut += 1
            text, size = contract.cut_text(text, self._limit), self._limit
        size += TEXT_OVERHEAD
        if self._characters + size > MAX_COLUMN_CHARACTERS:
            self._ship()
        self._texts.append(text)
        self._characters += size

    def _redacting(self, redaction: str, name: str, kind: str) -> Callable[[Any], None]:
        """`add` with the user's function before it. What the function cannot be asked about is withheld."""
        redact = _imported(redaction, self._tally)

        def add(value: Any) -> None:
            if redact is not None:
                try:
                    allowed = redact(name, kind, value)
                except (Exception, SystemExit) as error:  # noqa: BLE001 - its message may hold the value
                    self._tally.problem = (
                        f"spark.lineage.redact={redaction} raised {type(error).__name__}; what it was "
                        "asked about is withheld"
                    )
                else:
                    self._append(contract.whole_text(allowed, self._limit))
                    return
            self._tally.withheld += 1
            self._append(contract.WITHHELD)

        return add

    def note(self, record: Any) -> Any:
        """Add the record's text and give the record on, for use under `map`."""
        self.add(record)
        return record

    def note_at(self, position: int, record: Any) -> None:
        """Add the text of the output at `position`; others have none."""
        self.add(record)
        self._outputs.append(position)

    def note_key(self, pair: Any) -> Any:
        self.add(pair[0])
        return pair

    def _ship(self) -> None:
        if self._texts:
            columns: dict[str, Any] = {"out": self._outputs} if self._outputs else {}
            base = 0 if self._outputs else self._shipped
            self._run.emit(self.node, self._relation, 0, base, {**columns, "text": self._texts})
            self._shipped += len(self._texts)
            self._texts, self._outputs, self._characters = [], [], 0

    def close(self) -> None:
        self._ship()


def _imported(name: str, tally: Tally) -> Redact | None:
    """The function MODULE:FUNCTION, or None: `tally` says why."""
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
        if not callable(found):
            raise TypeError("it is not a function")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's module may raise anything
        tally.problem = (
            f"spark.lineage.redact={name} cannot be had on executors ({type(error).__name__}: {error}); "
            "every key and value is withheld. Send its module with --py-files"
        )
        return None
    redact: Redact = found
    return redact
