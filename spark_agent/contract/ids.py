"""Identities: of applications, of nodes, of records; as text, and as numbers."""

from __future__ import annotations

import re

from spark_agent.contract.errors import ContractError

#: The id of a record of a source is its partition and its position in one number; that of a group is its key.
ID_POSITION_BITS = 33

#: Becomes a folder's name and a part of node ids, URLs and Cypher parameters. A colon takes three characters
#: in the name of a folder, which has 255 at most: so 20 of them.
APPLICATION_ID = re.compile(r"(?!(?:[^:]*:){21})[A-Za-z0-9][A-Za-z0-9._:-]{0,199}", re.ASCII)
APPLICATION_ID_RULE = (
    "1 to 200 letters, digits or . _ : - that begin with a letter or digit, with at most 20 colons"
)


def check_application_id(application_id: str) -> None:
    """Raises ContractError."""
    if APPLICATION_ID.fullmatch(application_id) is None:
        raise ContractError(f"application_id {application_id[:80]!r} is not {APPLICATION_ID_RULE}")


def node_id(application_id: str, node: int) -> str:
    """`applicationId#rddId`: what people see as the id of a node."""
    return f"{application_id}#{node}"


def record_id(kind: str, partition: int, offset: int) -> str:
    """`read#P#ROW` at a source, `write#P#ROW` at a sink, `P#OFFSET` between them."""
    prefix = {"source": "read#", "sink": "write#"}.get(kind, "")
    return f"{prefix}{partition}#{offset}"


def parse_record_id(text: str) -> tuple[str | None, int, int]:
    """(`source` | `sink` | None, partition, offset). Raises ContractError."""
    parts = text.split("#")
    kind = {"read": "source", "write": "sink"}.get(parts[0]) if len(parts) == 3 else None
    numbers = parts[1:] if kind else parts
    if len(numbers) != 2 or not all(n.isascii() and n.isdigit() and len(n) < 19 for n in numbers):
        raise ContractError(
            f"record id {text!r} is none of read#PARTITION#ROW, write#PARTITION#ROW, PARTITION#OFFSET"
        )
    return kind, int(numbers[0]), int(numbers[1])
