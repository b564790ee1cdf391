"""Which options of a reader or writer say how files of CSV and JSON are cut into records and columns.

Only these are published, by their names in lower case: others may hold passwords.
"""

from __future__ import annotations

from collections.abc import Mapping

_OF_BOTH = ("encoding", "charset", "linesep", "mode", "multiline")
_OF_CSV = (
    *("sep", "delimiter", "quote", "escape", "chartoescapequoteescaping", "unescapedquotehandling"),
    *("nullvalue", "emptyvalue", "comment", "header", "quoteall"),
    *("ignoreleadingwhitespace", "ignoretrailingwhitespace"),
)
#: Of a value; nobody quotes by a longer text.
_MOST_CHARACTERS = 1_000


def text_options(format: str, options: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What a dataset says of them; nothing of another format."""
    if not format.startswith(("csv", "json")):
        return {}
    names = (*_OF_BOTH, *_OF_CSV) if format.startswith("csv") else _OF_BOTH
    chosen = {name: options[name] for name in sorted(names) if name in options}
    if any(len(value) > _MOST_CHARACTERS for value in chosen.values()):
        return {}
    return {"options": chosen}
