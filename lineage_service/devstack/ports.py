"""Chooses loopback ports: the one that was used before, else the well-known one, else any free one."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Collection

from lineage_service.devstack.errors import PortError

HOST = "127.0.0.1"

#: Below what Linux and macOS give to outgoing connections (32768 and 49152 upwards), so that no client of
#: anything takes the port in the seconds between this choice and the server's start.
_SPARE_PORTS = range(20_000, 32_000)
_TRIES = 200


def is_free(port: int) -> bool:
    """True if a server could listen on 127.0.0.1:`port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Java does: a port whose last connections are still fading away counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def choose_port(
    purpose: str,
    preferred: Collection[int],
    taken: Collection[int] = (),
    is_free: Callable[[int], bool] = is_free,
) -> int:
    """The first of `preferred` that is free and not `taken`, else any such port.

    Raises PortError, naming the `purpose`, when none is found.
    """
    spare = random.sample(_SPARE_PORTS, _TRIES)
    for port in [*preferred, *spare]:
        if port not in taken and is_free(port):
            return port
    raise PortError(
        f"no free port for {purpose} on {HOST}: tried {', '.join(map(str, preferred))} and {_TRIES} ports "
        f"from {_SPARE_PORTS.start} to {_SPARE_PORTS.stop - 1}; stop what listens there"
    )
