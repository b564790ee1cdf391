"""Options of the Kafka client from a file: how to reach a broker that asks for TLS or a password.

One `name=value` in each line, with the names of librdkafka (`security.protocol=SASL_SSL`); blank lines and
lines that begin with `#` mean nothing. The agent and the service read the same file. Promises that no error
repeats a value: values are secrets.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"[a-z][a-z0-9.]*")
#: What decides where lineage goes and that nothing is lost stands in settings of its own.
_TAKEN = frozenset(("bootstrap.servers", "group.id", "client.id", "enable.auto.commit", "auto.offset.reset"))


def read(path: str) -> tuple[tuple[str, str], ...]:
    """(name, value) of each line. Raises ValueError with the file, the line's number and what to do."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'not text'}") from None
    options: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, equals, value = line.partition("=")
        name, value = name.strip(), value.strip()
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals or not _NAME.fullmatch(name):
            raise ValueError(f"{path}, line {number} is not name=value with a name of librdkafka")
        if name in _TAKEN:
            raise ValueError(f"{path}, line {number}: {name} is not for this file; docs/settings.md has it")
        options[name] = value
    return tuple(options.items())


def patience(answer_s: float) -> dict[str, int]:
    """Options of a client that may wait so long for each answer of a broker, from the first one on."""
    answer_ms = int(1000 * answer_s)
    return {
        "api.version.request.timeout.ms": answer_ms,
        "socket.connection.setup.timeout.ms": answer_ms,
        "socket.timeout.ms": answer_ms + 1_000,
    }
