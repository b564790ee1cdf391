"""What Neo4j Browser takes: a style for the graph (`lineage.grass`) and saved queries.

Both are in the forms that Browser 4 and 5 import when a file is dropped on their window, and export
themselves: a style sheet, and a zip of one folder with a `.cypher` file for each query, whose first line is
its name. The queries are those of `cypher/lineage_cypher/show/`. Knows nothing of where they are written.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import lineage_cypher

STYLE_NAME = "lineage.grass"
QUERIES_NAME = "lineage-queries.zip"
#: Browser shows the queries under this name, sorted by theirs.
FOLDER = "Lineage"

_APPLICATION = "app-20260101120000-0001"
_OUTPUT = f"{_APPLICATION}#7#write#0#3"
_INPUT = f"{_APPLICATION}#0#read#0#3"
_RULE = re.compile(r"([\w.*]+)\s*\{([^{}]*(?:\"[^\"]*\"[^{}]*)*)\}")
_PROPERTY = re.compile(r"([\w-]+):\s*(?:\"([^\"]*)\"|([^\";]+));")


class SavedQuery(NamedTuple):
    """`parameters` are examples, for people to replace."""

    title: str
    statement: str
    parameters: Mapping[str, str | int] = {}


#: In the order of the work: which application, which record, where from, why.
SAVED_QUERIES = (
    SavedQuery("1 Applications, newest first", "show/applications"),
    SavedQuery("2 Applications with all their flows here", "show/flows"),
    SavedQuery("3 The newest application, drawn", "show/newest"),
    SavedQuery("3 An application, drawn", "show/application", {"applicationId": _APPLICATION}),
    SavedQuery(
        "4 Output rows of a node, and of how many inputs", "show/outputs", {"nodeId": f"{_APPLICATION}#7"}
    ),
    SavedQuery("4 Records of a node", "show/records", {"nodeId": f"{_APPLICATION}#7"}),
    SavedQuery(
        "4 Records with a text in their value",
        "show/search",
        {"applicationId": _APPLICATION, "text": "breakingbad"},
    ),
    SavedQuery(
        "4 The row of a file, by its name and line",
        "show/row",
        {"applicationId": _APPLICATION, "file": "sales.csv", "line": 4},
    ),
    SavedQuery("5 Where did this output row come from", "show/backward", {"flowId": _OUTPUT}),
    SavedQuery("5 What became of this input row", "show/forward", {"flowId": _INPUT}),
    SavedQuery("6 Through which operations it came, counted", "show/way", {"flowId": _OUTPUT}),
    SavedQuery("6 Through which operations it went, counted", "show/destinations", {"flowId": _INPUT}),
    SavedQuery(
        "7 What one operation made on the way to it",
        "show/step",
        {"flowId": _OUTPUT, "nodeId": f"{_APPLICATION}#5"},
    ),
    SavedQuery("8 Datasets, drawn with who reads and writes them", "show/datasets", {"text": "sales"}),
    SavedQuery(
        "8 Who read or wrote a dataset",
        "show/dataset_applications",
        {"namespace": "file", "dataset": "/data/sales.csv"},
    ),
)


@cache
def style_sheet() -> str:
    """The style as Browser's `:style` exports it: `:style FILE` and a drop on its window take it."""
    return files(__name__).joinpath(STYLE_NAME).read_text(encoding="utf-8")


def rules() -> dict[str, dict[str, str]]:
    """The style by selector: `node.LineageFlow` -> its properties. Later rules win over earlier ones."""
    return {
        selector: {name: quoted or plain.strip() for name, quoted, plain in _PROPERTY.findall(body)}
        for selector, body in _RULE.findall(style_sheet())
    }


def style_command() -> str:
    """The style as a command of one line, for Neo4j's setting `browser.post_connect_cmd`."""
    return f"style {json.dumps(rules(), separators=(',', ':'))}"


def text_of(query: SavedQuery) -> str:
    """What Browser keeps: the name, a `:param` for each parameter to be replaced, the statement."""
    parameters = [
        f":param {name} => {lineage_cypher.literal(value)};" for name, value in query.parameters.items()
    ]
    return "\n".join([f"// {query.title}", *parameters, lineage_cypher.body(query.statement)]) + "\n"


def saved_queries() -> bytes:
    """The zip of all queries; the same bytes each time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for query in SAVED_QUERIES:
            name = re.sub(r"\W+", "_", query.title)
            # A date of its own, or the bytes would differ each time: the earliest that a zip can hold.
            archive.writestr(
                zipfile.ZipInfo(f"{FOLDER}/{name}.cypher", (1980, 1, 1, 0, 0, 0)), text_of(query)
            )
    return buffer.getvalue()
