"""`lineage status`: what of the local stack runs, where, with how much memory, and its lag.

Changes nothing, and its exit code speaks of the servers alone.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import psutil
from rich.console import Console
from rich.table import Table

from lineage_service.devstack.kafka import accepts
from lineage_service.devstack.servers import NAMES, answers, running, selected
from lineage_service.devstack.state import read_state
from lineage_service.errors import LineageError

if TYPE_CHECKING:
    from lineage_service.settings import Settings

_NOT_ALL_UP = 3
#: Where messages wait, a second look after so many seconds says how fast they get fewer.
_LOOK_AGAIN_S = 2.0


def configure(parser: argparse.ArgumentParser) -> None:
    """The flags of `lineage status`."""
    parser.add_argument("--only", choices=NAMES, help="look at this one only")


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Runs `lineage status`: 0 if everything answers, else 3."""
    home = settings.home.absolute()
    state = read_state(home)
    table = Table(box=None, pad_edge=False)
    addresses: list[tuple[str, str]] = []
    for heading in ("server", "version", "state", "pid", "memory"):
        table.add_column(heading, overflow="fold")
    is_all_up = True
    for server in selected(options.only):
        process = running(state, home, server)
        if process is None:
            is_all_up = False
            word = "died" if server.name in state.servers else "down"
            table.add_row(server.title, server.version, word, "", "")
            continue
        started = state.servers[server.name]
        is_up = answers(state, home, server)
        is_all_up &= is_up
        table.add_row(
            server.title,
            started.version,
            "up" if is_up else "does not answer",
            str(process.pid),
            _memory(process),
        )
        addresses += [(server.title, url) for key, url in started.addresses.items() if key != "http"]
    console = Console()
    console.print(f"Local stack in {home}", markup=False, highlight=False, soft_wrap=True)
    console.print(table, markup=False, highlight=False)
    for name, address in addresses:  # each whole on a line, to be copied
        console.print(f"{name} at {address}", markup=False, highlight=False, soft_wrap=True)
    if options.only in (None, "kafka"):
        _show_lag(console, settings)
    return 0 if is_all_up else _NOT_ALL_UP


def _show_lag(console: Console, settings: Settings) -> None:
    """What waits for the consumer group, wherever its broker is, and which applications are not complete."""
    if not _listens(settings.kafka_bootstrap_servers):
        line = f"\nLag: nothing listens at {settings.kafka_bootstrap_servers or 'any broker address'}"
        console.print(line, markup=False, highlight=False)
        return
    # Not at the top: `lineage status` of a stack that is down needs no Kafka client and no Delta.
    from lineage_service.monitoring.lag import open_lag
    from lineage_service.monitoring.lag_report import show_applications, show_group
    from lineage_service.store.flow_store import NoStoreError

    try:
        watch = open_lag(settings)
        group = watch.group()
        if group.messages:
            time.sleep(_LOOK_AGAIN_S)
            group = watch.group()
        show_group(console, group)
        try:
            show_applications(console, watch.applications())
        except NoStoreError as error:  # a look makes none
            console.print(f"\n{error}", markup=False, highlight=False, soft_wrap=True)
    except LineageError as error:
        console.print(f"\nLag: {error}", markup=False, highlight=False)


def _listens(bootstrap_servers: str) -> bool:
    """True if one of the brokers may answer: spares those whose stack is down the client's waiting."""
    parts = (part.strip() for part in bootstrap_servers.split(","))
    try:
        return any(accepts(part.rpartition("://")[2]) for part in parts if part)
    except ValueError:  # no port: the client has a default
        return True


def _memory(process: psutil.Process) -> str:
    try:
        return f"{process.memory_info().rss / 1e6:.0f} MB"
    except psutil.Error:
        return "?"
