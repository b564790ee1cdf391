"""Options of librdkafka under the names of Kafka's Java client, as `contract.kafka_config` reads them.

What has no counterpart is named in a sentence and left out, so that the rest still works. Files with
certificates are read here, on the driver: executors get their contents. Promises that no sentence repeats a
value: values are secrets.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_SAME = frozenset(
    (
        "client.dns.lookup",
        "client.rack",
        "connections.max.idle.ms",
        "reconnect.backoff.ms",
        "retry.backoff.ms",
        "retry.backoff.max.ms",
        "sasl.kerberos.service.name",
        "ssl.key.password",
        "ssl.keystore.location",
        "ssl.keystore.password",
    )
)
_RENAMED = {
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
}
#: Options that the Java client takes as text, and those that name a file with it.
_PEM = {
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
_PEM_FILES = {
    "ssl.ca.location": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_ABOUT = "spark.lineage.kafka.config, for DataFrames and SQL: "


def java_options(options: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """(the same options for the Java client, a sentence for each that it cannot have)."""
    java: dict[str, str] = {}
    problems: list[str] = []
    for name, value in options.items():
        if name in ("sasl.username", "sasl.password"):
            continue  # together, below
        try:
            java.update(_java_option(name, value))
        except _UnavailableError as error:
            problems.append(f"{_ABOUT}{error}; it is left out")
    _add_store_types(java, problems)
    if "sasl.username" in options or "sasl.password" in options:
        _add_login(java, options, problems)
    return java, problems


class _UnavailableError(Exception):
    """The Java client cannot have an option; the text says why."""


def _java_option(name: str, value: str) -> dict[str, str]:
    """One option under Java's name. Raises _UnavailableError."""
    if name in _SAME:
        return {name: value}
    if name in _RENAMED:
        return {_RENAMED[name]: value}
    if name == "security.protocol":
        return {name: value.upper()}
    if name == "ssl.endpoint.identification.algorithm":
        return {name: "" if value == "none" else value}
    if name in _PEM:
        return {_PEM[name]: value.replace("\\n", "\n")}
    if name in _PEM_FILES:
        try:
            return {_PEM_FILES[name]: _text(value)}
        except (OSError, ValueError):
            raise _UnavailableError(f"the file that {name} names cannot be read as text") from None
    raise _UnavailableError(f"the Java client has no {name}")


def _add_store_types(java: dict[str, str], problems: list[str]) -> None:
    if "ssl.truststore.certificates" in java:
        java["ssl.truststore.type"] = "PEM"
    if "ssl.keystore.key" in java:
        java["ssl.keystore.type"] = "PEM"
        if "PRIVATE KEY" in java["ssl.keystore.key"] and "RSA PRIVATE" in java["ssl.keystore.key"]:
            problems.append(f"{_ABOUT}the Java client takes the private key in PKCS #8 only")
    elif "ssl.keystore.location" in java:
        java["ssl.keystore.type"] = "PKCS12"


def _add_login(java: dict[str, str], options: Mapping[str, str], problems: list[str]) -> None:
    module = _LOGIN_MODULES.get(java.get("sasl.mechanism", "").upper())
    if module is None:
        problems.append(f"{_ABOUT}sasl.username needs sasl.mechanism {', '.join(_LOGIN_MODULES)}")
        return
    name, word = (_quoted(options.get(f"sasl.{which}", "")) for which in ("username", "password"))
    java["sasl.jaas.config"] = f"{module} required username={name} password={word};"


def _text(path: str) -> str:
    with open(os.path.expanduser(path), encoding="ascii") as file:
        return file.read()


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
