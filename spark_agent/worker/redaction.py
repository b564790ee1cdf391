"""What of a key or a value may leave an executor: the user's redaction function (`spark.lineage.redact`).

Promises that no text leaves before the function gave it, and that nothing is raised into the job. Where the
function fails, the text is redacted as a whole, and counted.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent import contract

if TYPE_CHECKING:
    from spark_agent.worker.block_sink import Tally

Redact = Callable[[str, str, Any], Any]
"""(name of the operation, `key` or `value`, the key or value) -> what may leave in its place."""


def redacting(
    setting: str, operation: str, kind: str, tally: Tally, append: Callable[[contract.Text], None], limit: int
) -> Callable[[Any], None]:
    """A function of a key or value that calls `append` with what may leave of it.

    `setting` names the user's function, MODULE:FUNCTION. The text that it gives may be longer than `limit`.
    """
    redact = _imported(setting, tally)

    def add(value: Any) -> None:
        if redact is not None:
            try:
                allowed = redact(operation, kind, value)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - its message may hold the value
                tally.problem = (
                    f"spark.lineage.redact={setting} raised {type(error).__name__}; what it was "
                    "asked about is redacted"
                )
            else:
                append(contract.whole_text(allowed, limit))
                return
        tally.failed_redactions += 1
        append(contract.WITHHELD)

    return add


def _imported(setting: str, tally: Tally) -> Redact | None:
    """The function MODULE:FUNCTION, or None: `tally` says why."""
    module, _, name = setting.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
        if not callable(function):
            raise TypeError("it is not a function")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's module may raise anything
        tally.problem = (
            f"spark.lineage.redact={setting} cannot be imported on executors "
            f"({type(error).__name__}: {error}); every key and value is redacted. Send its module with "
            "--py-files"
        )
        return None
    redact: Redact = function
    return redact
