"""Addresses of Kafka brokers as people write them, and as both Kafka clients take them.

The client of Python takes anything and is silent; that of the JVM refuses an address without a port. Promises
that what both get is a list of host:port without spaces, and a sentence for all that was not.
"""

from __future__ import annotations

import re

PORT = 9092
_MAX_PORT = 65_535
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9.])?|\[[0-9A-Fa-f:.]+(?:%\w+)?\])"
_ADDRESS = re.compile(rf"(?:({'|'.join(_PROTOCOLS)})://)?({_HOST})(?::(\d{{1,6}}))?")


def address(part: str) -> str | None:
    """One of them as host:port; None if it is no address of a broker."""
    match = _ADDRESS.fullmatch(part)
    if match is None:
        return None
    if match[3] is None:
        return f"{part}:{PORT}"
    return part if 1 <= int(match[3]) <= _MAX_PORT else None


def addresses(text: str) -> tuple[str, list[str]]:
    """(the list for the clients, a sentence for each address that is not as it was given).

    What is no address is left out; a list without any stays as it is, since nobody can be reached there.
    """
    usable: list[str] = []
    problems: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        whole = address(part)
        if whole is None:
            problems.append(f"{part} is not host:port with a port from 1 to {_MAX_PORT}")
            continue
        usable.append(whole)
        if whole != part:
            problems.append(f"{part} has no port; {PORT} is used")
    return ",".join(usable) or text, problems
