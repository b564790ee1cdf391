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
    made: dict[str, str] = {}
    problems: list[str] = []
    for name, value in options.items():
        if name in ("sasl.username", "sasl.password"):
            continue  # together, below
        if name in _SAME:
            made[name] = value
        elif name in _RENAMED:
            made[_RENAMED[name]] = value
        elif name == "security.protocol":
            made[name] = value.upper()
        elif name == "ssl.endpoint.identification.algorithm":
            made[name] = "" if value == "none" else value
        elif name in _PEM:
            made[_PEM[name]] = value.replace("\\n", "\n")
        elif name in _PEM_FILES:
            try:
                made[_PEM_FILES[name]] = _text(value)
            except (OSError, ValueError):
                problems.append(f"{_ABOUT}the file that {name} names cannot be read as text; it is left out")
        else:
            problems.append(f"{_ABOUT}the Java client has no {name}; it is left out")
    if "ssl.truststore.certificates" in made:
        made["ssl.truststore.type"] = "PEM"
    if "ssl.keystore.key" in made:
        made["ssl.keystore.type"] = "PEM"
        if "PRIVATE KEY" in made["ssl.keystore.key"] and "RSA PRIVATE" in made["ssl.keystore.key"]:
            problems.append(f"{_ABOUT}the Java client takes the private key in PKCS #8 only")
    elif "ssl.keystore.location" in made:
        made["ssl.keystore.type"] = "PKCS12"
    if "sasl.username" in options or "sasl.password" in options:
        module = _LOGIN_MODULES.get(made.get("sasl.mechanism", "").upper())
        if module is None:
            problems.append(f"{_ABOUT}sasl.username needs sasl.mechanism {', '.join(_LOGIN_MODULES)}")
        else:
            name, word = (_quoted(options.get(f"sasl.{which}", "")) for which in ("username", "password"))
            made["sasl.jaas.config"] = f"{module} required username={name} password={word};"
    return made, problems


def _text(path: str) -> str:
    with open(os.path.expanduser(path), encoding="ascii") as file:
        return file.read()


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
