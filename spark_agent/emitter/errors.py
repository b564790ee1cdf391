"""What LineageApi raises."""

from __future__ import annotations


class LineageApiError(ValueError):
    """A call that cannot be meant; nothing of it was taken."""


class LineageDeliveryError(RuntimeError):
    """Lineage could not be delivered and `on_error` is `fail`."""
