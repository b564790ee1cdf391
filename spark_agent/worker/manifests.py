"""The accumulator that brings commit manifests of task runs to the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Manifests:
    """AccumulatorParam: lists of JSON manifests. On the driver they go to `publish` and are not kept.

    Spark applies an accumulator's update only for attempts that it accepts; that makes it the channel for
    commit manifests.
    """

    publish: Callable[[str], None] | None = None

    def zero(self, _value: list[str]) -> list[str]:
        return []

    def addInPlace(self, collected: list[str], more: list[str]) -> list[str]:
        if self.publish is None:
            return collected + more
        for manifest in more:
            self.publish(manifest)
        return []

    def __getstate__(self) -> dict[str, Any]:
        return {}  # workers collect; only the driver publishes
