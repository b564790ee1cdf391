"""`lineage browser`: writes Neo4j Browser's style and saved queries, to be dropped on its window.

The local stack's Browser has the style already (`devstack/neo4j.py`); saved queries Browser takes from people
only, since it keeps them in the web browser.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from lineage_cypher import browser
from lineage_service.devstack.progress import console_reporter
from lineage_service.devstack.state import read_state
from lineage_service.errors import LineageError
from lineage_service.settings import Settings

__all__ = ["command", "configure"]


class FolderError(LineageError):
    """The files cannot be written where they were asked for."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The flags of `lineage browser`."""
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="write the files here (default: this folder)"
    )


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises FolderError."""
    contents = {
        browser.STYLE_NAME: browser.style_sheet().encode(),
        browser.QUERIES_NAME: browser.saved_queries(),
    }
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (options.folder / name).write_bytes(content)
    except OSError as error:
        raise FolderError(f"cannot write to {options.folder}: {error.strerror}") from None
    say = console_reporter().say
    say(f"Neo4j Browser's style       {options.folder / browser.STYLE_NAME}")
    say(f"{len(browser.SAVED_QUERIES)} saved queries for it     {options.folder / browser.QUERIES_NAME}")
    started = read_state(settings.home.absolute()).servers.get("neo4j")
    where = f" ({started.addresses['browser']})" if started else ""
    say(f"Drop one after the other on the window of Neo4j Browser{where}.")
    return 0
