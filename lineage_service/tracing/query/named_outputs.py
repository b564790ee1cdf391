"""The outputs that a query calls bad or good, each with the records that it stands at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from lineage_service.errors import InvalidQueryError
from lineage_service.queries import StartQuery, TraceQuery
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.walk.result import Position

__all__ = ["MOST_OUTPUTS", "NamedOutputs", "StartsOf", "outputs_named", "spread"]

#: Outputs of either kind whose lineages are looked at.
MOST_OUTPUTS = 100

StartsOf = Callable[[Opened, TraceQuery, Check], Sequence[Position]]
"""The records at which a trace begins."""


@dataclass(frozen=True, slots=True)
class NamedOutputs:
    """A row of a file that several nodes wrote or read is one output, which stands at several records."""

    outputs: tuple[tuple[Position, ...], ...] = ()
    total: int = 0  # named, of which those are spread evenly
    nodes: frozenset[int] = field(default_factory=frozenset)


def outputs_named(
    opened: Opened, starts: Sequence[StartQuery], starts_of: StartsOf, check: Check
) -> NamedOutputs:
    """Of a condition, each record that fulfils it. Raises InvalidQueryError, NotFoundError."""
    outputs: list[tuple[Position, ...]] = []
    for start in starts:
        if start.failure is not None:
            raise InvalidQueryError("a failure is no output: `lineage contrast --failures` looks at them")
        positions = starts_of(opened, TraceQuery(direction="backward", **asdict(start)), check)
        if start.path is not None and start.row is not None:
            outputs.append(tuple(positions))
        else:
            outputs += [(position,) for position in positions]
    distinct = list(dict.fromkeys(outputs))
    nodes = frozenset(position.node for output in distinct for position in output)
    return NamedOutputs(tuple(spread(distinct, MOST_OUTPUTS)), len(distinct), nodes)


def spread(outputs: Sequence[tuple[Position, ...]], most: int) -> list[tuple[Position, ...]]:
    """So many of them at equal distances, or all."""
    if len(outputs) <= most:
        return list(outputs)
    return [outputs[at * len(outputs) // most] for at in range(most)]
