"""`lineage serve`: the API and the page on one address, until SIGTERM or Ctrl-C.

Takes the port before it does anything else that costs, says where it listens once it answers, and leaves
`<home>/api.json` for as long as it runs, so that other commands find it.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import ipaddress
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TextIO

import uvicorn
from fastapi import FastAPI

from lineage_api.access import from_settings
from lineage_api.app import VERSION, create_app
from lineage_api.etags import etag_function
from lineage_api.limits import MAX_HEADER_BYTES, MAX_TARGET
from lineage_service.errors import LineageError
from lineage_service.settings import Settings

__all__ = ["ADDRESS_FILE", "CannotListenError", "command", "configure", "serve"]

ADDRESS_FILE = "api.json"
#: Answers under way have this long to finish after SIGTERM.
_GRACE_S = 5
_MAX_PORT = 65_535


class CannotListenError(LineageError):
    """The address is taken, not allowed, or not one of this machine."""


def configure(parser: argparse.ArgumentParser) -> None:
    """No options of its own: where it listens is in the settings."""
    parser.epilog = "It stops on Ctrl-C or SIGTERM. `--api-port 0` takes a free port and says which."


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Serve until a signal stops it. Raises CannotListenError and what opening the stores raises."""
    from lineage_service.cli.stores import open_materializer, open_queries
    from lineage_service.monitoring.lag import open_lag
    from lineage_service.monitoring.metrics import LagMetrics, TriggerMetrics, new_registry
    from lineage_service.replays.reports import replays_of
    from lineage_service.store.flow_store import open_store
    from lineage_service.triggering.stored_jobs import StoredJobs

    with _listener(settings.api_host, settings.api_port) as listener:
        access, token_file = from_settings(settings, listener.getsockname()[0])
        watch = open_lag(settings)
        jobs = StoredJobs(open_store(settings), settings.trigger_redact)
        app = create_app(
            open_queries(settings, cache_bytes=settings.cache_bytes),
            materialize=open_materializer(settings),
            read_lag=watch.look,
            read_replays=partial(replays_of, settings.home),
            jobs=jobs,
            metrics=new_registry(LagMetrics(watch), TriggerMetrics(jobs.totals))
            if settings.metrics
            else None,
            etag_of=etag_function(open_store(settings), _release()),
            access=access,
            max_queries=settings.api_questions,
            wait_s=settings.api_wait_seconds,
        )
        if token_file is not None:
            _say(f"It asks for a token, which is in {token_file}", sys.stdout)
        elif access.token is None and not _is_loopback(listener):
            _say(
                f"warning: {_url(listener)} can be reached from other machines, and nobody is asked for a "
                "token (--api-auth off)",
                sys.stderr,
            )
        serve(app, listener, settings.home)
    return 0


def serve(app: FastAPI, listener: socket.socket, home: Path) -> None:
    """Serve `app` on a bound socket until SIGTERM or SIGINT; `<home>/api.json` says where meanwhile."""
    url = _url(listener)
    app.openapi()  # made once, before anybody waits for it: parameters are checked against it
    # What is there now stays: a collection that looked at all of it would keep a query waiting for 100 ms.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_GRACE_S,
        http="h11",  # the one whose bounds are known, whatever else is installed
        h11_max_incomplete_event_size=2 * (MAX_TARGET + MAX_HEADER_BYTES),  # so that api.limits answers first
        ws="none",
        server_header=False,
    )
    server = _Server(config, lambda: _announce(home, url))
    # uvicorn raises the signal again once it has shut down: SIGTERM must not kill us then and leave the file.
    with _address_file_removed(home), _interrupted_by(signal.SIGTERM), contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """uvicorn that says when it answers."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()


def _release() -> str:
    """Of the code that writes results."""
    try:
        return f"{VERSION} {version('lineage-master')}"
    except PackageNotFoundError:  # a folder of sources
        return VERSION


def _listener(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _MAX_PORT:  # getaddrinfo would take it modulo 65536
        raise _cannot_listen(host, port, f"ports go from 0 to {_MAX_PORT}")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family)
        # Connections inherit it. asyncio would set it only on those that say that they are TCP, and these do
        # not: an answer's body then waits 40 ms for the client to acknowledge its headers.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except socket.gaierror as error:
        raise _cannot_listen(host, port, error.strerror or "unknown name") from error
    except OSError as error:
        raise _cannot_listen(host, port, os.strerror(error.errno or 0)) from error


def _cannot_listen(host: str, port: int, reason: str) -> CannotListenError:
    return CannotListenError(
        f"cannot listen on {host} port {port} ({reason}): "
        "choose another with --api-host and --api-port (0 takes a free port)"
    )


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "127.0.0.1" if listener.family == socket.AF_INET else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def _announce(home: Path, url: str) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: others read it while we write.
        draft = home / f"{ADDRESS_FILE}.{os.getpid()}"
        draft.write_text(json.dumps({"pid": os.getpid(), "url": url}) + "\n", encoding="utf-8")
        draft.replace(home / ADDRESS_FILE)
    except OSError as error:  # a home to read only, with a store that is elsewhere
        _say(
            f"warning: {home / ADDRESS_FILE} cannot be written ({error.strerror or error}), so jobs do not "
            "find this address by themselves: give it to them with spark.lineage.api",
            sys.stderr,
        )
    _say(f"Lineage Master is at {url} (API documentation: {url}/docs). Stop it with Ctrl-C.", sys.stdout)


@contextlib.contextmanager
def _address_file_removed(home: Path) -> Iterator[None]:
    try:
        yield
    finally:
        path = home / ADDRESS_FILE
        # Another server may have put its own there since.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if json.loads(path.read_text(encoding="utf-8")).get("pid") == os.getpid():
                path.unlink()


@contextlib.contextmanager
def _interrupted_by(number: signal.Signals) -> Iterator[None]:
    before = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def _say(text: str, stream: TextIO) -> None:
    stream.write(f"{text}\n")
    stream.flush()
