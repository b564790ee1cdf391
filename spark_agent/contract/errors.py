"""What a message that does not follow the contract raises, and how its text names a value."""

from __future__ import annotations


class ContractError(ValueError):
    """A message does not follow the contract; the text says which field or byte and why."""


class UnknownVersionError(ContractError):
    """The message was written by another major version of the contract."""


def in_short(value: object) -> str:
    """A value of JSON for an error's text: one line, never long, and safe however deep the value is."""
    return type(value).__name__ if isinstance(value, (list, dict)) else f"{value!r:.80}"


def check_size(what: str, message: bytes, limit: int) -> None:
    if len(message) > limit:
        raise ContractError(f"{what} of {len(message)} bytes is longer than {limit}")
