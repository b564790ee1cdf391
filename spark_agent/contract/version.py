"""The version that every message names: a reader knows one major version, and every minor one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spark_agent.contract.errors import ContractError, UnknownVersionError, in_short

MAJOR, MINOR = 1, 8
VERSION = f"{MAJOR}.{MINOR}"

_VERSION = re.compile("([0-9]{1,9})[.]([0-9]{1,9})")


def check_version(version: object) -> None:
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        raise ContractError(f"message has no version MAJOR.MINOR: {in_short(version)}")
    if int(match[1]) != MAJOR:
        raise UnknownVersionError(f"message has version {version}; this reader knows {MAJOR}.x")


def reports_persisted(started: Mapping[str, Any]) -> bool:
    """Does the application of this `application_started` report which RDDs it persists (since 1.7)?"""
    match = _VERSION.fullmatch(str(started.get("version")))
    return match is not None and int(match[2]) >= 7
