"""`lineage down`: stops the servers that `lineage up` started in the same home. Data stays."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lineage_service.devstack import process
from lineage_service.devstack.guard import alone, usable
from lineage_service.devstack.progress import Quiet, Reporter, console_reporter
from lineage_service.devstack.servers import NAMES, running, selected
from lineage_service.devstack.state import read_state, write_state

if TYPE_CHECKING:
    from lineage_service.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """The flags of `lineage down`."""
    parser.add_argument("--only", choices=NAMES, help="stop this one only")


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Runs `lineage down`."""
    stop(settings.home, only=options.only, reporter=console_reporter())
    return 0


def stop(home: Path, *, only: str | None = None, reporter: Reporter | None = None) -> list[str]:
    """Stops what runs and returns its names: SIGTERM, and SIGKILL for what still runs after 20 s.

    Raises BusyError while another process starts or stops the same stack, HomeError when its state cannot be
    read.
    """
    home = home.absolute()
    reporter = reporter or Quiet()
    if not read_state(home).servers:
        reporter.say(f"Nothing runs in {home}")
        return []
    stopped = []
    with alone(home), usable(home):
        state = read_state(home)
        for server in selected(only):
            server_process = running(state, home, server)
            if server_process is None:
                reporter.say(f"{server.title} does not run")
            else:
                with reporter.waiting(f"Stopping {server.title}") as tick:
                    went = process.stop(server_process, tick=partial(tick, 0))
                how = (
                    "stopped"
                    if went
                    else f"was killed: it did not stop within {process.STOP_DEADLINE_S:.0f} s"
                )
                reporter.say(f"{server.title} {how} (process {server_process.pid})")
                stopped.append(server.name)
            state = state.without_server(server.name)
            write_state(home, state)
    return stopped
