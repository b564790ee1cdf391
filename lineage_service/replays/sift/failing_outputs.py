"""The output rows of the original that a check finds wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lineage_service.errors import InvalidQueryError, NothingMatchesError
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.original import Original
from lineage_service.replays.output_rows import OutputRows
from lineage_service.replays.sift.checks import Check
from lineage_service.tracing.files.file_systems import UnreadableError
from spark_agent.contract.smallest_rows import SmallestRows

__all__ = ["FailingOutputs", "OutputRow"]

#: Wrong rows that are kept; rows of an output that is judged as a whole.
_MOST_FAILING, _MOST_ROWS = 1_000, 100_000
#: Times that a function is asked which rows of an output it means.
_MOST_ASKED = 300


@dataclass(frozen=True, slots=True)
class OutputRow:
    """A row of what a sink wrote."""

    node: int
    path: str
    row: int
    text: str


class FailingOutputs:
    """Of one application."""

    def __init__(self, original: Original) -> None:
        self._original, self._reader = original, OutputRows()

    def sinks(self) -> list[int]:
        """Those that wrote files."""
        original = self._original
        return [number for number, sink in original.sinks.items() if original.place_of(sink) is not None]

    def texts(self, sink: int) -> Iterator[tuple[str, list[tuple[int, str]]]]:
        """The rows of an output, in batches, each with its file. Raises ReplayError."""
        node = self._original.sinks[sink]
        try:
            output = self._original.output(node, self._reader.files)
            yield from self._reader.numbered(output.files, output.format)
        except UnreadableError as error:
            raise ReplayError(
                f"the output {self._original.place_of(node)} cannot be judged: {error}"
            ) from None

    def failing(self, sinks: Sequence[int], check: Check) -> list[OutputRow]:
        """The wrong rows, in their order. Raises NothingMatchesError where there is none, ReplayError."""
        rows: list[OutputRow] = []
        for sink in sinks:
            of_sink = self._of_all(sink, check) if check.is_of_all else self._of_rows(sink, check)
            rows += of_sink[: _MOST_FAILING - len(rows)]
        if rows:
            check.unresolved, check.why = 0, ""  # headers, say
            return rows
        if check.unresolved:
            raise InvalidQueryError(
                f"no output row fails, {check.unresolved:,} cannot be judged: {check.why}"
            )
        raise NothingMatchesError(f"the original did not write {check.description}")

    def _of_rows(self, sink: int, check: Check) -> list[OutputRow]:
        rows: list[OutputRow] = []
        for path, batch in self.texts(sink):
            for number in check.failing([text for _, text in batch]):
                if len(rows) < _MOST_FAILING:
                    rows.append(OutputRow(sink, path, *batch[number]))
        return rows

    def _of_all(self, sink: int, check: Check) -> list[OutputRow]:
        """Those rows of an output that fail together, the fewest that can be found fast."""
        rows = [OutputRow(sink, path, row, text) for path, batch in self.texts(sink) for row, text in batch]
        if len(rows) > _MOST_ROWS:
            place = self._original.place_of(self._original.sinks[sink])
            raise ReplayError(
                f"{place} has {len(rows):,} rows, too many for --test: name wrong rows as START"
            )
        asked = 0

        def fails(numbers: tuple[int, ...]) -> bool:
            nonlocal asked
            asked += 1
            return asked <= _MOST_ASKED and bool(check.failing([rows[number].text for number in numbers]))

        smallest = SmallestRows(len(rows), fails)
        smallest.search()
        return [rows[number] for number in smallest.best or ()]
