"""Whether the arguments of a call can be meant. All raise LineageApiError where they cannot."""

from __future__ import annotations

from collections.abc import Hashable

from spark_agent import contract
from spark_agent.emitter.errors import LineageApiError

MAX_NUMBER = (1 << 31) - 1


def check_id(name: str, application_id: object) -> None:
    if not isinstance(application_id, str) or contract.APPLICATION_ID.fullmatch(application_id) is None:
        raise LineageApiError(
            f"{name} {application_id!r:.80} is not 1 to 200 letters, digits or . _ : - that begin with a "
            "letter or digit"
        )


def check_number(node_id: object) -> None:
    if isinstance(node_id, bool) or not isinstance(node_id, int) or not 0 <= node_id <= MAX_NUMBER:
        raise LineageApiError(f"node_id {node_id!r:.80} is not a number from 0 to {MAX_NUMBER}")


def check_hash(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise LineageApiError(f"{name} {text!r:.80} is no text")


def check_tag(tag: Hashable) -> None:
    try:
        hash(tag)
    except TypeError:
        raise LineageApiError(f"tag {tag!r:.80} cannot be a key: give a text, a number or a tuple") from None


def check_error(error: object) -> None:
    if not isinstance(error, BaseException):
        raise LineageApiError(f"error {error!r:.80} is no exception")
