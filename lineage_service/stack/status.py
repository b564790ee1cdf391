"""`lineage status`: what of the local stack runs, where, and with how much memory. Changes nothing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import psutil
from rich.console import Console
from rich.table import Table

from lineage_service.stack.servers import NAMES, running, selected
from lineage_service.stack.state import read_state

if TYPE_CHECKING:
    from lineage_service.settings import Settings

_NOT_ALL_UP = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """The flags of `lineage status`."""
    parser.add_argument("--only", choices=NAMES, help="look at this one only")


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Runs `lineage status`: 0 if everything answers, else 3."""
    home = settings.home.absolute()
    state = read_state(home)
    table = Table(title=f"Local stack in {home}", title_justify="left", box=None, pad_edge=False)
    for heading in ("server", "version", "state", "address", "pid", "memory"):
        table.add_column(heading, overflow="fold")
    is_all_up = True
    for server in selected(options.only):
        process = running(state, home, server)
        if process is None:
            is_all_up = False
            word = "died" if server.name in state.servers else "down"
            table.add_row(server.title, server.version, word, "", "", "")
            continue
        started = state.servers[server.name]
        answers = server.is_ready(started.addresses)
        is_all_up &= answers
        table.add_row(
            server.title,
            started.version,
            "up" if answers else "does not answer",
            "\n".join(value for key, value in started.addresses.items() if key != "http"),
            str(process.pid),
            _memory(process),
        )
    Console().print(table, markup=False, highlight=False)
    return 0 if is_all_up else _NOT_ALL_UP


def _memory(process: psutil.Process) -> str:
    try:
        return f"{process.memory_info().rss / 1e6:.0f} MB"
    except psutil.Error:
        return "?"
