"""What the local stack has started, as `stack.json` in its home says, and where the other commands find it.

    {"kafka": {"pid", "created", "version", "ports", "bootstrap_servers"},
     "neo4j": {"pid", "created", "version", "ports", "bolt", "http", "browser"},
     "ports": {"kafka": {...}, "neo4j": {...}}}

A server that was stopped by `lineage down` is not listed; its last ports stay under `ports`, so that it
comes back at the same address. The file is replaced whole: a reader sees the old one or the new one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lineage_service.devstack.errors import HomeError

if TYPE_CHECKING:
    from lineage_service.settings import Settings

DEFAULT_BROKER = "127.0.0.1:9092"
_OWN_FIELDS = ("pid", "created", "version", "ports")


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """One server that was started. With `created`, its start in Unix time (s), the pid is unique."""

    name: str
    pid: int
    created: float
    version: str
    ports: Mapping[str, int]
    addresses: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    """`servers` by name, and the last `ports` of each server that ever ran in this home."""

    servers: Mapping[str, Started] = field(default_factory=dict)
    ports: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def with_server(self, started: Started) -> StackState:
        return replace(
            self,
            servers={**self.servers, started.name: started},
            ports={**self.ports, started.name: started.ports},
        )

    def without_server(self, name: str) -> StackState:
        return replace(self, servers={key: value for key, value in self.servers.items() if key != name})


def read_state(home: Path) -> StackState:
    """The state of the stack in `home`; an empty one when nothing was ever started there.

    Raises HomeError when the file is there but is not readable.
    """
    path = home / "stack.json"
    try:
        body = json.loads(path.read_text())
        ports = body.pop("ports", {})
        return StackState(
            servers={name: _started(name, entry) for name, entry in body.items()},
            ports={name: {key: int(port) for key, port in entry.items()} for name, entry in ports.items()},
        )
    except (FileNotFoundError, NotADirectoryError):
        return StackState()
    except OSError as error:
        raise HomeError(f"cannot read {path}: {error.strerror or error}; make it readable") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HomeError(
            f"{path} is damaged ({error!r}): remove it, and end its servers by hand if any run"
        ) from error


def _started(name: str, entry: dict[str, Any]) -> Started:
    return Started(
        name=name,
        pid=int(entry["pid"]),
        created=float(entry["created"]),
        version=str(entry["version"]),
        ports={key: int(port) for key, port in entry["ports"].items()},
        addresses={key: str(value) for key, value in entry.items() if key not in _OWN_FIELDS},
    )


def write_state(home: Path, state: StackState) -> None:
    """Replaces `stack.json` in one step. Only who holds the stack's lock may call it."""
    body: dict[str, Any] = {
        name: {
            "pid": started.pid,
            "created": started.created,
            "version": started.version,
            "ports": dict(started.ports),
            **started.addresses,
        }
        for name, started in state.servers.items()
    }
    body["ports"] = {name: dict(ports) for name, ports in state.ports.items()}
    draft = home / "stack.json.new"
    draft.write_text(json.dumps(body, indent=2) + "\n")
    draft.replace(home / "stack.json")


def resolve(settings: Settings) -> Settings:
    """`settings` with its empty addresses filled in: the local stack's where it has one, else the documented
    defaults.

    A server that was started and has crashed counts: it comes back at the same address.
    Raises HomeError when the state file is damaged.
    """
    home = settings.home.absolute()
    addresses: dict[str, str] = {}
    if not settings.store:
        addresses["store"] = str(home / "flows")
    if not (settings.kafka_bootstrap_servers and settings.neo4j_uri):
        servers = read_state(home).servers
        if not settings.kafka_bootstrap_servers:
            kafka = servers.get("kafka")
            addresses["kafka_bootstrap_servers"] = (
                kafka.addresses["bootstrap_servers"] if kafka else DEFAULT_BROKER
            )
        if not settings.neo4j_uri and "neo4j" in servers:
            addresses["neo4j_uri"] = servers["neo4j"].addresses["bolt"]
    return settings.model_copy(update=addresses)
