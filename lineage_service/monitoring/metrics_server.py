"""Answers `/metrics` of a process that has no HTTP of its own, from threads that never hold it up.

Takes the port of the settings, or one of the next where it is taken, so that consumers on one machine need no
settings of their own. Nobody is authenticated: it listens on the loopback address by default.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from lineage_service.errors import LineageError
from lineage_service.monitoring.metrics import exposition

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["CannotListenError", "metrics_server"]

logger = logging.getLogger(__name__)

#: So many ports are tried: more consumers than a machine has use for.
_TRIES = 100
_MAX_PORT = 65_535
#: A client that says nothing for so long is left.
_CLIENT_TIMEOUT_S = 10


class CannotListenError(LineageError):
    """The address is not one of this machine, or not allowed, or all its ports are taken."""


@contextmanager
def metrics_server(settings: Settings, registry: CollectorRegistry) -> Iterator[str]:
    """Answer `registry` while the block runs; its URL. Raises CannotListenError."""
    server = _listening(settings.metrics_host, settings.metrics_port, registry)
    # Seconds until it notices that it shall stop.
    thread = Thread(target=server.serve_forever, args=(0.2,), name="metrics", daemon=True)
    thread.start()
    url = _url(server)
    logger.info("metrics are at %s", url)
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, family: socket.AddressFamily, address: tuple[str, int], registry: CollectorRegistry
    ) -> None:
        self.address_family = family
        self.registry = registry
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # http.server's asks the DNS for the name of this machine here, which may take long.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment] # any family's

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("a client of the metrics went away", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    timeout = _CLIENT_TIMEOUT_S
    server: _Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404)
            return
        text, content_type = exposition(self.server.registry, self.headers.get("Accept"))
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are not worth a line each."""


def _listening(host: str, port: int, registry: CollectorRegistry) -> _Server:
    if not 0 <= port <= _MAX_PORT:
        raise _cannot_listen(host, port, f"ports go from 0 to {_MAX_PORT}")
    last = min(port + _TRIES - 1, _MAX_PORT) if port else 0
    for candidate in range(port, last + 1):
        try:
            family, _, _, _, address = socket.getaddrinfo(host, candidate, type=socket.SOCK_STREAM)[0]
            return _Server(family, (str(address[0]), int(address[1])), registry)
        except socket.gaierror as error:
            raise _cannot_listen(host, candidate, error.strerror or "unknown name") from error
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise _cannot_listen(host, candidate, os.strerror(error.errno or 0)) from error
    raise _cannot_listen(host, port, f"it and all ports to {last} are taken")


def _cannot_listen(host: str, port: int, reason: str) -> CannotListenError:
    return CannotListenError(
        f"cannot answer /metrics on {host} port {port} ({reason}): choose another address with "
        "--metrics-host and --metrics-port (0 takes a free port), or go without: --metrics off"
    )


def _url(server: _Server) -> str:
    host, port = server.server_address[:2]
    return f"http://[{host!s}]:{port}/metrics" if ":" in str(host) else f"http://{host!s}:{port}/metrics"
