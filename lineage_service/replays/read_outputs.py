"""Reads what the sinks of both runs wrote, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import duckdb

from lineage_service.replays.agent_report import AgentReport, ReportedSink
from lineage_service.replays.original import Original, format_of_replay
from lineage_service.replays.output_rows import OutputRows, files_below
from lineage_service.replays.text_table import TextTable
from lineage_service.replays.verification import Sides
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.row_formats import row_format_of
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["FOR_ALIKE", "FOR_DIFFERENCES", "ReadOutputs"]

#: Bytes of an output of the original that are read: to count rows that look the same, and to compare all.
FOR_ALIKE, FOR_DIFFERENCES = 256 << 20, 2 << 30
_CUT = "of rows of more than 100,000 bytes only the beginning was compared"


class ReadOutputs:
    """Tables of one database. Those of the original are read once."""

    def __init__(self, original: Original, database: duckdb.DuckDBPyConnection) -> None:
        self._original, self._database = original, database
        self._rows = OutputRows()
        self._was: dict[int, tuple[TextTable | None, str]] = {}
        self._tables = 0

    def sides(self, report: AgentReport, sinks: Iterable[int], most_bytes: int) -> dict[int, Sides]:
        """Of these sinks of the original, after a run of the replay."""
        sides: dict[int, Sides] = {}
        for number in dict.fromkeys(sinks):
            sink = self._original.sinks.get(number)
            if sink is None:
                sides[number] = Sides(None, None, "it is no row of an output, so there is nothing to compare")
                continue
            now, why_not_now = self._now(sink, self._original.reported(sink, report.sinks))
            was, why_not_was = self._of_original(sink, most_bytes)
            notes = [why for why in (why_not_now, why_not_was) if why]
            notes += [_CUT] if self._rows.has_cut else []
            sides[number] = Sides(was, now, "; ".join(notes))
        return sides

    def partial_sides(self, report: AgentReport, outputs: Mapping[int, Sequence[str]]) -> dict[int, Sides]:
        """The same where these rows alone of the original are compared, by sink."""
        sides: dict[int, Sides] = {}
        for number, texts in outputs.items():
            sink = self._original.sinks[number]
            now, why_not = self._now(sink, self._original.reported(sink, report.sinks))
            sides[number] = Sides(self._table([texts]), now, why_not)
        return sides

    def _now(self, sink: TopologyNode, reported: ReportedSink | None) -> tuple[TextTable | None, str]:
        if reported is None:
            return None, "the replay did not come to it"
        if reported.to is None:
            return self._of_values(reported)
        format = format_of_replay(row_format_of(sink), reported)
        try:
            return self._table(self._rows.texts(files_below(reported.to), format)), ""
        except UnreadableError as error:
            return None, f"what the replay wrote cannot be read: {error}"

    def _of_values(self, reported: ReportedSink) -> tuple[TextTable | None, str]:
        """Of an action that gave its rows to the program."""
        if reported.values is None:
            return None, f"{reported.name} writes no files, and its values were not captured"
        note = ""
        if reported.total is not None and reported.total > len(reported.values):
            note = f"only the first {len(reported.values):,} of {reported.total:,} values were compared"
        return self._table([reported.values]), note

    def _of_original(self, sink: TopologyNode, most_bytes: int) -> tuple[TextTable | None, str]:
        if sink.number not in self._was:
            self._was[sink.number] = self._read_original(sink, most_bytes)
        return self._was[sink.number]

    def _read_original(self, sink: TopologyNode, most_bytes: int) -> tuple[TextTable | None, str]:
        if self._original.place_of(sink) is None:
            return None, ""
        if sink.outcome is not None and sink.outcome.state != "complete":
            return None, "the original failed before it had written all of it"
        try:
            output = self._original.output(sink, self._rows.files)
            if output.bytes > most_bytes:
                return None, f"the output of the original has {output.bytes:,} bytes, so it was not read"
            return self._table(self._rows.texts(output.files, output.format)), ""
        except UnreadableError as error:
            return None, f"the output of the original cannot be read: {error}"

    def _table(self, batches: Iterable[Sequence[str]]) -> TextTable:
        self._tables += 1
        return TextTable(self._database, f"output_{self._tables}", batches)
