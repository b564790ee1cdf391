"""What keeps a replay from beginning, or from ending. Their texts are for people."""

from __future__ import annotations

from lineage_service.errors import LineageError

__all__ = ["CommandError", "ReplayError", "SandboxError"]


class ReplayError(LineageError):
    """The replay cannot begin: why, and what to do."""


class SandboxError(ReplayError):
    """The folder of a replay cannot be made, written, read or removed."""


class CommandError(ReplayError):
    """The command cannot be started, or not safely."""
